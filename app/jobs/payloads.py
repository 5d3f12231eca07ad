"""Define jobs' payloads and results as JSON values, for edge and handlers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, cast

from app.core.errors import NotFound
from app.core.ports import Catalog
from app.core.types import IngestOutcome, Job, Library, Receipt
from app.ingest.pipeline import with_vectors


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """One accepted file: its original is stored under its hash."""

    filename: str
    source_key: str
    sha256: str


@dataclass(frozen=True, slots=True)
class IngestPayload:
    """Files to ingest, in upload order."""

    library: Library
    files: tuple[UploadedFile, ...]
    retry: bool = False
    """True when the sender was told `accepted` and left: retryable errors are tried again
    instead of reported."""

    def to_json(self) -> dict[str, object]:
        """Return the payload as JSON values."""
        return {
            "library": self.library.value,
            "files": [asdict(file) for file in self.files],
            "retry": self.retry,
        }

    @classmethod
    def from_json(cls, payload: Mapping[str, object]) -> IngestPayload:
        """Return the payload of a job."""
        files = cast("Sequence[Mapping[str, str]]", payload["files"])
        return cls(
            Library(str(payload["library"])),
            tuple(UploadedFile(**file) for file in files),
            payload.get("retry") is True,
        )


@dataclass(frozen=True, slots=True)
class IngestReport:
    """Outcomes in upload order, and how far the work has come."""

    outcomes: tuple[IngestOutcome, ...]
    level: Literal["text", "vectors"]
    """`text`: acknowledged and found by words; `vectors`: found by meaning too."""

    def to_json(self) -> dict[str, object]:
        """Return the report as JSON values."""
        return {"level": self.level, "documents": [asdict(outcome) for outcome in self.outcomes]}

    @classmethod
    def from_json(cls, result: Mapping[str, object] | None) -> IngestReport | None:
        """Return a job's report; None if it is not there yet or the job failed."""
        if result is None or "documents" not in result:
            return None
        rows = cast("Sequence[Mapping[str, object]]", result["documents"])
        level = cast("Literal['text', 'vectors']", result["level"])
        return cls(tuple(_outcome(row) for row in rows), level)


def has_text(job: Job) -> bool:
    """Return whether a job's documents are acknowledged."""
    return IngestReport.from_json(job.result) is not None


def pending_originals(jobs: Sequence[Job]) -> frozenset[str]:
    """Return hashes of originals that unfinished jobs need.

    A clean-up at start keeps them.
    """
    hashes: set[str] = set()
    for job in jobs:
        files = job.payload.get("files")
        if isinstance(files, Sequence):
            hashes.update(
                str(file["sha256"])
                for file in files
                if isinstance(file, Mapping) and "sha256" in file
            )
    return frozenset(hashes)


def _outcome(row: Mapping[str, object]) -> IngestOutcome:
    receipt = cast("Mapping[str, int] | None", row.get("receipt"))
    values = cast(
        "Mapping[str, str | None]",
        {name: value for name, value in row.items() if name != "receipt"},
    )
    return IngestOutcome(
        filename=values["filename"] or "",
        doc_id=values["doc_id"],
        status=cast("Literal['indexed', 'unchanged', 'replaced', 'failed']", values["status"]),
        reason=values["reason"],
        code=values["code"],
        duplicate_of=values["duplicate_of"],
        receipt=None if receipt is None else Receipt(**receipt),
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
        yield with_vectors(outcome, embedded)
