"""Hold ids as marks in pages: a byte each where they are dense."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from app.index.catalog.rows import IdArray

_SHIFT = 16
"""Ids of a page differ in their last bits only."""

Mask = npt.NDArray[np.bool_]


class IdSet:
    """Distinct positive ids. Not thread-safe: the collection that owns it locks."""

    def __init__(self) -> None:
        """Start empty."""
        self._pages: dict[int, Mask] = {}
        self._count = 0

    def __len__(self) -> int:
        """Return how many ids there are."""
        return self._count

    def add(self, ids: IdArray) -> None:
        """Add ids; one that is here is fine."""
        for page, at in _by_page(ids):
            marks = self._pages.setdefault(page, np.zeros(1 << _SHIFT, np.bool_))
            self._count += int(np.count_nonzero(~marks[at]))
            marks[at] = True

    def delete(self, ids: IdArray) -> None:
        """Remove ids; an unknown one is fine."""
        for page, at in _by_page(ids):
            if (marks := self._pages.get(page)) is not None:
                self._count -= int(np.count_nonzero(marks[at]))
                marks[at] = False

    def held(self, ids: IdArray) -> IdArray:
        """Return those of some ids that are here."""
        found = [
            (page << _SHIFT) + at[marks[at]]
            for page, at in _by_page(ids)
            if (marks := self._pages.get(page)) is not None
        ]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def all(self) -> set[int]:
        """Return every id."""
        return {
            int(at) + (page << _SHIFT)
            for page, marks in self._pages.items()
            for at in np.flatnonzero(marks)
        }


def _by_page(ids: IdArray) -> Iterator[tuple[int, IdArray]]:
    """Yield each page's number with the distinct places of ids in it."""
    distinct = np.unique(ids)
    pages = distinct >> _SHIFT
    for page in np.unique(pages).tolist():
        yield int(page), distinct[pages == page] & ((1 << _SHIFT) - 1)
