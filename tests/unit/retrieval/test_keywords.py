"""Idf-weighted overlap."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.types import Library
from app.retrieval.keywords import coverage, inverse_document_frequency, question_weights
from tests.fakes.indexes import MemoryCatalog, TextbookBM25
from tests.fakes.retrievers import passage


def test_idf_by_hand() -> None:
    assert inverse_document_frequency(10, 3) == pytest.approx(math.log(1 + 7.5 / 3.5))


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_idf_is_positive_and_falls_with_frequency(chunks: int, frequency: int) -> None:
    assert inverse_document_frequency(chunks, frequency) > 0
    assert inverse_document_frequency(chunks, frequency) >= inverse_document_frequency(chunks, frequency + 1)


def test_question_words_do_not_count() -> None:
    lexical = TextbookBM25(MemoryCatalog([passage("Dukes of Normandy", key="a"), passage("The river Seine", key="b")]))
    weights = question_weights(lexical, Library.PAPERS, "Who was the duke of Normandy?")
    assert set(weights) == {"duke", "normandi"}


def test_a_question_of_function_words_keeps_them() -> None:
    lexical = TextbookBM25(MemoryCatalog([passage("The Who are a band", key="a")]))
    assert set(question_weights(lexical, Library.PAPERS, "The Who")) == {"the", "who"}
    assert question_weights(lexical, Library.PAPERS, "?!") == {}


def test_rare_words_weigh_more() -> None:
    weights = {"rare": 3.0, "common": 1.0}
    assert coverage(weights, {"rare"}) == 0.75
    assert coverage(weights, {"common"}) == 0.25
    assert coverage({}, {"rare"}) == 0.0


@given(st.dictionaries(st.text(max_size=3), st.floats(0.1, 10), max_size=8), st.frozensets(st.text(max_size=3)))
def test_coverage_is_a_share(weights: dict[str, float], tokens: frozenset[str]) -> None:
    assert 0 <= coverage(weights, tokens) <= 1.0 + 1e-12
    assert coverage(weights, tokens) <= coverage(weights, tokens | set(weights)) + 1e-12
