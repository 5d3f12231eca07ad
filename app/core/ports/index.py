"""The truth and its projections: the catalog, vectors, words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from app.core.types import (
    Chunk,
    DeleteResult,
    Document,
    DocumentDraft,
    Filters,
    FloatArray,
    LedgerEntry,
    LedgerPage,
    LedgerSummary,
    Library,
    LibraryCounts,
    Metadata,
    Passage,
    PassageCode,
    Scored,
    TextSpan,
    WriteResult,
)


class VectorSink(Protocol):
    """Accepts vectors for a library's live build, or for the build it is bound to."""

    def pending_vectors(self, library: Library, limit: int, order: str = "id", doc_ids: Sequence[str] | None = None) -> list[Chunk]:
        """Return up to `limit` live chunks without a vector.

        `order` is `id`, `longest` or `linked`; `doc_ids` limits the search to some documents.
        """
        ...

    def write_vectors(self, library: Library, chunk_ids: Sequence[int], vectors: FloatArray) -> None:
        """Store L2-normalised rows `[n, dim]` durably and queue them for dense search.

        They are stored as float16.

        Raises:
            FingerprintMismatch: The rows do not fit the build, or the library was re-embedded in between.
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

    def write_links(self, library: Library, prefix: str, links_of: Callable[[str], int], after: str = "") -> str | None:
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

    def store(self, drafts: Sequence[DocumentDraft], page: LedgerPage | None = None) -> list[WriteResult]:
        """Make drafts live and record a ledger page, atomically; durable on return.

        Words are gathered over batches and found within seconds, or on return when a draft replaces a document; `settle` waits for
        them. After a crash the next start makes them found. A call may wait while too many words wait.

        Args:
            drafts: In order; at least one.
            page: What the ledger is to say from then on.

        Raises:
            DiskFull: No space; the batch is not stored, or words of batches before it cannot be committed.
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


# --- index, read side -------------------------------------------------------------------------------------------------------------


class Catalog(Protocol):
    """The truth, read. Live documents only, unless a revision is named."""

    def passages(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        """Return live passages by chunk id; ids that are gone or superseded are absent."""
        ...

    def document(self, library: Library, doc_id: str) -> Document:
        """Return a live document.

        Raises:
            NotFound: Unknown here; the message says when the other library has it.
        """
        ...

    def documents(
        self, library: Library, query: str = "", cursor: str | None = None, limit: int = 50
    ) -> tuple[list[Document], str | None]:
        """Return a page of live documents and the next cursor.

        Title or file name contains `query`.
        """
        ...

    def chunks(self, library: Library, doc_id: str, revision: int | None = None) -> list[Chunk]:
        """Return a revision's chunks in order."""
        ...

    def text(self, library: Library, doc_id: str, start: int = 0, end: int | None = None, revision: int | None = None) -> TextSpan:
        """Return exactly those characters; superseded revisions answer too."""
        ...

    def counts(self, library: Library) -> LibraryCounts:
        """Return counts of live documents and chunks."""
        ...


class VectorIndex(Protocol):
    """Nearest neighbours of a library's live build."""

    def search(self, library: Library, query: FloatArray, k: int, filters: Filters | None = None) -> list[Scored]:
        """Return up to k chunks by cosine distance, ascending.

        `query` is float32 `[dim]`, norm 1.

        Raises:
            IndexDamaged: The library has vectors, but they cannot be searched now: the index is checked or made again.
        """
        ...

    def fetch(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, FloatArray]:
        """Return stored rows `[dim]`; ids without a vector are absent."""
        ...

    def count(self, library: Library) -> int:
        """Return how many vectors can be searched."""
        ...


class PassageCodes(Protocol):
    """Codes for late interaction, by chunk."""

    def codes(self, chunk_ids: Sequence[int]) -> dict[int, PassageCode]:
        """Return the codes of chunks; those without one are absent."""
        ...

    def write_codes(self, codes: Mapping[int, PassageCode]) -> None:
        """Keep codes of live chunks, durably.

        Raises:
            InvalidInput: A code has not whole rows.
        """
        ...

    def pending_codes(self, library: Library, limit: int, after: int = 0, doc_ids: Sequence[str] | None = None) -> list[Chunk]:
        """Return up to `limit` live chunks without a code, by id, from over `after`.

        `doc_ids` limits the search to some documents.
        """
        ...


class LexicalIndex(Protocol):
    """BM25 over title, section and body."""

    def search(self, library: Library, text: str, k: int, filters: Filters | None = None) -> list[Scored]:
        """Return up to k chunks by BM25, descending; any text is a valid query."""
        ...

    def score(self, library: Library, text: str, chunk_ids: Sequence[int]) -> dict[int, float]:
        """Return the BM25 of given chunks for a query; chunks sharing no term are 0.0."""
        ...

    def document_frequencies(self, library: Library, tokens: Sequence[str]) -> tuple[int, dict[str, int]]:
        """Return the number of indexed chunks, and of chunks that hold each token.

        Tokens are stemmed; only bodies count.
        """
        ...

    def near(self, library: Library, token: str, edits: int, k: int) -> list[int]:
        """Return up to k chunks with a token within `edits` of a stemmed one.

        0 to 2 edits, in body or title; swapping two neighbouring letters is one edit.
        """
        ...


class BulkLedger(Protocol):
    """Records the outcome of every article of every bulk source.

    Sums are counted from rows, so they are exact.
    """

    def entries(self, library: Library, source: str, articles: Sequence[str]) -> dict[str, LedgerEntry]:
        """Return what is known of these articles."""
        ...

    def record(self, library: Library, source: str, entries: Sequence[LedgerEntry]) -> None:
        """Write entries durably, replacing what was known of the same articles."""
        ...

    def page(self, library: Library, source: str, after: str = "", limit: int = 10_000) -> list[LedgerEntry]:
        """Return entries with an article key above `after`, ascending by key."""
        ...

    def forget(self, library: Library, source: str, articles: Sequence[str]) -> None:
        """Drop entries of articles that the source no longer has."""
        ...

    def summary(self, library: Library | None = None, source: str | None = None) -> LedgerSummary:
        """Return the account of one source, one library or everything."""
        ...


# --- models -----------------------------------------------------------------------------------------------------------------------
