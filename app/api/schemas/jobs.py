"""Jobs and what an ingest reports."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from app.api.schemas.base import Reply
from app.core.types import IngestOutcome, Job, JobFile, JobState


class JobReply(Reply):
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
    files: list[JobFile]
    result: dict[str, object] | None = Field(description="result of the job, by kind")
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, job: Job) -> Self:
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
            files=list(job.files),
            result=None if job.result is None else dict(job.result),
            created_at=job.created_at,
            updated_at=job.updated_at,
        )


class JobList(Reply):
    """Jobs, newest first."""

    jobs: list[JobReply]


class IngestResponse(Reply):
    """Outcomes in upload order; empty while the job is still queued (202)."""

    job_id: str
    documents: list[IngestOutcome]
