"""Search the lexical index of each library: the LexicalIndex port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.core.types import Filters, Library, Scored
from app.index.lexical.port import WordIndex


class LibraryWords:
    """The LexicalIndex port over one index per library."""

    def __init__(self, indexes: Mapping[Library, WordIndex]) -> None:
        """Search `indexes`, which the projector may exchange while rebuilding."""
        self._indexes = indexes

    def search(
        self, library: Library, text: str, k: int, filters: Filters | None = None
    ) -> list[Scored]:
        """Return up to k chunks by BM25, descending; any text is a valid query."""
        return self._indexes[library].search(text, k, filters)

    def score(self, library: Library, text: str, chunk_ids: Sequence[int]) -> dict[int, float]:
        """Return the BM25 of given chunks for a query; chunks sharing no term are 0.0."""
        return self._indexes[library].score(text, chunk_ids)

    def languages(self, library: Library) -> tuple[str, ...]:
        """Return the languages of a library's documents, that of most chunks first."""
        return self._indexes[library].languages

    def document_frequencies(
        self, library: Library, tokens: Sequence[str]
    ) -> tuple[int, dict[str, int]]:
        """Return the number of indexed chunks, and of chunks that hold each token.

        Tokens are stemmed; only bodies count.
        """
        return self._indexes[library].document_frequencies(tokens)

    def near(self, library: Library, token: str, edits: int, k: int) -> list[int]:
        """Return up to k chunks with a token within `edits` of a stemmed one.

        0 to 2 edits, in body or title.
        """
        return self._indexes[library].near(token, edits, k)
