"""Cutoff, bands, confidence of the plain arm."""

from __future__ import annotations

import math

import pytest

from app.core.types import Filters, Fusion, Library, Mode
from app.retrieval.request import RetrievalOptions
from app.retrieval.scoring import (
    MOST_CONFIDENT,
    Reading,
    band,
    closeness,
    confidence,
    distance_threshold,
    loosened,
    passes,
)
from tests.stores import passage

_OPTIONS = RetrievalOptions(
    relevance_threshold=0.6, public_relevance_threshold=0.7, compare_slack=0.05
)


def _reading(distance: float, overlap: float = 0.0) -> Reading:
    return Reading(passage("text"), frozenset({"text"}), 1.0, distance=distance, overlap=overlap)


def test_each_library_has_its_threshold_and_compare_its_slack() -> None:
    assert distance_threshold(_OPTIONS, Library.PAPERS) == 0.6
    assert distance_threshold(_OPTIONS, Library.PUBLIC) == 0.7
    comparing = loosened(_OPTIONS, "compare", None)
    assert distance_threshold(comparing, Library.PAPERS) == pytest.approx(0.65)


def _passes(
    reading: Reading,
    fusion: Fusion = "relative_score",
    mode: Mode = "general",
    filters: Filters | None = None,
) -> bool:
    return passes(reading, fusion, Library.PAPERS, loosened(_OPTIONS, mode, filters))


def test_what_a_chosen_document_says_is_left_to_the_quote() -> None:
    chosen, labelled = Filters(doc_ids=("rye",)), Filters(tags=("bread",))
    assert _passes(_reading(0.8, overlap=0.25), filters=chosen)
    assert not _passes(_reading(0.8, overlap=0.25), filters=labelled)
    assert not _passes(_reading(0.9, overlap=0.2), filters=chosen)


def test_closeness_is_the_mean_of_meaning_and_words() -> None:
    assert closeness(0.5, 0.25) == 0.375
    assert closeness(math.nan, 0.25) == 0.25


def test_a_strong_lexical_hit_is_not_lost_to_a_distance() -> None:
    assert _passes(_reading(0.9, overlap=0.8))
    assert not _passes(_reading(0.9, overlap=0.8), "dense")
    assert _passes(_reading(0.4, overlap=0.2))
    assert not _passes(_reading(0.62, overlap=0.3))
    assert _passes(_reading(0.62, overlap=0.3), mode="compare")


def test_the_plain_arm_asks_for_the_distance_alone() -> None:
    assert _passes(_reading(0.59), "dense")
    assert not _passes(_reading(0.6, overlap=1.0), "dense")
    assert _passes(_reading(0.62), "dense", "compare")
    assert not _passes(_reading(math.nan, overlap=1.0), "dense")


def test_without_a_vector_half_of_the_words_decide() -> None:
    assert _passes(_reading(math.nan, overlap=0.5))
    assert not _passes(_reading(math.nan, overlap=0.48))
    assert _passes(_reading(math.nan, overlap=0.48), mode="compare")


@pytest.mark.parametrize(
    ("distance", "overlap", "passed", "expected"),
    [
        (0.4, 0.0, True, "strong"),
        (0.5, 0.0, True, "partial"),
        (0.65, 0.0, True, "partial"),
        (0.7, 0.0, True, "weak"),
        (0.9, 0.9, True, "weak"),
        (0.4, 0.0, False, "weak"),
        (math.nan, 0.9, True, "partial"),
    ],
)
def test_bands(distance: float, overlap: float, passed: bool, expected: str) -> None:
    assert band(_reading(distance, overlap), _OPTIONS, passed=passed) == expected


def test_confidence_of_the_plain_arm_is_the_mean_closeness() -> None:
    def found(readings: list[Reading]) -> float:
        return confidence(readings, "dense", _OPTIONS)

    assert found([_reading(0.2), _reading(0.4)]) == pytest.approx(0.7)
    assert found([_reading(1.8)]) == 0.0
    assert found([_reading(0.0)]) == MOST_CONFIDENT
    assert found([]) == 0.0
    assert found([_reading(math.nan), _reading(0.5)]) == 0.5
    assert found([_reading(math.nan)]) == 0.0


def test_confidence_follows_the_closest_passage() -> None:
    def found(*readings: Reading) -> float:
        return confidence(readings, "relative_score", _OPTIONS)

    middle = _OPTIONS.confidence_midpoint
    assert found(_reading(1 - middle, overlap=middle)) == pytest.approx(0.5)
    assert found(_reading(0.3, overlap=0.9)) == MOST_CONFIDENT
    assert found(_reading(0.9, overlap=0.1)) < 0.01
    assert found(_reading(0.9), _reading(0.3, overlap=0.9)) == found(_reading(0.3, overlap=0.9))
    assert found() == 0.0
