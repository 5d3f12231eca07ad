"""Synchronise a vector store with the catalog, one collection per library."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from app.core.errors import Busy, IndexDamaged, StorageError
from app.core.types import FloatArray, Library
from app.core.vectors import cosine_distances
from app.storage.catalog.changes import STAGED, BuildState, Change
from app.storage.catalog.database import held
from app.storage.catalog.epochs import epoch_of
from app.storage.catalog.loader import CatalogLoader
from app.storage.catalog.rows import Build, VectorRows
from app.storage.catalog.schema import pieces
from app.storage.follow import Follower
from app.storage.options import MOST_VECTORS, IndexOptions
from app.storage.vectors.port import SharedStore, Stamps, VectorStore

log = logging.getLogger(__name__)

BATCH = 1000
"""Vectors per read from the catalog and per write to the store."""

STEP_CHANGES = 64
"""Changes applied at a time; a purge or the end of the server waits for one step."""

SELF_QUERIES = 32
"""Stored vectors that a collection is asked for when it is checked."""

NEIGHBOURS = 10
"""How many neighbours of a stored vector are asked for."""

SAME = 1e-4
"""Largest cosine distance of a vector to an equal one, in float32: equal texts have equal
vectors."""

FEW, FEW_SHARE = 2, 0.05
"""So many unfound vectors, or this share of those asked for, are no damage: a graph may leave
elements that no search reaches."""


MENDED_SHARE = 0.01
"""Up to this share of a shared collection is mended id by id; where more differs, it is filled
again."""

RANGE = 10_000
"""Ids that are compared at a time, under the lock of those who bring changes."""

REFILL = "refill of vectors"
"""How the mark of a collection begins that is being filled; its name follows."""


class Replica:
    """The collection of a library's live build; thread-safe.

    What asks the store raises its IndexDamaged and DiskFull (see `VectorStore`).
    """

    def __init__(
        self, library: Library, options: IndexOptions, loader: CatalogLoader, store: VectorStore
    ) -> None:
        """Serve `library` from `store`; nothing is asked yet."""
        self._library = library
        self._options = options
        self.kind = options.store_of(library)
        """The name under which the log of changes keeps how far the collection is."""
        self._log = loader.log
        self._loader = loader
        self.store = store
        self.shared = options.shared
        """Whether other processes write to the collection as well."""
        self.lock = loader.database.lock_of(f"vectors of {library.value}")
        """Held while changes are written to the collection."""
        self._filling = loader.database.lock_of(f"filling {library.value}")
        """Held while the live collection is filled, so that a mark of a fill that anybody finds who
        holds it is of a process that was killed or cut off."""
        self.staging = loader.database.lock_of(f"staging {library.value}")
        """Held while another build follows the changes under the mark STAGED."""
        self.whole = False
        """Whether the collection was checked or filled since the store was opened, so that
        searches may use it."""
        self.rebuilding: BuildState | None = None
        """Progress of a running fill."""

    @property
    def limit(self) -> int:
        """Return the most vectors to hold; `public` has what `papers` leaves."""
        papers = self._library is Library.PUBLIC and self._loader.live_build(Library.PAPERS)
        taken = self._loader.embedded(papers) if papers else 0
        return self._options.most_vectors(self._library, taken)

    @property
    def applied(self) -> int:
        """The last change that the collection has; 0 when it was never completed."""
        return self._log.mark(self._library, self.kind)

    def collection(self, build: Build) -> str:
        return f"{self._options.prefix_of(self._library)}{build.fingerprint8}"

    def pending_ids(self, after: int, most: int) -> list[int]:
        """Return the chunks, up to `most`, whose vectors came or went after a change."""
        changes = self._log.pending(self._library, after, dense=True)
        return list(dict.fromkeys(i for change in changes for i in change.ids))[:most]

    # --- write

    def follow(self, stop: threading.Event | None = None) -> None:
        """Apply every change that the collection has not seen.

        Raises:
            IndexDamaged: The store failed; `whole` is False until the next check.
            DiskFull: No space; the next call goes on.
        """
        if self.shared and self.whole and not self.applied:  # a new build, or another process's
            self._complete(stop or threading.Event())
        while self.whole and not (stop is not None and stop.is_set()) and self._step():
            pass

    def _step(self) -> bool:
        with self.lock:
            build = self._loader.live_build(self._library)
            if build is None or not self.whole:
                return False
            if self.shared and not self.applied:
                return False  # what the log has is not all that the collection lacks
            try:
                return self.follower(build, self.kind).step(STEP_CHANGES)
            except IndexDamaged:
                self.whole = False
                raise

    def flush(self) -> None:
        """Make what the collection was told durable."""
        with self.lock:
            build = self._loader.live_build(self._library)
            if build is not None and (applied := self.applied):
                self.follower(build, self.kind).flush(applied, at_once=True)

    def follower(self, build: Build, mark: str, name: str = "") -> Follower:
        """Return what brings a build's collection, or the one of this name, in step."""
        name = name or self.collection(build)

        def flush(at_once: bool) -> bool:
            return self.store.flush(name, at_once=at_once)

        return Follower(self._log, self._library, mark, partial(self._apply, build, name), flush)

    def _apply(self, build: Build, name: str, changes: Sequence[Change]) -> None:
        limit = self.limit
        fits = self._loader.embedded(build) <= limit
        ids = list(dict.fromkeys(i for change in changes for i in change.ids))
        corrected = [change.doc for change in changes if change.kind == "correct"]
        ids += self._loader.chunk_ids(corrected)
        for batch in pieces(ids, BATCH):
            stored = self._loader.vectors(build, batch)
            present = set(stored.chunk_ids)
            self.store.delete(name, [chunk_id for chunk_id in batch if chunk_id not in present])
            # To count reads every id of a collection.
            room = limit if fits else max(0, limit - self.store.count(name))
            self._upsert(build, name, stored, room)

    def _upsert(self, build: Build, name: str, stored: VectorRows, room: int) -> None:
        if stored.chunk_ids and room:
            of = partial(self._loader.stamps, with_text=self._options.chroma_store_text)
            stamps = Stamps(build.fingerprint.embedding_model, of)
            self.store.upsert(name, stored.chunk_ids[:room], stored.rows[:room], stamps)

    def fill(self, build: Build, stop: threading.Event, mark: str = "") -> int | None:
        """Fill a build's collection from the catalog, a batch at a time.

        In a store that others search, it is filled next to the one that serves, and exchanged. The
        mark, by default one of its own, keeps the changes that come in the meantime.

        Returns:
            The last change that it includes; None when `stop` was set first.
        """
        name, limit = self.collection(build), self.limit
        total = min(self._loader.embedded(build), limit)
        shared = self.store if isinstance(self.store, SharedStore) else None
        if shared:
            shared.delete_unserved(name)
        filled = shared.shadow_collection(name) if shared else name
        filling = self.follower(build, mark or f"{REFILL} {filled}", filled)
        filling.start_at(self._log.last())
        self.rebuilding = BuildState("rebuilding", 0, total)
        try:
            self._loader.analyse()
            self.store.drop(filled)
            self.store.prepare(filled, total, lambda n: self._sample(build, n))
            done = 0
            for stored in self._loader.all_vectors(build, BATCH):
                if done >= limit or stop.is_set():
                    break
                self._upsert(build, filled, stored, limit - done)
                done = min(limit, done + len(stored.chunk_ids))
                self.rebuilding = BuildState("rebuilding", done, total)
            if stop.is_set():
                return None
            self.store.flush(filled, at_once=True)
            if shared:
                with self.lock:
                    filling.check_kept()
                    filling.catch_up()
                    shared.promote(name, filled)
            return filling.applied
        finally:
            self.rebuilding = None
            with suppress(StorageError):  # `delete_cut_off` removes what cannot be removed now
                if shared:
                    shared.delete_unserved(name, filled)
                if not mark:
                    filling.end()

    def delete_cut_off(self) -> bool:
        """Remove what fills left that no one goes on with; return whether there was anything."""
        build, swept = self._loader.live_build(self._library), False
        for beginning, lock in ((REFILL, self._filling), (STAGED, self.staging)):
            if not self._log.kept_for(self._library, beginning):
                continue
            with suppress(Busy), held(lock, wait=False):
                if beginning == REFILL and build and isinstance(self.store, SharedStore):
                    self.store.delete_unserved(self.collection(build))
                for left in self._log.kept_for(self._library, beginning):
                    log.warning("the %s was cut off: what it left is removed", left)
                    self._log.unmark(self._library, left)
                    swept = True
        return swept

    def _sample(self, build: Build, n: int) -> FloatArray:
        """Return about n vectors of a build, spread over all."""
        ids = self._loader.sample(build, n)
        return np.concatenate(
            [self._loader.vectors(build, some).rows for some in pieces(ids, BATCH)]
        )

    def initialise(self, stop: threading.Event) -> None:
        """Complete the live build's collection and let searches use it."""
        self.whole = self._complete(stop) and not stop.is_set()
        self.follow(stop)

    def _complete(self, stop: threading.Event) -> bool:
        """Fill the live collection where that was never done; return whether it is complete."""
        if self.applied:  # another process may be filling one next to it, for hours
            return True
        with self._filling:
            build = self._loader.live_build(self._library)
            if build is None or self.applied:
                return True
            applied = self.fill(build, stop)
            if applied is not None:
                with self.lock:
                    self._log.set_mark(self._library, self.kind, applied)
            return applied is not None

    def mark_missing(self) -> None:
        """Note that the collection is gone, so that `bring_up` fills it."""
        with self.lock:
            self.whole = False
            self._log.set_mark(self._library, self.kind, 0)

    def repair(self, stop: threading.Event) -> None:
        """Check the live collection of a shared store and put it right while it serves."""
        build, store = self._loader.live_build(self._library), self.store
        if build is None or not isinstance(store, SharedStore) or not self.trouble():
            return
        name = self.collection(build)
        self.whole = name in store.collections()  # it answers with what it has
        with self._filling:
            if not (problem := self.trouble()):
                return  # another process did it
            if name not in store.collections():
                log.error("%s: it is lost and filled again from the catalog", problem)
                self.mark_missing()
                return
            wanted, there = self._loader.embedded(build), store.count_agreed(name)
            if wanted <= self.limit and abs(there - wanted) <= MENDED_SHARE * wanted:
                mended = self._mend(build, store, stop)
                log.warning("%s: %d ids differed and were put right", problem, mended)
                if stop.is_set():
                    return
                if not self._unfound(build, set()):
                    self.set_epoch(epoch_of(self._loader.database).now)
                    return
            log.error("%s: it is filled again next to the one that serves", problem)
            self.fill(build, stop)

    def trouble(self) -> str:
        """Return `problem`, or the error of the store when it is asked."""
        try:
            with self.lock:
                return self.problem()
        except IndexDamaged as exc:
            return exc.message

    def _mend(self, build: Build, store: SharedStore, stop: threading.Event) -> int:
        """Give a collection the ids that the catalog has, a range at a time; return how many."""
        name, after, mended = self.collection(build), 0, 0
        while after < MOST_VECTORS and not stop.is_set():
            with self.lock:
                there = store.ids_after(name, after, RANGE)
                upto = there[-1] if len(there) == RANGE else MOST_VECTORS
                wanted = self._loader.vector_ids(build.number, after, upto)
                missing, phantom = sorted(wanted.difference(there)), set(there) - wanted
                store.delete(name, sorted(phantom))
                for some in pieces(missing, BATCH):
                    self._upsert(build, name, self._loader.vectors(build, some), BATCH)
            after, mended = upto, mended + len(missing) + len(phantom)
        return mended

    def refill(self, stop: threading.Event) -> None:
        """Exchange the live collection of a shared store for one that is filled next to it."""
        with self._filling:
            build = self._loader.live_build(self._library)
            if build is not None and self.applied:
                self.fill(build, stop)

    def delete_others(self, keep: Sequence[Build]) -> None:
        """Remove every collection of the library except those of these builds."""
        kept = {self.collection(build) for build in keep}
        for name in self.store.collections():
            if name.startswith(self._options.prefix_of(self._library)) and name not in kept:
                self.store.drop(name)

    # --- check

    @property
    def epoch(self) -> str | None:
        """Return of which state of the catalog the live collection is.

        None: there is none yet, or no one else writes to it.
        """
        build = self._loader.live_build(self._library)
        if build is None or not isinstance(self.store, SharedStore):
            return None
        return self.store.epoch(self.collection(build))

    def set_epoch(self, epoch: str) -> None:
        """Note of which state of the catalog the live collection is."""
        build = self._loader.live_build(self._library)
        if build is not None and isinstance(self.store, SharedStore):
            self.store.set_epoch(self.collection(build), epoch)

    def suspect(self) -> None:
        """Let the collection be checked, since it is of another state of the catalog."""
        self.whole = False

    def problem(self) -> str:
        """Return why the live collection cannot be trusted; empty if it can or was never whole."""
        found = self._problem(self.store.count)
        if found and isinstance(self.store, SharedStore):  # the copy that answered may be behind
            return self._problem(self.store.count_agreed)
        return found

    def _problem(self, count: Callable[[str], int]) -> str:
        build = self._loader.live_build(self._library)
        if build is None or not self.applied:
            return ""
        noted = self.epoch  # before the catalog's is read
        if noted is not None and not epoch_of(self._loader.database).knows(noted):
            return f"{self.collection(build)} was written for another state of the catalog"
        # In this order, for others may be writing: what the sample or the count has and the
        # collection lacks is then uncertain.
        sample, embedded = self._loader.sample(build, SELF_QUERIES), self._loader.embedded(build)
        uncertain = self.uncertain()
        name, wanted = self.collection(build), min(embedded, self.limit)
        there = count(name)
        if abs(there - wanted) > len(uncertain):
            return f"{name} holds {there} vectors, the catalog {wanted}"
        if embedded > wanted:
            return ""  # which of the vectors it holds is not known
        return self._unfound(build, uncertain, sample)

    def _unfound(self, build: Build, uncertain: set[int], sample: Sequence[int] = ()) -> str:
        """Return that searches do not find vectors which the collection has; empty if they do."""
        name, sample = self.collection(build), sample or self._loader.sample(build, SELF_QUERIES)
        rows = self._loader.vectors(build, [one for one in sample if one not in uncertain])
        missed = sum(not self._finds(name, build, row) for row in rows.rows)
        if missed > max(FEW, FEW_SHARE * len(rows.rows)) or missed == len(rows.rows) > 0:
            return f"{name} finds {len(rows.rows) - missed} of {len(rows.rows)} of its vectors"
        return ""

    def uncertain(self) -> set[int]:
        """Return the chunks whose last change is not known to be applied."""
        found: set[int] = set()
        for changes in self._log.batches(self._library, self.applied, dense=True):
            found.update(i for change in changes for i in change.ids)
        return found

    def _finds(self, name: str, build: Build, row: FloatArray) -> bool:
        """Return whether a search for a stored vector proposes an equal one."""
        proposed = self._loader.vectors(build, self.store.search(name, row, NEIGHBOURS)).rows
        return len(proposed) > 0 and float(np.min(cosine_distances(row, proposed))) <= SAME
