"""Jobs and what an ingest reports."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from app.api.schemas.base import Reply
from app.core.types import Job as CoreJob
from app.core.types import JobState


class FileProgress(Reply):
    """Progress of one file."""

    filename: str
    state: Literal["queued", "running", "done", "failed"]
    progress: float = Field(ge=0, le=1)


class Job(Reply):
    """A piece of long work; it survives a restart of the server."""

    id: str
    kind: str
    library: str | None = Field(description="the library it works on; null for several or none")
    state: JobState
    done: int
    total: int | None
    unit: str
    eta_s: float | None = Field(description="seconds left, null while unknown")
    errors: list[str]
    files: list[FileProgress]
    result: dict[str, object] | None = Field(description="result of the job, by kind")
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, job: CoreJob) -> Job:
        """Return a job as the API shows it; its payload stays inside."""
        return cls(
            id=job.id,
            kind=job.kind,
            library=str(job.payload["library"]) if "library" in job.payload else None,
            state=job.state,
            done=job.done,
            total=job.total,
            unit=job.unit,
            eta_s=job.eta_s,
            errors=list(job.errors),
            files=[FileProgress(filename=file.filename, state=file.state, progress=file.progress) for file in job.files],
            result=None if job.result is None else dict(job.result),
            created_at=job.created_at,
            updated_at=job.updated_at,
        )


class JobList(Reply):
    """Jobs, newest first."""

    jobs: list[Job]


class Receipt(Reply):
    """Counts of a document's characters."""

    pages: int
    characters: int
    covered_characters: int = Field(description="non-blank characters inside chunks")
    chunks: int
    vectors: int


class IngestedDocument(Reply):
    """The outcome of one file."""

    filename: str
    doc_id: str | None
    status: Literal["indexed", "unchanged", "replaced", "failed"]
    reason: str | None
    duplicate_of: str | None
    receipt: Receipt | None


class IngestResponse(Reply):
    """Outcomes in upload order; empty while the job is still queued (202)."""

    job_id: str
    documents: list[IngestedDocument]
