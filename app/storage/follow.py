"""Follow the catalog's log of changes: the one way in which an index is kept in step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.core.types import Library
from app.storage.catalog.changes import Change, ChangeLog


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
        flush: Callable[[bool], bool] | None = None,
        *,
        dense: bool,
    ) -> None:
        """Follow the changes of `library` under a mark.

        Args:
            log: Where changes and marks are.
            library: Whose changes.
            mark: The name of the mark: a `Projection`, or any other while this process lives.
            apply: Brings the index through some changes; told again it changes nothing.
            flush: Makes what was applied durable, if need be (True: at once), and returns whether
                it is. None where `apply` has done it.
            dense: Which changes, as `ChangeLog.pending` takes it.
        """
        self._log = log
        self._library = library
        self._mark = mark
        self._apply = apply
        self._flush = flush
        self._dense = dense

    @property
    def applied(self) -> int:
        """Return the last change that the index has; 0 when it holds nothing that counts."""
        return self._log.mark(self._library, self._mark)

    def start_at(self, seq: int) -> None:
        """Follow from this change on: the index holds everything up to it."""
        self._log.set_mark(self._library, self._mark, seq)

    def end(self) -> None:
        """Follow no more; the log keeps nothing for it."""
        self._log.unmark(self._library, self._mark)

    def step(self, most: int = 1000) -> bool:
        """Apply up to so many changes; return whether there were any."""
        changes = self._log.pending(self._library, self.applied, dense=self._dense, limit=most)
        if changes:
            self._apply(changes)
            self.flush(changes[-1].seq, at_once=False)
        return bool(changes)

    def catch_up(self) -> None:
        """Apply every change, those that come meanwhile too."""
        while self.step():
            pass

    def flush(self, applied: int, *, at_once: bool) -> None:
        """Let the index flush, then move the mark to the change that it was brought to."""
        flushed = self._flush is None or self._flush(at_once)
        self._log.set_mark(self._library, self._mark, applied, flushed=flushed)
