"""Measure rankings as trec_eval does, and what users see of a result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
    """Return the discounted cumulative gain (Jarvelin, Kekalainen, TOIS 2002)."""
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
    """Return the interpolated value below which `share` (0..1) of the values lie; 0 without any."""
    return float(np.quantile(np.asarray(values, dtype=np.float64), share)) if values else 0.0


# Test whether arms differ, and by how much: paired intervals and tests.

RESAMPLES = 10_000
"""Bootstrap and permutation resamples of a report; p-values are then exact to about 0.002 at
0.05."""

LEVEL = 0.05
"""Family-wise error rate of a verdict."""

_BATCH = 500  # resamples held in memory at once: 500 x 5,000 questions are 20 MB

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ReportComparison:
    """One arm against the baseline, question by question."""

    arm: str
    baseline: str
    n: int
    """Questions that both answered."""
    difference: Interval
    """Arm minus baseline, in units of the measure."""
    p: float
    """Two-sided, paired permutation test, before correction."""
    p_holm: float
    """After Holm's correction over all arms compared at once."""
    verdict: str
    """One sentence that says what may be concluded."""

    @property
    def significant(self) -> bool:
        """Return whether the arms differ at the family-wise level."""
        return self.p_holm <= LEVEL


def bootstrap_interval(values: Values, *, seed: int, resamples: int = RESAMPLES) -> Interval:
    """Return the mean and its percentile bootstrap interval at 95 %.

    `values` are float64 `[n]`, one per question; for a paired interval, the differences.

    Raises:
        ValueError: `values` is empty.

    References:
        Efron, Tibshirani: An Introduction to the Bootstrap, 1993, chapter 13.
        Sakai: Evaluating evaluation metrics based on the bootstrap, SIGIR 2006.
    """
    if len(values) == 0:
        raise ValueError("no questions to resample; the collection has none with a judged passage")
    mean = float(values.mean())
    if len(values) == 1 or np.ptp(values) == 0:
        return Interval(mean, mean, mean)
    rng = np.random.default_rng(seed)
    means = [
        values[
            rng.integers(0, len(values), size=(min(_BATCH, resamples - start), len(values)))
        ].mean(axis=1)
        for start in range(0, resamples, _BATCH)
    ]
    low, high = np.percentile(np.concatenate(means), (2.5, 97.5))
    return Interval(mean, float(low), float(high))


def permutation_p(differences: Values, *, seed: int, resamples: int = RESAMPLES) -> float:
    """Return a paired permutation test's two-sided p-value, in (0, 1]; 1 when none differs.

    Signs of the differences (arm minus baseline per question, float64 `[n]`) are flipped at random;
    all patterns are tried when there are no more than `resamples`.

    References:
        Fisher: The Design of Experiments, 1935, section 21.
        Smucker, Allan, Carterette: A comparison of statistical significance tests for IR
            evaluation, CIKM 2007.
    """
    n = len(differences)
    if n < 2:  # no difference, or two sign patterns that are equally extreme
        return 1.0
    if not differences.any():
        return 1.0
    observed = abs(float(differences.sum()))
    slack = 1e-12 * float(
        np.abs(differences).sum()
    )  # sums in another order must not count as smaller
    exact = n < 63 and 2**n <= resamples
    total = 2**n if exact else resamples
    rng = np.random.default_rng(seed)
    extreme = 0
    for start in range(0, total, _BATCH):
        size = min(_BATCH, total - start)
        every = np.arange(start, start + size)[:, None] >> np.arange(n) & 1
        bits = every if exact else rng.integers(0, 2, size=(size, n))
        sums = (1 - 2 * bits) @ differences
        extreme += int(np.count_nonzero(np.abs(sums) >= observed - slack))
    return extreme / total if exact else (extreme + 1) / (total + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for family-wise error, in the given order.

    References:
        Holm: A simple sequentially rejective multiple test procedure, Scandinavian Journal of
            Statistics 6, 1979.
    """
    count = len(p_values)
    adjusted = [0.0] * count
    highest = 0.0
    for place, row in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (count - place) * p_values[row]))
        adjusted[row] = highest
    return adjusted


def compare(
    baseline: str,
    scores: Mapping[str, Mapping[str, float]],
    *,
    seed: int,
    resamples: int = RESAMPLES,
) -> tuple[ReportComparison, ...]:
    """Compare every other arm with the baseline, question by question.

    Args:
        baseline: A key of `scores`.
        scores: Per arm, one value per question id; questions missing from either side are left out
            of that pair.
        seed: Of all resampling; the same seed gives the same report.
        resamples: Of intervals and tests.

    Raises:
        ValueError: The baseline is not among the arms, or an arm shares no question with it.
    """
    if baseline not in scores:
        raise ValueError(
            f"no arm {baseline!r} to compare with; there are {', '.join(map(repr, scores))}"
        )
    reference = scores[baseline]
    rows: list[tuple[str, Values]] = []
    for arm, values in scores.items():
        if arm == baseline:
            continue
        shared = [question for question in reference if question in values]
        if not shared:
            raise ValueError(f"arm {arm!r} shares no question with {baseline!r}")
        rows.append((arm, np.array([values[q] - reference[q] for q in shared], dtype=np.float64)))
    raw = [permutation_p(differences, seed=seed, resamples=resamples) for _, differences in rows]
    found = []
    for (arm, differences), p, p_holm in zip(rows, raw, holm(raw), strict=True):
        interval = bootstrap_interval(differences, seed=seed, resamples=resamples)
        found.append(
            ReportComparison(
                arm,
                baseline,
                len(differences),
                interval,
                p,
                p_holm,
                verdict(interval, p_holm, len(differences), baseline),
            )
        )
    return tuple(found)


def verdict(difference: Interval, p_holm: float, n: int, baseline: str) -> str:
    """Say in one sentence what a comparison shows."""
    if p_holm > LEVEL:
        return f"cannot tell it from {baseline} at n = {n}"
    word = "better" if difference.mean > 0 else "worse"
    bounds = f"95 % interval {difference.low:+.3f} to {difference.high:+.3f}"
    return f"{word} than {baseline} by {abs(difference.mean):.3f} ({bounds}, n = {n})"
