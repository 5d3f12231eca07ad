"""A set of passages that says more than its best one five times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence, Set

from app.core.types import Fusion, Library, TraceItem
from app.retrieval.candidates import Candidates, Ints
from app.retrieval.request import RetrievalOptions
from app.retrieval.scoring import Reading, closeness, distance_threshold


def jaccard(left: Set[str], right: Set[str]) -> float:
    """Return the share of common tokens, `|A & B| / |A | B|` in [0, 1].

    Two empty sets are equal: 1.
    """
    common = len(left & right)
    union = len(left) + len(right) - common
    return common / union if union else 1.0


_SAME = 0.9
"""Jaccard similarity of a text and its copy with another date or page number."""


def near_duplicate(left: Reading, right: Reading, threshold: float) -> bool:
    """Return whether two passages are near-copies; sizes alone exclude most pairs.

    Where each has a number that the other lacks, two records say different things: only those that
    are alike to _SAME are copies.
    """
    one, other = len(left.tokens), len(right.tokens)
    if threshold * one > other or threshold * other > one:
        return False
    alike = jaccard(left.tokens, right.tokens)
    return alike >= _SAME or (
        alike >= threshold
        and not (
            _has_number(left.tokens - right.tokens) and _has_number(right.tokens - left.tokens)
        )
    )


def _has_number(tokens: Set[str]) -> bool:
    return any(token[0].isdigit() for token in tokens)


_MOST_OF_HEAD = 0.5
_FEWEST_TOLD = 4
"""Places that tell which document is meant."""


def diversify(
    ranked: Sequence[Reading], k: int, *, duplicate: float = 0.7, cap: float = 0.5
) -> list[Reading]:
    """Choose up to k passages: the best of each document, then the best others.

    Where most of the best k are of one document, it is the one that is meant: the best k are
    chosen. Of near-duplicates one is chosen. Where they are of different documents it is the one
    with more words, which says what the other says and more, at the place and with the score of the
    better one; within a document it is the better one. While other documents have passages left,
    one document fills at most `cap`, in (0, 1], of the places; then the cap is lifted. `ranked` is
    best first, and `duplicate` the Jaccard similarity of token sets from which two are one.
    """
    chosen = _Chosen(ranked, duplicate)
    left_over: list[int] = []
    most = max(Counter(reading.source for reading in ranked[:k]).values(), default=0)
    if min(k, len(ranked)) >= _FEWEST_TOLD and most > _MOST_OF_HEAD * min(k, len(ranked)):
        return chosen.best(k)
    for row, reading in enumerate(ranked):
        if len(chosen.rows) == k:
            break
        if chosen.taken[reading.source]:
            left_over.append(row)
        else:
            chosen.offer(row)
    for limit in (max(1, math.floor(cap * k)), k):
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

    def best(self, k: int) -> list[Reading]:
        """Return the best k that are no copies of better ones, of any document."""
        for row in range(len(self._ranked)):
            if len(self.rows) < k and not self.copies_of(row):
                self.add(row)
        return [self._ranked[row] for row in self.rows]

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

    `ranked` is best first; `trade` is the lambda of the paper, [0, 1]; 1 keeps the ranking.

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


# Why each candidate stayed or fell, in words, for a full trace.


def fused(
    candidates: Candidates, order: Ints, scores: Sequence[float], read: int
) -> Iterator[TraceItem]:
    """Yield the rows of the pool in fused order; the first `read` go on to the next steps."""
    for rank, row in enumerate(order.tolist(), 1):
        distance, bm25 = float(candidates.distance[row]), float(candidates.bm25[row])
        known = [] if math.isnan(distance) else [f"distance {distance:.2f}"]
        known += [] if math.isnan(bm25) else [f"BM25 {bm25:.1f}"]
        signals = ", ".join(known)
        kept = rank <= read
        reason = signals if kept else f"not among the {read} best that are read; {signals}"
        yield TraceItem(int(candidates.ids[row]), rank, float(scores[row]), kept, reason)


def reranked(readings: Sequence[Reading]) -> Iterator[TraceItem]:
    """Yield the passages as they were read, best first; this step drops none."""
    for rank, reading in enumerate(readings, 1):
        yield TraceItem(
            reading.passage.chunk.chunk_id,
            rank,
            reading.score,
            kept=True,
            reason=f"overlap {reading.overlap:.2f}",
        )


def cut(
    readings: Sequence[Reading],
    passed: frozenset[int],
    fusion: Fusion,
    library: Library,
    options: RetrievalOptions,
    *,
    keep_weak: bool,
) -> Iterator[TraceItem]:
    """Yield every passage with the figure that the cutoff looked at.

    `passed` holds the `id()` of those that passed; with `keep_weak` the others stay too.
    """
    for rank, reading in enumerate(readings, 1):
        ok = id(reading) in passed
        figure = _figure(reading, fusion, library, options)
        reason = figure if ok else f"{figure}; kept as weak" if keep_weak else figure
        yield TraceItem(
            reading.passage.chunk.chunk_id, rank, reading.score, ok or keep_weak, reason
        )


def _figure(reading: Reading, fusion: Fusion, library: Library, options: RetrievalOptions) -> str:
    if fusion == "dense":
        limit = distance_threshold(options, library)
        return f"distance {reading.distance:.2f}, limit {limit:.2f}"
    if math.isnan(reading.distance):
        needed = options.coverage_threshold
        return f"coverage {reading.overlap:.2f}, needs {needed:.2f} (no vector)"
    near = closeness(options.on_scale(1.0 - reading.distance), reading.overlap)
    return f"closeness {near:.2f}, needs {options.closeness_threshold:.2f}"


def chosen(
    kept: Sequence[Reading], selected: Sequence[Reading], duplicate: float | None
) -> Iterator[TraceItem]:
    """Yield every passage that passed, selected ones first, with the reason of others.

    `duplicate` is the similarity as above, None where copies were not looked for.
    """
    taken = {id(reading) for reading in selected}
    rest = [reading for reading in kept if id(reading) not in taken]
    for rank, reading in enumerate((*selected, *rest), 1):
        ok = id(reading) in taken
        reason = "" if ok else _passed_over(reading, selected, duplicate)
        yield TraceItem(reading.passage.chunk.chunk_id, rank, reading.score, ok, reason)


def _passed_over(reading: Reading, selected: Sequence[Reading], duplicate: float | None) -> str:
    for place, other in enumerate(selected, 1):
        if duplicate is not None and near_duplicate(reading, other, duplicate):
            return f"says nearly the same as number {place}"
    if any(other.source == reading.source and other.score >= reading.score for other in selected):
        return "its document is there with a better passage, and the places are taken"
    return "the places are taken"
