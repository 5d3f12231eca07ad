"""End the grace of deletions, and purge deleted bytes, without a request."""

from __future__ import annotations

import logging
import threading
from typing import Protocol

from app.core.errors import StorageError
from app.core.types import Job
from app.jobs.board import is_finished
from app.jobs.kinds import PURGE
from app.jobs.runner import JobRunner

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 10.0
"""How often deletions are looked at; one indexed query per library."""

PURGE_APART_S = 600.0
"""Shortest time between two automatic purges, so that one that fails (a full disk) is not
repeated without end."""


class Deletions(Protocol):
    """The part of the store that housekeeping reads."""

    def end_grace(self) -> int:
        """Remove deleted documents and conversations whose grace is over; return how many."""
        ...

    def purge_is_due(self) -> bool:
        """Return whether bytes of deleted documents are old enough to purge."""
        ...


class Housekeeper:
    """A thread that looks now and then; a context manager."""

    def __init__(
        self, deletions: Deletions, runner: JobRunner, *, look_every_s: float = LOOK_EVERY_S
    ) -> None:
        """Look at `deletions` every `look_every_s` seconds, and ask `runner` for purges."""
        self._deletions = deletions
        self._runner = runner
        self._look_every_s = look_every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeper", daemon=True)

    def start(self) -> None:
        """Start a chat."""
        self._thread.start()

    def close(self) -> None:
        """End; waits for the look that is under way."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        wait_s = self._look_every_s
        while not self._stop.wait(wait_s):
            wait_s = PURGE_APART_S if self.look() else self._look_every_s

    def look(self) -> bool:
        """End what is due; return whether a purge was asked for.

        Of several processes one looks in each period.
        """
        try:
            if not self._runner.turn("housekeeping", self._look_every_s):
                return False
            self._deletions.end_grace()
            due = self._deletions.purge_is_due() and self._runner.turn("purge", PURGE_APART_S)
            if due:
                request_purge(self._runner)
        except StorageError:
            logger.exception("deletions could not be looked after; trying again")
            return False
        return due


def request_purge(runner: JobRunner) -> Job:
    """Return the purge that has not ended, or ask for one."""
    for job in runner.list(1000):
        if job.kind == PURGE and not is_finished(job):
            return job
    return runner.submit(PURGE, {}, coalesce=True)
