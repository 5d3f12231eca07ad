"""Name every write step, so that a test can end the process at each.

A crash at each leaves a different state on disk. Each step is reached twice, before and after the
write. A registry armed with `n` ends the process at the n-th step reached, as `kill -9` would: no
handler runs, no buffer is flushed. Counting instead of naming makes the crash loop exhaustive: n =
1, 2, 3 ... until the work completes.

References:
    SQLite's crash tests, https://sqlite.org/testing.html section 3.3; docs/facts/sqlite.md.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

CRASH_STATUS = 137
"""Exit status of a process killed by SIGKILL as a shell reports it (128 + 9)."""


class Steps:
    """Counts write steps of one process; thread-safe."""

    def __init__(self, crash_at: int | None = None) -> None:
        """Start counting at 0.

        Args:
            crash_at: End the process when this many steps were reached, from 1; None never does.
        """
        self._crash_at = crash_at
        self._lock = threading.Lock()
        self._reached = 0
        self._names: dict[str, int] = {}

    @property
    def reached(self) -> int:
        """Return how many steps were reached so far."""
        return self._reached

    @property
    def names(self) -> dict[str, int]:
        """Return how often each named step was entered."""
        with self._lock:
            return dict(self._names)

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Surround one write named `store.action`; count a step before and after it.

        The one after counts a success.
        """
        with self._lock:
            self._names[name] = self._names.get(name, 0) + 1
        self._reach()
        yield
        self._reach()

    def _reach(self) -> None:
        with self._lock:
            self._reached += 1
            due = self._crash_at is not None and self._reached >= self._crash_at
        if due:
            os._exit(CRASH_STATUS)
