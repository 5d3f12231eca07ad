"""One call of the ingest: drafts that wait for a commit, and the outcomes so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.core.errors import DocuMindError, StorageError
from app.core.ports import IndexWriter
from app.core.types import (
    DocumentDraft,
    IngestOutcome,
    JobFile,
    Receipt,
    WriteResult,
)

Progress = Callable[[int, JobFile], None]
"""Told the position of a document in the request and how far it is."""

Written = Callable[[Sequence[str]], None]
"""Told the ids of documents whose text is live now, a batch at a time."""

_FIRST_DOCUMENTS, _BATCH_DOCUMENTS = 2, 64
"""Small files share a commit: it costs as much as reading a few of them. The first come early,
so that their vectors are made while the others are read; each batch is twice the one before."""
_BATCH_CHARACTERS = 4_000_000


@dataclass(frozen=True, slots=True)
class PendingDocument:
    """A draft that waits to be written, with what its receipt will say."""

    index: int
    draft: DocumentDraft
    receipt: Receipt
    remark: str | None


class IngestRun:
    """State of one call; not thread-safe."""

    def __init__(
        self, writer: IndexWriter, progress: Progress | None, written: Written | None
    ) -> None:
        self._writer = writer
        self._progress = progress
        self._written = written
        self._most = _FIRST_DOCUMENTS
        self._batch: list[PendingDocument] = []
        self._outcomes: dict[int, IngestOutcome] = {}

    @property
    def pending_keys(self) -> set[str]:
        """The source keys of drafts that wait."""
        return {pending.draft.source_key for pending in self._batch}

    def start(self, index: int, filename: str) -> None:
        """Tell that a document is being read."""
        self._tell(index, filename, "running", 0.0)

    def add(self, pending: PendingDocument) -> None:
        """Add a draft; write the batch when it is large enough."""
        self._batch.append(pending)
        self._tell(pending.index, pending.draft.filename, "running", 0.5)
        if (
            len(self._batch) >= self._most
            or sum(len(p.draft.text) for p in self._batch) >= _BATCH_CHARACTERS
        ):
            self.flush()

    def finish(self, index: int, outcome: IngestOutcome) -> None:
        """Keep and tell the outcome of a document."""
        self._outcomes[index] = outcome
        self._tell(index, outcome.filename, "failed" if outcome.status == "failed" else "done", 1.0)

    def flush(self) -> None:
        """Write the drafts that wait."""
        batch, self._batch = self._batch, []
        if not batch:
            return
        self._most = min(2 * self._most, _BATCH_DOCUMENTS)
        outcomes = self._write(batch)
        for pending, outcome in zip(batch, outcomes, strict=True):
            self.finish(pending.index, outcome)
        if self._written is not None:
            self._written(
                [
                    outcome.doc_id
                    for outcome in outcomes
                    if outcome.doc_id is not None and outcome.status != "unchanged"
                ]
            )

    def _write(self, batch: Sequence[PendingDocument]) -> list[IngestOutcome]:
        """Write a batch at once; if the writer refuses it, write one by one."""
        try:
            results = self._writer.write([pending.draft for pending in batch])
        except StorageError as exc:
            return [failed_outcome(pending.draft.filename, exc) for pending in batch]
        except DocuMindError as exc:
            if len(batch) == 1:
                return [failed_outcome(batch[0].draft.filename, exc)]
            return [outcome for pending in batch for outcome in self._write([pending])]
        return [_outcome(pending, result) for pending, result in zip(batch, results, strict=True)]

    def outcomes(self) -> list[IngestOutcome]:
        """Return the outcomes in the order of the documents."""
        return [self._outcomes[index] for index in sorted(self._outcomes)]

    def _tell(
        self,
        index: int,
        filename: str,
        state: Literal["running", "done", "failed"],
        progress: float,
    ) -> None:
        if self._progress is not None:
            self._progress(index, JobFile(filename, state, progress))


def _outcome(pending: PendingDocument, result: WriteResult) -> IngestOutcome:
    draft, remarks = pending.draft, [pending.remark] if pending.remark else []
    if result.status == "replaced" and draft.source_key == draft.filename:
        remarks.append(
            f"it took the place of the document that was sent as {draft.filename!r} before; to keep"
            " both, send each with a source_key of its own, such as its path"
        )
    return IngestOutcome(
        draft.filename,
        result.doc_id,
        result.status,
        reason="; ".join(remarks) or None,
        duplicate_of=result.duplicate_of,
        receipt=pending.receipt if result.status != "unchanged" else None,
    )


def failed_outcome(filename: str, error: DocuMindError) -> IngestOutcome:
    """Return the outcome of a document that an error kept out."""
    return IngestOutcome(filename, None, "failed", reason=error.message, code=error.code)
