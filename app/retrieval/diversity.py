"""A set of passages that says more than its best one five times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence, Set

from app.retrieval.reading import Reading


def jaccard(left: Set[str], right: Set[str]) -> float:
    """Return the share of common tokens, `|A & B| / |A | B|` in [0, 1].

    Two empty sets are equal: 1.
    """
    common = len(left & right)
    union = len(left) + len(right) - common
    return common / union if union else 1.0


def near_duplicate(left: Reading, right: Reading, threshold: float) -> bool:
    """Return whether two passages are near-copies; sizes alone exclude most pairs."""
    one, other = len(left.tokens), len(right.tokens)
    return (
        threshold * one <= other
        and threshold * other <= one
        and jaccard(left.tokens, right.tokens) >= threshold
    )


def diversify(
    ranked: Sequence[Reading], k: int, *, duplicate: float = 0.7, cap: float = 0.5
) -> list[Reading]:
    """Choose up to k passages: the best of each document, then the best others.

    Of near-duplicates one is chosen. Where they are of different documents it is the one with more
    words, which says what the other says and more, at the place and with the score of the better
    one; within a document it is the better one. While other documents have passages left, one
    document fills at most `cap` of the places; then the cap is lifted.

    Args:
        ranked: Best first.
        k: Places.
        duplicate: Jaccard similarity of token sets from which two passages are one.
        cap: Largest share of the places for one source, (0, 1].
    """
    chosen = _Chosen(ranked, duplicate)
    left_over: list[int] = []
    for row, reading in enumerate(ranked):
        if len(chosen.rows) == k:
            break
        if chosen.taken[reading.source]:
            left_over.append(row)
        else:
            chosen.offer(row)
    most = max(1, math.floor(cap * k))
    for limit in (most, k):
        for row in left_over:
            if len(chosen.rows) == k:
                break
            if (
                row not in chosen.rows
                and chosen.taken[ranked[row].source] < limit
                and not chosen.copies_of(row)
            ):
                chosen.add(row)
    return [ranked[row] for row in sorted(chosen.rows, key=lambda row: chosen.place.get(row, row))]


class _Chosen:
    """Chosen rows, counts by source, and places where a fuller copy stands in."""

    def __init__(self, ranked: Sequence[Reading], duplicate: float) -> None:
        self._ranked, self._duplicate = ranked, duplicate
        self.rows: list[int] = []
        self.taken: Counter[str] = Counter()
        self.place: dict[int, int] = {}

    def copies_of(self, row: int) -> list[int]:
        return [
            other
            for other in self.rows
            if near_duplicate(self._ranked[row], self._ranked[other], self._duplicate)
        ]

    def add(self, row: int) -> None:
        self.rows.append(row)
        self.taken[self._ranked[row].source] += 1

    def offer(self, row: int) -> None:
        """Add a row of a new source, or replace its copy if this row is fuller."""
        copies, reading = self.copies_of(row), self._ranked[row]
        if not copies:
            self.add(row)
        elif len(copies) == 1 and len(reading.tokens) > len(self._ranked[copies[0]].tokens):
            (copy,) = copies
            self.rows.remove(copy)
            self.taken[self._ranked[copy].source] -= 1
            self.add(row)
            self.place[row], reading.score = self.place.get(copy, copy), self._ranked[copy].score


def maximal_marginal_relevance(
    ranked: Sequence[Reading], k: int, *, trade: float = 0.6
) -> list[Reading]:
    """Choose k passages in turn, each with the best relevance and novelty.

    Each maximises `trade * relevance - (1 - trade) * likeness` to those chosen. Relevance is the
    score scaled to [0, 1] over `ranked`; likeness is the largest Jaccard similarity of token sets.

    Args:
        ranked: Best first.
        k: Places.
        trade: Lambda of the paper, [0, 1]; 1 keeps the ranking.

    References:
        Carbonell, Goldstein: The use of MMR, SIGIR 1998, equation 1.
    """
    if not ranked:
        return []
    high, low = ranked[0].score, ranked[-1].score
    relevance = [(reading.score - low) / (high - low) if high > low else 1.0 for reading in ranked]
    likeness = [0.0] * len(ranked)
    remaining = list(range(len(ranked)))
    chosen: list[int] = []
    while remaining and len(chosen) < k:
        best = max(
            remaining, key=lambda row: (trade * relevance[row] - (1 - trade) * likeness[row], -row)
        )
        remaining.remove(best)
        chosen.append(best)
        for row in remaining:
            likeness[row] = max(likeness[row], jaccard(ranked[row].tokens, ranked[best].tokens))
    return [ranked[row] for row in sorted(chosen)]
