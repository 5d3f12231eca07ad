"""Keep an index of words in step with the catalog: follow its changes, rebuild."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from app.core.types import Library, LibraryCounts
from app.storage.catalog.changes import BuildState, Change, Claim
from app.storage.catalog.documents import count
from app.storage.catalog.loader import CatalogLoader
from app.storage.words.port import WordIndex

log = logging.getLogger(__name__)

GROUP_CHUNKS = 32_000
"""A group is committed when it is this large: few large segments cost tantivy far less than many
small ones (ADR 0090)."""
GROUP_S = 5.0
"""Or when its first words have waited this long, seconds."""
WAITING_CHUNKS = 8_000
"""Chunks that may wait for tantivy while it commits; a writer that brings more waits too."""


REBUILD_BATCH_DOCS = 200
"""Documents that are read from the catalog at a time, and per commit while an index is rebuilt:
searches see it grow, writers wait for one batch at most."""


class LexicalWriter:
    """Brings the catalog's changes to an index of words, in groups, by one thread.

    Nothing but the thread writes to the index. A group that fails is dropped, and nothing is
    gathered until the next call that waits: it begins behind the mark again.
    """

    def __init__(
        self, library: Library, indexes: Mapping[Library, WordIndex], loader: CatalogLoader
    ) -> None:
        """Feed the index of `library`, which is looked up at each use."""
        self._library = library
        self._indexes = indexes
        self._log = loader.log
        self._loader = loader
        self.rebuilding: BuildState | None = None
        """Progress of a running rebuild."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"words-{library.value}")
        self._room = threading.Condition()
        self._waiting = 0
        self.background = False
        """Whether the next group has low priority: no request waits for it."""
        self._added = self._group_chunks = 0
        """Change up to which the group has words, and how many chunks it has."""
        self._timer: threading.Timer | None = None
        """Of the group that is under way."""
        self._failed = False

    @property
    def _index(self) -> WordIndex:
        return self._indexes[self._library]

    @property
    def lacking(self) -> bool:
        """Return whether searches miss documents until a rebuild is done."""
        return self.rebuilding is not None

    @property
    def in_step(self) -> bool:
        """Return whether what is logged comes by itself; False after a failure."""
        return not self._failed

    @property
    def _under_way(self) -> bool:
        return self._timer is not None or self._waiting > 0

    def wait_for_room(self) -> None:
        """Wait while more than WAITING_CHUNKS wait for tantivy, without the lock."""
        with self._room:
            self._room.wait_for(lambda: self._waiting <= WAITING_CHUNKS)

    def gather(self, claim: Claim | None, chunks: int) -> None:  # noqa: ARG002  # as `apply`
        """Let so many chunks of a logged change come with a group; do not wait for it."""
        with self._room:
            self._waiting += chunks
        self._thread.submit(self._gather, chunks)

    def catch_up(self) -> None:
        """Wait until every change that was logged before is found.

        A group that was gathered before is tried twice: no caller is told of its failure alone.

        Raises:
            DiskFull: No space.
        """
        if self._under_way:
            self._thread.submit(self._advance, at_once=True).exception()
        self._thread.submit(self._advance, at_once=True).result()

    def replace(self) -> None:
        """Make new words found before any other write; hold the write lock."""
        self.catch_up()

    def await_found(self, claim: Claim | None) -> None:
        """Wait until a change is found, and what was written before."""
        self.apply(claim)

    def apply(self, claim: Claim | None) -> None:  # noqa: ARG002  # one process claims nothing
        """Make a logged change found."""
        self.catch_up()

    def follow(self) -> None:
        """Bring what a failure left; a group that is under way comes by itself."""
        if not self._under_way:
            self.catch_up()

    def wait_until_idle(self) -> None:
        """Wait for what other processes bring; there are none."""

    def close(self) -> None:
        """Commit the group that is under way and end the thread; a start brings what failed."""
        self._thread.submit(self._commit).exception()
        self._thread.shutdown()

    @property
    def epoch(self) -> str | None:
        """Return of which state of the catalog the index is; None: no one else writes to it."""
        return None

    def set_epoch(self, epoch: str) -> None:
        """Note of which state of the catalog the index is, where others write too."""

    def suspect(self) -> None:
        """Let the index be compared, since it is of another state of the catalog."""

    def delete_cut_off(self) -> bool:
        """Remove what fills left that were cut off; nothing is filled next to what serves here."""
        return False

    def compare(self, *, old: bool) -> None:  # noqa: ARG002  # nothing else writes here
        """Make the index again where it holds another number of chunks than the catalog.

        `old` says whether it may be of an earlier state for another reason.
        """
        database = self._loader.database
        with database.writers:
            self.catch_up()
            held, wanted = self._index.count, count(database, self._library)
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
            self._thread.submit(self._empty).result()
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
        self._thread.submit(self._compact).result()

    def _write_all(self) -> Iterator[int]:
        """Replace the library's documents a batch per commit; yield how many are done."""
        done = 0
        for docs in self._loader.live_docs(self._library, REBUILD_BATCH_DOCS):
            self._thread.submit(self._rewrite, docs).result()
            done += len(docs)
            yield done

    def _replace(
        self, docs: Mapping[int, Sequence[int]], index: WordIndex | None = None
    ) -> dict[int, list[int]]:
        """Put documents as `_put` does, in one commit."""
        index = index or self._index
        try:
            put = self._put(docs, index)
            index.commit()
        except BaseException:
            index.rollback()
            raise
        return put

    def _put(self, docs: Mapping[int, Sequence[int]], index: WordIndex) -> dict[int, list[int]]:
        """Take documents out and put in those that are live.

        Args:
            docs: With chunks of them that the log says are gone; the catalog may not know them.
            index: Where.

        Returns:
            The chunks that were put in, by document.
        """
        live = self._loader.lexical_documents(list(docs))
        put = {one.doc: [chunk_id for chunk_id, _, _ in one.chunks] for one in live}
        kept = {chunk_id for ids in put.values() for chunk_id in ids}
        replaced = self._loader.replaced_chunk_ids(list(docs))
        for doc, gone in docs.items():
            index.delete(doc, [i for i in (*gone, *replaced.get(doc, ())) if i not in kept])
        for document in live:
            index.add(document)
        return put

    # --- in the thread

    def _gather(self, chunks: int) -> None:
        try:
            if not self._failed:
                self._advance(at_once=False)
        finally:
            with self._room:
                self._waiting -= chunks
                self._room.notify_all()

    def _advance(self, *, at_once: bool) -> None:
        """Give the index the changes that it lacks; commit a full group, or any at once."""
        try:
            while changes := self._left():
                if self._timer is None:
                    self._begin_group()
                put = self._put(gone_by(changes), self._index)
                self._added = changes[-1].seq
                self._group_chunks += sum(map(len, put.values()))
                if self._group_chunks >= GROUP_CHUNKS:
                    self._commit()
            if at_once:
                self._commit()
            self._failed = False
        except BaseException:
            self._failed = True
            self._rollback()
            raise

    def _left(self) -> list[Change]:
        after = self._added if self._timer else self._log.mark(self._library, "lexical")
        return self._log.pending(self._library, after, dense=False, limit=REBUILD_BATCH_DOCS)

    def _begin_group(self) -> None:
        self._index.set_background(self.background)
        self._timer = threading.Timer(GROUP_S, self._time_is_up)
        self._timer.daemon = True
        self._timer.start()

    def _time_is_up(self) -> None:
        with suppress(RuntimeError):  # the thread has ended, and committed before
            self._thread.submit(self._advance, at_once=True)

    def _commit(self) -> None:
        if self._timer is not None:
            self._index.commit()
            self._end_group()
            self._log.set_mark(self._library, "lexical", self._added)

    def _end_group(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._group_chunks = None, 0

    def _rollback(self) -> None:
        self._end_group()
        self._index.rollback()

    def _rewrite(self, docs: Sequence[int]) -> None:
        self._advance(at_once=True)
        self._replace(dict.fromkeys(docs, ()))

    def _empty(self) -> None:
        self._rollback()
        last = self._log.last()
        self._index.delete_all()
        self._log.set_mark(self._library, "lexical", last)

    def _compact(self) -> None:
        self._advance(at_once=True)
        self._index.compact()


def gone_by(changes: Sequence[Change]) -> Mapping[int, Sequence[int]]:
    """Return the documents of changes, with the chunks that were removed of each."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for change in changes:
        found[change.doc] += change.ids if change.kind == "remove" else []
    return found
