"""A set of passages that says more than its best one five times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence, Set

from app.retrieval.reading import Reading


def jaccard(left: Set[str], right: Set[str]) -> float:
    """Return the share of common tokens, `|A & B| / |A | B|` in [0, 1]; two empty sets are alike."""
    common = len(left & right)
    union = len(left) + len(right) - common
    return common / union if union else 1.0


def near_duplicate(left: Reading, right: Reading, threshold: float) -> bool:
    """Whether two passages say the same in nearly the same words; sizes alone rule most pairs out."""
    one, other = len(left.tokens), len(right.tokens)
    return threshold * one <= other and threshold * other <= one and jaccard(left.tokens, right.tokens) >= threshold


def diversify(ranked: Sequence[Reading], k: int, *, duplicate: float = 0.7, cap: float = 0.5) -> list[Reading]:
    """Choose up to k passages: the best of each document first, then the best of the rest; best score first.

    Near-duplicates of a chosen passage are never chosen. While other documents have passages left, one document fills
    at most `cap` of the places; then the cap is lifted.

    Args:
        ranked: Best first.
        k: Places.
        duplicate: Jaccard similarity of token sets from which two passages are one.
        cap: Largest share of the places for one source, (0, 1].
    """
    chosen: list[int] = []
    left_over: list[int] = []
    taken: Counter[str] = Counter()

    def fresh(row: int) -> bool:
        return not any(near_duplicate(ranked[row], ranked[other], duplicate) for other in chosen)

    for row, reading in enumerate(ranked):
        if len(chosen) == k:
            break
        if taken[reading.source]:
            left_over.append(row)
        elif fresh(row):
            chosen.append(row)
            taken[reading.source] += 1
    most = max(1, math.floor(cap * k))
    for limit in (most, k):
        for row in left_over:
            if len(chosen) == k:
                break
            source = ranked[row].source
            if row not in chosen and taken[source] < limit and fresh(row):
                chosen.append(row)
                taken[source] += 1
    return [ranked[row] for row in sorted(chosen)]


def maximal_marginal_relevance(ranked: Sequence[Reading], k: int, *, trade: float = 0.6) -> list[Reading]:
    """Choose k passages one by one, each the best of `trade * relevance - (1 - trade) * likeness to those chosen`.

    Relevance is the score scaled to [0, 1] over `ranked`; likeness is the largest Jaccard similarity of token sets.

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
        best = max(remaining, key=lambda row: (trade * relevance[row] - (1 - trade) * likeness[row], -row))
        remaining.remove(best)
        chosen.append(best)
        for row in remaining:
            likeness[row] = max(likeness[row], jaccard(ranked[row].tokens, ranked[best].tokens))
    return [ranked[row] for row in sorted(chosen)]
