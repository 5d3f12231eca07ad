"""Chroma's share of a library's changes: applied with everything else, or once nobody writes, while exact rows answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from app.core.errors import IndexDamaged
from app.core.types import Library
from app.index.catalog.changes import ChangeLog
from app.index.catalog.loading import Build
from app.index.dense.chroma.projection import ChromaProjection
from app.index.dense.chroma.store import ChromaStore
from app.index.options import IndexOptions

log = logging.getLogger(__name__)

STEP_CHANGES = 4
"""Changes that Chroma applies at a time when nobody writes: a writer who comes waits for one step."""


class ChromaFollower:
    """Lets Chroma follow the changes of one library's live build; its owner serialises the calls."""

    def __init__(
        self, library: Library, options: IndexOptions, change_log: ChangeLog, chroma: ChromaProjection, store: ChromaStore
    ) -> None:
        """Write `chroma`, which lies in `store`."""
        self._library = library
        self._options = options
        self._log = change_log
        self._chroma = chroma
        self._store = store
        self._written_s = 0.0
        self.behind = False
        """Whether exact rows have changes that Chroma has not."""
        self.on_behind: Callable[[], None] | None = None
        """Told that Chroma was left behind and wants `step`; without one, Chroma is written with everything else."""

    @property
    def ready(self) -> bool:
        """Whether the collection is whole and has every change."""
        return self._chroma.ready and not self.behind

    def note_write(self) -> None:
        """Note that somebody writes now."""
        self._written_s = time.monotonic()

    def catch_up(self, build: Build, limit: int) -> None:
        """Apply every change that Chroma has not seen.

        Args:
            build: The live one.
            limit: Most vectors to hold.

        Raises:
            IndexDamaged: The store failed.
        """
        self._chroma.catch_up(build, limit)
        self.behind = False

    def write(self, build: Build, limit: int, exact_rows: int | None) -> bool:
        """Apply every change, or leave Chroma behind; return whether every change was applied. A store that fails is made again.

        Args:
            build: The live one.
            limit: Most vectors to hold.
            exact_rows: How many exact rows answer meanwhile; None when there are none.
        """
        if not self._chroma.ready:
            return False
        try:
            if exact_rows is None or not self._may_be_left_behind(exact_rows):
                self.catch_up(build, limit)
                return True
            self._leave_behind(build, limit, exact_rows)
        except IndexDamaged:
            self._fail()
        return False

    def _may_be_left_behind(self, rows: int) -> bool:
        """Whether somebody will let Chroma follow before the library outgrows its exact rows."""
        return self.on_behind is not None and rows + self._options.behind_at_most <= self._options.exact_limit

    def _leave_behind(self, build: Build, limit: int, rows: int) -> None:
        """Let Chroma apply as much as keeps it within `behind_at_most`; exact rows answer until it has the rest."""
        if self._log.mark(self._library, "chroma") >= self._log.mark(self._library, "exact"):
            return
        self.behind = True
        while self._chroma.behind(build, rows) > self._options.behind_at_most:
            if not self._chroma.step(build, limit, STEP_CHANGES):
                break
        if self.on_behind is not None:
            self.on_behind()

    @property
    def may_go_on(self) -> bool:
        """Whether Chroma can be written and nobody has written for a while."""
        return self._chroma.ready and time.monotonic() - self._written_s >= self._options.follow_after_s

    def step(self, build: Build, limit: int) -> bool:
        """Apply the next few changes; return whether that was all. A store that fails is made again."""
        try:
            if not self._chroma.step(build, limit, STEP_CHANGES):
                self.behind = False
        except IndexDamaged:
            self._fail()
        return not self.behind

    def _fail(self) -> None:
        """Have the store made again; called while its error is handled."""
        log.exception("the vector store failed while it was written; it is made again from the catalog")
        self._store.fail()
