"""Search exact nearest neighbours in memory: the catalog's rows, with what filters ask of them."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.core.types import Filters, FloatArray, Scored
from app.core.vectors import cosine_distances, nearest
from app.storage.catalog.changes import Change
from app.storage.catalog.loader import CatalogLoader
from app.storage.catalog.rows import Build, DocumentFacts, IdArray, VectorRows, author_key
from app.storage.catalog.schema import pieces
from app.storage.follow import Follower

Mask = npt.NDArray[np.bool_]

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
    ids: IdArray
    alive: Mask
    dead: int


class VectorCache:
    """One build's vectors; reads are concurrent, writes are serialised by the owner."""

    def __init__(self, dimension: int, capacity: int = 0) -> None:
        self.dimension = dimension
        self._lock = threading.RLock()
        self._masks: dict[Filters, Mask] = {}
        self._documents: dict[int, int] = {}
        """Where in `_facts` a document is."""
        self._facts: list[DocumentFacts] = []
        self._sections: dict[str, int] = {}
        self._row_document = np.empty(0, np.int32)
        """Of each row, where in `_facts` its document is."""
        self._row_section = np.empty(0, np.int32)
        self._positions: dict[int, int] = {}
        self._rows = np.empty((capacity, dimension), np.float32)
        self._view = _View(self._rows[:0], np.empty(0, np.int64), np.empty(0, np.bool_), 0)

    # --- read

    @property
    def count(self) -> int:
        return len(self._positions)

    def ids(self) -> list[int]:
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
            about = cosine_distances(query, view.rows)
            if mask is not None:
                about = np.where(mask, about, np.float32(np.inf))
            chosen, distances = nearest(query, view.rows, view.ids, min(k, selected), about)
        return list(map(Scored, view.ids[chosen].tolist(), distances.tolist()))

    def _mask(self, filters: Filters) -> Mask:
        mask = self._masks.get(filters)
        if mask is None:
            mask = self._matching(filters) & self._view.alive
            if len(self._masks) >= MASKS_KEPT:
                self._masks.pop(next(iter(self._masks)))
            self._masks[filters] = mask
        return mask

    def _matching(self, filters: Filters) -> Mask:
        """Return which rows meet every condition: bool `[rows]`."""
        mask = np.ones(len(self._row_document), np.bool_)
        if filters.sections:
            wanted = [self._sections[name] for name in filters.sections if name in self._sections]
            mask &= np.isin(self._row_section, wanted)
        for holds in _conditions(filters):
            met = np.fromiter(map(holds, self._facts), np.bool_, len(self._facts))
            # One extra entry for rows whose document is gone: index -1 reads it, and it never
            # matches.
            mask &= np.append(met, np.False_)[self._row_document]
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
            for facts in documents:
                at = self._documents.setdefault(facts.doc, len(self._facts))
                self._facts[at : at + 1] = [facts]
            self._masks = {}

    def put(
        self, chunk_ids: Sequence[int], rows: FloatArray, facts: Sequence[tuple[int, str]]
    ) -> None:
        """Append rows, float32 `[n, dimension]`; a chunk that was here is replaced.

        Their facts are the keys of documents that were described, and sections.
        """
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
            of = [self._documents.get(doc, -1) for doc, _ in facts]
            within = [self._sections.setdefault(name, len(self._sections)) for _, name in facts]
            self._row_document = np.concatenate([self._row_document, np.array(of, np.int32)])
            self._row_section = np.concatenate([self._row_section, np.array(within, np.int32)])
            self._positions.update(zip(ids.tolist(), range(n, total), strict=True))
            self._view = _View(
                self._rows[:total],
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
                self._view = _View(view.rows, view.ids, alive, view.dead + len(gone))
                self._masks = {}

    def compact(self, *, above: float = COMPACT_ABOVE) -> None:
        """Copy the rows without the dead ones, when more than this share of them is dead."""
        with self._lock:
            if self._view.dead <= above * len(self._view.ids):
                return
            keep = np.flatnonzero(self._view.alive)
            self._rows, ids = np.array(self._view.rows[keep]), self._view.ids[keep]
            self._row_document = self._row_document[keep]
            self._row_section = self._row_section[keep]
            self._positions = {chunk_id: at for at, chunk_id in enumerate(ids.tolist())}
            self._view = _View(self._rows, ids, np.ones(len(ids), np.bool_), 0)
            self._masks = {}


def _conditions(filters: Filters) -> Iterator[Callable[[DocumentFacts], bool]]:
    """Yield what filters ask of a document."""
    if filters.doc_ids:
        ids = set(filters.doc_ids)
        yield lambda facts: facts.doc_id in ids
    if filters.exclude_doc_ids:
        excluded = set(filters.exclude_doc_ids)
        yield lambda facts: facts.doc_id not in excluded
    if filters.types:
        kinds = set(filters.types)
        yield lambda facts: facts.type in kinds
    if filters.year_from is not None or filters.year_to is not None:
        low = -sys.maxsize if filters.year_from is None else filters.year_from
        high = sys.maxsize if filters.year_to is None else filters.year_to
        yield lambda facts: facts.year is not None and low <= facts.year <= high
    if name := author_key(filters.author or ""):
        yield lambda facts: name in facts.author_keys


# Fill a cache from the catalog and keep it in step.

log = logging.getLogger(__name__)

LOAD_BATCH = 1000
"""Vectors per read from the catalog."""

FILLED_AT_ONCE = 20_000
"""A cache up to this size is filled before the store opens (0.4 s); a larger one while it
serves."""


class CachedBuild:
    """A build that is searched, and its cache while it is small enough.

    The owner serialises the calls that write.
    """

    def __init__(
        self, build: Build, most: int, limit: Callable[[], int], loader: CatalogLoader
    ) -> None:
        """Serve `build`, without a cache above `most` vectors; nothing is read yet.

        The cache holds `limit()` rows at most.
        """
        self._library = build.library
        self.build = build
        self._most = most
        self._limit = limit
        self._log = loader.log
        self._loader = loader
        mark = f"cache of build {build.number}"
        self._follower = Follower(loader.log, build.library, mark, self._apply)
        self.cache: VectorCache | None = None
        """The rows; None while there are none in memory."""

    @property
    def fits(self) -> bool:
        return self._most > 0 and self._loader.embedded(self.build) <= self._most

    def catch_up(self) -> None:
        """Fill the cache, or apply every new change; a build that outgrew it has none."""
        if not self.fits:
            self.release()
            return
        if self.cache is None:
            self.keep_changes()
            self.cache = self.read()
        self._follow(self.cache)

    def keep_changes(self) -> None:
        """Keep the changes from here on, which what is read next may lack."""
        self._follower.start_at(self._log.last())

    def read(self) -> VectorCache:
        """Read the vectors, for `cache`, while others write."""
        limit = self._limit()
        cache = VectorCache(self.build.dimension, min(limit, self._loader.embedded(self.build)))
        for stored in self._loader.all_vectors(self.build, LOAD_BATCH):
            _add(cache, stored, limit)
            if cache.count >= limit:
                break
        return cache

    def _follow(self, cache: VectorCache) -> None:
        embedded = self._loader.embedded(self.build)
        while self._follower.step():
            embedded = self._loader.embedded(self.build)  # before the look that finds no change
        if cache.count != min(embedded, self._limit()):
            log.warning(
                "the cache of %s has %d rows, the catalog %d: filling it again",
                self._library,
                cache.count,
                embedded,
            )
            self.keep_changes()
            self.cache = cache = self.read()
        cache.compact()

    def _apply(self, changes: Sequence[Change]) -> None:
        if (cache := self.cache) is None:
            return
        limit = self._limit()
        for change in changes:
            if change.kind == "correct":
                cache.describe(self._loader.document_facts(change.doc))
                continue
            for ids in pieces(change.ids, LOAD_BATCH):
                stored = self._loader.vectors(self.build, ids)
                cache.hide(ids)
                _add(cache, stored, limit)

    def compare(self) -> list[str]:
        """Return differences of cache and catalog, a line a chunk; empty without cache."""
        cache = self.cache
        if cache is None:
            return []
        batches = self._loader.all_vectors(self.build, LOAD_BATCH)
        wanted = {chunk_id for stored in batches for chunk_id in stored.chunk_ids}
        held = set(cache.ids())
        wrong = [
            f"chunk {chunk_id} is cached but has no vector" for chunk_id in sorted(held - wanted)
        ]
        if len(held) < min(len(wanted), self._limit()):
            wrong += [f"chunk {chunk_id} is not cached" for chunk_id in sorted(wanted - held)]
        return wrong

    def release(self) -> None:
        """Free the memory; changes are no longer kept for it."""
        self.cache = None
        self._follower.end()


def _add(cache: VectorCache, stored: VectorRows, limit: int) -> None:
    room = max(0, limit - cache.count)
    cache.describe(stored.documents)
    cache.put(stored.chunk_ids[:room], stored.rows[:room], stored.facts[:room])
