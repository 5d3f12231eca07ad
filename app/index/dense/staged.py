"""Builds that are searched: the live one, and one that is made while that serves."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from app.core.errors import IndexDamaged
from app.core.types import Library
from app.index.catalog.build_rows import Build
from app.index.catalog.changes import ChangeLog
from app.index.dense.feed import CacheFeed
from app.index.dense.replica import Replica

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Serving:
    """A build and its cache."""

    build: Build
    feed: CacheFeed


@dataclass(slots=True)
class Staged(Serving):
    """A complete build that follows the changes but answers no question of users."""

    replica: Replica
    applied: int = 0
    """The last change that its collection has."""
    whole: bool = False
    """Whether the collection holds everything; if not, it is filled after the take-over."""

    def fill(self, stop: threading.Event) -> None:
        """Fill cache and collection, unless the store is down or `stop` is set first.

        Raises:
            DiskFull: No space.
        """
        self.feed.catch_up(self.replica.limit)
        if not self.replica.whole:
            return
        try:
            applied = self.replica.fill(self.build, stop)
        except IndexDamaged:
            self._lose_store()
            return
        self.applied, self.whole = applied or 0, applied is not None

    def follow(self, library: Library, changes: ChangeLog) -> None:
        """Apply every change to cache and collection.

        Raises:
            DiskFull: No space.
        """
        self.feed.catch_up(self.replica.limit)
        try:
            while self.whole and (pending := changes.pending(library, self.applied, dense=True)):
                self.replica.apply(self.build, pending)
                self.applied = pending[-1].seq
        except IndexDamaged:
            self._lose_store()

    def _lose_store(self) -> None:
        log.exception("the vector store failed; the collection is filled after the take-over")
        self.whole = self.replica.whole = False
