"""Open the lexical indexes at a start; make a damaged or incomplete one again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.errors import IndexDamaged
from app.core.types import Library, LibraryCounts
from app.index.catalog.changes import ChangeLog
from app.index.files.durable import delete_tree, move_aside
from app.index.files.steps import Steps
from app.index.lexical.files import CHECKED_AT_START_BYTES, damaged_files
from app.index.lexical.index import TantivyIndex
from app.index.lexical.port import WordIndex
from app.index.options import IndexOptions
from app.index.projector import Projector

if TYPE_CHECKING:
    from app.index.engine.qdrant import SearchEngine

log = logging.getLogger(__name__)

REBUILD_IN_FOREGROUND_CHUNKS = 20_000
"""A lexical index up to this size is rebuilt before the store opens (a second); a larger one
while it serves."""


class LexicalRepair:
    """The lexical indexes of a store as they are opened, repaired and closed."""

    def __init__(
        self,
        options: IndexOptions,
        log: ChangeLog,
        steps: Steps,
        engine: SearchEngine | None = None,
        *,
        heal: bool,
    ) -> None:
        """Open every library's index, in `engine` if there is one.

        With `heal`, a damaged one is moved aside.
        """
        self._engine = engine
        self._options = options
        self._log = log
        self._steps = steps
        self._threads: list[threading.Thread] = []
        self.indexes: dict[Library, WordIndex] = {
            library: self._open(library, heal=heal) for library in Library
        }

    def _path(self, library: Library) -> Path:
        return self._options.data_dir / "tantivy" / library.value

    def _open(self, library: Library, *, heal: bool) -> WordIndex:
        path = self._path(library)
        if self._engine is not None:
            words = _words_in(self._engine, library, self._options, self._steps)
            if heal and path.exists():  # it was written last, so that the engine's may be old
                words.delete_all()
                delete_tree(path, self._steps, "tantivy.delete_embedded")
            return words
        problems = damaged_files(path, CHECKED_AT_START_BYTES) if heal else []
        try:
            if not problems:
                return TantivyIndex(path, self._options, self._steps)
        except IndexDamaged as exc:
            problems = [exc.message]
        return self._exchange(library, problems[0])

    def _exchange(self, library: Library, problem: str) -> WordIndex:
        """Move a damaged lexical index aside; return an empty one to be filled."""
        log.error(
            "the lexical index of %s is damaged (%s); it is moved aside and made again from the"
            " catalog",
            library.value,
            problem,
        )
        if self._engine is not None:
            words = _words_in(self._engine, library, self._options, self._steps)
            words.delete_all()
            return words
        move_aside(self._path(library), self._steps, "tantivy.move_aside")
        self._log.set_mark(library, "lexical", 0)
        return TantivyIndex(self._path(library), self._options, self._steps)

    def start(
        self, library: Library, projector: Projector, counts: Callable[[], LibraryCounts]
    ) -> None:
        """Bring an index up to the catalog; make it again where their counts differ.

        Args:
            library: Whose index.
            projector: Applies changes to it.
            counts: Returns what the catalog holds. Above 20,000 chunks the index is made again
                while the server serves.
        """
        try:
            projector.start(library)
        except IndexDamaged as exc:
            if not self.indexes[library].failed:
                raise
            self.indexes[library].close()
            self.indexes[library] = self._exchange(library, exc.message)
            projector.start(library)
        if counts().chunks <= REBUILD_IN_FOREGROUND_CHUNKS:
            self._compare(library, projector, counts)
            return
        thread = threading.Thread(
            target=self._compare,
            args=(library, projector, counts),
            name=f"rebuild-lexical-{library.value}",
            daemon=True,
        )
        self._threads.append(thread)
        thread.start()

    def _compare(
        self, library: Library, projector: Projector, counts: Callable[[], LibraryCounts]
    ) -> None:
        """Make an index again that holds another number of chunks than the catalog."""
        with projector.rebuilding(library):
            with projector.writing:  # no other process writes between the two counts
                held, wanted = self.indexes[library].count, counts()
            if held != wanted.chunks:
                log.error(
                    "the lexical index of %s holds %d chunks, the catalog %d: making it again",
                    library.value, held, wanted.chunks,
                )  # fmt: skip
                projector.rebuild_lexical(library, wanted.documents)

    def wait(self) -> None:
        """Wait until no index is being made again."""
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        """Close every index."""
        for index in self.indexes.values():
            index.close()


def _words_in(
    engine: SearchEngine, library: Library, options: IndexOptions, steps: Steps
) -> WordIndex:
    from app.index.lexical.qdrant import QdrantWords  # noqa: PLC0415  # an extra

    return QdrantWords(library, engine, options, steps)
