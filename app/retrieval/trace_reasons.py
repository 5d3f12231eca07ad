"""Why each candidate stayed or fell, in words, for a full trace."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from app.core.types import Fusion, Library, Mode, TraceItem
from app.retrieval.cutoff import closeness, distance_threshold
from app.retrieval.diversity import near_duplicate
from app.retrieval.options import RetrievalOptions
from app.retrieval.reading import Reading
from app.retrieval.search import Candidates, Ints


def fused(
    candidates: Candidates, order: Ints, scores: Sequence[float], read: int
) -> Iterator[TraceItem]:
    """Yield the pool in fused order; the first `read` go on to the next steps.

    Args:
        candidates: The pool.
        order: Rows of the pool, best first.
        scores: Fused score by row.
        read: How many of them the next steps take.
    """
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
    mode: Mode,
    options: RetrievalOptions,
    *,
    keep_weak: bool,
) -> Iterator[TraceItem]:
    """Yield every passage with the figure that the cutoff looked at.

    Args:
        readings: Best first.
        passed: `id()` of those that passed.
        fusion: The arm.
        library: The library searched.
        mode: The mode of the question.
        options: Thresholds.
        keep_weak: Whether those that did not pass stay all the same.
    """
    for rank, reading in enumerate(readings, 1):
        ok = id(reading) in passed
        figure = _figure(reading, fusion, library, mode, options)
        reason = figure if ok else f"{figure}; kept as weak" if keep_weak else figure
        yield TraceItem(
            reading.passage.chunk.chunk_id, rank, reading.score, ok or keep_weak, reason
        )


def _figure(
    reading: Reading, fusion: Fusion, library: Library, mode: Mode, options: RetrievalOptions
) -> str:
    if fusion == "dense":
        return (
            f"distance {reading.distance:.2f}, limit"
            f" {distance_threshold(options, library, mode):.2f}"
        )
    slack = options.compare_slack if mode == "compare" else 0.0
    if math.isnan(reading.distance):
        return (
            f"coverage {reading.overlap:.2f}, needs {options.coverage_threshold - slack:.2f}"
            " (no vector)"
        )
    near = closeness(options.on_scale(1.0 - reading.distance), reading.overlap)
    return f"closeness {near:.2f}, needs {options.closeness_threshold - slack:.2f}"


def chosen(
    kept: Sequence[Reading], selected: Sequence[Reading], duplicate: float | None
) -> Iterator[TraceItem]:
    """Yield every passage that passed, selected ones first, with the reason of others.

    Args:
        kept: What the selection chose from, best first.
        selected: What it chose, best first.
        duplicate: Jaccard similarity from which two passages were one; None where copies were not
            looked for.
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
