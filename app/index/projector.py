"""Keeps the projections in step with the catalog: applies changes in order, replays after a crash, rebuilds after damage."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

from app.core.errors import StorageError
from app.core.types import Library
from app.index.build_state import BuildState
from app.index.changes import ChangeLog
from app.index.dense import DenseLibrary
from app.index.loading import CatalogLoader
from app.index.tantivy import LexicalDocument, TantivyIndex

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
        self._rebuilding: dict[Library, BuildState] = {}

    # --- state

    def state(self, library: Library) -> BuildState:
        """Return whether the library's projections are whole."""
        return self._rebuilding.get(library) or self._dense[library].rebuild_state() or BuildState("ready")

    # --- lexical

    def queue_lexical(self, library: Library, document: LexicalDocument, *, fresh: bool) -> None:
        """Hand a document to tantivy's threads; findable after `commit_lexical`. `fresh` documents have no chunks to replace."""
        index = self._lexical[library]
        if not fresh:
            index.remove(document.doc)
        index.add(document)

    def commit_lexical(self, library: Library, seq: int) -> None:
        """Make queued documents durable and findable; everything up to `seq` is applied then."""
        self._lexical[library].commit()
        self.log.set_mark(library, "lexical", seq)

    def commit_lexical_later(self, library: Library, seq: int) -> Future[None]:
        """Begin `commit_lexical` in a thread; whatever else writes words waits for it."""

        def commit() -> None:
            try:
                self.commit_lexical(library, seq)
            except BaseException:
                self.roll_back_lexical(library)
                raise

        return self._lexical[library].later(commit)

    def committing_lexical(self, library: Library) -> bool:
        """Whether a commit that was begun is going on."""
        return self._lexical[library].committing

    def settle_lexical(self, library: Library) -> bool:
        """Wait for a commit that was begun; False when it failed and what it should have committed has to be replayed."""
        return self._lexical[library].settle()

    def roll_back_lexical(self, library: Library) -> None:
        """Drop what was queued."""
        self._lexical[library].rollback()

    def catch_up_lexical(self, library: Library) -> None:
        """Replay what the catalog has and tantivy has not: after a crash, a full disk, or a change without new text."""
        with self.writing:
            index = self._lexical[library]
            index.settle()  # what it commits is not pending any more
            try:
                while changes := self.log.pending(library, self.log.mark(library, "lexical"), dense=False):
                    for doc in dict.fromkeys(change.doc for change in changes):
                        index.remove(doc)
                    for document in self._loader.lexical_documents([change.doc for change in changes]):
                        index.add(document)
                    self.commit_lexical(library, changes[-1].seq)
            except BaseException:
                index.rollback()
                raise

    def rebuild_lexical(self, library: Library, total_docs: int) -> None:
        """Fill the library's index anew from the catalog, a batch at a time, while it serves what it has."""
        index = self._lexical[library]
        self._rebuilding[library] = BuildState("rebuilding", 0, total_docs)
        try:
            with self.writing:
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

    def _write_all(self, library: Library) -> Iterator[int]:
        """Replace the library's documents a batch per commit; yield how many are done."""
        index = self._lexical[library]
        after, done = 0, 0
        try:
            while docs := self._loader.live_docs(library, after, REBUILD_BATCH_DOCS):
                with self.writing:
                    for doc in docs:
                        index.remove(doc)  # one that was written since the rebuild began is there already
                    for document in self._loader.lexical_documents(docs):
                        index.add(document)
                    index.commit()
                after, done = docs[-1], done + len(docs)
                yield done
        finally:
            with self.writing:
                index.rollback()

    # --- dense

    def hide(self, library: Library, chunk_ids: Sequence[int]) -> None:
        """Stop showing chunks in dense search at once, before the projections have dropped them."""
        self._dense[library].hide(chunk_ids)

    def apply(self, library: Library) -> None:
        """Bring every projection of the library up to the last change.

        Raises:
            DiskFull: No space; the watermark stays and the next call goes on.
        """
        self.catch_up_lexical(library)
        self._dense[library].catch_up()

    def start(self, library: Library) -> None:
        """Replay what the last process left undone; a projection that cannot be brought up is reported, not fatal."""
        self.catch_up_lexical(library)
        try:
            self._dense[library].catch_up()
        except StorageError:
            log.exception("the dense projections of %s could not be brought up to date; lexical search serves", library.value)
