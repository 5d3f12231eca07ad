"""Bases of all models, and what several rooms of routes reply."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from app.core.types import IngestOutcome, Job, JobFile, JobState

WaitName = Literal["true", "text", "false"]
"""How long a request that starts a job waits: until vectors are applied, until acknowledged, or
not at all."""

DocId = Annotated[
    str,
    Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$", examples=["3f2a9c0d41b7e685"]),
]
"""16 hex digits, or the fixed id of a sample."""

Flag = Annotated[bool, Field(strict=True)]
"""true or false; 0, 1 and "yes" are mistakes, not flags."""


class Request(BaseModel):
    """A request body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Tolerant(BaseModel):
    """A body of a foreign client: unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Reply(BaseModel):
    """A body we send."""

    model_config = ConfigDict(
        frozen=True, from_attributes=True, json_schema_serialization_defaults_required=True
    )


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
        library = str(job.payload["library"]) if "library" in job.payload else None
        shared = cls.model_fields.keys() - {"library"}
        return cls(library=library, **{name: getattr(job, name) for name in shared})


class IngestResponse(Reply):
    """Outcomes in upload order; empty while the job is still queued (202)."""

    job_id: str
    documents: list[IngestOutcome]
