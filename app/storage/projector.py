"""Keep the projections in step with the catalog, in the order of its changes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager

from app.core.errors import StorageError
from app.core.types import Library
from app.storage.catalog.changes import ChangeLog
from app.storage.catalog.database import Database, held
from app.storage.catalog.reading import CatalogLoader
from app.storage.status import BuildState
from app.storage.vectors.library import DenseLibrary
from app.storage.words.port import WordIndex
from app.storage.words.writer import LexicalWriter

log = logging.getLogger(__name__)


class Projector:
    """Orders the writes of this process."""

    def __init__(
        self,
        change_log: ChangeLog,
        loader: CatalogLoader,
        lexical: Mapping[Library, WordIndex],
        dense: Mapping[Library, DenseLibrary],
        database: Database,
        word_writer: type[LexicalWriter] = LexicalWriter,
    ) -> None:
        self.log = change_log
        self.dense = dense
        self._lock = database.writers
        self.words = {
            library: word_writer(library, lexical, change_log, loader, self._lock)
            for library in lexical
        }

    def writing(self, *, wait: bool = True) -> AbstractContextManager[None]:
        """Hold the lock of this process's writers; other processes have their own.

        Raises:
            Busy: Another one has it, and it is not to be waited for.
        """
        return held(self._lock, wait=wait)

    def state(self, library: Library) -> BuildState:
        """Return whether the library's projections are whole."""
        return (
            self.words[library].rebuilding
            or self.dense[library].rebuild_state()
            or BuildState("ready")
        )

    def settle(self) -> None:
        """Wait until queued words are committed or dropped; hold the write locks."""
        for words in self.words.values():
            words.settle()

    def apply(self, library: Library) -> None:
        """Bring every projection to the last change; queued words follow by themselves.

        Raises:
            DiskFull: No space; the watermark stays and the next call goes on.
        """
        self.words[library].follow()
        self.dense[library].catch_up()

    def close(self) -> None:
        """Commit words that are under way; nothing is written after."""
        with self.writing():
            for words in self.words.values():
                words.close()

    def start(self, library: Library) -> None:
        """Replay what the last process left; report vectors that fail, which is not fatal."""
        self.words[library].catch_up()
        try:
            self.dense[library].catch_up()
        except StorageError:
            log.exception(
                "the dense projections of %s could not be brought up to date; lexical search"
                " serves",
                library.value,
            )
