"""Keep the projections in step with the catalog, in the order of its changes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from app.core.errors import Busy, IndexDamaged, StorageError
from app.core.types import Library
from app.storage.catalog.changes import REFILL_OF_WORDS, BuildState
from app.storage.catalog.database import held
from app.storage.catalog.documents import count
from app.storage.catalog.epochs import begin_epoch, epoch_of
from app.storage.catalog.loader import CatalogLoader
from app.storage.files.durable import Steps, delete_tree, move_aside
from app.storage.opening import Engine, open_words, word_writer
from app.storage.options import IndexOptions
from app.storage.vectors.library import DenseLibrary
from app.storage.words.port import WordIndex, is_shared
from app.storage.words.tantivy import CHECKED_AT_START_BYTES, damaged_files

log = logging.getLogger(__name__)

REBUILD_IN_FOREGROUND_CHUNKS = 20_000
"""A lexical index up to this size is rebuilt before the store opens (a second); a larger one
while it serves."""


class Projector:
    """The vectors and words of every library; orders the writes of this process."""

    def __init__(
        self,
        options: IndexOptions,
        steps: Steps,
        loader: CatalogLoader,
        dense: Mapping[Library, DenseLibrary],
        engine: Engine | None,
        *,
        heal: bool,
    ) -> None:
        """Open every library's index of words, in `engine` if there is one.

        With `heal`, a damaged one is moved aside.
        """
        self.log = loader.log
        self.dense = dense
        self._options = options
        self._steps = steps
        self._database = loader.database
        self._engine = engine
        self._threads: list[threading.Thread] = []
        self._old: set[Library] = set()
        """Libraries whose index in the engine may be older than what was here."""
        self._counted_in: str | None = None
        """The epoch in which words were counted last."""
        self.indexes = {library: self._open(library, heal=heal) for library in Library}
        writer = word_writer(shared=options.shared)
        self.words = {library: writer(library, self.indexes, loader) for library in Library}

    def writing(self, *, wait: bool = True) -> AbstractContextManager[None]:
        """Hold the lock of this process's writers; other processes have their own.

        Raises:
            Busy: Another one has it, and it is not to be waited for.
        """
        return held(self._database.writers, wait=wait)

    def state(self, library: Library) -> BuildState:
        """Return whether the library's projections are whole."""
        words, dense = self.words[library], self.dense[library].rebuild_state()
        if words.lacking and words.rebuilding is None:  # that is known, and begins in a moment
            return BuildState("rebuilding", 0, count(self._database, library).documents)
        return words.rebuilding or dense or BuildState("ready")

    def watermarks(self) -> Mapping[str, int]:
        """Return how far each projection got, and the last change as `changes`.

        Keys are `library/projection`.
        """
        return {**self.log.marks(), "changes": self.log.last()}

    def wait_until_idle(self) -> None:
        """Wait until queued words are committed or dropped; hold the write locks."""
        for words in self.words.values():
            words.wait_until_idle()

    def apply(self, library: Library) -> None:
        """Bring every projection to the last change; queued words follow by themselves.

        Raises:
            DiskFull: No space; the watermark stays and the next call goes on.
        """
        self.words[library].follow()
        self.dense[library].catch_up()

    def close(self) -> None:
        """Commit words that are under way; nothing is written after."""
        for thread in self._threads:
            thread.join()
        with self.writing():
            for words in self.words.values():
                words.close()

    # --- indexes of words that are damaged, lost or incomplete

    def _path(self, library: Library) -> Path:
        return self._options.data_dir / "tantivy" / library.value

    def _new(self, library: Library) -> WordIndex:
        return open_words(library, self._path(library), self._options, self._engine, self._steps)

    def _open(self, library: Library, *, heal: bool) -> WordIndex:
        path = self._path(library)
        if self._engine is not None:
            if heal and path.exists():  # it was written last, so that the engine's may be old
                self._old.add(library)
                delete_tree(path, self._steps, "tantivy.delete_embedded")
            return self._new(library)
        problems = damaged_files(path, CHECKED_AT_START_BYTES) if heal else []
        try:
            if not problems:
                return self._new(library)
        except IndexDamaged as exc:
            problems = [exc.message]
        return self._replace_damaged(library, problems[0])

    def _replace_damaged(self, library: Library, problem: str) -> WordIndex:
        """Move a damaged lexical index aside; return an empty one to be filled."""
        log.error(
            "the lexical index of %s is damaged (%s); it is moved aside and made again from the"
            " catalog",
            library.value,
            problem,
        )
        move_aside(self._path(library), self._steps, "tantivy.move_aside")
        self.log.set_mark(library, "lexical", 0)
        return self._new(library)

    def start(self, library: Library) -> None:
        """Replay what the last process left; make the index again where counts differ.

        Above 20,000 chunks it is made again while the server serves. Vectors that fail are not
        fatal.
        """
        try:
            self.words[library].catch_up()
        except IndexDamaged as exc:
            index = self.indexes[library]
            if not index.failed:
                raise
            if is_shared(index):
                log.exception("the index of words of %s cannot be written", library.value)
                self._old.add(library)
            else:
                index.close()
                self.indexes[library] = self._replace_damaged(library, exc.message)
                self.words[library].catch_up()
        try:
            self.dense[library].catch_up()
        except StorageError:
            log.exception(
                "the dense projections of %s could not be brought up to date; lexical search"
                " serves",
                library.value,
            )
        if count(self._database, library).chunks <= REBUILD_IN_FOREGROUND_CHUNKS:
            self._rebuild_if_differing(library)
        else:
            self._compare_in_background(library)

    def _compare_in_background(self, library: Library) -> None:
        def compare() -> None:
            try:
                self._rebuild_if_differing(library)
            except StorageError:  # a look or the next start tries again
                log.exception("the lexical index of %s could not be made again", library.value)

        name = f"rebuild-lexical-{library.value}"
        if not any(thread.name == name and thread.is_alive() for thread in self._threads):
            thread = threading.Thread(target=compare, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _rebuild_if_differing(self, library: Library) -> None:
        """Make an index right that holds another number of chunks than the catalog."""
        with self._database.lock_of(f"words of {library.value}"):
            self.words[library].compare(old=library in self._old)
            self._old.discard(library)

    # --- what several processes that share an engine look after

    def maintain(self) -> bool:
        """Remove what fills left that no one goes on with, and keep the epochs of collections.

        What is counted of words is counted again in each epoch, so that no question has to.

        Returns:
            Whether anything was removed, so that the log of changes can be shorter.
        """
        swept = [self._delete_cut_off(library) for library in Library]
        epoch = self.keep_epochs()
        if epoch != self._counted_in:
            self._counted_in = epoch
            for index in filter(is_shared, self.indexes.values()):
                index.renew()
        return any(swept)

    def _delete_cut_off(self, library: Library) -> bool:
        swept = False
        if self.log.kept_for(library, REFILL_OF_WORDS):
            lock = self._database.lock_of(f"words of {library.value}")
            with suppress(Busy), held(lock, wait=False):
                swept = self.words[library].delete_cut_off()
        return self.dense[library].replica.delete_cut_off() or swept

    def keep_epochs(self) -> str:
        """Begin an epoch where something changed, and let what is of another state be compared.

        Returns:
            The epoch now.
        """
        parts = [
            part
            for library in Library
            for part in (self.words[library], self.dense[library].replica)
        ]
        noted = [(part, part.epoch) for part in parts]
        epoch = epoch_of(self._database)
        late = [part for part, of in noted if of is not None and of != epoch.now]
        if not late and (change := self.log.last()) != epoch.change:
            epoch = begin_epoch(self._database, epoch, change)
            late = [part for part, of in noted if of is not None]
        for part, of in noted:
            if of is not None and not epoch.knows(of):
                log.error("an index in the engine is of another state of the catalog: compared")
                part.suspect()
            elif part in late:
                part.set_epoch(epoch.now)
        return epoch.now

    def look(self, library: Library) -> None:
        """Make an index again that a search or a write found lost, in a thread."""
        index = self.indexes[library]
        if is_shared(index) and index.lacking:
            self._compare_in_background(library)
