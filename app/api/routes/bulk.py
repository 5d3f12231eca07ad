"""Serve bulk sources: plan, index, embed, and the ledger of articles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from app.api.deps import Composition
from app.api.errors import declared
from app.api.paths import server_path
from app.api.schemas.base import Reply, Request
from app.api.schemas.jobs import JobReply
from app.core.errors import InvalidInput
from app.core.types import Library, LibraryName
from app.ingest.bulk import MissingPolicy
from app.ingest.sources.articles import open_articles
from app.jobs.bulk_plan import BULK_PLAN
from app.jobs.kinds import request_embedding

router = APIRouter(prefix="/api/v1/bulk", tags=["bulk"])

NAME = r"^[^\x00-\x1f]+$"


class BulkRequest(Request):
    """The work on a bulk source. The source is a path on the server's machine."""

    action: Literal["plan", "index", "embed"]
    library: LibraryName = "public"
    source: Annotated[str | None, Field(min_length=1, max_length=4096, pattern=NAME)] = Field(
        None, description="absolute path on the server, or hub:owner/name; for plan and index"
    )
    name: Annotated[str | None, Field(min_length=1, max_length=200, pattern=NAME)] = Field(
        None, description="name of the source in the ledger; null: its own name, such as enwiki"
    )
    workers: int | None = Field(
        None,
        ge=0,
        le=64,
        description="index: parser processes; 0: the server's own; null chooses by source and"
        " cores."
        " embed: batches that are with the embedder at once; 0 and null are 1",
    )
    missing: MissingPolicy | None = Field(
        None,
        description="index: documents whose article is gone from the source; remove (refused if"
        " most would go), keep, force;"
        " null keeps them for a part of a dump and removes them otherwise",
    )
    articles: int | None = Field(
        None, ge=1, description="index: at most this many articles, from the beginning"
    )
    order: Literal["id", "longest", "linked"] = Field(
        "id",
        description="embed: which documents first; linked: those most other articles of their"
        " source link to",
    )
    limit: int | None = Field(None, ge=1, description="embed: at most this many chunks")


class LedgerReply(Reply):
    """The account: `articles` is the sum of the others."""

    model_config = ConfigDict(from_attributes=True)

    articles: int
    indexed: int
    redirects: int
    skipped: dict[str, int] = Field(description="counts by reason")


@router.post(
    "",
    operation_id="bulk",
    status_code=202,
    response_model=JobReply,
    responses=declared("not_found", "conflict", "unreadable", "disk_full", "fingerprint_mismatch"),
)
def bulk(asked: BulkRequest, services: Composition) -> JobReply:
    """Start a job on a bulk source; asking for the same again joins or resumes it."""
    library = Library(asked.library)
    if asked.action == "embed":
        return JobReply.of(
            request_embedding(services.jobs, library, asked.order, asked.limit, asked.workers or 1)
        )
    if asked.source is None:
        raise InvalidInput(
            f"action {asked.action!r} needs a source: an absolute path on the server, or"
            " hub:owner/name"
        )
    if not asked.source.startswith("hub:") and not Path(asked.source).is_absolute():
        raise InvalidInput(
            f"source {asked.source!r} must be an absolute path on the server, or hub:owner/name"
        )
    if not asked.source.startswith("hub:"):
        server_path(asked.source)
    if asked.action == "plan":
        open_articles(asked.source)
        payload = {"library": library.value, "source": asked.source, "name": asked.name}
        return JobReply.of(services.jobs.submit(BULK_PLAN, payload, unit="articles"))
    return JobReply.of(
        services.bulk.request(
            library,
            asked.source,
            name=asked.name or "",
            workers=asked.workers,
            missing=asked.missing,
            articles=asked.articles,
        )
    )


@router.get("/ledger", operation_id="bulk_ledger", response_model=LedgerReply, responses=declared())
def bulk_ledger(
    services: Composition,
    library: LibraryName | None = None,
    source: Annotated[
        str | None,
        Query(min_length=1, max_length=200, description="name of one source, for example enwiki"),
    ] = None,
) -> LedgerReply:
    """Count the outcomes of all articles, of one library's, or of one source's."""
    found = services.ledger.summary(Library(library) if library else None, source)
    return LedgerReply.model_validate(found)
