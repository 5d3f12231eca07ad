"""Two rankings to one score per candidate."""

from __future__ import annotations

import numpy as np

from app.core.types import Fusion
from app.retrieval.candidates import Candidates, Floats, Ints, QuestionWords

_K1 = 1.2
"""Of tantivy's BM25."""


def min_max(values: Floats) -> Floats:
    """Scale to [0, 1]: best value 1, worst 0; NaN stays, equal values become 1.

    Args:
        values: float64 `[n]`, higher is better, NaN for unknown.

    References:
        Lee: Analyses of multiple evidence combination, SIGIR 1997, equation 1.
    """
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return values
    low, high = float(known.min()), float(known.max())
    if high <= low:
        return np.where(np.isnan(values), np.nan, 1.0)
    return (values - low) / (high - low)


def relative_score(candidates: Candidates, *, dense_weight: float = 0.5) -> Floats:
    """Return the weighted sum of both legs' min-max scaled scores, in [0, 1].

    Unlike ranks, scaled scores keep how far apart the candidates of one leg are. A candidate that
    only one leg knows (a chunk without a vector) takes that leg's scaled score for both, so it
    keeps its place among its like. Where some have no vector, the others' distances are scaled to
    the range that their own words span: of three chunks that were embedded on the way because they
    share most words with the question, the farthest is the worst of three, not of all.
    `dense_weight` is the share of the dense leg, [0, 1].

    References:
        Lee 1997 (CombSUM over normalised scores); measured against RRF in
        evaluation/reports/fusion.md.
    """
    lexical = min_max(candidates.bm25)
    dense = _within(min_max(-candidates.distance), lexical)
    fused = dense_weight * np.where(np.isnan(dense), lexical, dense) + (
        1 - dense_weight
    ) * np.where(np.isnan(lexical), dense, lexical)
    return np.nan_to_num(fused, nan=0.0)


def _within(scaled: Floats, other: Floats) -> Floats:
    """Scale a leg's known values to the other leg's range over the same candidates.

    For a leg that does not know all candidates.
    """
    both = ~np.isnan(scaled) & ~np.isnan(other)
    if both.all() or not both.any():
        return scaled
    low, high = float(other[both].min()), float(other[both].max())
    return low + (high - low) * scaled


def guarded_dense_weight(
    candidates: Candidates, words: QuestionWords, *, dense_weight: float, guard: float
) -> float:
    """Return the dense leg's share; larger if no candidate holds much wording.

    In [dense_weight, 1]. Min-max scaling makes the best BM25 a 1 even where it is that of a chance
    word. Its share falls in proportion once the best is under `guard` of what BM25 could give at
    most, `(k1 + 1) * sum of idf`; `guard` is in [0, 1], and 0 lets them count in full always.

    References:
        Robertson, Zaragoza: The Probabilistic Relevance Framework, 2009, section 3.4 (a term's
            weight saturates at
        `(k1 + 1) * idf`); the guard is ours, evaluation/reports/late.md.
    """
    known = candidates.bm25[~np.isnan(candidates.bm25)]
    most = guard * (_K1 + 1) * sum(words.weights.values())
    if not len(known) or most <= 0:
        return dense_weight
    return 1 - (1 - dense_weight) * min(1.0, float(known.max()) / most)


def reciprocal_rank_fusion(candidates: Candidates, *, k: int = 60) -> Floats:
    """Return the sum of reciprocal ranks over the two lists, in (0, 2 / (k + 1)].

    Args:
        candidates: Ranks as the legs returned them; completed signals do not count.
        k: Rank offset, in ranks; 60 is the value of the paper.

    Raises:
        ValueError: `k` is negative.

    References:
        Cormack, Clarke, Buettcher: Reciprocal Rank Fusion, SIGIR 2009.
    """
    if k < 0:
        raise ValueError(f"k must not be negative, got {k!r}")
    scores = np.zeros(len(candidates))
    for ranks in (candidates.dense_rank, candidates.lexical_rank):
        found = ranks > 0
        scores[found] += 1.0 / (k + ranks[found])
    return scores


def fuse(
    candidates: Candidates, fusion: Fusion, *, rrf_k: int = 60, dense_weight: float = 0.5
) -> Floats:
    """Return one score per candidate, higher is better.

    `dense` is the negated distance and `lexical` the BM25; chunks such a single leg knows nothing
    of come last, by the other leg, so that a library without vectors still answers.
    """
    if fusion == "rrf":
        return reciprocal_rank_fusion(candidates, k=rrf_k)
    if fusion == "dense":
        return _single(-candidates.distance, candidates.bm25)
    if fusion == "lexical":
        return _single(candidates.bm25, -candidates.distance)
    return relative_score(candidates, dense_weight=dense_weight)


def _single(values: Floats, others: Floats) -> Floats:
    """Return one leg's scores; unknown hits follow in the other leg's order.

    They are put below the worst known score.
    """
    unknown = np.isnan(values)
    if not unknown.any():
        return values
    worst = 0.0 if unknown.all() else float(values[~unknown].min())
    return np.where(unknown, worst - 2.0 + np.nan_to_num(min_max(others), nan=0.0), values)


def best_first(scores: Floats) -> Ints:
    """Return positions by descending score; ties keep their order."""
    return np.argsort(-scores, kind="stable")
