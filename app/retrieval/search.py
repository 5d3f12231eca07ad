"""Candidates: how many each leg is asked for, and what is known of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.core.types import Library, Mode, Scored

MIN_POOL = 50
"""Fewest candidates a leg is asked for (docs/how-it-works.md)."""

_POOLS: dict[tuple[Library, bool], tuple[int, int]] = {
    (Library.PAPERS, True): (4, 64),
    (Library.PAPERS, False): (3, 56),
    (Library.PUBLIC, True): (5, 96),
    (Library.PUBLIC, False): (4, 80),
}
"""(candidates per passage wanted, ceiling) by library and whether the mode is a broad one."""

_BROAD: frozenset[Mode] = frozenset({"general", "compare", "summary"})

_SLOTS: dict[Mode, int] = {
    "general": 24,
    "compare": 24,
    "methodology": 16,
    "datasets": 20,
    "reproduce": 16,
    "summary": 24,
}
"""Most passages an answer of this mode reads."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def slots(mode: Mode) -> int:
    """Return the most passages an answer of this mode reads, at most 24."""
    return _SLOTS[mode]


def pool_size(library: Library, mode: Mode, top_k: int) -> int:
    """Return how many candidates to ask of each leg.

    About 4x `top_k` up to 64 in papers and 5x up to 96 in public for the broad modes, a little less
    for the others; never under 50 nor under 2x `top_k`, even above the ceiling.
    """
    factor, ceiling = _POOLS[library, mode in _BROAD]
    return max(min(factor * top_k, ceiling), MIN_POOL, 2 * top_k)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The union of both legs as columns of length n, dense hits first, no repeats."""

    ids: Ints
    """Chunk ids, int64 `[n]`."""
    distance: Floats
    """Cosine distance in [0, 2], float64 `[n]`; NaN while unknown."""
    bm25: Floats
    """BM25, float64 `[n]`, higher is better; NaN while unknown."""
    dense_rank: Ints
    """Place in the dense list from 1; 0 for chunks it did not return."""
    lexical_rank: Ints
    """Place in the lexical list from 1; 0 for chunks it did not return."""

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.ids)

    def without_distance(self) -> Ints:
        """Return the ids whose distance is unknown, best lexical rank first."""
        rows = np.flatnonzero(np.isnan(self.distance))
        return self.ids[rows[np.argsort(self.lexical_rank[rows], kind="stable")]]

    def without_bm25(self) -> Ints:
        """Return the ids whose BM25 is unknown."""
        return self.ids[np.isnan(self.bm25)]

    def with_distances(self, known: Mapping[int, float]) -> Candidates:
        """Return candidates with unknown distances filled in where `known` has them."""
        return replace(self, distance=_filled(self.ids, self.distance, known))

    def with_bm25(self, known: Mapping[int, float]) -> Candidates:
        """Return candidates with unknown BM25 scores filled in where `known` has them."""
        return replace(self, bm25=_filled(self.ids, self.bm25, known))


def gather(dense: Sequence[Scored], lexical: Sequence[Scored]) -> Candidates:
    """Unite the lists of both legs, each sorted best first."""
    place: dict[int, int] = {}
    for hit in dense:
        place.setdefault(hit.chunk_id, len(place))
    for hit in lexical:
        place.setdefault(hit.chunk_id, len(place))
    (distance, dense_rank), (bm25, lexical_rank) = _columns(dense, place), _columns(lexical, place)
    return Candidates(
        np.fromiter(place, dtype=np.int64, count=len(place)),
        distance,
        bm25,
        dense_rank,
        lexical_rank,
    )


def _columns(hits: Sequence[Scored], place: Mapping[int, int]) -> tuple[Floats, Ints]:
    """Return the scores and the ranks of one leg in the places of all candidates."""
    scores, ranks = np.full(len(place), np.nan), np.zeros(len(place), dtype=np.int64)
    rows = [place[hit.chunk_id] for hit in hits]
    scores[rows], ranks[rows] = [hit.score for hit in hits], np.arange(1, len(hits) + 1)
    return scores, ranks


def _filled(ids: Ints, values: Floats, known: Mapping[int, float]) -> Floats:
    filled = values.copy()
    rows = np.flatnonzero(np.isnan(values))
    filled[rows] = [known.get(chunk_id, math.nan) for chunk_id in ids[rows].tolist()]
    return filled
