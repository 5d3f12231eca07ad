"""Cache reads of the catalog until the next commit."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from app.index.catalog.database import Database

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SinceCommit(Generic[K, V]):
    """Caches a reader's results until a commit; thread-safe.

    Every result is of some snapshot since the last commit. A question asks for the builds and
    counts of its library four times, and a library at rest is asked the same a thousand times.
    """

    def __init__(self, database: Database, read: Callable[[K], V]) -> None:
        """Cache what `read` returns of `database`; the value must be immutable."""
        self._database = database
        self._read = read
        self._held: dict[K, tuple[int, V]] = {}

    def __call__(self, key: K) -> V:
        """Return what `read` returns now."""
        version = self._database.version
        held = self._held.get(key)
        if held is not None and held[0] == version:
            return held[1]
        value = self._read(key)
        self._held[key] = (version, value)
        return value
