"""What a ranking is worth: TREC measures by ir-measures, and what users see beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

MEASURES = ("nDCG@10", "P@5", "R@10", "RR", "AP")
"""The report's measures by their ir-measures names; RR is the reciprocal rank, AP the average precision."""

Ranking = Sequence[str]
"""Passage ids, best first, each once."""


def per_question(
    rankings: Mapping[str, Ranking], relevance: Mapping[str, Mapping[str, int]], measures: Sequence[str] = MEASURES
) -> dict[str, dict[str, float]]:
    """Return each measure of each question, as `measure -> question -> value` in [0, 1].

    Args:
        rankings: Best first by question; an empty one scores 0.
        relevance: Judgements by question; questions without any are left out.
        measures: Names that ir-measures knows.

    Raises:
        ValueError: A ranking lists a passage twice.

    References:
        MacAvaney, Macdonald, Ounis: Streamlining evaluation with ir-measures, ECIR 2022, over pytrec_eval (trec_eval's own code).
    """
    import ir_measures  # noqa: PLC0415 - the eval extra

    qrels, run = [], []
    for question, ranking in rankings.items():
        if len(set(ranking)) != len(ranking):
            raise ValueError(f"the ranking of question {question!r} lists a passage twice")
        judged = relevance.get(question)
        if not judged:
            continue
        qrels += [ir_measures.Qrel(question, passage, grade) for passage, grade in judged.items()]
        # trec_eval sorts by score and breaks ties by id: falling scores keep our order
        run += [ir_measures.ScoredDoc(question, passage, -float(rank)) for rank, passage in enumerate(ranking)]
    found: dict[str, dict[str, float]] = {measure: {} for measure in measures}
    parsed = {ir_measures.parse_measure(measure): measure for measure in measures}
    for value in ir_measures.iter_calc(list(parsed), qrels, run):
        found[parsed[value.measure]][value.query_id] = float(value.value)
    asked = {qrel.query_id for qrel in qrels}
    return {measure: {q: values.get(q, 0.0) for q in rankings if q in asked} for measure, values in found.items()}


def grounded(texts: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether any expected string stands in any of the passages, letter case aside."""
    lowered = [text.casefold() for text in texts]
    return any(part.casefold() in text for part in expected for text in lowered)


def overlap_with(ranking: Ranking, other: Ranking) -> float:
    """Return the Jaccard similarity of two rankings as sets, in [0, 1]; two empty ones are alike."""
    one, two = set(ranking), set(other)
    return len(one & two) / len(one | two) if one | two else 1.0


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0..1) of the values lie, interpolated; 0 without values."""
    return float(np.quantile(np.asarray(values, dtype=np.float64), share)) if values else 0.0


def area_under_curve(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """Return the probability that a positive outscores a negative, ties counting half: the area under the ROC curve.

    Raises:
        ValueError: One side is empty.

    References:
        Mann, Whitney 1947; Hanley, McNeil: The meaning and use of the area under a ROC curve, Radiology 1982.
    """
    if not positives or not negatives:
        raise ValueError("the area under the curve needs positives and negatives")
    ordered = np.sort(np.asarray(negatives, dtype=np.float64))
    below = np.searchsorted(ordered, positives, side="left")
    not_above = np.searchsorted(ordered, positives, side="right")
    return float((below + not_above).mean() / (2 * len(ordered)))
