"""Payloads and results of ingest jobs as JSON values, for edge and handlers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from app.core.errors import NotFound
from app.core.labels import NO_LABELS
from app.core.types import IngestOutcome, Job, Labels, Library, from_json

if TYPE_CHECKING:
    from app.storage.catalog.documents import Catalog


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """One accepted file: its original is stored under its hash."""

    filename: str
    source_key: str
    sha256: str
    labels: Labels = NO_LABELS


@dataclass(frozen=True, slots=True)
class IngestPayload:
    """Files to ingest, in upload order."""

    library: Library
    files: tuple[UploadedFile, ...]
    retry: bool = False
    """True when the sender was told `accepted` and left: retryable errors are tried again
    instead of reported."""


@dataclass(frozen=True, slots=True)
class IngestReport:
    """Outcomes in upload order, and how far the work has come."""

    level: Literal["text", "vectors"]
    """`text`: acknowledged and found by words; `vectors`: found by meaning too."""
    documents: tuple[IngestOutcome, ...]


def report_of(result: Mapping[str, object] | None) -> IngestReport | None:
    """Return a job's report; None if it is not there yet or the job failed."""
    is_there = result is not None and "documents" in result
    return from_json(IngestReport, result) if is_there else None


def has_text(job: Job) -> bool:
    return report_of(job.result) is not None


def pending_originals(jobs: Sequence[Job]) -> frozenset[str]:
    """Return hashes of originals that unfinished jobs need; a start keeps them."""
    listed = (job.payload.get("files") for job in jobs)
    files = (file for one in listed if isinstance(one, Sequence) for file in one)
    return frozenset(
        str(file["sha256"]) for file in files if isinstance(file, Mapping) and "sha256" in file
    )


def counted(
    catalog: Catalog, library: Library, outcomes: Sequence[IngestOutcome]
) -> Iterator[IngestOutcome]:
    """Yield outcomes with the vectors that their documents have by now."""
    for outcome in outcomes:
        if outcome.doc_id is None or outcome.receipt is None:
            yield outcome
            continue
        try:
            embedded = catalog.document(library, outcome.doc_id).embedded
        except NotFound:  # deleted since
            embedded = 0
        yield replace(outcome, receipt=replace(outcome.receipt, vectors=embedded))
