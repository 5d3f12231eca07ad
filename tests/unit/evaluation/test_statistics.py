"""The tests of the test: false alarms as often as promised, real gains found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from app.evaluation.metrics import LEVEL, bootstrap_interval, compare, holm, permutation_p, verdict


def _two_arms(
    n: int, seed: int
) -> tuple[
    np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.float64]]
]:
    """Per-question scores of two arms that really differ: many zeros and ones, as nDCG on passages has."""
    rng = np.random.default_rng(seed)
    grid = np.array([0.0, 0.387, 0.431, 0.5, 0.631, 1.0])
    one = rng.choice(grid, size=n, p=[0.08, 0.04, 0.06, 0.07, 0.15, 0.6])
    changed = rng.random(n) < 0.3
    two = np.where(changed, rng.choice(grid, size=n, p=[0.02, 0.04, 0.06, 0.08, 0.1, 0.7]), one)
    return one, two


def test_the_permutation_test_by_hand() -> None:
    """Of the 8 sign patterns of (3, 2, 1), two have a mean as extreme as all plus: p = 2 / 8."""
    assert permutation_p(np.array([3.0, 2.0, 1.0]), seed=1) == pytest.approx(0.25)
    assert permutation_p(np.zeros(5), seed=1) == 1.0
    assert permutation_p(np.array([0.4]), seed=1) == 1.0


def test_all_patterns_agree_with_the_exact_test() -> None:
    differences = np.array([0.3, -0.1, 0.2, 0.05, 0.4, -0.02])
    means = [
        np.mean(np.array(signs) * differences) for signs in itertools.product((1, -1), repeat=6)
    ]
    exact = np.mean([abs(mean) >= abs(differences.mean()) - 1e-12 for mean in means])
    assert permutation_p(differences, seed=3) == pytest.approx(float(exact))


def test_false_alarms_are_as_rare_as_promised() -> None:
    """1,000 seeds: labels of two different arms swapped at random per question, so no arm is better."""
    one, two = _two_arms(150, seed=5)
    differences = two - one
    rejected = 0
    for seed in range(1000):
        swapped = differences * np.random.default_rng(10_000 + seed).choice(
            [-1.0, 1.0], size=len(differences)
        )
        rejected += permutation_p(swapped, seed=seed, resamples=199) <= LEVEL
    low, high = stats.binom.interval(0.99, 1000, 0.05)
    assert low <= rejected <= high


def test_a_real_gain_is_found() -> None:
    """+0.03 injected at n = 500 is found at least nine times in ten."""
    found = 0
    for seed in range(60):
        one, two = _two_arms(500, seed=seed)
        differences = two - one
        found += (
            permutation_p(differences - differences.mean() + 0.03, seed=seed, resamples=499)
            <= LEVEL
        )
    assert found >= 54


def test_holm_by_hand() -> None:
    """Holm 1979: sorted p times m, m - 1, ..., never falling."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=10))
def test_holm_is_between_raw_and_bonferroni(p_values: list[float]) -> None:
    for raw, adjusted in zip(p_values, holm(p_values), strict=True):
        assert raw <= adjusted <= min(1.0, raw * len(p_values)) + 1e-12


def test_the_interval_covers_the_mean_and_is_reproducible() -> None:
    values = np.random.default_rng(1).normal(0.2, 1.0, 200)
    one, again = (
        bootstrap_interval(values, seed=9, resamples=500),
        bootstrap_interval(values, seed=9, resamples=500),
    )
    assert one == again
    assert one.low < one.mean < one.high
    width = 2 * 1.96 * values.std() / 200**0.5
    assert one.high - one.low == pytest.approx(width, rel=0.15)
    assert bootstrap_interval(np.ones(4), seed=1).low == 1.0
    with pytest.raises(ValueError, match="no questions"):
        bootstrap_interval(np.array([]), seed=1)


def test_compare_pairs_questions_and_says_what_it_means() -> None:
    rng = np.random.default_rng(2)
    base = {f"q{i}": float(v) for i, v in enumerate(rng.random(150))}
    better = {q: v + 0.1 + float(rng.normal(0, 0.05)) for q, v in base.items()}
    same = {q: v + float(rng.normal(0, 0.05)) for q, v in base.items()}
    found = {
        c.arm: c
        for c in compare(
            "base", {"base": base, "better": better, "same": same}, seed=4, resamples=999
        )
    }
    assert found["better"].significant
    assert found["better"].verdict.startswith("better than base by 0.095 (95 % interval +0.0")
    assert not found["same"].significant
    assert found["same"].verdict == "cannot tell it from base at n = 150"
    assert found["same"].p_holm >= found["same"].p


def test_compare_refuses_what_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="no arm 'x'"):
        compare("x", {"a": {"q": 1.0}}, seed=1)
    with pytest.raises(ValueError, match="shares no question"):
        compare("a", {"a": {"q": 1.0}, "b": {"r": 1.0}}, seed=1)


def test_a_loss_is_called_a_loss() -> None:
    interval = bootstrap_interval(np.array([-0.2, -0.1, -0.15, -0.12]), seed=1, resamples=200)
    assert verdict(interval, 0.01, 4, "rrf").startswith("worse than rrf by 0.143")


@pytest.mark.parametrize("n", [2, 7, 150])
def test_the_bootstrap_is_that_of_scipy(n: int) -> None:
    values = np.random.default_rng(n).normal(0.2, 1.0, n)
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=1_200,
        batch=500,
        method="percentile",
        rng=np.random.default_rng(3),
    ).confidence_interval
    ours = bootstrap_interval(values, seed=3, resamples=1_200)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
