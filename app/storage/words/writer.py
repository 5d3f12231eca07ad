"""Keep an index of words in step with the catalog: write, replay, rebuild."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from app.core.types import Library, LibraryCounts
from app.storage.catalog.changes import BuildState, Change, Claim
from app.storage.catalog.documents import count
from app.storage.catalog.reading import CatalogLoader
from app.storage.catalog.rows import LexicalDocument
from app.storage.follow import Follower
from app.storage.words.port import WordIndex

log = logging.getLogger(__name__)

GROUP_CHUNKS = 32_000
"""A group is committed when it is this large: few large segments cost tantivy far less than many
small ones (ADR 0163)."""
GROUP_S = 5.0
"""Or when its first words have waited this long, seconds."""
WAITING_CHUNKS = 8_000
"""Chunks that may wait for tantivy while it commits; a writer that brings more waits too."""


REBUILD_BATCH_DOCS = 200
"""Documents per commit while an index is rebuilt: searches see it grow, writers wait for one
batch at most."""


class LexicalWriter:
    """Single writer of a lexical index, in groups, by one thread.

    `put` is called with the write lock held, so that words come in the order of the catalog's
    changes. A group that fails is dropped, and so is all that follows until `settle`: the rows are
    in the catalog, from where `catch_up` replays the words.
    """

    def __init__(
        self, library: Library, indexes: Mapping[Library, WordIndex], loader: CatalogLoader
    ) -> None:
        """Feed the index of `library`, which is looked up at each use."""
        self._library = library
        self._indexes = indexes
        self._log = loader.log
        self._loader = loader
        self._follower = Follower(loader.log, library, "lexical", self._replay)
        self._writing = loader.database.writers
        self.rebuilding: BuildState | None = None
        """Progress of a running rebuild."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"words-{library.value}")
        self._room = threading.Condition()
        self._waiting = 0
        self.background = False
        """Whether the next group has low priority: no request waits for it."""
        self.last_put = 0
        """Change up to which words were put."""
        self._taken = self._done = 0
        """Change up to which words were handed to tantivy, and committed."""
        self._group_chunks = 0
        self._timer: threading.Timer | None = None
        self._error: BaseException | None = None

    @property
    def _index(self) -> WordIndex:
        return self._indexes[self._library]

    @property
    def lacking(self) -> bool:
        """Return whether searches miss documents until a rebuild is done."""
        return self.rebuilding is not None

    @property
    def in_step(self) -> bool:
        """Return whether words are under way and nothing needs a replay; hold the write lock."""
        under_way = self.last_put != self._done and self._error is None
        return under_way and not self._log.pending(
            self._library, self.last_put, dense=False, limit=1
        )

    def wait_for_room(self) -> None:
        """Wait while more than WAITING_CHUNKS wait for tantivy, without the lock."""
        with self._room:
            self._room.wait_for(lambda: self._waiting <= WAITING_CHUNKS)

    def put(
        self, documents: Sequence[LexicalDocument], replaced: Mapping[int, Sequence[int]], seq: int
    ) -> None:
        """Queue the words of documents, up to change `seq`; some replace chunks, by document."""
        chunks = sum(len(document.chunks) for document in documents)
        with self._room:
            self._waiting += chunks
        self.last_put = seq
        self._thread.submit(self._take, documents, replaced, seq, chunks, self.background)

    def commit(self) -> Future[None]:
        """Begin to commit what was put; the future raises what dropped any of it."""
        return self._thread.submit(self._commit)

    def flush(self) -> None:
        """Wait until what was put is committed or dropped, without the write lock."""
        self.commit().exception()

    def await_found(self) -> None:
        """Wait until what was written is found; raise what dropped any of it."""
        self.commit().result()

    def settle(self) -> None:
        """Commit what was put, or drop it on failure, and wait; under the write lock."""
        with suppress(Exception):  # a replay meets it again, if it lasts
            self.commit().result()
        self._error = None
        self.last_put = self._taken = self._done

    def rollback(self, error: BaseException) -> None:
        """Drop what was put and is not committed; `error` is what a commit of it raises."""
        self._thread.submit(self._fail, error).result()

    def close(self) -> None:
        """Commit what was put and end the thread; a start replays what failed."""
        self.settle()
        self._thread.shutdown()

    # --- from the catalog

    def follow(self) -> None:
        """Replay changes unless all are under way."""
        with self._writing:
            if not self.in_step:
                self.catch_up()

    def apply(self, claim: Claim | None) -> None:  # noqa: ARG002  # one process claims nothing
        """Make a change found that was logged without words."""
        self.catch_up()

    def catch_up(self) -> None:
        """Replay changes that the index lacks: after a crash, a full disk, no new text."""
        with self._writing:
            self.settle()  # what it commits is not pending any more
            self._follower.catch_up()

    def compare(self, *, old: bool) -> None:  # noqa: ARG002  # nothing else writes here
        """Make the index again where it holds another number of chunks than the catalog.

        `old` says whether it may be of an earlier state for another reason.
        """
        with self._writing:
            held, wanted = self._index.count, count(self._loader.database, self._library)
        if held != wanted.chunks:
            log.error("%s: making it again", self._differing(held, wanted))
            self.rebuild(wanted.documents)

    def _differing(self, held: int, wanted: LibraryCounts) -> str:
        return (
            f"the lexical index of {self._library.value} holds {held} chunks,"
            f" the catalog {wanted.chunks}"
        )

    def rebuild(self, total_docs: int) -> None:
        """Rebuild the index from the catalog in batches while it serves."""
        self.rebuilding = BuildState("rebuilding", 0, total_docs)
        try:
            with self._writing:
                self.settle()
                self._index.delete_all()
                self._log.set_mark(self._library, "lexical", self._log.last())
            for done in self._write_all():
                self.rebuilding = BuildState("rebuilding", done, total_docs)
        finally:
            self.rebuilding = None

    def refresh(self) -> None:
        """Rewrite every live document, so that no file holds deleted words.

        Every document is found at every moment, because each is taken out and put in by one commit.
        """
        for _ in self._write_all():
            pass
        with self._writing:
            self.settle()
            self._index.compact()

    def _write_all(self) -> Iterator[int]:
        """Replace the library's documents a batch per commit; yield how many are done."""
        done = 0
        for docs in self._loader.live_docs(self._library, REBUILD_BATCH_DOCS):
            with self._writing:
                self.catch_up()
                self._replace(dict.fromkeys(docs, ()))
            done += len(docs)
            yield done

    def _replay(self, changes: Sequence[Change]) -> None:
        self._replace(gone_by(changes))

    def _replace(
        self, docs: Mapping[int, Sequence[int]], index: WordIndex | None = None
    ) -> dict[int, list[int]]:
        """Take documents out and put in those that are live, in one commit.

        Args:
            docs: With chunks of them that the log says are gone; the catalog may not know them.
            index: Where; None: the one that serves.

        Returns:
            The chunks that were put in, by document.
        """
        index, live = index or self._index, self._loader.lexical_documents(list(docs))
        put = {one.doc: [chunk_id for chunk_id, _, _ in one.chunks] for one in live}
        kept = {chunk_id for ids in put.values() for chunk_id in ids}
        replaced = self._loader.replaced_chunk_ids(list(docs))
        try:
            for doc, gone in docs.items():
                index.delete(doc, [i for i in (*gone, *replaced.get(doc, ())) if i not in kept])
            for document in live:
                index.add(document)
            index.commit()
        except BaseException:
            index.rollback()
            raise
        return put

    # --- in the thread

    def _take(
        self,
        documents: Sequence[LexicalDocument],
        replaced: Mapping[int, Sequence[int]],
        seq: int,
        chunks: int,
        background: bool,
    ) -> None:
        try:
            if self._error is None:
                self._begin_group(background)
                for document in documents:
                    if document.doc in replaced:
                        self._index.delete(document.doc, replaced[document.doc])
                    self._index.add(document)
                self._taken = seq
                self._group_chunks += chunks
                if self._group_chunks >= GROUP_CHUNKS:
                    self._commit()
        except BaseException as exc:  # noqa: BLE001  the next commit raises it
            self._fail(exc)
        finally:
            with self._room:
                self._waiting -= chunks
                self._room.notify_all()

    def _begin_group(self, background: bool) -> None:
        if self._timer is None:
            self._index.set_background(background)
            self._timer = threading.Timer(GROUP_S, self._time_is_up)
            self._timer.daemon = True
            self._timer.start()

    def _time_is_up(self) -> None:
        with suppress(RuntimeError):  # the thread has ended, and committed before
            self.commit()

    def _commit(self) -> None:
        if self._error is not None:
            raise self._error
        if self._taken == self._done:
            return
        try:
            self._index.commit()
        except BaseException as exc:
            self._fail(exc)
            raise
        self._end_group()
        self._done = self._taken
        self._log.set_mark(self._library, "lexical", self._done)

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._end_group()
        self._index.rollback()

    def _end_group(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._group_chunks = None, 0


def gone_by(changes: Sequence[Change]) -> Mapping[int, Sequence[int]]:
    """Return the documents of changes, with the chunks that were removed of each."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for change in changes:
        found[change.doc] += change.ids if change.kind == "remove" else []
    return found
