"""Write words of stored rows to a lexical index in grouped commits.

One thread hands them to tantivy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from app.core.types import Library
from app.storage.catalog.rows import LexicalDocument
from app.storage.words.port import WordIndex

GROUP_CHUNKS = 32_000
"""A group is committed when it is this large: few large segments cost tantivy far less than many
small ones (ADR 0163)."""
GROUP_S = 5.0
"""Or when its first words have waited this long, seconds."""
WAITING_CHUNKS = 8_000
"""Chunks that may wait for tantivy while it commits; a writer that brings more waits too."""


class LexicalWriter:
    """Single writer of a lexical index.

    Call `settle` under the write lock before writing to it from elsewhere. `put` is called with the
    write lock held, so that words come in the order of the catalog's changes. A group that fails is
    dropped, and so is all that follows until `settle`: the rows are in the catalog, from where
    `settle` replays the words.
    """

    def __init__(
        self,
        library: Library,
        indexes: Mapping[Library, WordIndex],
        committed: Callable[[int], None],
    ) -> None:
        """Feed the index of `library`; report applied changes to `committed`.

        The index is looked up at each use.
        """
        self._library = library
        self._indexes = indexes
        self._committed = committed
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
    def under_way(self) -> bool:
        """Return whether uncommitted words were put, and none was dropped."""
        return self.last_put != self._done and self._error is None

    def wait_for_room(self) -> None:
        """Wait while more than WAITING_CHUNKS wait for tantivy, without the lock."""
        with self._room:
            self._room.wait_for(lambda: self._waiting <= WAITING_CHUNKS)

    def put(self, documents: Sequence[LexicalDocument], replaced: frozenset[int], seq: int) -> None:
        """Queue the words of documents, up to change `seq`; some replace others."""
        chunks = sum(len(document.chunks) for document in documents)
        with self._room:
            self._waiting += chunks
        self.last_put = seq
        self._thread.submit(self._take, documents, replaced, seq, chunks, self.background)

    def commit(self) -> Future[None]:
        """Begin to commit what was put; the future raises what dropped any of it."""
        return self._thread.submit(self._commit)

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

    # --- in the thread

    def _take(
        self,
        documents: Sequence[LexicalDocument],
        replaced: frozenset[int],
        seq: int,
        chunks: int,
        background: bool,
    ) -> None:
        try:
            if self._error is None:
                self._begin_group(background)
                index = self._indexes[self._library]
                for document in documents:
                    if document.doc in replaced:
                        index.delete(document.doc)
                    index.add(document)
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
            self._indexes[self._library].set_background(background)
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
            self._indexes[self._library].commit()
        except BaseException as exc:
            self._fail(exc)
            raise
        self._end_group()
        self._done = self._taken
        self._committed(self._done)

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._end_group()
        self._indexes[self._library].rollback()

    def _end_group(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._group_chunks = None, 0
