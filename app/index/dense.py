"""Nearest neighbours: exact rows while a library is small, Chroma's graph beyond, one interface over both."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence

from app.core.errors import IndexDamaged
from app.core.types import Filters, FloatArray, Library, Scored
from app.core.vectors import cosine_distances, top_k_smallest
from app.index.build_state import BuildState
from app.index.changes import ChangeLog
from app.index.chroma import ChromaStore
from app.index.chroma_projection import ChromaProjection
from app.index.exact_projection import ExactProjection
from app.index.loading import Build, CatalogLoader
from app.index.options import IndexOptions
from app.index.probe import Expected
from app.index.steps import Steps

log = logging.getLogger(__name__)

FILTERED_SCAN = 4_000
"""Filtered vectors read from the catalog and compared exactly, when there are no exact rows: 30 ms (m: 2,000 blobs are 14 ms)."""

OVERFETCH_LIMIT = 5_000
"""Most neighbours asked of Chroma for a filtered question; a filter that keeps fewer than k of them returns fewer."""


class DenseLibrary:
    """The dense projections of one library's live build; reads are concurrent, catching up is serialised."""

    def __init__(
        self,
        library: Library,
        options: IndexOptions,
        change_log: ChangeLog,
        loader: CatalogLoader,
        chroma: ChromaStore,
        steps: Steps,
    ) -> None:
        """Serve `library`; nothing is opened before `catch_up`."""
        self._library = library
        self._options = options
        self._log = change_log
        self._loader = loader
        self._store = chroma
        self._exact = ExactProjection(library, options, change_log, loader, steps)
        self._chroma = ChromaProjection(library, options, change_log, loader, chroma)
        self._lock = threading.RLock()
        self._build: Build | None = None
        self._hidden: frozenset[int] = frozenset()
        self.held_elsewhere: Callable[[], int] = lambda: 0
        """How many vectors the other library holds; both share MAX_DENSE_VECTORS."""

    @property
    def limit(self) -> int:
        """Most vectors to hold in memory now."""
        return max(0, self._options.max_dense_vectors - self.held_elsewhere())

    # --- read

    @property
    def count(self) -> int:
        """How many vectors can be searched now."""
        exact, build = self._exact.index, self._build
        if exact is not None:
            return exact.count
        return self._store.count(self._chroma.collection(build)) if build is not None and self._chroma.ready else 0

    def search(self, query: FloatArray, k: int, filters: Filters | None) -> list[Scored]:
        """Return up to k chunks by cosine distance, ascending.

        Raises:
            IndexDamaged: There are vectors, but the store that finds them is not ready.
        """
        exact, build, ready = self._exact.index, self._build, self._chroma.ready
        if build is None or k < 1:
            return []
        if exact is not None and (filters or exact.count <= self._options.exact_unfiltered_limit or not ready):
            return exact.search(query, k, filters)
        if filters:
            return self._search_filtered(build, query, k, filters, ready=ready)
        return self._neighbours(build, query, k) if ready else self._unready()

    def _unready(self) -> list[Scored]:
        """Return nothing when there is nothing to find.

        Raises:
            IndexDamaged: There is.
        """
        if self._loader.embedded(self._library):
            raise IndexDamaged(f"the vector index of {self._library.value!r} is being checked or made again")
        return []

    def _neighbours(self, build: Build, query: FloatArray, k: int) -> list[Scored]:
        hidden = self._hidden
        try:
            found = self._store.query(self._chroma.collection(build), query, k + min(len(hidden), k))
        except IndexDamaged:
            log.exception("the vector store failed while serving; lexical search serves until it is made again")
            self._store.fail()
            return self._unready()
        return [hit for hit in found if hit.chunk_id not in hidden][:k]

    def _search_filtered(self, build: Build, query: FloatArray, k: int, filters: Filters, *, ready: bool) -> list[Scored]:
        few = self._loader.filtered_vectors(build, filters, FILTERED_SCAN + 1)
        if len(few.chunk_ids) <= FILTERED_SCAN:
            distances = cosine_distances(query, few.rows)
            return [Scored(few.chunk_ids[at], float(distances[at])) for at in top_k_smallest(distances, k)]
        if not ready:
            return self._unready()
        n = 4 * k
        while True:
            found = self._neighbours(build, query, n)
            matching = self._loader.matching(filters, [hit.chunk_id for hit in found])
            kept = [hit for hit in found if hit.chunk_id in matching]
            if len(kept) >= k or n >= OVERFETCH_LIMIT or len(found) < n:
                return kept[:k]
            n = min(4 * n, OVERFETCH_LIMIT)

    def fetch(self, chunk_ids: Sequence[int]) -> dict[int, FloatArray]:
        """Return stored rows `[dim]`, from the exact rows or else the catalog; ids without a vector are absent."""
        exact, build = self._exact.index, self._build or self._loader.live_build(self._library)
        found = exact.fetch(chunk_ids) if exact is not None else {}
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in found]
        if missing and build is not None:
            stored = self._loader.vectors(build, missing)
            found.update(zip(stored.chunk_ids, stored.rows, strict=True))
        return found

    def hide(self, chunk_ids: Sequence[int]) -> None:
        """Stop showing chunks at once; the projections drop them when they catch up."""
        with self._lock:
            self._hidden = self._hidden | frozenset(chunk_ids)
            if self._exact.index is not None:
                self._exact.index.drop(chunk_ids)

    # --- write

    def catch_up(self) -> None:
        """Apply every change the dense projections have not seen; Chroma's wait while it is not ready.

        Raises:
            DiskFull: No space; what was applied stays, the next call goes on.
        """
        with self._lock:
            build = self._loader.live_build(self._library)
            if build is None:
                last = self._log.last()
                self._log.set_mark(self._library, "exact", last)
                self._log.set_mark(self._library, "chroma", last)
                return
            self._build = build
            self._exact.catch_up(build, self.limit)
            if self._chroma.ready:
                try:
                    self._catch_up_chroma(build)
                except IndexDamaged:
                    log.exception("the vector store failed while it was written; it is made again from the catalog")
                    self._store.fail()

    def _catch_up_chroma(self, build: Build) -> None:
        self._chroma.catch_up(build, self.limit)
        self._hidden = frozenset()

    def bring_up_chroma(self, stop: threading.Event, *, rebuild: bool) -> None:
        """Complete the collection in the open store and let searches use it.

        Args:
            stop: When set, the work ends early and the library stays unready.
            rebuild: Make it anew; it is made anew too when it never was complete.
        """
        build = self._loader.live_build(self._library)
        if build is not None:
            if (rebuild or not self._chroma.applied) and not self._chroma.fill(build, self.limit, stop):
                return
            with self._lock:
                self._catch_up_chroma(build)
                self._store.set_ready(self._library, True)
                self._chroma.rebuilding = None
        elif not stop.is_set():
            self._store.set_ready(self._library, True)

    def compare_exact(self) -> list[str]:
        """Return how the exact rows differ from the catalog, one line per row; empty when there are none."""
        with self._lock:
            build = self._loader.live_build(self._library)
            return self._exact.compare(build, self.limit) if build is not None else []

    def remake_exact(self) -> None:
        """Make the exact rows anew from the catalog."""
        with self._lock:
            build = self._loader.live_build(self._library)
            if build is not None:
                self._exact.remake(build, self.limit)

    def compact_exact(self) -> None:
        """Take dead rows off the disk."""
        with self._lock:
            index = self._exact.index
            if index is not None:
                index.compact()
                index.save(index.seq)

    def expected_in_chroma(self) -> Expected | None:
        """Return what the probe should find."""
        return self._chroma.expected(self.limit)

    def rebuild_state(self) -> BuildState | None:
        """Return the progress of a rebuild, or that large libraries wait for Chroma; None when all can be searched."""
        if self._chroma.rebuilding is None and self._exact.index is None and self._build is not None and not self._chroma.ready:
            return BuildState("rebuilding", 0, self._loader.embedded(self._library))
        return self._chroma.rebuilding


class DenseVectorIndex:
    """The VectorIndex port over both libraries."""

    def __init__(self, libraries: Mapping[Library, DenseLibrary]) -> None:
        """Search `libraries`."""
        self._libraries = libraries

    def search(self, library: Library, query: FloatArray, k: int, filters: Filters | None = None) -> list[Scored]:
        """Return up to k chunks by cosine distance, ascending. `query` is float32 `[dim]`, norm 1.

        Raises:
            IndexDamaged: The library has vectors, but they cannot be searched now.
        """
        return self._libraries[library].search(query, k, filters)

    def fetch(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, FloatArray]:
        """Return stored rows `[dim]`; ids without a vector are absent."""
        return self._libraries[library].fetch(chunk_ids)

    def count(self, library: Library) -> int:
        """Return how many vectors can be searched."""
        return self._libraries[library].count
