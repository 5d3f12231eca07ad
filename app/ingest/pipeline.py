"""Ingest a file: parse, describe, chunk, write; a receipt for each document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from app.core.cancel import CancelToken
from app.core.corrections import mended, place
from app.core.errors import (
    Cancelled,
    Conflict,
    DocuMindError,
    Overload,
    StorageError,
    Unreadable,
    refusal,
)
from app.core.ids import content_sha256, document_id
from app.core.labels import FILE_DATE
from app.core.languages import language_of
from app.core.ports import Embedder, Parser
from app.core.types import (
    Correction,
    Document,
    DocumentDraft,
    IngestOutcome,
    JobFile,
    Library,
    ParsedDocument,
    RawDocument,
    Receipt,
    WriteResult,
)
from app.ingest.chunking import chunk
from app.ingest.metadata import describe
from app.ingest.options import IngestOptions
from app.ingest.parsers import READER_VERSION
from app.ingest.parsers.formats import type_of

if TYPE_CHECKING:
    from app.storage.writer import CatalogIndexWriter

# One call of the ingest: drafts that wait for a commit, and the outcomes so far.

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
    index: int
    draft: DocumentDraft
    receipt: Receipt
    remark: str | None


class IngestRun:
    """State of one call; not thread-safe."""

    def __init__(
        self,
        writer: CatalogIndexWriter,
        progress: Progress | None,
        written: Written | None,
        ask_for_ocr: Callable[[str, str], object] | None = None,
    ) -> None:
        self._writer = writer
        self._ask_for_ocr = ask_for_ocr
        self._progress = progress
        self._written = written
        self._most = _FIRST_DOCUMENTS
        self._batch: list[PendingDocument] = []
        self._outcomes: dict[int, IngestOutcome] = {}

    def start(self, index: int, document: RawDocument) -> None:
        """Tell that a document is read, with what came before under its key written."""
        self._tell(index, document.filename, "running", 0.0)
        if any(document.source_key == pending.draft.source_key for pending in self._batch):
            self.flush()

    def add(self, pending: PendingDocument) -> None:
        """Add a draft; write the batch when it is large enough."""
        self._batch.append(pending)
        self._tell(pending.index, pending.draft.filename, "running", 0.5)
        characters = sum(len(one.draft.text) for one in self._batch)
        if len(self._batch) >= self._most or characters >= _BATCH_CHARACTERS:
            self.flush()

    def finish(self, index: int, outcome: IngestOutcome) -> None:
        self._outcomes[index] = outcome
        self._tell(index, outcome.filename, "failed" if outcome.status == "failed" else "done", 1.0)

    def flush(self) -> None:
        batch, self._batch = self._batch, []
        if not batch:
            return
        self._most = min(2 * self._most, _BATCH_DOCUMENTS)
        outcomes = self._write(batch)
        for pending, outcome in zip(batch, outcomes, strict=True):
            self.finish(pending.index, outcome)
            draft = pending.draft
            if self._ask_for_ocr is not None and outcome.doc_id and waits_for_ocr(draft.flags):
                self._ask_for_ocr(draft.doc_id, draft.sha256)
        if self._written is not None:
            live = (one for one in outcomes if one.status != "unchanged")
            self._written([one.doc_id for one in live if one.doc_id is not None])

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
    if result.status == "replaced" and draft.source_key == draft.filename and not draft.again:
        remarks.append(
            f"it took the place of the document that was sent as {draft.filename!r} before; to keep"
            " both, send each with a source_key of its own, such as its path"
        )
    if result.left_out:
        remarks.append(
            f"its metadata {', '.join(result.left_out)} is left out: other documents have values"
            " of another kind under the same key"
        )
    return IngestOutcome(
        draft.filename,
        result.doc_id,
        result.status,
        reason="; ".join(remarks) or None,
        duplicate_of=result.duplicate_of,
        receipt=pending.receipt if result.status != "unchanged" else None,
        unplaced=sum(not one.placed for one in draft.corrections),
    )


def failed_outcome(filename: str, error: DocuMindError) -> IngestOutcome:
    return IngestOutcome(filename, None, "failed", reason=error.message, code=error.code)


Inspect = Callable[[str], tuple[str, ...]]
"""Looks at a text and returns flags for the reader, for example `override`."""

PARSER_EDITION = f"reader {READER_VERSION}"
"""Edition of what this release reads: bytes that an older one has read are not unchanged."""


RECOGNISED, UNREAD = "ocr:", "unread:"
"""Flags, with a number of pages: OCR has read them, or they are pictures of text."""
UNPLACED = "unplaced:"
"""A flag, with a number of corrections that do not fit what was read."""


def waits_for_ocr(flags: Iterable[str]) -> bool:
    return any(flag.startswith(UNREAD) for flag in flags)


@dataclass(frozen=True, slots=True)
class IngestPipeline:
    """Turns raw documents into live revisions; thread-safe if its parts are."""

    parser: Parser
    writer: CatalogIndexWriter
    embedder: Embedder | None
    """Bounds chunks by its token limit; None leaves that to the backfill."""
    options: IngestOptions
    inspect: Inspect | None = None
    """Finds what a reader should be warned of in a text; default nothing."""
    rereads: Callable[[], bool] = lambda: True
    """Says whether bytes that an older release has read are read again, or are unchanged."""
    ask_for_ocr: Callable[[Library, str, str], object] | None = None
    """Told the id and SHA-256 of a live document with pages that OCR is to read."""

    def ingest(
        self,
        library: Library,
        documents: Iterable[RawDocument],
        *,
        progress: Progress | None = None,
        written: Written | None = None,
        cancel: CancelToken | None = None,
    ) -> list[IngestOutcome]:
        """Make documents live; return outcomes in order. A bad file fails alone.

        On return everything reported as indexed or replaced is durable and found lexically; vectors
        are the backfill's work. Two documents of one source key are taken in order: the later one
        replaces the earlier.

        Raises:
            Cancelled: Asked to stop; what was written before stays.
        """
        ask = None if self.ask_for_ocr is None else partial(self.ask_for_ocr, library)
        run = IngestRun(self.writer, progress, written, ask)
        for index, document in enumerate(documents):
            if cancel is not None and cancel.cancelled:
                run.flush()
                raise Cancelled(f"the ingest was cancelled after {index} documents; those are kept")
            run.start(index, document)
            try:
                prepared = self._prepare(index, library, document)
            except DocuMindError as exc:
                run.finish(index, failed_outcome(document.filename, exc))
                continue
            if isinstance(prepared, IngestOutcome):
                run.finish(index, prepared)
            else:
                run.add(prepared)
        run.flush()
        return run.outcomes()

    def _prepare(
        self, index: int, library: Library, document: RawDocument
    ) -> PendingDocument | IngestOutcome:
        try:
            sha256 = content_sha256(document.content)
        except OSError as exc:
            if (refused := refusal(exc)) is not None and isinstance(refused, Overload):
                raise refused from exc
            raise Unreadable(
                f"{document.filename!r} cannot be read ({exc.strerror}); check that it exists and"
                " may be read"
            ) from exc
        live = self.writer.current(library, document.source_key)
        is_known = live is not None and live.sha256 == sha256 and not document.again
        if (
            live is not None
            and is_known
            and (self.writer.source_revision(live) == PARSER_EDITION or not self.rereads())
            and (document.reread or self.writer.accept_again(live, document.job_id))
        ):
            if document.labels:
                self.writer.label(library, live.doc_id, document.labels)
            if self.ask_for_ocr is not None and waits_for_ocr(live.flags):  # it was cancelled, say
                self.ask_for_ocr(library, live.doc_id, sha256)
            return IngestOutcome(
                document.filename, live.doc_id, "unchanged", duplicate_of=live.duplicate_of
            )
        parsed = self.parser.parse(
            document.content, document.filename, words=self.writer.page_words(sha256)
        )
        same = live if live is not None and live.sha256 == sha256 else None
        corrections = self._corrections(document, parsed, same)
        parsed = mended(parsed, corrections)
        draft = self._draft(library, document, parsed, sha256)
        unplaced = sum(not one.placed for one in corrections)
        draft = replace(
            draft,
            corrections=corrections,
            follows=same.revision if same is not None else None,
            flags=(*draft.flags, f"{UNPLACED}{unplaced}") if unplaced else draft.flags,
        )
        if same is None or not (same.tags or {*same.metadata} - {FILE_DATE}):
            # Bytes that are only read again do not undo what people changed.
            draft = replace(draft, labels=parsed.labels.under(document.labels))
        # Kept only once it is known to be readable, and before the write that makes it live: a
        # refused file leaves nothing behind.
        self.writer.store_original(document.content)
        covered = _covered(parsed.text, draft)
        receipt = Receipt(len(parsed.pages), len(parsed.text), covered, len(draft.chunks), 0)
        remarks = [*parsed.warnings, *([_said_unplaced(unplaced)] if unplaced else ())]
        return PendingDocument(index, draft, receipt, "; ".join(remarks) or None)

    def _corrections(
        self, document: RawDocument, parsed: ParsedDocument, live: Document | None
    ) -> tuple[Correction, ...]:
        """Return the corrections of a document with their places in what was read.

        Args:
            document: May bring corrections of its own.
            parsed: What was read.
            live: With the same bytes; None: there is no such one.

        Raises:
            Conflict: One that the document brings has no place.
        """
        if live is None:
            return ()
        given = document.corrections
        known = (
            self.writer.corrections(live.library, live.doc_id, live.revision)
            if given is None
            else given
        )
        found = place(parsed.text, parsed.pages, known)
        if given is not None and sum(one.placed for one in given) > sum(o.placed for o in found):
            raise Conflict(
                f"{document.filename!r} was read by an older release, and a correction does not fit"
                " what this one reads: wait until it was read again, or send its file again"
            )
        return found

    def _draft(
        self, library: Library, document: RawDocument, parsed: ParsedDocument, sha256: str
    ) -> DocumentDraft:
        embedder = self.embedder
        limits = (embedder.count_tokens, embedder.identity.max_tokens) if embedder else ()
        chunks = chunk(parsed, self.options, *limits)
        flags = self.inspect(parsed.text) if self.inspect else ()
        if parsed.stripped_characters:
            flags = (*flags, f"stripped:{parsed.stripped_characters}")
        if parsed.recognised:
            flags = (*flags, f"{RECOGNISED}{parsed.recognised}")
        if parsed.unread:
            flags = (*flags, f"{UNREAD}{len(parsed.unread)}")
        return DocumentDraft(
            library=library,
            doc_id=document.doc_id or document_id(library, document.source_key),
            source_key=document.source_key,
            filename=document.filename,
            sha256=sha256,
            type=type_of(parsed.media_type),
            text=parsed.text,
            metadata=replace(
                document.metadata or describe(parsed, document.filename),
                language=language_of(parsed.text),
                **document.labels.facts,
            ),
            chunks=chunks,
            pages=parsed.pages,
            headings=parsed.headings,
            source_url=document.source_url,
            licence=document.licence,
            flags=flags,
            has_original=True,
            source_revision=PARSER_EDITION,
            job_id=document.job_id,
            labels=document.labels,
            again=document.again,
            reread=document.reread,
        )


def _said_unplaced(count: int) -> str:
    return (
        f"{count} of its corrections do not fit what is read now; they are listed with the document"
    )


def _covered(text: str, draft: DocumentDraft) -> int:
    """Count non-blank characters inside chunks, each once."""
    total = reached = 0
    for span in draft.chunks:
        piece = text[max(span.start, reached) : span.end]
        total += len("".join(piece.split()))
        reached = max(reached, span.end)
    return total
