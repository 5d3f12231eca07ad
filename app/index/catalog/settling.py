"""Show replaced revisions to running questions until the new text is searchable."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable

LINGER_S = 2.0
"""A search that began before a swap joins with the catalog well within this time."""


class Settling:
    """Which superseded revision of a document may still be shown; thread-safe.

    The catalog swaps a document's live revision a few milliseconds before tantivy's commit makes
    the new chunks findable. A search in between finds the old chunks, and one that began earlier
    still holds their ids. Both get the old revision, which was live when they began; searches that
    begin after the swap never find old ids.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start empty; `clock` counts seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._until: dict[tuple[int, int], float] = {}

    def begin(self, revisions: Iterable[tuple[int, int]]) -> None:
        """Keep showing `(doc, revision)` pairs about to be superseded; before the commit."""
        with self._lock:
            self._until.update(dict.fromkeys(revisions, math.inf))

    def end(self, revisions: Iterable[tuple[int, int]]) -> None:
        """Stop showing the old revisions once running searches have ended.

        The new ones are searchable, or nothing was swapped.
        """
        until = self._clock() + LINGER_S
        with self._lock:
            self._until.update(dict.fromkeys(revisions, until))

    def shown(
        self,
        found: Iterable[tuple[int, int]],  # noqa: ARG002  # SharedSettling asks for them
    ) -> frozenset[tuple[int, int]]:
        """Return superseded `(doc, revision)` pairs that may be shown now, `found` among them.

        Call it after reading the catalog.
        """
        if not self._until:
            return frozenset()
        now = self._clock()
        with self._lock:
            self._until = {pair: until for pair, until in self._until.items() if until > now}
            return frozenset(self._until)
