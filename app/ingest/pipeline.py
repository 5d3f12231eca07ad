"""Ingest a file: parse, describe, chunk, write; a receipt for each document."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from app.core.cancel import CancelToken
from app.core.errors import Cancelled, DocuMindError, Overload, Unreadable
from app.core.ids import content_sha256, document_id
from app.core.languages.detection import language_of
from app.core.ports import Embedder, IndexWriter, Parser
from app.core.system_errors import refusal
from app.core.types import (
    Document,
    DocumentDraft,
    IngestOutcome,
    Library,
    ParsedDocument,
    RawDocument,
    Receipt,
)
from app.ingest.chunking import chunk
from app.ingest.ingest_run import IngestRun, PendingDocument, Progress, Written, failed_outcome
from app.ingest.metadata import describe
from app.ingest.options import IngestOptions
from app.ingest.parsers import READER_VERSION
from app.ingest.parsers.formats import type_of

Inspect = Callable[[str], tuple[str, ...]]
"""Looks at a text and returns flags for the reader, for example `override`."""

_READ_AS = f"reader {READER_VERSION}"
"""Edition of what this release reads: bytes that an older one has read are not unchanged."""


class IngestPipeline:
    """Turns raw documents into live revisions.

    Thread-safe if its parts are; each call keeps its own state.
    """

    def __init__(
        self,
        parser: Parser,
        writer: IndexWriter,
        embedder: Embedder | None,
        options: IngestOptions,
        *,
        inspect: Inspect | None = None,
        rereads: Callable[[], bool] = lambda: True,
    ) -> None:
        """Wire the pipeline.

        Args:
            parser: Bytes to text.
            writer: Where drafts become live.
            embedder: Bounds chunks by its token limit; None leaves that to the backfill.
            options: Chunk sizes and limits.
            inspect: Finds what a reader should be warned of in a text; default nothing.
            rereads: Says whether bytes that an older release has read are read again, or are
                unchanged.
        """
        self._parser = parser
        self._writer = writer
        self._embedder = embedder
        self._options = options
        self._inspect = inspect
        self._rereads = rereads

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

        Args:
            library: Where they go.
            documents: Read one at a time.
            progress: Called when a document starts and when it is done or failed.
            written: Called with the ids of documents whose text has just become live.
            cancel: Checked before each document.

        Raises:
            Cancelled: Asked to stop; what was written before stays.
        """
        run = IngestRun(self._writer, progress, written)
        for index, document in enumerate(documents):
            if cancel is not None and cancel.cancelled:
                run.flush()
                raise Cancelled(f"the ingest was cancelled after {index} documents; those are kept")
            run.start(index, document.filename)
            if document.source_key in run.pending_keys:
                run.flush()
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
        live = self._writer.current(library, document.source_key)
        if live is not None and live.sha256 == sha256 and not self._read_otherwise(live):
            return IngestOutcome(
                document.filename, live.doc_id, "unchanged", duplicate_of=live.duplicate_of
            )
        parsed = self._parser.parse(document.content, document.filename)
        draft = self._draft(library, document, parsed, sha256)
        # Kept only once it is known to be readable, and before the write that makes it live: a
        # refused file leaves nothing behind.
        self._writer.store_original(document.content)
        covered = _covered(parsed.text, draft)
        receipt = Receipt(len(parsed.pages), len(parsed.text), covered, len(draft.chunks), 0)
        return PendingDocument(index, draft, receipt, "; ".join(parsed.warnings) or None)

    def _read_otherwise(self, live: Document) -> bool:
        """Return whether a document is to be read again although its bytes are the same."""
        return self._writer.source_revision(live) != _READ_AS and self._rereads()

    def _draft(
        self, library: Library, document: RawDocument, parsed: ParsedDocument, sha256: str
    ) -> DocumentDraft:
        embedder = self._embedder
        chunks = (
            chunk(parsed, self._options)
            if embedder is None
            else chunk(parsed, self._options, embedder.count_tokens, embedder.identity.max_tokens)
        )
        flags = self._inspect(parsed.text) if self._inspect else ()
        if parsed.stripped_characters:
            flags = (*flags, f"stripped:{parsed.stripped_characters}")
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
            ),
            chunks=chunks,
            pages=parsed.pages,
            source_url=document.source_url,
            licence=document.licence,
            flags=flags,
            has_original=True,
            source_revision=_READ_AS,
            job_id=document.job_id,
        )


def _covered(text: str, draft: DocumentDraft) -> int:
    """Count non-blank characters inside chunks, each once."""
    total = reached = 0
    for span in draft.chunks:
        piece = text[max(span.start, reached) : span.end]
        total += len("".join(piece.split()))
        reached = max(reached, span.end)
    return total


def with_vectors(outcome: IngestOutcome, vectors: int) -> IngestOutcome:
    """Return the outcome with the number of its chunks that have a vector by now."""
    return (
        outcome
        if outcome.receipt is None
        else replace(outcome, receipt=replace(outcome.receipt, vectors=vectors))
    )
