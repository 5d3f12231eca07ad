"""Nearest neighbours: exact rows while a library is small, Chroma's graph beyond, one interface over both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.core.errors import FingerprintMismatch, IndexDamaged
from app.core.types import Filters, FloatArray, Library, Scored
from app.index.catalog.changes import ChangeLog, Projection, StagedLog
from app.index.catalog.loading import Build, CatalogLoader
from app.index.dense.chroma.follower import ChromaFollower
from app.index.dense.chroma.projection import ChromaProjection
from app.index.dense.chroma.resting_store import Expected
from app.index.dense.chroma.store import ChromaStore
from app.index.dense.exact_projection import ExactProjection
from app.index.dense.reader import DenseReader, Serving
from app.index.files.steps import Steps
from app.index.options import IndexOptions
from app.index.status import BuildState


@dataclass(slots=True)
class Staged(Serving):
    """A build whose projections are complete and follow the changes, but which nobody is sent to."""

    chroma: ChromaProjection
    whole: bool = False
    """Whether the collection holds everything; if not, it is filled after the take-over, and exact rows serve meanwhile."""


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
        self._steps = steps
        self._chroma = ChromaProjection(library, options, change_log, loader, chroma)
        self._lock = threading.RLock()
        self._serving: Serving | None = None
        self.staged: Staged | None = None
        """The build that is being made beside the one that serves, once its projections are there."""
        self._hidden: frozenset[int] = frozenset()
        self.follower = ChromaFollower(library, options, change_log, self._chroma, chroma)
        self.held_elsewhere: Callable[[], int] = lambda: 0
        """How many vectors the other library holds; both share MAX_DENSE_VECTORS."""

    def _exact_projection(self, change_log: ChangeLog) -> ExactProjection:
        return ExactProjection(self._library, self._options, change_log, self._loader, self._steps)

    def _whole(self) -> bool:
        return self.follower.ready

    @property
    def limit(self) -> int:
        """Most vectors to hold in memory now."""
        return max(0, self._options.max_dense_vectors - self.held_elsewhere())

    # --- read

    @property
    def count(self) -> int:
        """How many vectors can be searched now."""
        serving = self._serving
        return 0 if serving is None else self._reader(serving).count

    def search(self, query: FloatArray, k: int, filters: Filters | None, build: int | None = None) -> list[Scored]:
        """Return up to k chunks by cosine distance, ascending.

        Args:
            query: float32 `[dim]`, norm 1.
            k: At most this many.
            filters: What chunks have to meet.
            build: Which build the query was embedded for; None is the live one.

        Raises:
            FingerprintMismatch: That build does not serve any more.
            IndexDamaged: There are vectors, but the store that finds them is not ready.
        """
        serving = self._serving
        if build is not None and (serving is None or serving.build.number != build):
            serving = self.staged
            if serving is None or serving.build.number != build:
                live = self._loader.live_build(self._library)
                if live is not None and live.number == build:
                    return []  # it was claimed just now; its first vectors are on their way
                raise FingerprintMismatch(f"library {self._library.value!r} was re-embedded while this was searched: search again")
        if serving is None:
            return []
        if len(query) != serving.build.dimension:
            raise FingerprintMismatch(
                f"the query has {len(query)} dimensions, the vectors of library {self._library.value!r} {serving.build.dimension}"
            )
        return self._reader(serving).search(query, k, filters)

    def _reader(self, serving: Serving) -> DenseReader:
        return DenseReader(serving, self._options, self._loader, self._store, self._hidden)

    def fetch(self, chunk_ids: Sequence[int], build: int | None = None) -> dict[int, FloatArray]:
        """Return stored rows `[dim]` of a build (None: the live one), from the exact rows or else the catalog."""
        serving = self._serving
        if build is not None and (serving is None or serving.build.number != build):
            stored_in = self._loader.build(build)
            exact = None
        else:
            stored_in = serving.build if serving else self._loader.live_build(self._library)
            exact = serving.exact.index if serving else None
        found = exact.fetch(chunk_ids) if exact is not None else {}
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in found]
        if missing and stored_in is not None:
            stored = self._loader.vectors(stored_in, missing)
            found.update(zip(stored.chunk_ids, stored.rows, strict=True))
        return found

    def hide(self, chunk_ids: Sequence[int]) -> None:
        """Stop showing chunks at once; the projections drop them when they catch up."""
        with self._lock:
            self._hidden = self._hidden | frozenset(chunk_ids)
            for serving in (self._serving, self.staged):
                if serving is not None and serving.exact.index is not None:
                    serving.exact.index.drop(chunk_ids)

    # --- write

    def catch_up(self) -> None:
        """Apply every change the dense projections have not seen; Chroma's wait while it is not ready, or while exact rows serve.

        Raises:
            DiskFull: No space; what was applied stays, the next call goes on.
        """
        self.follower.note_write()
        with self._lock:
            build = self._loader.live_build(self._library)
            if build is None:
                last = self._log.last()
                self._log.set_mark(self._library, "exact", last)
                self._log.set_mark(self._library, "chroma", last)
                self._level()
                return
            serving = self._serving
            if serving is None or serving.build.number != build.number:
                serving = Serving(build, self._exact_projection(self._log), self._chroma.collection(build), self._whole)
            serving.exact.catch_up(build, self.limit)
            self._serving = serving
            rows = serving.exact.index
            if self.follower.write(build, self.limit, None if rows is None else rows.count):
                self._level()

    def _level(self) -> None:
        """Note that Chroma has every change of the build that serves: it holds nothing that must be hidden."""
        self.follower.behind = False
        self._hidden = frozenset()

    def follow_chroma(self, stop: threading.Event) -> bool:
        """Let Chroma apply what it was left behind by, while nobody writes; return whether it has applied all."""
        while self.follower.behind and not stop.is_set():
            with self._lock:
                build = self._loader.live_build(self._library)
                if build is None or not self.follower.may_go_on:
                    break
                if self.follower.step(build, self.limit):
                    self._level()
        return not self.follower.behind

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
                self.follower.catch_up(build, self.limit)
                self._level()
                self._store.scrub(self._chroma.collection(build))
                self._store.set_ready(self._library, True)
                self._chroma.rebuilding = None
        elif not stop.is_set():
            self._store.set_ready(self._library, True)

    def compare_exact(self) -> list[str]:
        """Return how the exact rows differ from the catalog, one line per row; empty when there are none."""
        with self._lock:
            build = self._loader.live_build(self._library)
            return self._exact_of(build).compare(build, self.limit) if build is not None else []

    def remake_exact(self) -> None:
        """Make the exact rows anew from the catalog."""
        with self._lock:
            build = self._loader.live_build(self._library)
            if build is not None:
                self._exact_of(build).remake(build, self.limit)

    def forget_exact(self) -> None:
        """Remove the exact rows of every build; `remake_exact` or the next write makes those of the live one again."""
        with self._lock:
            self._serving = None
            self._exact_projection(self._log).remove_others([])
            self._log.set_mark(self._library, "exact", 0)

    def _exact_of(self, build: Build) -> ExactProjection:
        serving = self._serving
        return serving.exact if serving and serving.build.number == build.number else self._exact_projection(self._log)

    def compact_exact(self) -> None:
        """Take dead rows off the disk, and all rows of builds that do not serve."""
        with self._lock:
            parts = [part for part in (self._serving, self.staged) if part is not None]
            for part in parts:
                index = part.exact.index
                if index is not None:
                    index.compact()
                    index.save(index.seq)
            if parts:
                parts[0].exact.remove_others([part.build.number for part in parts])

    # --- a build beside the one that serves

    def stage(self, build: Build, stop: threading.Event) -> bool:
        """Make the projections of a build whose vectors are in the catalog, and let searches that name it use them.

        The caller keeps Chroma's keeper quiet until `take_over` or `unstage`.

        Args:
            build: Of this library, not the live one.
            stop: When set, the work ends early.

        Returns:
            Whether it was completed.
        """
        self._log.hold(self._library, self._log.last())
        log = StagedLog(self._log)
        exact = self._exact_projection(log)
        exact.remove_others([serving.build.number] if (serving := self._serving) else [])
        chroma = ChromaProjection(self._library, self._options, log, self._loader, self._store)
        exact.catch_up(build, self.limit)
        staged = Staged(build, exact, chroma.collection(build), lambda: staged.whole, chroma)
        if self._chroma.ready:
            staged.whole = chroma.fill_beside(build, self.limit, stop)
            self._store.scrub(staged.collection)
        self.staged = staged
        return not stop.is_set()

    def follow(self) -> None:
        """Apply to the staged projections what changed meanwhile."""
        staged = self.staged
        if staged is None:
            return
        with self._lock:
            staged.exact.catch_up(staged.build, self.limit)
            if staged.whole:
                staged.chroma.catch_up(staged.build, self.limit)

    def unstage(self) -> None:
        """Forget the staged projections; the files go with the next staging or purge."""
        self.staged = None
        self._log.hold(self._library, None)

    def take_over(self, commit: Callable[[], None]) -> None:
        """Let the staged build serve from now on; the caller holds the write lock, so that nothing is written meanwhile.

        Args:
            commit: Makes the build the live one in the catalog and saves the watermarks with it.
        """
        staged = self.staged
        if staged is None:
            raise IndexDamaged(f"no projections of another build are ready for library {self._library.value!r}")
        with self._lock:
            self.follow()
            last = self._log.last()
            names: tuple[Projection, ...] = ("exact", "chroma")
            before = {name: self._log.mark(self._library, name) for name in names}
            whole = staged.whole and self._store.count(staged.collection) == min(self._loader.embedded(staged.build), self.limit)
            self._log.set_mark(self._library, "exact", last)
            self._log.set_mark(self._library, "chroma", last if whole else 0)
            try:
                commit()
            except BaseException:
                for name, seq in before.items():
                    self._log.set_mark(self._library, name, seq)
                raise
            if not whole:
                self._store.set_ready(self._library, False)
            exact = self._exact_projection(self._log)
            exact.adopt(staged.exact, staged.build)
            self._serving = Serving(staged.build, exact, staged.collection, self._whole)
            self._level()
            exact.remove_others([staged.build.number])
        self.unstage()

    def complete_chroma(self, stop: threading.Event) -> None:
        """Fill the collection of the build that serves, when a take-over left it unfinished and the store is open."""
        if self._store.opened and not self._chroma.ready:
            self.bring_up_chroma(stop, rebuild=False)

    def forget_others(self) -> None:
        """Remove Chroma's collections of builds that do not serve."""
        with self._lock:
            builds = [part.build for part in (self._serving, self.staged) if part is not None]
            if builds and self._store.opened:
                self._chroma.forget_others(builds)

    def expected_in_chroma(self) -> Expected | None:
        """Return what the probe should find."""
        return self._chroma.expected(self.limit)

    def rebuild_state(self) -> BuildState | None:
        """Return the progress of a rebuild, or that large libraries wait for Chroma; None when all can be searched."""
        serving = self._serving
        if self._chroma.rebuilding is None and serving is not None and serving.exact.index is None and not self._chroma.ready:
            return BuildState("rebuilding", 0, self._loader.embedded(serving.build))
        return self._chroma.rebuilding
