"""Chroma's life: probed before it is opened, moved aside when damaged, rebuilt from the catalog, retried when the disk was full."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from app.core.errors import StorageError
from app.core.types import Library
from app.index.catalog.changes import ChangeLog
from app.index.catalog.database import Database
from app.index.dense.chroma.probe import probe
from app.index.dense.chroma.resting_store import Expected
from app.index.dense.chroma.store import ChromaStore
from app.index.dense.library import DenseLibrary
from app.index.files.durable import move_aside, move_contents_aside
from app.index.files.lock import LOCK_NAME
from app.index.files.steps import Steps

log = logging.getLogger(__name__)

RETRY_S = 30.0
"""How long to wait before trying again when the disk was full."""

LOOK_S = 0.25
"""How often the keeper looks whether writers rest, while Chroma is behind."""

REST_S = 10.0
"""How long a check waits for a store that is being brought up: a small one is ready by then, and uploads wait meanwhile."""


class ChromaKeeper:
    """Brings the store up, in its own thread or in the caller's, and again after it failed while serving."""

    def __init__(
        self, chroma: ChromaStore, database: Database, change_log: ChangeLog, dense: Mapping[Library, DenseLibrary], steps: Steps
    ) -> None:
        """Keep `chroma` for the libraries in `dense`."""
        self._chroma = chroma
        self._database = database
        self._log = change_log
        self._dense = dense
        self._steps = steps
        self._stop = threading.Event()
        self._wanted = threading.Event()
        self._busy = threading.RLock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Bring the store up in the background, and keep it up until `stop`."""
        self._wanted.set()
        self._chroma.on_failure = self._wanted.set
        for dense in self._dense.values():
            dense.follower.on_behind = self._wanted.set
        self._thread = threading.Thread(target=self._keep, name="chroma-keeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the background work; a rebuild goes on at the next start."""
        self._stop.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def wait(self, timeout_s: float) -> bool:
        """Wait until every library is ready, at most `timeout_s` seconds; return whether they are."""
        waited = threading.Event()
        while timeout_s > 0 and not self.ready and not self._stop.is_set():
            waited.wait(0.02)
            timeout_s -= 0.02
        return self.ready

    @property
    def ready(self) -> bool:
        """Whether every library can be searched in Chroma."""
        return all(self._chroma.ready(library) for library in Library)

    def _keep(self) -> None:
        while not self._stop.is_set():
            self._wanted.wait()
            self._wanted.clear()
            if self._stop.is_set():
                return
            try:
                with self._busy:
                    if not self.ready:  # another thread may have made it whole meanwhile
                        self.bring_up()
                self._follow()
            except (StorageError, OSError):
                if self._stop.is_set():
                    return
                log.exception("the vector store is not up to date; the other indexes serve, trying again in %.0f s", RETRY_S)
                if not self._stop.wait(RETRY_S):
                    self._wanted.set()

    def _follow(self) -> None:
        """Let Chroma catch up with what was written while exact rows served, whenever nobody writes."""
        followed = False
        while self.ready and not followed and not self._stop.wait(LOOK_S):
            with self._busy:
                each = [dense.follow_chroma(self._stop) for dense in self._dense.values()]
            followed = all(each)
        if followed:
            self._log.save()

    def bring_up(self) -> None:
        """Check, open and complete the store.

        Raises:
            StorageError: It cannot be opened or filled now.
        """
        with self._busy:
            rebuild = self._prepare()
            self._chroma.open()
            self._remember_version()
            for dense in self._dense.values():
                dense.bring_up_chroma(self._stop, rebuild=rebuild)

    def _prepare(self) -> bool:
        """Make the store safe to open; return whether it must be filled anew."""
        path = self._chroma.path
        if self._chroma.opened:  # it failed while serving: whatever it is now, it is not trusted
            self._chroma.close()
            self._set_aside(path, "it failed while serving")
            return True
        if path.exists() and not path.is_dir():
            self._set_aside(path, "it is not a directory")
            return True
        empty = not path.exists() or all(entry.name == LOCK_NAME for entry in path.iterdir())
        if empty:
            return self._log_applied()
        if self._stored_version() not in (None, version("chromadb")):
            self._set_aside(path, f"it was written by chromadb {self._stored_version()}, this is {version('chromadb')}")
            return True
        finding = probe(path, self._database.path, self.expected(), stop=self._stop)
        if not finding.healthy:
            self._set_aside(path, "; ".join(finding.problems[:3]))
            return True
        return False

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep the store as it is for the block: whoever would open or make it anew waits."""
        with self._busy:
            yield

    def remake(self, reason: str) -> None:
        """Move the store aside and make it anew from the catalog, now."""
        with self._busy:
            self._chroma.close()
            if self._chroma.path.exists():
                self._set_aside(self._chroma.path, reason, logging.INFO)
            for library in Library:
                self._log.set_mark(library, "chroma", 0)
            self.bring_up()

    @contextmanager
    def at_rest(self) -> Iterator[bool]:
        """Hold the store still for a check; yields False when it is being brought up, which is not waited for long."""
        if not self._busy.acquire(timeout=REST_S):
            yield False
            return
        try:
            with self._chroma.still():
                yield True
        finally:
            self._busy.release()

    def expected(self) -> list[Expected]:
        """Return what the collections should hold now."""
        return [want for dense in self._dense.values() if (want := dense.expected_in_chroma()) is not None]

    def _log_applied(self) -> bool:
        """Whether an empty store should not be empty."""
        lost = any(want.count > len(want.uncertain) for want in self.expected())
        if lost:
            log.error("the vector store %s is gone: making it again from the catalog", self._chroma.path.name)
        return lost

    def _set_aside(self, path: Path, reason: str, level: int = logging.ERROR) -> None:
        if path.is_dir() and (path / LOCK_NAME).exists():
            moved = move_contents_aside(path, LOCK_NAME, self._steps, "chroma.move_aside")
        else:
            moved = move_aside(path, self._steps, "chroma.move_aside")
        log.log(level, "the vector store is moved to %s and made again from the catalog: %s", moved.name, reason)

    def _stored_version(self) -> str | None:
        with self._database.read_raw() as cursor:
            row = cursor.execute("SELECT value FROM meta WHERE key = 'chromadb'").fetchone()
        return row[0] if row else None

    def _remember_version(self) -> None:
        if self._stored_version() != version("chromadb"):
            with self._database.write("meta") as sql:
                sql.exec_driver_sql(
                    "INSERT INTO meta (key, value) VALUES ('chromadb', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    (version("chromadb"),),
                )
