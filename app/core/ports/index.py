"""Define the ports that read: catalog, vectors, words, the bulk ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from app.core.types import (
    Chunk,
    Document,
    Filters,
    FloatArray,
    LedgerEntry,
    LedgerSummary,
    Library,
    LibraryCounts,
    Passage,
    PassageCode,
    Scored,
    TextSpan,
)


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

    def text(
        self,
        library: Library,
        doc_id: str,
        start: int = 0,
        end: int | None = None,
        revision: int | None = None,
    ) -> TextSpan:
        """Return exactly those characters; superseded revisions answer too."""
        ...

    def counts(self, library: Library) -> LibraryCounts:
        """Return counts of live documents and chunks."""
        ...


class VectorIndex(Protocol):
    """Nearest neighbours of a library's live build."""

    def search(
        self, library: Library, query: FloatArray, k: int, filters: Filters | None = None
    ) -> list[Scored]:
        """Return up to k chunks by cosine distance, ascending.

        `query` is float32 `[dim]`, norm 1.

        Raises:
            IndexDamaged: The library has vectors, but they cannot be searched now: the index is
                being checked or rebuilt.
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

    def pending_codes(
        self, library: Library, limit: int, after: int = 0, doc_ids: Sequence[str] | None = None
    ) -> list[Chunk]:
        """Return up to `limit` live chunks without a code, by id, from over `after`.

        `doc_ids` limits the search to some documents.
        """
        ...


class LexicalIndex(Protocol):
    """BM25 over title, section and body."""

    def search(
        self, library: Library, text: str, k: int, filters: Filters | None = None
    ) -> list[Scored]:
        """Return up to k chunks by BM25, descending; any text is a valid query."""
        ...

    def score(self, library: Library, text: str, chunk_ids: Sequence[int]) -> dict[int, float]:
        """Return the BM25 of given chunks for a query; chunks sharing no term are 0.0."""
        ...

    def languages(self, library: Library) -> tuple[str, ...]:
        """Return the languages by whose rules words are stemmed, that of most chunks first.

        Never empty.
        """
        ...

    def document_frequencies(
        self, library: Library, tokens: Sequence[str]
    ) -> tuple[int, dict[str, int]]:
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

    def entries(
        self, library: Library, source: str, articles: Sequence[str]
    ) -> dict[str, LedgerEntry]:
        """Return what is known of these articles."""
        ...

    def record(self, library: Library, source: str, entries: Sequence[LedgerEntry]) -> None:
        """Write entries durably, replacing what was known of the same articles."""
        ...

    def page(
        self, library: Library, source: str, after: str = "", limit: int = 10_000
    ) -> list[LedgerEntry]:
        """Return entries with an article key above `after`, ascending by key."""
        ...

    def delete(self, library: Library, source: str, articles: Sequence[str]) -> None:
        """Drop entries of articles that the source no longer has."""
        ...

    def summary(self, library: Library | None = None, source: str | None = None) -> LedgerSummary:
        """Return the account of one source, one library or everything."""
        ...
