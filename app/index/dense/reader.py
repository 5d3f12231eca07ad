"""Search one build: the cache, else the store's candidates, scored exactly.

The catalog's vectors score them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.core.errors import IndexDamaged
from app.core.types import Filters, FloatArray, Scored
from app.core.vectors import nearest
from app.index.catalog.build_rows import Build, VectorRows
from app.index.catalog.loading import CatalogLoader
from app.index.dense.cache import VectorCache
from app.index.dense.replica import Replica

log = logging.getLogger(__name__)

SCANNED = 4_000
"""Vectors that are compared one by one (30 ms): those that a rare filter allows, or all while
there is no store."""

CANDIDATES = 200
"""Candidates that are asked for at least: short codes order them roughly, and the catalog's
vectors exactly (1.5 ms)."""

OVERFETCH = 4
"""How many times the candidates are that a filtered question asks for in its next try."""

MOST_CANDIDATES = 10_000
"""Most candidates of a filtered question; a filter that keeps fewer than k of them returns
fewer."""

SPARE = 10
"""Candidates asked for beyond k, for those that were deleted since."""


@dataclass(frozen=True, slots=True)
class DenseReader:
    """Searches one build."""

    build: Build
    cache: VectorCache | None
    loader: CatalogLoader
    replica: Replica
    whole: bool
    """Whether the store holds the build."""
    applied: int
    """The last change that the store has."""
    on_failure: Callable[[], None]

    @property
    def count(self) -> int:
        """Return how many vectors can be searched."""
        if self.cache is not None:
            return self.cache.count
        embedded = self.loader.embedded(self.build)
        return min(embedded, self.replica.limit) if self.whole or embedded <= SCANNED else 0

    def search(self, query: FloatArray, k: int, filters: Filters | None) -> list[Scored]:
        """Return up to k chunks by cosine distance, ascending.

        Raises:
            IndexDamaged: There are vectors, but the store that finds them is not ready.
        """
        if k < 1:
            return []
        if self.cache is not None:
            return self.cache.search(query, k, filters)
        small = self.loader.embedded(self.build) <= SCANNED
        if self.whole and not (small and filters):
            try:
                if filters:
                    return self._filtered(query, k, filters)
                proposed = self._candidates(query, max(CANDIDATES, 2 * (k + SPARE)))[0]
                return _scored(query, self.loader.vectors(self.build, proposed), k)
            except IndexDamaged as exc:
                log.warning("%s", exc.message)
                self.on_failure()
        if (small or filters) and (few := self._few(filters or Filters())) is not None:
            return _scored(query, few, k)
        raise IndexDamaged(
            f"the vectors of {self.build.library.value!r} are being checked or filled again"
        )

    def _few(self, filters: Filters) -> VectorRows | None:
        """Return the vectors that filters allow; None when there are more than SCANNED."""
        found = self.loader.filtered_vectors(self.build, filters, SCANNED + 1)
        return found if len(found.chunk_ids) <= SCANNED else None

    def _candidates(self, query: FloatArray, n: int) -> tuple[list[int], int]:
        """Return up to n candidates, and how many of them the store proposed.

        Chunks whose vectors the store has not seen yet are among them.
        """
        proposed = self.replica.store.search(self.replica.collection(self.build), query, n)
        unseen = self.replica.pending_ids(self.applied, SCANNED)
        return [*proposed, *unseen], len(proposed)

    def _filtered(self, query: FloatArray, k: int, filters: Filters) -> list[Scored]:
        """Ask for more candidates until the filters keep enough.

        What a rare filter allows is scanned in the end.
        """
        n, wanted = OVERFETCH * k, max(CANDIDATES, 2 * (k + SPARE))
        while True:
            candidates, proposed = self._candidates(query, n)
            kept = self.loader.matching(filters, candidates)
            if len(kept) >= wanted:
                break
            if n >= MOST_CANDIDATES or proposed < n:
                if (few := self._few(filters)) is not None:
                    return _scored(query, few, k)
                break
            # As many more as the share that was kept asks for, and a third besides.
            n = min(MOST_CANDIDATES, max(OVERFETCH * n, 4 * wanted * n // (3 * len(kept) or 1)))
        return _scored(query, self.loader.vectors(self.build, list(kept)), k)


def _scored(query: FloatArray, stored: VectorRows, k: int) -> list[Scored]:
    best, distances = nearest(query, stored.rows, np.array(stored.chunk_ids, dtype=np.int64), k)
    return [
        Scored(stored.chunk_ids[at], float(distance))
        for at, distance in zip(best, distances, strict=True)
    ]
