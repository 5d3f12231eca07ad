"""Count calls to an engine of the shared mode, their time and failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

Failure = TypeVar("Failure", bound=Exception)


class Calls:
    """Counts of one engine since the start of this process; thread-safe."""

    def __init__(self, engine: str) -> None:
        """Start at zero.

        Args:
            engine: Its name in metrics.
        """
        self.engine = engine
        self.count = 0
        self.seconds = 0.0
        self.failures = 0
        self._lock = threading.Lock()

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the block as one call, however it ends."""
        started_s = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self.count += 1
                self.seconds += time.perf_counter() - started_s

    def failed(self, error: Failure) -> Failure:
        """Count a failure, and return it to be raised."""
        with self._lock:
            self.failures += 1
        return error


def counted(*parts: object) -> Sequence[Calls]:
    """Return the counts of those parts that another process serves."""
    found = (getattr(part, "calls", None) for part in parts)
    return [calls for calls in found if isinstance(calls, Calls)]
