"""Open a store of vectors, keep it in step, and refill it when not trusted."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from app.core.errors import DatabaseAway, IndexDamaged, SearchAway, StorageError
from app.core.types import Library
from app.storage.catalog.loader import CatalogLoader
from app.storage.vectors.library import DenseLibrary
from app.storage.vectors.port import SharedStore, VectorStore
from app.storage.vectors.replica import Replica

log = logging.getLogger(__name__)

RETRY_S = 30.0
"""How long to wait before trying again when the disk was full, or the store failed twice in a
row."""

LOOK_EVERY_S = 10.0
"""How often one of several servers looks for what another one left behind, seconds. One alone looks
every RETRY_S for what its own writes left when there was no space or no file to open."""

QUIET_S = 3.0
"""How long nothing is written before a store is opened that no search needs yet: opening it takes
two seconds of a processor, which the first uploads after a start would wait for."""

QUIET_AT_MOST_S = 60.0
"""How long the opening is put off while something is written all the time."""

REST_S = 10.0
"""How long a check waits for a store that is being brought up: a small one is ready by then, and
uploads wait for the check."""


class StoreSupervisor:
    """The stores of all libraries; in a thread of their own, or in the caller's."""

    def __init__(
        self,
        loader: CatalogLoader,
        dense: Mapping[Library, DenseLibrary],
        wanted: threading.Event,
        delete_unused: Callable[[], None],
        apply: Callable[[Library], None],
        look: Callable[[Library], None],
        maintain: Callable[[], bool],
        *,
        shared: bool = False,
    ) -> None:
        """Supervise the stores of the libraries in `dense`, whose writes set `wanted`.

        Args:
            loader: Says what is not applied, and whether something is written.
            dense: The libraries.
            wanted: Set when there is something to do.
            delete_unused: Called when every store is whole.
            apply: Brings the words of a library and its cache up to the catalog.
            look: Makes the words of a library again if they were lost.
            maintain: Removes what fills of other processes left; returns whether it did.
            shared: Whether other processes write as well.
        """
        self._apply = apply
        self._look = look
        self._maintain = maintain
        self._shared = shared
        self._maintained_s = -LOOK_EVERY_S
        self._log = loader.log
        self._remove_unused = delete_unused
        self._dense = dense
        self._replicas: defaultdict[VectorStore, list[Replica]] = defaultdict(list)
        for of in dense.values():
            self._replicas[of.replica.store].append(of.replica)
        self._database = loader.database
        self._wanted = wanted
        self._stop = threading.Event()
        self._busy = threading.RLock()
        self._thread: threading.Thread | None = None
        self._hurried = threading.Event()
        """Set when the opening is not to wait until nothing is written."""
        self._suspect = False
        """Whether a full disk may have torn what the store has on disk."""

    def start(self) -> None:
        """Bring the store up in the background, and keep it in step until `stop`."""
        self._wanted.set()
        self._thread = threading.Thread(target=self._run, name="vector-store", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the background work; what is left of it is done after the next start."""
        self._stop.set()
        self._hurried.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def wait(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds until every library is ready; return if so."""
        waited = threading.Event()
        self._hurried.set()
        while timeout_s > 0 and not self.ready and not self._stop.is_set():
            waited.wait(0.02)
            timeout_s -= 0.02
        return self.ready

    @property
    def ready(self) -> bool:
        """Return whether the store answers for every library."""
        return all(dense.replica.whole for dense in self._dense.values())

    def _wait_until_quiet(self) -> None:
        """Put the opening off while something is written and no search needs a store."""
        until_s = time.monotonic() + QUIET_AT_MOST_S
        seen: object = None
        while (
            (now := self._database.version) != seen
            and time.monotonic() < until_s
            and not any(dense.needs_store for dense in self._dense.values())
            and not self._hurried.wait(QUIET_S)
        ):
            seen = now

    def _run(self) -> None:
        if not self._shared:
            self._wait_until_quiet()
        failed = 0
        while True:
            woken = self._wanted.wait(LOOK_EVERY_S if self._shared else RETRY_S)
            self._wanted.clear()
            if self._stop.is_set():
                return
            try:
                woken |= self._after_maintenance()
                for library in self._dense:
                    self._look(library)
                if woken or self._left_behind():
                    self._work()
                failed = 0
            except (StorageError, OSError) as exc:
                failed += 1
                self._suspect = True
                if self._stop.is_set():
                    return
                self._stop.wait(_rest(exc, failed))
                self._wanted.set()

    def _after_maintenance(self) -> bool:
        """Look after what several processes share, if it is time; return whether there is work."""
        if not self._shared or time.monotonic() < self._maintained_s + LOOK_EVERY_S:
            return False
        self._maintained_s = time.monotonic()
        try:
            return self._maintain()
        except StorageError as exc:  # what serves is looked after all the same
            log.warning("what other processes left is looked for later: %s", exc.message)
            return False

    def _left_behind(self) -> bool:
        """Apply words that were left behind; return whether vectors may be left too."""
        kinds = {library: dense.replica.kind for library, dense in self._dense.items()}
        left = self._log.behind(kinds)
        for library in left:
            self._apply(library)
        return bool(left) or not self.ready

    def _work(self) -> None:
        for dense in self._dense.values():
            dense.fill_cache()
        if self._suspect or not self.ready:
            self.initialise()
        for dense in self._dense.values():
            dense.replica.follow(self._stop)
        if not self._wanted.is_set():
            self._log.save()  # forgets the changes that are applied

    def initialise(self) -> None:
        """Check the store, fill what is missing and let searches use it.

        Raises:
            IndexDamaged: The store failed even when it was filled again.
            DiskFull: No space.
        """
        with self._busy:
            for store, replicas in self._replicas.items():
                if isinstance(store, SharedStore):
                    for replica in replicas:
                        replica.repair(self._stop)
                elif problem := next(filter(None, (one.trouble() for one in replicas)), ""):
                    self._move_aside(store, problem, logging.ERROR)
            for dense in self._dense.values():
                dense.replica.initialise(self._stop)
            if self.ready:
                self._remove_unused()
            self._suspect = False

    def _move_aside(self, store: VectorStore, reason: str, level: int) -> None:
        with ExitStack() as stack:
            for replica in self._replicas[store]:
                stack.enter_context(replica.lock)
                replica.mark_missing()
            moved = store.set_aside()
        kept = f"; kept as {moved}" if moved else ""
        log.log(level, "the vector store is filled again from the catalog: %s%s", reason, kept)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keep the store as it is for the block; opening and refilling wait."""
        with self._busy:
            yield

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the store still for a check; yield False while it is being opened.

        It does not wait long for that.
        """
        if not self._busy.acquire(timeout=REST_S):
            yield False
            return
        try:
            with ExitStack() as stack:
                for dense in self._dense.values():
                    stack.enter_context(dense.replica.lock)
                yield True
        finally:
            self._busy.release()

    def refill(self, reason: str) -> None:
        """Refill the stores from the catalog, now: moved aside, or next to what others search.

        Raises:
            IndexDamaged: The store failed.
            DiskFull: No space.
        """
        with self._busy:
            for store in self._replicas:
                if not isinstance(store, SharedStore):
                    self._move_aside(store, reason, logging.INFO)
            for dense in self._dense.values():
                if isinstance(dense.replica.store, SharedStore):
                    log.info("vectors are filled again from the catalog: %s", reason)
                    dense.replica.refill(self._stop)
                    dense.delete_others()
            self.initialise()


def _rest(error: StorageError | OSError, failed: int) -> float:
    """Tell the log of a failure, the n-th in a row; return how long to wait, in seconds."""
    if isinstance(error, (SearchAway, DatabaseAway)):
        wait_s = min(2 * RETRY_S, (error.retry_after_s or RETRY_S) * 2.0 ** min(failed - 1, 10))
        log.warning("%s; trying again in %.0f s", error.message, wait_s)
        return wait_s
    wait_s = 0.0 if failed == 1 and isinstance(error, IndexDamaged) else RETRY_S
    log.error("the vector store is not up to date; trying again in %.0f s", wait_s, exc_info=error)
    return wait_s
