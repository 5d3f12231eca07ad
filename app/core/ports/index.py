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
    """Where vectors go: those of a library's live build, or of one build it was bound to."""

    def pending_vectors(self, library: Library, limit: int, order: str = "id", doc_ids: Sequence[str] | None = None) -> list[Chunk]:
        """Return up to `limit` live chunks without a vector; order `id`, `longest` or `linked`; `doc_ids` narrows it to some."""
        ...

    def write_vectors(self, library: Library, chunk_ids: Sequence[int], vectors: FloatArray) -> None:
        """Store L2-normalised rows `[n, dim]` durably (float16) and queue them for the dense projections.

        Raises:
            FingerprintMismatch: The rows do not fit the build, or the library was re-embedded meanwhile.
        """
        ...

    def apply(self, library: Library) -> None:
        """Bring every projection of the library up to the last change."""
        ...


class IndexWriter(VectorSink, Protocol):
    """The write side of the index, as ingest sees it. One process, many threads; writes are serialised inside."""

    def current(self, library: Library, source_key: str) -> Document | None:
        """Return the live document under a source key."""
        ...

    def source_revision(self, document: Document) -> str | None:
        """Return which edition of its source a live document holds; None for one that says none, or is no longer live."""
        ...

    def store_original(self, content: bytes | Path) -> str:
        """Keep the bytes as `<sha256>.bin`, fsynced, and return the SHA-256 (64 hex digits); storing twice is once.

        Raises:
            DiskFull: No space; nothing half-written stays.
        """
        ...

    def write(self, drafts: Sequence[DocumentDraft]) -> list[WriteResult]:
        """Make drafts live, in order, atomically as one batch; on return they are durable and found lexically (acknowledged).

        A draft whose sha256 and source_revision equal the live revision's is `unchanged`.

        Raises:
            DiskFull: No space; the batch is not acknowledged.
        """
        ...

    def write_links(self, library: Library, prefix: str, links_of: Callable[[str], int], after: str = "") -> str | None:
        """Keep, for documents whose source key begins with `prefix`, how many articles link to their file name.

        The most ever counted stays, so that a part of a dump takes nothing from the whole. It is what order `linked` goes by.

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
        """Make drafts live and record a page of a ledger, atomically; on return the rows are durable.

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
        """Return one page of live documents whose title or file name contains `query`, and the next cursor."""
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
        """Return up to k chunks by cosine distance, ascending. `query` is float32 `[dim]`, norm 1.

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
        """Return up to `limit` live chunks without a code and with an id over `after`, by id; `doc_ids` narrows it to some."""
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
        """Return the number of indexed chunks and, per stemmed token, how many chunks' bodies hold it."""
        ...

    def near(self, library: Library, token: str, edits: int, k: int) -> list[int]:
        """Return up to k chunks whose bodies hold a token within 1 or 2 edits of a stemmed one, a swap of neighbours being one."""
        ...


class BulkLedger(Protocol):
    """What became of every article of every bulk source; counted from rows, so that sums are exact."""

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
