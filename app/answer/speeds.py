"""Learn and keep how fast each model reads and writes on its host."""

from __future__ import annotations

import threading

from app.core.ports import ModelStore
from app.core.types import ModelSpeed, Usage

_MIN_TOKENS = 48
"""A shorter prompt says little about reading: what a host does once per call weighs too much."""
_NEWEST = 0.3
"""Weight of the newest call in the running mean of seconds per token."""
_SWING = 4.0
"""One call changes the mean by this factor at most: a cached prompt seems to be read at once."""
_SLOWEST, _QUICKEST = 0.1, 1e5
"""Tokens a second that a host may claim."""
_WORTH_KEEPING = 0.1
"""Share by which a speed must change to be written down again."""


class ModelSpeeds:
    """Speeds by host and model; thread-safe."""

    def __init__(self, store: ModelStore) -> None:
        """Keep the store; nothing is read before it is needed."""
        self._store = store
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], ModelSpeed | None] = {}

    def of(self, host: str, model: str) -> ModelSpeed | None:
        """Return the speed of a model on a host, None before it was measured."""
        with self._lock:
            key = (host, model)
            if key not in self._known:
                self._known[key] = self._store.speed(host, model)
            return self._known[key]

    def observe(self, host: str, model: str, usage: Usage) -> None:
        """Learn from one finished call; one that says no durations is left out.

        Raises:
            StorageError: The speed could not be kept.
        """
        if not usage.prompt_seconds or (usage.prompt_tokens or 0) < _MIN_TOKENS:
            return
        old = self.of(host, model)
        reading = _mean(
            old.reading if old else None, (usage.prompt_tokens or 0) / usage.prompt_seconds
        )
        writing = old.writing if old else None
        if usage.completion_seconds and usage.completion_tokens:
            writing = _mean(writing, usage.completion_tokens / usage.completion_seconds)
        new = ModelSpeed(round(reading, 1), round(writing, 1) if writing else None)
        with self._lock:
            self._known[host, model] = new
        if old is None or abs(new.reading - old.reading) > _WORTH_KEEPING * old.reading:
            self._store.keep_speed(host, model, new)


def _mean(old: float | None, seen: float) -> float:
    """Return the running mean of a speed, as a mean of seconds per token."""
    seen = min(max(seen, _SLOWEST), _QUICKEST)
    if old is None:
        return seen
    bounded = min(max(seen, old / _SWING), old * _SWING)
    return 1.0 / ((1.0 - _NEWEST) / old + _NEWEST / bounded)
