"""Search a library's vectors: the cache in memory, else the store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.errors import FingerprintMismatch, IndexDamaged, SearchAway
from app.core.types import Filters, FloatArray, Library, Scored
from app.core.vectors import nearest
from app.storage.catalog.changes import STAGED, BuildState
from app.storage.catalog.loader import CatalogLoader
from app.storage.catalog.rows import Build, VectorRows
from app.storage.follow import Follower
from app.storage.options import IndexOptions
from app.storage.vectors.cache import FILLED_AT_ONCE, CachedBuild, VectorCache
from app.storage.vectors.port import VectorStore
from app.storage.vectors.replica import Replica

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


@dataclass(slots=True)
class Staged:
    """A complete build that follows the changes while another one serves."""

    cached: CachedBuild
    follower: Follower
    """Of its collection."""
    whole: bool = False
    """Whether the collection holds everything; if not, it is filled after the take-over."""


class DenseLibrary:
    """Searches and keeps one library's vectors; concurrent reads, serial writes."""

    def __init__(
        self,
        library: Library,
        options: IndexOptions,
        loader: CatalogLoader,
        store: VectorStore,
        wanted: threading.Event,
        *,
        follows: bool | None,
    ) -> None:
        """Serve `library`; nothing is read before `catch_up`.

        `wanted` is set when the store has something to do or failed. `follows` says whether the
        store is written here; False leaves that to a thread that waits for `wanted`, None to a
        later process.
        """
        self._library = library
        self._options = options
        self._log = loader.log
        self._loader = loader
        self.replica = Replica(library, options, loader, store)
        """The library's collection in the store."""
        self._wanted = wanted
        self._follows = follows
        self._lock = threading.RLock()
        self._serving: CachedBuild | None = None
        self._staged: Staged | None = None

    @property
    def count(self) -> int:
        serving = self._current()
        return 0 if serving is None else self._count(serving)

    def _count(self, serving: CachedBuild) -> int:
        if serving.cache is not None:
            return serving.cache.count
        embedded = self._loader.embedded(serving.build)
        whole, _ = self._store_of(serving)
        return min(embedded, self.replica.limit) if whole or embedded <= SCANNED else 0

    @property
    def needs_store(self) -> bool:
        """Return whether searches of all vectors have to ask the store."""
        serving = self._current()
        if serving is None or serving.cache is not None:
            return False
        return self._loader.embedded(serving.build) > SCANNED

    def search(
        self, query: FloatArray, k: int, filters: Filters | None, build: int | None = None
    ) -> list[Scored]:
        """Return up to k chunks by cosine distance, ascending.

        Args:
            query: float32 `[dim]`, norm 1.
            k: At most this many.
            filters: What chunks have to meet.
            build: Which build the query was embedded for; None is the live one.

        Raises:
            FingerprintMismatch: That build does not serve any more.
            IndexDamaged: There are vectors, but they cannot be searched now.
        """
        serving = self._current()
        if build is not None and (serving is None or serving.build.number != build):
            serving = self._staged.cached if self._staged else None
            if serving is None or serving.build.number != build:
                live = self._loader.live_build(self._library)
                if live is not None and live.number == build:
                    return []  # it was claimed just now; its first vectors are on their way
                raise FingerprintMismatch(
                    f"library {self._library.value!r} was re-embedded while this was searched:"
                    " search again"
                )
        if serving is None:
            return []
        if len(query) != (dimension := serving.build.dimension):
            raise FingerprintMismatch(
                f"the query has {len(query)} dimensions, the vectors of library"
                f" {self._library.value!r} {dimension}"
            )
        return self._nearest(serving, query, k, filters)

    def _current(self) -> CachedBuild | None:
        """Return what serves; another process may have made another build live."""
        if not self.replica.shared:
            return self._serving
        build, serving = self._loader.live_build(self._library), self._serving
        if build is None:
            return None
        if serving is None or serving.build.number != build.number:
            serving = self._serving = self._cached(build)
        return serving

    def _store_of(self, serving: CachedBuild) -> tuple[bool, int]:
        """Return whether the store holds a build, and the last change that it has."""
        staged = self._staged
        if staged is not None and staged.cached is serving:
            return staged.whole, staged.follower.applied
        whole, applied = self.replica.whole, self.replica.applied
        return whole and (applied > 0 or not self.replica.shared), applied  # else being filled

    def _nearest(
        self, serving: CachedBuild, query: FloatArray, k: int, filters: Filters | None
    ) -> list[Scored]:
        """Ask the cache, else the store for candidates, which the catalog's vectors score."""
        if k < 1:
            return []
        if serving.cache is not None:
            named = self._loader.narrowed(self._library, filters) if filters else None
            return serving.cache.search(query, k, named) if named or not filters else []
        build = serving.build
        small = self._loader.embedded(build) <= SCANNED
        whole, applied = self._store_of(serving)
        if whole and not (small and filters):
            try:
                if filters:
                    return self._filtered(build, applied, query, k, filters)
                proposed = self._candidates(build, applied, query, max(CANDIDATES, 2 * (k + SPARE)))
                return _scored(query, self._loader.vectors(build, proposed[0]), k)
            except IndexDamaged as exc:
                log.warning("%s", exc.message)
                self.replica.whole = False
                self._wanted.set()
        if (small or filters) and (few := self._few(build, filters or Filters())) is not None:
            return _scored(query, few, k)
        raise IndexDamaged(
            f"the vectors of {build.library.value!r} are being checked or filled again"
        )

    def _few(self, build: Build, filters: Filters) -> VectorRows | None:
        """Return the vectors that filters allow; None when there are more than SCANNED."""
        named = self._loader.narrowed(build.library, filters)
        if named is not None and len(named.doc_ids) <= SCANNED:
            filters = named  # the database finds named documents faster than labelled ones
        found = self._loader.filtered_vectors(build, filters, SCANNED + 1)
        return found if len(found.chunk_ids) <= SCANNED else None

    def _candidates(
        self, build: Build, applied: int, query: FloatArray, n: int
    ) -> tuple[list[int], int]:
        """Return up to n candidates, and how many of them the store proposed.

        Chunks whose vectors the store has not seen yet are among them.
        """
        proposed = self.replica.store.search(self.replica.collection(build), query, n)
        unseen = self.replica.pending_ids(applied, SCANNED)
        return [*proposed, *unseen], len(proposed)

    def _filtered(
        self, build: Build, applied: int, query: FloatArray, k: int, filters: Filters
    ) -> list[Scored]:
        """Ask for more candidates until the filters keep enough.

        What a rare filter allows is scanned in the end.
        """
        n, wanted = OVERFETCH * k, max(CANDIDATES, 2 * (k + SPARE))
        while True:
            candidates, proposed = self._candidates(build, applied, query, n)
            kept = self._loader.matching(filters, candidates)
            if len(kept) >= wanted:
                break
            if n >= MOST_CANDIDATES or proposed < n:
                if (few := self._few(build, filters)) is not None:
                    return _scored(query, few, k)
                break
            # As many more as the share that was kept asks for, and a third besides.
            n = min(MOST_CANDIDATES, max(OVERFETCH * n, 4 * wanted * n // (3 * len(kept) or 1)))
        return _scored(query, self._loader.vectors(build, list(kept)), k)

    def fetch(self, chunk_ids: Sequence[int], build: int | None = None) -> dict[int, FloatArray]:
        """Return rows `[dim]` of a build, None: the live one, from the cache, else the catalog."""
        serving = self._current()
        if build is not None and (serving is None or serving.build.number != build):
            stored_in, cache = self._loader.builds.numbered(self._library, build), None
        else:
            stored_in = serving.build if serving else self._loader.live_build(self._library)
            cache = serving.cache if serving else None
        found = cache.fetch(chunk_ids) if cache is not None else {}
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in found]
        if missing and stored_in is not None:
            stored = self._loader.vectors(stored_in, missing)
            found.update(zip(stored.chunk_ids, stored.rows, strict=True))
        return found

    def hide(self, chunk_ids: Sequence[int]) -> None:
        """Hide chunks at once; the store's proposals of them have no live row."""
        with self._lock:
            for cache in self._caches():
                cache.hide(chunk_ids)

    def _caches(self) -> list[VectorCache]:
        staged = self._staged.cached if self._staged else None
        return [held.cache for held in (self._serving, staged) if held and held.cache]

    def catch_up(self) -> None:
        """Apply every change to the cache, and to the store if it is written here.

        Raises:
            DiskFull: No space for the store; the next call goes on.
        """
        with self._lock:
            build = self._loader.live_build(self._library)
            if build is None:
                if not self.replica.shared:  # there another may write the first vectors just now
                    self._log.set_mark(self._library, self.replica.kind, self._log.last())
                return
            serving = self._serving
            if serving is None or serving.build.number != build.number:
                if serving is not None:
                    serving.release()
                serving = self._serving = self._cached(build)
            at_once = self._follows is not False or self._loader.embedded(build) <= FILLED_AT_ONCE
            if serving.cache is not None or at_once:
                serving.catch_up()
        if self._follows:
            try:
                self.replica.follow()
            except SearchAway as exc:
                log.warning("vectors wait in the catalog: %s", exc.message)
            except IndexDamaged:
                log.exception("the vector store failed while it was written; it is checked next")
        self._wanted.set()

    def _cached(self, build: Build) -> CachedBuild:
        most = self._options.vector_cache_vectors
        return CachedBuild(build, most, lambda: self.replica.limit, self._loader)

    def fill_cache(self) -> None:
        """Fill the cache when `catch_up` found it too large to be filled in its turn."""
        with self._lock:
            serving = self._serving
            if serving is None or serving.cache is not None or not serving.fits:
                return
            serving.keep_changes()
        cache = serving.read()
        with self._lock:
            if self._serving is serving and serving.cache is None:
                serving.cache = cache
                serving.catch_up()

    def compare_cache(self) -> list[str]:
        """Return how the cache differs from the catalog, one line a chunk."""
        with self._lock:
            return self._serving.compare() if self._serving else []

    def refill_cache(self) -> None:
        with self._lock:
            if self._serving is not None:
                self._serving.release()
                self._serving.catch_up()

    def compact_cache(self) -> None:
        """Take hidden rows out of memory."""
        with self._lock:
            for cache in self._caches():
                cache.compact(above=0.0)

    # --- another build, made while the live one serves

    def stage(self, build: Build, stop: threading.Event) -> bool:
        """Fill cache and collection of a build; searches that name it use them.

        Its vectors are in the catalog. The caller keeps the supervisor quiet until `take_over` or
        `unstage`.

        Args:
            build: Of this library, not the live one.
            stop: When set, the work ends early.

        Returns:
            Whether it was completed.
        """
        staged = Staged(self._cached(build), self.replica.follower(build, STAGED))
        staged.follower.start_at(self._log.last())
        staged.cached.catch_up()
        if self.replica.whole:
            try:
                staged.whole = self.replica.fill(build, stop, STAGED) is not None
            except IndexDamaged:
                self._lose_store(staged)
        self._staged = staged
        return not stop.is_set()

    def _follow_staged(self, staged: Staged) -> None:
        staged.cached.catch_up()
        if not staged.whole:
            return
        try:
            staged.follower.check_kept()
            staged.follower.catch_up()
            staged.follower.flush(staged.follower.applied, at_once=True)
        except IndexDamaged:
            self._lose_store(staged)

    def _lose_store(self, staged: Staged) -> None:
        log.exception("the vector store failed; the collection is filled after the take-over")
        staged.whole = self.replica.whole = False

    def unstage(self) -> None:
        """Let the staged build go; its collection goes with the next staging or purge."""
        staged, self._staged = self._staged, None
        live = self._serving
        if staged is not None and (live is None or live.build.number != staged.cached.build.number):
            staged.cached.release()
        self._log.unmark(self._library, STAGED)

    def take_over(self, commit: Callable[[int], None]) -> None:
        """Make the staged build live.

        Args:
            commit: Makes the build the live one in the catalog and sets the collection's mark to
                this change in the same transaction; what was logged since follows.
        """
        staged = self._staged
        if staged is None:
            raise IndexDamaged(f"no other build is ready for library {self._library.value!r}")
        self._follow_staged(staged)  # most of it while nobody has to wait
        with self._lock, self.replica.lock:
            self._follow_staged(staged)
            self.replica.flush()
            before = self.replica.applied
            try:
                commit(staged.follower.applied if staged.whole else 0)
            except BaseException:
                self._log.set_mark(self._library, self.replica.kind, before)
                raise
            self.replica.whole = staged.whole
            if self._serving is not None:
                self._serving.release()
            self._serving = staged.cached
        self.unstage()
        self._wanted.set()

    def complete_store(self, stop: threading.Event) -> None:
        """Fill the live collection if a swap left it unfinished."""
        if self._follows is not None and not self.replica.whole:
            self.replica.initialise(stop)

    def delete_others(self) -> None:
        """Remove the store's collections of builds that do not serve."""
        with self._lock:
            staged = self._staged.cached if self._staged else None
            builds = [one.build for one in (self._current(), staged) if one is not None]
        if self.replica.shared and (filled := self._loader.builds.of(self._library, "staged")):
            builds.append(filled)  # by another process, maybe
        if builds and self.replica.whole:
            self.replica.delete_others(builds)

    def rebuild_state(self) -> BuildState | None:
        """Return a fill's progress, or that one is awaited; None when all can be searched."""
        serving = self._current()
        if self.replica.rebuilding or serving is None or self._count(serving):
            return self.replica.rebuilding
        waiting = self._loader.embedded(serving.build)
        return BuildState("rebuilding", 0, waiting) if waiting else None


def _scored(query: FloatArray, stored: VectorRows, k: int) -> list[Scored]:
    best, distances = nearest(query, stored.rows, np.array(stored.chunk_ids, dtype=np.int64), k)
    return [
        Scored(stored.chunk_ids[at], float(distance))
        for at, distance in zip(best, distances, strict=True)
    ]


class DenseVectorIndex:
    """The vectors of both libraries, or those of the build that queries are embedded for."""

    def __init__(self, libraries: Mapping[Library, DenseLibrary], build: int | None = None) -> None:
        """Search `libraries`: the vectors of this build only; None takes those that are live."""
        self._libraries = libraries
        self.build = build

    def search(
        self, library: Library, query: FloatArray, k: int, filters: Filters | None = None
    ) -> list[Scored]:
        return self._libraries[library].search(query, k, filters, self.build)

    def fetch(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, FloatArray]:
        """Return stored rows `[dim]`; ids without a vector are absent."""
        return self._libraries[library].fetch(chunk_ids, self.build)

    def count(self, library: Library) -> int:
        """Return how many vectors can be searched."""
        return self._libraries[library].count
