"""The write side of the index: documents, words and vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from app.core.types import (
    Chunk,
    DeleteResult,
    Document,
    DocumentDraft,
    FloatArray,
    LedgerPage,
    Library,
    Metadata,
    WriteResult,
)


class VectorSink(Protocol):
    """Accepts vectors for a library's live build, or for the build it is bound to."""

    def pending_vectors(
        self, library: Library, limit: int, order: str = "id", doc_ids: Sequence[str] | None = None
    ) -> list[Chunk]:
        """Return up to `limit` live chunks without a vector.

        `order` is `id`, `longest` or `linked`; `doc_ids` limits the search to some documents.
        """
        ...

    def write_vectors(
        self, library: Library, chunk_ids: Sequence[int], vectors: FloatArray
    ) -> None:
        """Store L2-normalised rows `[n, dim]` durably and queue them for dense search.

        They are stored as float16.

        Raises:
            FingerprintMismatch: The rows do not fit the build, or the library was re-embedded in
                between.
        """
        ...

    def apply(self, library: Library) -> None:
        """Bring every projection of the library up to the last change."""
        ...


class IndexWriter(VectorSink, Protocol):
    """The write side of the index for ingest.

    One process, many threads; writes are serialised inside.
    """

    def current(self, library: Library, source_key: str) -> Document | None:
        """Return the live document under a source key."""
        ...

    def source_revision(self, document: Document) -> str | None:
        """Return the source's edition that a live document holds.

        None if the document states none or is no longer live.
        """
        ...

    def store_original(self, content: bytes | Path) -> str:
        """Store the bytes as `<sha256>.bin`, fsynced; return the SHA-256 in hex.

        Storing the same bytes again changes nothing.

        Raises:
            DiskFull: No space; nothing half-written stays.
        """
        ...

    def write(self, drafts: Sequence[DocumentDraft]) -> list[WriteResult]:
        """Make drafts live in one atomic batch, in order.

        On return they are durable and found by lexical search: acknowledged. A draft whose sha256
        and source_revision equal the live revision's is `unchanged`.

        Raises:
            DiskFull: No space; the batch is not acknowledged.
        """
        ...

    def write_links(
        self, library: Library, prefix: str, links_of: Callable[[str], int], after: str = ""
    ) -> str | None:
        """Store link counts for documents whose source key begins with `prefix`.

        `links_of` returns how many articles link to a file name. The most ever counted stays, so
        that a part of a dump takes nothing from the whole. It is what order `linked` goes by.

        Args:
            library: Whose documents.
            prefix: Of their source keys.
            links_of: Returns the count of a file name.
            after: Begin behind this source key; one call does a page of them.

        Returns:
            The source key to go on after, None at the end.
        """
        ...

    def store(
        self, drafts: Sequence[DocumentDraft], page: LedgerPage | None = None
    ) -> list[WriteResult]:
        """Make drafts live and record a ledger page, atomically; durable on return.

        Words are gathered over batches and found within seconds, or on return when a draft replaces
        a document; `settle` waits for them. After a crash the next start makes them found. A call
        may wait while too many words wait.

        Args:
            drafts: In order; at least one.
            page: What the ledger is to say from then on.

        Raises:
            DiskFull: No space; the batch is not stored, or words of batches before it cannot be
                committed.
        """
        ...

    def settle(self, library: Library) -> None:
        """Wait until everything stored is durable in the lexical index and found.

        Raises:
            DiskFull: No space; rows are safe, and their words follow with the next write.
        """
        ...

    def delete(self, library: Library, doc_id: str, grace_s: float = 0) -> DeleteResult:
        """Hide at once; purge when the grace (seconds) is over.

        Raises:
            NotFound: No such document in this library.
        """
        ...

    def correct(self, library: Library, doc_id: str, metadata: Metadata) -> Document:
        """Replace title, authors and year of a live document."""
        ...
