"""What was read of the catalog, kept until something is committed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from app.index.catalog.database import Database

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SinceCommit(Generic[K, V]):
    """Remembers the answers of a reader of few keys; thread-safe, as every answer is of some snapshot since the last commit.

    A question asks for the builds and counts of its library four times, and a library at rest is asked the same a thousand times.
    """

    def __init__(self, database: Database, read: Callable[[K], V]) -> None:
        """Remember what `read` returns of `database`; it must be a value that nobody changes."""
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
