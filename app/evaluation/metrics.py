"""Measure rankings as trec_eval does, and what users see of a result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

MEASURES = ("nDCG@10", "P@5", "R@10", "RR", "AP")
"""The report's measures; RR is the reciprocal rank, AP the average precision."""

Ranking = Sequence[str]
"""Passage ids, best first, each once."""


def per_question(
    rankings: Mapping[str, Ranking],
    relevance: Mapping[str, Mapping[str, int]],
    measures: Sequence[str] = MEASURES,
) -> dict[str, dict[str, float]]:
    """Return each measure of each question: `measure -> question -> value`, [0, 1].

    Args:
        rankings: Best first by question; an empty one scores 0.
        relevance: Judgements by question, relevant from grade 1; questions without any are left
            out.
        measures: RR or AP, or nDCG, P or R with a cutoff, like `P@5`.

    Raises:
        ValueError: A ranking lists a passage twice, or a measure is not one of these.

    References:
        trec_eval 9.0 (NIST): m_ndcg_cut.c, m_P.c, m_recall.c, m_recip_rank.c, m_map.c. A test
        compares each with ir-measures over trec_eval's own code.
    """
    for question, ranking in rankings.items():
        if len(set(ranking)) != len(ranking):
            raise ValueError(f"the ranking of question {question!r} lists a passage twice")
    judged = {question: relevance[question] for question in rankings if relevance.get(question)}
    return {
        measure: {
            question: _value(measure, rankings[question], grades)
            for question, grades in judged.items()
        }
        for measure in measures
    }


def _value(measure: str, ranking: Ranking, grades: Mapping[str, int]) -> float:
    """Return one measure of one ranking."""
    name, _, depth = measure.partition("@")
    gains = [max(0, grades.get(passage, 0)) for passage in ranking]
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    if not ideal:
        return 0.0
    match name, depth:
        case "RR", "":
            return next((1 / rank for rank, gain in enumerate(gains, start=1) if gain), 0.0)
        case "AP", "":
            ranks = [rank for rank, gain in enumerate(gains, start=1) if gain]
            return sum(found / rank for found, rank in enumerate(ranks, start=1)) / len(ideal)
        case "P", cutoff if cutoff.isdecimal():
            return sum(gain > 0 for gain in gains[: int(cutoff)]) / int(cutoff)
        case "R", cutoff if cutoff.isdecimal():
            return sum(gain > 0 for gain in gains[: int(cutoff)]) / len(ideal)
        case "nDCG", cutoff if cutoff.isdecimal():
            return _discounted(gains[: int(cutoff)]) / _discounted(ideal[: int(cutoff)])
        case _:
            raise ValueError(f"no measure {measure!r}; there are RR, AP and nDCG@k, P@k, R@k")


def _discounted(gains: Sequence[int]) -> float:
    """Return the discounted cumulative gain (Jarvelin, Kekalainen, TOIS 2002).

    Cumulated gain-based evaluation of IR techniques.
    """
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def grounded(texts: Sequence[str], expected: Sequence[str]) -> bool:
    """Return whether any passage contains an expected string, ignoring case."""
    lowered = [text.casefold() for text in texts]
    return any(part.casefold() in text for part in expected for text in lowered)


def overlap_with(ranking: Ranking, other: Ranking) -> float:
    """Return the Jaccard similarity of two rankings as sets, [0, 1]; 1 if empty."""
    one, two = set(ranking), set(other)
    return len(one & two) / len(one | two) if one | two else 1.0


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0..1) of the values lie, interpolated.

    0 without values.
    """
    return float(np.quantile(np.asarray(values, dtype=np.float64), share)) if values else 0.0


def area_under_curve(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """Return the probability that a positive outscores a negative; ties count half.

    This is the area under the ROC curve.

    Raises:
        ValueError: One side is empty.

    References:
        Mann, Whitney 1947; Hanley, McNeil: The meaning and use of the area under a ROC curve,
        Radiology 1982.
    """
    if not positives or not negatives:
        raise ValueError("the area under the curve needs positives and negatives")
    ordered = np.sort(np.asarray(negatives, dtype=np.float64))
    below = np.searchsorted(ordered, positives, side="left")
    not_above = np.searchsorted(ordered, positives, side="right")
    return float((below + not_above).mean() / (2 * len(ordered)))
