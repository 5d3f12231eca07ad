"""Follow the catalog's log of changes: the one way in which an index is kept in step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.core.errors import IndexDamaged
from app.core.types import Library
from app.storage.catalog.changes import REFILL_OF_WORDS, Change, ChangeLog


class Follower:
    """Brings an index through a library's changes, in their order, and says how far it is.

    The mark moves after the index has flushed: one that is too old after a crash costs a replay of
    changes, which are idempotent, and one that is too new cannot be. So no index needs a durability
    of its own.
    """

    def __init__(
        self,
        log: ChangeLog,
        library: Library,
        mark: str,
        apply: Callable[[Sequence[Change]], object],
        flush: Callable[[bool], bool] = lambda _: True,
    ) -> None:
        """Follow the changes of `library` under a mark, as `ChangeLog.set_mark` takes it.

        `flush` makes durable what `apply` did, if need be (True: at once), and returns whether it
        is; by default `apply` has done so.
        """
        self._log = log
        self._of = library, mark
        self._apply = apply
        self._flush = flush
        self._dense = not mark.startswith(REFILL_OF_WORDS)

    @property
    def applied(self) -> int:
        """Return the last change that the index has; 0 when it holds nothing that counts."""
        return self._log.mark(*self._of)

    def check_kept(self) -> None:
        """See that changes are still kept under the mark, which is no projection's.

        Raises:
            IndexDamaged: Another process took this one for dead and removed it.
        """
        if not self._log.kept_for(*self._of):
            raise IndexDamaged(f"the {self._of[1]} was taken for dead by another process")

    def start_at(self, seq: int) -> None:
        """Follow from this change on, which the index holds."""
        self._log.set_mark(*self._of, seq)

    def end(self) -> None:
        """Follow no more; the log keeps nothing for it."""
        self._log.unmark(*self._of)

    def step(self, most: int = 1000) -> bool:
        """Apply up to so many changes; return whether there were any."""
        changes = self._log.pending(self._of[0], self.applied, dense=self._dense, limit=most)
        if changes:
            self._apply(changes)
            self.flush(changes[-1].seq, at_once=False)
        return bool(changes)

    def catch_up(self) -> None:
        """Apply every change, those that come in the meantime too."""
        while self.step():
            pass

    def flush(self, applied: int, *, at_once: bool) -> None:
        """Let the index flush, then move the mark to the change that it was brought to."""
        self._log.set_mark(*self._of, applied, flushed=self._flush(at_once))
