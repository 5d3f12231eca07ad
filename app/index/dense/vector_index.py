"""The VectorIndex port over the dense projections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.core.types import Filters, FloatArray, Library, Scored
from app.index.dense.library import DenseLibrary


class DenseVectorIndex:
    """The VectorIndex port over both libraries, or over one given build.

    Queries were embedded for that build.
    """

    def __init__(self, libraries: Mapping[Library, DenseLibrary], build: int | None = None) -> None:
        """Search `libraries`.

        Args:
            libraries: What there is.
            build: Only this build's vectors; None takes whichever is live.
        """
        self._libraries = libraries
        self._build = build

    def search(
        self, library: Library, query: FloatArray, k: int, filters: Filters | None = None
    ) -> list[Scored]:
        """Return up to k chunks by cosine distance, ascending.

        `query` is float32 `[dim]`, norm 1.

        Raises:
            FingerprintMismatch: The build does not serve any more.
            IndexDamaged: The library has vectors, but they cannot be searched now.
        """
        return self._libraries[library].search(query, k, filters, self._build)

    def fetch(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, FloatArray]:
        """Return stored rows `[dim]`; ids without a vector are absent."""
        return self._libraries[library].fetch(chunk_ids, self._build)

    def count(self, library: Library) -> int:
        """Return how many vectors can be searched."""
        return self._libraries[library].count
