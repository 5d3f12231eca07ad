"""Keep the projections in step with the catalog: apply, replay, rebuild.

In order, after a crash, after damage.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from functools import partial

from app.core.errors import StorageError
from app.core.types import Library
from app.storage.catalog.changes import ChangeLog
from app.storage.catalog.database import Database
from app.storage.catalog.reading import CatalogLoader
from app.storage.catalog.rows import LexicalDocument
from app.storage.status import BuildState
from app.storage.vectors.library import DenseLibrary
from app.storage.words.port import WordIndex
from app.storage.words.writer import LexicalWriter

log = logging.getLogger(__name__)

REBUILD_BATCH_DOCS = 200
"""Documents per commit while the lexical index is rebuilt: searches see it grow, writers wait
for one batch at most."""


class Projector:
    """Orders all writes; `writing` is the one write lock of the process, or of all processes.

    Methods that change anything take it.
    """

    def __init__(
        self,
        change_log: ChangeLog,
        loader: CatalogLoader,
        lexical: dict[Library, WordIndex],
        dense: dict[Library, DenseLibrary],
        database: Database,
    ) -> None:
        """Apply `change_log` to the projections, reading from `loader`.

        Where `database` is shared, no words wait in a queue when another process may write.
        """
        self.log = change_log
        self.writing = database.order_writers(self._settle)
        self._database = database
        self._loader = loader
        self._lexical = lexical
        self._dense = dense
        self._writers = {
            library: LexicalWriter(
                library, lexical, partial(change_log.set_mark, library, "lexical")
            )
            for library in lexical
        }
        self._rebuilding: dict[Library, BuildState] = {}

    # --- state

    def state(self, library: Library) -> BuildState:
        """Return whether the library's projections are whole."""
        return (
            self._rebuilding.get(library)
            or self._dense[library].rebuild_state()
            or BuildState("ready")
        )

    # --- lexical

    def wait_for_room(self, library: Library) -> None:
        """Wait while too many words wait for tantivy; call without the write lock."""
        self._writers[library].wait_for_room()

    def set_background(self, library: Library, background: bool) -> None:
        """Set low indexing priority (bulk runs); uploads need normal priority.

        An upload's request waits for the commit.
        """
        self._writers[library].background = background

    def gather_lexical(
        self,
        library: Library,
        documents: Sequence[LexicalDocument],
        replaced: frozenset[int],
        seq: int,
    ) -> None:
        """Queue words of stored rows with everything up to `seq`.

        They are found within seconds, at once by `commit_lexical`.
        """
        self._writers[library].put(documents, replaced, seq)

    def rollback_lexical(self, library: Library, error: BaseException) -> None:
        """Drop queued words after a failure; the next write replays all of them."""
        self._writers[library].rollback(error)

    def commit_lexical(self, library: Library) -> Future[None]:
        """Start to commit queued words; the future raises what dropped any."""
        return self._writers[library].commit()

    def flush_lexical(self, library: Library) -> None:
        """Wait until queued words are committed or dropped, without the write lock."""
        self.commit_lexical(library).exception()

    def gathering(self, library: Library) -> bool:
        """Return whether all words are queued or committed; hold the write lock.

        Then nothing needs a replay.
        """
        writer = self._writers[library]
        return writer.under_way and not self.log.pending(
            library, writer.last_put, dense=False, limit=1
        )

    def settle_lexical(self, library: Library) -> None:
        """Wait for queued words to be committed or dropped; hold the write lock.

        Nothing else writes to the index then.
        """
        self._writers[library].settle()

    def _settle(self) -> None:
        for writer in self._writers.values():
            writer.settle()

    def catch_up_lexical(self, library: Library) -> None:
        """Replay changes that tantivy lacks: after a crash, a full disk, no new text."""
        with self.writing:
            self.settle_lexical(library)  # what it commits is not pending any more
            index = self._lexical[library]
            try:
                while changes := self.log.pending(
                    library, self.log.mark(library, "lexical"), dense=False
                ):
                    for doc in dict.fromkeys(change.doc for change in changes):
                        index.delete(doc)
                    for document in self._loader.lexical_documents(
                        [change.doc for change in changes]
                    ):
                        index.add(document)
                    index.commit()
                    self.log.set_mark(library, "lexical", changes[-1].seq)
            except BaseException:
                index.rollback()
                raise

    def rebuilding(self, library: Library) -> AbstractContextManager[object]:
        """Return the lock of whoever rebuilds a library's words, in any process."""
        return self._database.lock_of(f"words of {library.value}")

    def rebuild_lexical(self, library: Library, total_docs: int) -> None:
        """Rebuild the library's index from the catalog in batches while it serves."""
        index = self._lexical[library]
        self._rebuilding[library] = BuildState("rebuilding", 0, total_docs)
        try:
            with self.writing:
                self.settle_lexical(library)
                index.delete_all()
                self.log.set_mark(library, "lexical", self.log.last())
            for done in self._write_all(library):
                self._rebuilding[library] = BuildState("rebuilding", done, total_docs)
        finally:
            self._rebuilding.pop(library, None)

    def refresh_lexical(self, library: Library) -> None:
        """Rewrite every live document, so that no old segment with deleted words is left.

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
                index.delete(doc)  # one that was written since the rebuild began is there already
            for document in self._loader.lexical_documents(docs):
                index.add(document)
            index.commit()
        except BaseException:
            index.rollback()
            raise

    # --- dense

    def hide(self, library: Library, chunk_ids: Sequence[int]) -> None:
        """Hide chunks from dense search before the projections drop them."""
        self._dense[library].hide(chunk_ids)

    def apply(self, library: Library) -> None:
        """Bring every projection to the last change; queued words follow by themselves.

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
            for writer in self._writers.values():
                writer.close()

    def start(self, library: Library) -> None:
        """Replay what the last process left; report a projection that fails.

        That is not fatal.
        """
        self.catch_up_lexical(library)
        try:
            self._dense[library].catch_up()
        except StorageError:
            log.exception(
                "the dense projections of %s could not be brought up to date; lexical search"
                " serves",
                library.value,
            )
