"""Reading one build's projections: exact rows while a library is small, Chroma's graph beyond."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.errors import IndexDamaged
from app.core.types import Filters, FloatArray, Scored
from app.core.vectors import nearest
from app.index.catalog.loading import Build, CatalogLoader
from app.index.dense.chroma.store import ChromaStore
from app.index.dense.exact_projection import ExactProjection
from app.index.options import IndexOptions

log = logging.getLogger(__name__)

FILTERED_SCAN = 4_000
"""Filtered vectors read from the catalog and compared exactly, when there are no exact rows: 30 ms (m: 2,000 blobs are 14 ms)."""

OVERFETCH_LIMIT = 5_000
"""Most neighbours asked of Chroma for a filtered question; a filter that keeps fewer than k of them returns fewer."""


@dataclass(slots=True)
class Serving:
    """A build and where its vectors are searched."""

    build: Build
    exact: ExactProjection
    collection: str
    ready: Callable[[], bool]
    """Whether the collection in Chroma is whole."""


@dataclass(frozen=True, slots=True)
class DenseReader:
    """One search over one build."""

    serving: Serving
    options: IndexOptions
    loader: CatalogLoader
    store: ChromaStore
    hidden: frozenset[int]
    """Chunks that were deleted and that Chroma may still hold."""

    @property
    def count(self) -> int:
        """How many vectors can be searched."""
        exact = self.serving.exact.index
        if exact is not None:
            return exact.count
        return self.store.count(self.serving.collection) if self.serving.ready() else 0

    def search(self, query: FloatArray, k: int, filters: Filters | None) -> list[Scored]:
        """Return up to k chunks by cosine distance, ascending.

        Raises:
            IndexDamaged: There are vectors, but the store that finds them is not ready.
        """
        if k < 1:
            return []
        exact, ready = self.serving.exact.index, self.serving.ready()
        if exact is not None and (filters or exact.count <= self.options.exact_unfiltered_limit or not ready):
            return exact.search(query, k, filters)
        if filters:
            return self._search_filtered(query, k, filters, ready=ready)
        return self._neighbours(query, k) if ready else self._unready()

    def _unready(self) -> list[Scored]:
        """Return nothing when there is nothing to find.

        Raises:
            IndexDamaged: There is.
        """
        if self.loader.embedded(self.serving.build):
            raise IndexDamaged(f"the vector index of {self.serving.build.library.value!r} is being checked or made again")
        return []

    def _neighbours(self, query: FloatArray, k: int) -> list[Scored]:
        try:
            found = self.store.query(self.serving.collection, query, k + min(len(self.hidden), k))
        except IndexDamaged:
            log.exception("the vector store failed while serving; lexical search serves until it is made again")
            self.store.fail()
            return self._unready()
        return [hit for hit in found if hit.chunk_id not in self.hidden][:k]

    def _search_filtered(self, query: FloatArray, k: int, filters: Filters, *, ready: bool) -> list[Scored]:
        few = self.loader.filtered_vectors(self.serving.build, filters, FILTERED_SCAN + 1)
        if len(few.chunk_ids) <= FILTERED_SCAN:
            best, distances = nearest(query, few.rows, np.array(few.chunk_ids, dtype=np.int64), k)
            return [Scored(few.chunk_ids[at], float(distance)) for at, distance in zip(best, distances, strict=True)]
        if not ready:
            return self._unready()
        n = 4 * k
        while True:
            found = self._neighbours(query, n)
            matching = self._matching(filters, found)
            kept = [hit for hit in found if hit.chunk_id in matching]
            if len(kept) >= k or n >= OVERFETCH_LIMIT or len(found) < n:
                return kept[:k]
            n = min(4 * n, OVERFETCH_LIMIT)

    def _matching(self, filters: Filters, hits: Sequence[Scored]) -> set[int]:
        return self.loader.matching(filters, [hit.chunk_id for hit in hits])
