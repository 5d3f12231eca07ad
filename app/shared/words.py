"""Bring words to an engine to which several processes write, without a lock."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, takewhile
from secrets import token_hex
from typing import cast

from app.core.cancel import Periodic
from app.core.errors import StorageError
from app.core.types import Library
from app.shared.changes import CLAIM_S, SharedChangeLog
from app.storage.catalog.changes import REFILL_OF_WORDS, BuildState, Change, Claim
from app.storage.catalog.documents import count
from app.storage.catalog.epochs import epoch_of
from app.storage.catalog.loader import CatalogLoader
from app.storage.catalog.schema import pieces
from app.storage.follow import Follower
from app.storage.words.port import SharedWords, WordIndex
from app.storage.words.writer import REBUILD_BATCH_DOCS, LexicalWriter, gone_by

log = logging.getLogger(__name__)

RANGE = 10_000
"""Chunks whose ids are compared at a time."""

MENDED_SHARE = 0.01
"""Up to this share of the chunks of an index is put right one by one."""

RENEWED_S = CLAIM_S / 3
"""How often a process says that it lives while it sends, seconds."""

GATHERED = 2
"""Claims that may be gathered: the one that the thread brings, and the next."""

WAITING_S = 0.05
"""How often it is looked whether another process has brought what is waited for, seconds."""


class SharedLexicalWriter(LexicalWriter):
    """Writer of an index that several processes write to at once; thread-safe.

    No lock of the processes is held while the engine is told. A change is claimed by the
    transaction that logs it, and the mark stays behind the oldest claim. Who sent a document
    looks afterwards whether it changed since it was read, and sends it again if so: what was sent
    last is then what the catalog has, in whichever order two processes were. A claim of a process
    that failed or is silent is taken over.
    """

    def __init__(
        self, library: Library, indexes: Mapping[Library, WordIndex], loader: CatalogLoader
    ) -> None:
        super().__init__(library, indexes, loader)
        self._claims = cast("SharedChangeLog", loader.log)
        self._sending = threading.Lock()
        """An index gathers what it is given until it commits."""

    @property
    def _shared(self) -> SharedWords:
        return cast("SharedWords", self._index)

    @property
    def lacking(self) -> bool:
        """Return whether searches miss documents until a rebuild is done."""
        return self._shared.lacking

    def wait_for_room(self) -> None:
        """Wait while as many claims are gathered as may be, without the lock."""
        with self._room:
            self._room.wait_for(lambda: self._waiting < GATHERED)

    def gather(self, claim: Claim | None, chunks: int) -> None:  # noqa: ARG002
        """Let the thread bring the claimed changes; do not wait for it."""
        if claim is None:
            return
        with self._room:
            self._waiting += 1
        alive = ExitStack()
        alive.enter_context(self._renewing(claim))
        self._thread.submit(self._bring_gathered, claim, alive)

    def _bring_gathered(self, claim: Claim, alive: ExitStack) -> None:
        try:
            with alive:
                self._bring(claim)
        except BaseException:
            self._failed = True  # the next call that waits brings it, and says why it cannot
            raise
        finally:
            with self._room:
                self._waiting -= 1
                self._room.notify_all()

    def replace(self) -> None:
        """Do nothing: no lock is held while the engine is told."""

    def follow(self) -> None:
        """Index changes that no live process has claimed."""
        while claim := self._claims.take(self._library, REBUILD_BATCH_DOCS):
            self._bring(claim)

    def await_found(self, claim: Claim | None) -> None:
        """Bring the claimed changes, or wait until what was logged is found, by any process."""
        if claim is not None:
            self.apply(claim)
            return
        last, waited = self._log.last(), threading.Event()
        while (left := self._left()) and left[0].seq <= last:
            self.follow()
            waited.wait(WAITING_S)

    def wait_until_idle(self) -> None:
        """Wait until no living process brings anything; hold the write lock."""
        waited = threading.Event()
        while self._claims.brings(self._library):
            waited.wait(WAITING_S)

    def _left(self) -> list[Change]:
        mark = self._log.mark(self._library, "lexical")
        return self._log.pending(self._library, mark, dense=False, limit=1)

    def catch_up(self) -> None:
        """Wait for what was gathered, and index changes that no live process has claimed."""
        with self._room:
            self._room.wait_for(lambda: not self._waiting)
        self.follow()
        self._failed = False

    def apply(self, claim: Claim | None) -> None:
        """Bring the claimed changes, and what other processes failed to bring."""
        if claim is not None:
            self._bring(claim)
            self.follow()

    def _renewing(self, claim: Claim) -> Periodic:
        """Return what says, until it is left, that this process lives."""

        def renew() -> float:
            with suppress(StorageError):
                self._claims.renew(self._library, claim)
            return RENEWED_S

        return Periodic("claim", renew, RENEWED_S)

    def _bring(self, claim: Claim, docs: Mapping[int, Sequence[int]] | None = None) -> None:
        """Send documents until none of them changed since it was read; end the claim.

        Args:
            claim: Of changes.
            docs: Which, with chunks of them that are gone; None: those of the changes.
        """
        if docs is None:
            logged = chain.from_iterable(self._log.batches(self._library, claim.after, dense=False))
            docs = gone_by(list(takewhile(lambda change: change.seq <= claim.upto, logged)))
        sent, held = dict(docs), claim
        try:
            with self._renewing(claim):
                while True:
                    for some in pieces(list(sent), REBUILD_BATCH_DOCS):
                        with self._sending:
                            put = self._replace({doc: sent[doc] for doc in some})
                        sent |= {doc: [*sent[doc], *ids] for doc, ids in put.items()}
                    again = self._claims.finish(self._library, held, sent.keys())
                    if again is None:
                        return
                    held = again
        except BaseException:
            with suppress(StorageError):  # it falls silent
                self._claims.give_up(self._library, held)
            raise

    def _refresh(self, docs: Iterable[int]) -> None:
        """Send documents that no change names."""
        self._bring(self._claims.watch(self._library), dict.fromkeys(docs, ()))

    def rebuild(self, total_docs: int) -> None:
        """Fill an index next to the one that serves, and exchange them."""
        self.delete_cut_off()
        self.rebuilding = BuildState("rebuilding", 0, total_docs)
        filled = self._shared.shadow()

        def replay(changes: Sequence[Change]) -> None:
            self._replace(gone_by(changes), filled)

        mark = f"{REFILL_OF_WORDS} {token_hex(4)}"
        meanwhile = Follower(self._log, self._library, mark, replay)
        meanwhile.start_at(self._log.last())
        try:
            done = 0
            for docs in self._loader.live_docs(self._library, REBUILD_BATCH_DOCS):
                self._replace(dict.fromkeys(docs, ()), filled)
                done += len(docs)
                self.rebuilding = BuildState("rebuilding", done, total_docs)
            meanwhile.check_kept()
            meanwhile.catch_up()
            self._shared.promote()
            # What others sent meanwhile may have gone to the index before.
            for changes in self._log.batches(self._library, meanwhile.applied, dense=False):
                self._bring(self._claims.watch(self._library), gone_by(changes))
            self.follow()
        finally:
            filled.close()
            self.rebuilding = None
            with suppress(StorageError):  # `delete_cut_off` removes what cannot be removed now
                self._shared.delete_unserved(filled)
                meanwhile.end()

    @property
    def epoch(self) -> str | None:
        """Return of which state of the catalog the index is; None where there is none yet."""
        return self._shared.epoch

    def set_epoch(self, epoch: str) -> None:
        """Note of which state of the catalog the index is."""
        self._shared.set_epoch(epoch)

    def suspect(self) -> None:
        """Let the index be compared, since it is of another state of the catalog."""
        self._shared.lacking = True

    def delete_cut_off(self) -> bool:
        """Remove what fills left that were cut off; return whether there was anything.

        Hold the lock of the library's words, so that no fill is under way.
        """
        if not (left := self._log.kept_for(self._library, REFILL_OF_WORDS)):
            return False
        log.warning("%s was cut off: what it left is removed", ", ".join(left))
        self._shared.delete_unserved()
        for mark in left:
            self._log.unmark(self._library, mark)
        return True

    def compare(self, *, old: bool) -> None:
        """Put few chunks right that differ from the catalog's; for more fill another index.

        What is being brought may be counted or not. Where one of both was restored, equal numbers
        say nothing.
        """
        self.delete_cut_off()
        noted = self._shared.epoch  # before the catalog's is read
        restored = noted is not None and not epoch_of(self._loader.database).knows(noted)
        self._shared.lacking |= restored
        for agreed in (False, True):  # the copy that answered first may be behind
            since = self._log.mark(self._library, "lexical")
            held = self._shared.count_agreed if agreed else self._shared.count
            wanted = count(self._loader.database, self._library)
            unsure = 0 if self._shared.lacking else self._unsure(since)
            if not old and not restored and abs(held - wanted.chunks) <= unsure:
                self._shared.lacking = False
                return
        few = abs(held - wanted.chunks) <= MENDED_SHARE * wanted.chunks
        if few and not old:
            mended = self._mend()
            log.warning("%s: %d differed and were put right", self._differing(held, wanted), mended)
        else:
            log.error("%s: making it again", self._differing(held, wanted))
            self._shared.lacking = True
            self.rebuild(wanted.documents)
        if restored:
            self._shared.set_epoch(epoch_of(self._loader.database).now)
        self._shared.lacking = False

    def _unsure(self, since: int) -> int:
        """Return how many chunks may be in the index or not, by the changes after one."""
        found = 0
        for changes in self._log.batches(self._library, since, dense=False):
            docs = gone_by(changes)
            replaced = self._loader.replaced_chunk_ids(list(docs))
            found += len(self._loader.chunk_ids(list(docs)))
            found += sum(map(len, (*docs.values(), *replaced.values())))
        return found

    def _mend(self) -> int:
        """Give the index the chunks that the catalog has, a range at a time; return how many."""
        after = mended = 0
        while after < sys.maxsize:
            held = self._shared.ids_after(after, RANGE)
            upto = held[-1] if len(held) == RANGE else sys.maxsize
            wanted = self._loader.docs_of_chunks(self._library, after, upto)
            phantom = set(held) - wanted.keys()
            if phantom:
                self._shared.delete_chunks(sorted(phantom))
                # A document may have been restored before they were removed.
                wanted = self._loader.docs_of_chunks(self._library, after, upto)
            missing = wanted.keys() - (set(held) - phantom)
            docs = sorted({wanted[chunk_id] for chunk_id in missing})
            for some in pieces(docs, REBUILD_BATCH_DOCS):
                self._refresh(some)
            after, mended = upto, mended + len(phantom) + len(missing)
        return mended

    def refresh(self) -> None:
        """Send every live document again, so that the engine rewrites what holds deleted words."""
        for docs in self._loader.live_docs(self._library, REBUILD_BATCH_DOCS):
            self._refresh(docs)

    def close(self) -> None:
        """End the thread; what is claimed is brought by those who claimed it."""
        self._thread.shutdown()
