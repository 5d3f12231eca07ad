"""Bases of all models, and what several rooms of routes reply."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.core.types import IngestOutcome

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


class IngestResponse(Reply):
    """Outcomes in upload order; empty while the job is still queued (202)."""

    job_id: str
    documents: list[IngestOutcome]
