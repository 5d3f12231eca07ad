"""Search exact nearest neighbours in memory: the catalog's rows, with codes.

Filter values are in memory too.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.core.types import Filters, FloatArray, Scored
from app.core.vectors import nearest
from app.index.catalog.facts import DocumentFacts, RowFacts
from app.index.catalog.rows import IdArray
from app.index.dense.codes import Codes
from app.index.dense.columns import Columns, Mask

GATHER_BELOW = 0.08
"""Share of rows under which copying the selected ones out is cheaper than scanning all (50,000
rows of 384 numbers)."""

MASKS_KEPT = 16
"""Filters whose masks are remembered until the rows change: a person asks several questions
under one filter."""

COMPACT_ABOVE = 0.25
"""Share of dead rows at which the rows are copied without them."""


@dataclass(frozen=True, slots=True)
class _View:
    """One consistent state for readers; rows are added behind it in the same memory."""

    rows: FloatArray
    codes: Codes
    ids: IdArray
    alive: Mask
    dead: int


class VectorCache:
    """One build's vectors; reads are concurrent, writes are serialised by the owner."""

    def __init__(self, dimension: int, capacity: int = 0) -> None:
        """Start empty, with room for `capacity` rows of `dimension` numbers."""
        self.dimension = dimension
        self._lock = threading.RLock()
        self._columns = Columns()
        self._masks: dict[Filters, Mask] = {}
        self._positions: dict[int, int] = {}
        self._rows = np.empty((capacity, dimension), np.float32)
        self._view = _View(
            self._rows[:0], Codes.empty(dimension), np.empty(0, np.int64), np.empty(0, np.bool_), 0
        )

    # --- read

    @property
    def count(self) -> int:
        """Return how many rows can be found."""
        return len(self._positions)

    def ids(self) -> list[int]:
        """Return the chunk ids of all rows that can be found."""
        with self._lock:
            return list(self._positions)

    def search(self, query: FloatArray, k: int, filters: Filters | None = None) -> list[Scored]:
        """Return up to k rows by cosine distance, ascending; exact, ties by chunk id."""
        with self._lock:
            view = self._view
            mask = self._mask(filters) if filters else None
        if mask is None:
            mask = view.alive if view.dead else None
        selected = len(view.ids) if mask is None else int(np.count_nonzero(mask))
        if selected == 0 or k < 1:
            return []
        if mask is not None and selected < GATHER_BELOW * len(view.ids):
            positions = np.flatnonzero(mask)
            best, distances = nearest(query, view.rows[positions], view.ids[positions], k)
            chosen = positions[best]
        else:
            about, slack = view.codes.distances(query)
            if mask is not None:
                about = np.where(mask, about, np.float32(np.inf))
            chosen, distances = nearest(query, view.rows, view.ids, min(k, selected), about, slack)
        return list(map(Scored, view.ids[chosen].tolist(), distances.tolist()))

    def _mask(self, filters: Filters) -> Mask:
        mask = self._masks.get(filters)
        if mask is None:
            mask = self._columns.mask(filters) & self._view.alive
            if len(self._masks) >= MASKS_KEPT:
                self._masks.pop(next(iter(self._masks)))
            self._masks[filters] = mask
        return mask

    def fetch(self, chunk_ids: Sequence[int]) -> dict[int, FloatArray]:
        """Return the rows that are here, float32 `[dimension]`."""
        with self._lock:
            view = self._view
            at = {
                chunk_id: self._positions[chunk_id]
                for chunk_id in chunk_ids
                if chunk_id in self._positions
            }
        return dict(zip(at, view.rows[list(at.values())], strict=True))

    # --- write

    def describe(self, documents: Sequence[DocumentFacts]) -> None:
        """Set what filters ask of documents."""
        with self._lock:
            self._columns.set_documents(documents)
            self._masks = {}

    def put(self, chunk_ids: Sequence[int], rows: FloatArray, facts: Sequence[RowFacts]) -> None:
        """Append rows, float32 `[n, dimension]`; a chunk that was here is replaced."""
        ids = np.asarray(chunk_ids, np.int64)
        with self._lock:
            self.hide(chunk_ids)
            n, total = len(self._view.ids), len(self._view.ids) + len(ids)
            if total > len(self._rows):
                larger = np.empty(
                    (max(total, len(self._rows) * 3 // 2), self.dimension), np.float32
                )
                larger[:n] = self._view.rows
                self._rows = larger
            self._rows[n:total] = rows
            self._columns.append(facts)
            self._positions.update(zip(ids.tolist(), range(n, total), strict=True))
            self._view = _View(
                self._rows[:total],
                self._view.codes.plus(np.asarray(rows, np.float32)),
                np.concatenate([self._view.ids, ids]),
                np.concatenate([self._view.alive, np.ones(len(ids), np.bool_)]),
                self._view.dead,
            )
            self._masks = {}

    def hide(self, chunk_ids: Sequence[int]) -> None:
        """Stop finding rows; unknown ids are fine."""
        with self._lock:
            gone = [
                self._positions.pop(chunk_id)
                for chunk_id in chunk_ids
                if chunk_id in self._positions
            ]
            if gone:
                view = self._view
                alive = view.alive.copy()
                alive[gone] = False
                self._view = _View(view.rows, view.codes, view.ids, alive, view.dead + len(gone))
                self._masks = {}

    def compact(self, *, above: float = COMPACT_ABOVE) -> None:
        """Copy the rows without the dead ones, when more than this share of them is dead."""
        with self._lock:
            if self._view.dead <= above * len(self._view.ids):
                return
            keep = np.flatnonzero(self._view.alive)
            self._rows, ids = np.array(self._view.rows[keep]), self._view.ids[keep]
            codes = Codes.of(self._rows)
            self._columns.take(keep)
            self._positions = {chunk_id: at for at, chunk_id in enumerate(ids.tolist())}
            self._view = _View(self._rows, codes, ids, np.ones(len(ids), np.bool_), 0)
            self._masks = {}
