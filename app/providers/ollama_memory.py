"""Watch whether models stay in a host's memory together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime

from app.providers.ollama_listing import LoadedModel


class MemoryWatch:
    """Remembers which models a host had in memory, and until when; thread-safe."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Begin with nothing seen.

        Args:
            clock: The time, for tests.
        """
        self._clock = clock
        self._lock = threading.Lock()
        self._until: dict[str, datetime] = {}
        """By digest: names differ where one model has several."""

    def together(self, wanted: Collection[str], loaded: Sequence[LoadedModel]) -> bool | None:
        """Record what is in memory; return whether the wanted models stay together.

        Args:
            wanted: Digests of the models in use.
            loaded: What the host has in memory now; where that is nothing, it may have been started
                again.

        Returns:
            True when all are there; False when one that was seen is gone before its time while
            another is there; None when nothing is known: fewer than two are wanted, or one was not
            loaded yet or has expired.
        """
        now = self._clock()
        with self._lock:
            if not loaded:
                self._until.clear()
            self._until |= {model.digest: _time(model.expires_at) or now for model in loaded}
            if len(wanted) < 2:
                return None
            here = {model.digest for model in loaded}
            gone = [digest for digest in wanted if digest not in here]
            if not gone:
                return True
            pushed_out = any(digest in self._until and self._until[digest] > now for digest in gone)
            return False if pushed_out and len(gone) < len(wanted) else None


def _time(text: str) -> datetime | None:
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    return read if read.tzinfo is not None else None
