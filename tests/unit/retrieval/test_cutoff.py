"""Cutoff, bands, confidence of the plain arm."""

from __future__ import annotations

import math

import pytest

from app.core.types import Library
from app.retrieval.cutoff import band, distance_threshold, mean_closeness, passes
from app.retrieval.options import RetrievalOptions
from app.retrieval.reading import Reading
from tests.fakes.retrievers import passage

_OPTIONS = RetrievalOptions(relevance_threshold=0.6, public_relevance_threshold=0.7, compare_slack=0.05)


def _reading(distance: float, overlap: float = 0.0) -> Reading:
    return Reading(passage("text"), frozenset({"text"}), 1.0, distance=distance, overlap=overlap)


def test_each_library_has_its_threshold_and_compare_its_slack() -> None:
    assert distance_threshold(_OPTIONS, Library.PAPERS, "general") == 0.6
    assert distance_threshold(_OPTIONS, Library.PUBLIC, "general") == 0.7
    assert distance_threshold(_OPTIONS, Library.PAPERS, "compare") == pytest.approx(0.65)


def test_a_strong_lexical_hit_is_not_lost_to_a_distance() -> None:
    far_but_worded = _reading(0.9, overlap=0.8)
    assert passes(far_but_worded, "relative_score", 0.65, 0.5)
    assert not passes(far_but_worded, "dense", 0.65, 0.5)
    assert passes(_reading(0.64), "dense", 0.65, 0.5)
    assert not passes(_reading(0.65), "dense", 0.65, 0.5)
    assert passes(_reading(math.nan, overlap=0.5), "relative_score", 0.65, 0.5)
    assert not passes(_reading(math.nan, overlap=0.4), "relative_score", 0.65, 0.5)


@pytest.mark.parametrize(
    ("distance", "overlap", "passed", "expected"),
    [
        (0.4, 0.0, True, "strong"),
        (0.5, 0.0, True, "partial"),
        (0.65, 0.0, True, "partial"),
        (0.7, 0.0, True, "weak"),
        (0.9, 0.9, True, "partial"),
        (0.4, 0.0, False, "weak"),
        (math.nan, 0.9, True, "partial"),
    ],
)
def test_bands(distance: float, overlap: float, passed: bool, expected: str) -> None:
    assert band(_reading(distance, overlap), _OPTIONS, passed=passed) == expected


def test_confidence_of_the_plain_arm_is_the_mean_closeness() -> None:
    assert mean_closeness([_reading(0.2), _reading(0.4)]) == pytest.approx(0.7)
    assert mean_closeness([_reading(1.8)]) == 0.0
    assert mean_closeness([]) == 0.0
    assert mean_closeness([_reading(math.nan), _reading(0.5)]) == 0.5
