"""Measures against values computed by hand."""

from __future__ import annotations

import math

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from app.evaluation.metrics import (
    MEASURES,
    grounded,
    overlap_with,
    per_question,
    percentile,
    permutation_p,
)
from evaluation.lib.fits import area_under_curve

RELEVANCE = {"q1": {"a": 1, "b": 1}, "q2": {"c": 1}}


def test_trec_measures_by_hand() -> None:
    found = per_question({"q1": ["x", "a", "b"], "q2": ["c"], "unjudged": ["a"]}, RELEVANCE)
    gain = 1 / math.log2(3) + 1 / math.log2(4)
    assert found["nDCG@10"]["q1"] == pytest.approx(gain / (1 + 1 / math.log2(3)))
    assert found["nDCG@10"]["q2"] == 1.0
    assert found["RR"]["q1"] == 0.5
    assert found["P@5"]["q1"] == pytest.approx(0.4)
    assert found["R@10"]["q1"] == 1.0
    assert found["AP"]["q1"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert set(found["RR"]) == {"q1", "q2"}


def test_nothing_found_scores_nothing() -> None:
    found = per_question({"q1": [], "q2": ["x"]}, RELEVANCE)
    assert found["nDCG@10"] == {"q1": 0.0, "q2": 0.0}


def test_order_decides_not_ids() -> None:
    """trec_eval breaks ties by id; our scores never tie."""
    one = per_question({"q2": ["z", "c"]}, RELEVANCE)["RR"]["q2"]
    two = per_question({"q2": ["a", "c"]}, RELEVANCE)["RR"]["q2"]
    assert one == two == 0.5


def test_a_passage_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="lists a passage twice"):
        per_question({"q1": ["a", "a"]}, RELEVANCE)


def test_grounded_and_overlap() -> None:
    assert grounded(["The duke was ROLLO."], ["rollo", "william"])
    assert not grounded(["The duke was Rollo."], ["Harald"])
    assert overlap_with(["a", "b", "c"], ["b", "c", "d"]) == 0.5
    assert overlap_with([], []) == 1.0


def test_percentiles() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([], 0.5) == 0.0


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=8),
    st.lists(st.integers(0, 5), min_size=1, max_size=8),
)
def test_the_area_is_the_share_of_pairs_won(positives: list[int], negatives: list[int]) -> None:
    won = sum((p > n) + 0.5 * (p == n) for p in positives for n in negatives)
    expected = won / (len(positives) * len(negatives))
    assert area_under_curve(
        [float(p) for p in positives], [float(n) for n in negatives]
    ) == pytest.approx(expected)


def test_the_area_needs_both_sides() -> None:
    with pytest.raises(ValueError, match="positives and negatives"):
        area_under_curve([], [1.0])


@given(
    st.dictionaries(st.sampled_from("abcdefghijklmnop"), st.integers(-1, 3), min_size=1),
    st.permutations("abcdefghijklmnopqrst"),
    st.integers(0, 20),
)
def test_measures_are_those_of_trec_eval(
    grades: dict[str, int], order: list[str], length: int
) -> None:
    names = (*MEASURES, "nDCG@3", "P@1", "R@2")
    ranking = order[:length]
    ours = per_question({"q": ranking}, {"q": grades}, names)
    qrels = [ir_measures.Qrel("q", passage, grade) for passage, grade in grades.items()]
    scored = [
        ir_measures.ScoredDoc("q", passage, -float(rank)) for rank, passage in enumerate(ranking)
    ]
    theirs = dict.fromkeys(names, 0.0)
    parsed = {ir_measures.parse_measure(name): name for name in names}
    for value in ir_measures.iter_calc(list(parsed), qrels, scored):
        theirs[parsed[value.measure]] = value.value
    assert {name: ours[name]["q"] for name in names} == pytest.approx(theirs)


def test_an_unknown_measure_is_named() -> None:
    with pytest.raises(ValueError, match="no measure 'P@five'"):
        per_question({"q1": ["a"]}, RELEVANCE, ["P@five"])


@pytest.mark.parametrize("n", [2, 5, 8, 13, 40])
def test_the_permutation_test_agrees_with_scipy(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.3, 1.0, n).round(2)
    theirs = stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=10_000,
        rng=np.random.default_rng(1),
    ).pvalue
    assert permutation_p(differences, seed=1) == pytest.approx(
        theirs, abs=0.02 if 2**n > 10_000 else 1e-12
    )
