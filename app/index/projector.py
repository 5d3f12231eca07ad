"""Keeps the projections in step with the catalog: applies changes in order, replays after a crash, rebuilds after damage."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import partial

from app.core.errors import StorageError
from app.core.types import Library
from app.index.catalog.changes import ChangeLog
from app.index.catalog.facts import LexicalDocument
from app.index.catalog.loading import CatalogLoader
from app.index.dense.library import DenseLibrary
from app.index.lexical.index import TantivyIndex
from app.index.lexical.writer import WordQueue
from app.index.status import BuildState

log = logging.getLogger(__name__)

REBUILD_BATCH_DOCS = 200
"""Documents per commit while the lexical index is rebuilt: searches see it grow, writers wait for one batch at most."""


class Projector:
    """Owns the order of writes. `writing` is the one process-wide write lock; methods that change anything take it."""

    def __init__(
        self,
        change_log: ChangeLog,
        loader: CatalogLoader,
        lexical: dict[Library, TantivyIndex],
        dense: dict[Library, DenseLibrary],
    ) -> None:
        """Apply `change_log` to the projections, reading from `loader`."""
        self.log = change_log
        self.writing = threading.RLock()
        self._loader = loader
        self._lexical = lexical
        self._dense = dense
        self._words = {
            library: WordQueue(library, lexical, partial(change_log.set_mark, library, "lexical")) for library in lexical
        }
        self._rebuilding: dict[Library, BuildState] = {}

    # --- state

    def state(self, library: Library) -> BuildState:
        """Return whether the library's projections are whole."""
        return self._rebuilding.get(library) or self._dense[library].rebuild_state() or BuildState("ready")

    # --- lexical

    def wait_for_room(self, library: Library) -> None:
        """Wait while too many words wait for tantivy; call without the write lock."""
        self._words[library].wait_for_room()

    def set_background(self, library: Library, background: bool) -> None:
        """Whether words that come from now on may take their time; an upload's may not, somebody waits for them."""
        self._words[library].background = background

    def gather_lexical(self, library: Library, documents: Sequence[LexicalDocument], replaced: frozenset[int], seq: int) -> None:
        """Bring words of rows that are stored, with everything up to `seq`; found within seconds, at once by `commit_lexical`."""
        self._words[library].put(documents, replaced, seq)

    def drop_lexical(self, library: Library, error: BaseException) -> None:
        """Words of stored rows could not be brought: those before them are dropped too, and all are replayed by the next write."""
        self._words[library].drop(error)

    def commit_lexical(self, library: Library) -> Future[None]:
        """Begin to make gathered words durable and found; the future raises what dropped any."""
        return self._words[library].commit()

    def flush_lexical(self, library: Library) -> None:
        """Wait until gathered words are committed, or dropped; without the write lock, so that others write meanwhile."""
        self.commit_lexical(library).exception()

    def gathering(self, library: Library) -> bool:
        """Whether the words of all the catalog has are under way, so that nothing needs a replay. Hold the write lock."""
        words = self._words[library]
        return words.under_way and not self.log.pending(library, words.last_put, dense=False, limit=1)

    def settle_lexical(self, library: Library) -> None:
        """Wait until gathered words are committed, or dropped; nothing else writes to the index then. Hold the write lock."""
        self._words[library].settle()

    def catch_up_lexical(self, library: Library) -> None:
        """Replay what the catalog has and tantivy has not: after a crash, a full disk, or a change without new text."""
        with self.writing:
            self.settle_lexical(library)  # what it commits is not pending any more
            index = self._lexical[library]
            try:
                while changes := self.log.pending(library, self.log.mark(library, "lexical"), dense=False):
                    for doc in dict.fromkeys(change.doc for change in changes):
                        index.remove(doc)
                    for document in self._loader.lexical_documents([change.doc for change in changes]):
                        index.add(document)
                    index.commit()
                    self.log.set_mark(library, "lexical", changes[-1].seq)
            except BaseException:
                index.rollback()
                raise

    def rebuild_lexical(self, library: Library, total_docs: int) -> None:
        """Fill the library's index anew from the catalog, a batch at a time, while it serves what it has."""
        index = self._lexical[library]
        self._rebuilding[library] = BuildState("rebuilding", 0, total_docs)
        try:
            with self.writing:
                self.settle_lexical(library)
                index.clear()
                self.log.set_mark(library, "lexical", self.log.last())
            for done in self._write_all(library):
                self._rebuilding[library] = BuildState("rebuilding", done, total_docs)
        finally:
            self._rebuilding.pop(library, None)

    def refresh_lexical(self, library: Library) -> None:
        """Write every live document anew: no old segment is left then, and none of the words of deleted documents in it.

        Every document is found at every moment, because each is taken out and put in by one commit.
        """
        for _ in self._write_all(library):
            pass

    def compact_lexical(self, library: Library) -> None:
        """Let running merges end and remove files no segment needs."""
        with self.writing:
            self.settle_lexical(library)
            self._lexical[library].compact()

    def _write_all(self, library: Library) -> Iterator[int]:
        """Replace the library's documents a batch per commit; yield how many are done."""
        after, done = 0, 0
        while docs := self._loader.live_docs(library, after, REBUILD_BATCH_DOCS):
            with self.writing:
                self.catch_up_lexical(library)
                self._replace(library, docs)
            after, done = docs[-1], done + len(docs)
            yield done

    def _replace(self, library: Library, docs: Sequence[int]) -> None:
        index = self._lexical[library]
        try:
            for doc in docs:
                index.remove(doc)  # one that was written since the rebuild began is there already
            for document in self._loader.lexical_documents(docs):
                index.add(document)
            index.commit()
        except BaseException:
            index.rollback()
            raise

    # --- dense

    def hide(self, library: Library, chunk_ids: Sequence[int]) -> None:
        """Stop showing chunks in dense search at once, before the projections have dropped them."""
        self._dense[library].hide(chunk_ids)

    def apply(self, library: Library) -> None:
        """Bring every projection of the library up to the last change; words that are under way come by themselves.

        Raises:
            DiskFull: No space; the watermark stays and the next call goes on.
        """
        with self.writing:
            if not self.gathering(library):
                self.catch_up_lexical(library)
        self._dense[library].catch_up()

    def close(self) -> None:
        """Commit words that are under way; nothing is written after."""
        with self.writing:
            for words in self._words.values():
                words.close()

    def start(self, library: Library) -> None:
        """Replay what the last process left undone; a projection that cannot be brought up is reported, not fatal."""
        self.catch_up_lexical(library)
        try:
            self._dense[library].catch_up()
        except StorageError:
            log.exception("the dense projections of %s could not be brought up to date; lexical search serves", library.value)
