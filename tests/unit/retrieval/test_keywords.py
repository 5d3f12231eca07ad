"""Idf-weighted overlap."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.types import Library
from app.retrieval.candidates import QuestionWords, inverse_document_frequency, question_words
from app.storage.words.port import LibraryWords
from tests.stores import passage, shelved


def test_idf_by_hand() -> None:
    assert inverse_document_frequency(10, 3) == pytest.approx(math.log(1 + 7.5 / 3.5))


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_idf_is_positive_and_falls_with_frequency(chunks: int, frequency: int) -> None:
    assert inverse_document_frequency(chunks, frequency) > 0
    assert inverse_document_frequency(chunks, frequency) >= inverse_document_frequency(
        chunks, frequency + 1
    )


@pytest.fixture
def lexical() -> LibraryWords:
    return shelved(
        passage("Dukes of Normandy", key="a"), passage("The river Seine", key="b")
    ).lexical


def test_question_words_do_not_count(lexical: LibraryWords) -> None:
    words = question_words(lexical, Library.PAPERS, "Who was the duke of Normandy?")
    assert set(words.weights) == {"duke", "normandi"}
    assert set(words.pairs) == {
        ("who", "was"),
        ("was", "the"),
        ("the", "duke"),
        ("duke", "of"),
        ("of", "normandi"),
    }


def test_a_question_of_function_words_keeps_them(lexical: LibraryWords) -> None:
    assert set(question_words(lexical, Library.PAPERS, "The Who").weights) == {"the", "who"}
    assert question_words(lexical, Library.PAPERS, "?!") == QuestionWords({}, {})


def test_rare_words_weigh_more() -> None:
    words = QuestionWords({"rare": 3.0, "common": 1.0}, {})
    assert words.coverage({"rare"}) == 0.75
    assert words.coverage({"common"}) == 0.25
    assert words.coverage({"common"}, ["rare"]) == 1.0, "what stands in the title counts"
    assert words.coverage({"common"}, ["common"]) == 0.25, "but once"
    assert QuestionWords({}, {}).coverage({"rare"}) == 0.0


def test_pairs_must_stand_side_by_side_in_order() -> None:
    words = QuestionWords({}, {("black", "hole"): 3.0, ("of", "the"): 1.0})
    assert words.adjacency(["a", "black", "hole"], {"a", "black", "hole"}) == 0.75
    assert words.adjacency(["hole", "black"], {"hole", "black"}) == 0.0
    assert words.adjacency(["black", "old", "hole"], {"black", "old", "hole"}) == 0.0
    assert QuestionWords({}, {}).adjacency(["black", "hole"], {"black", "hole"}) == 0.0


_TOKENS = st.lists(st.sampled_from("abcde"), max_size=8)


@given(
    st.dictionaries(st.text(max_size=3), st.floats(0.1, 10), max_size=8),
    st.frozensets(st.text(max_size=3)),
)
def test_coverage_is_a_share(weights: dict[str, float], tokens: frozenset[str]) -> None:
    words = QuestionWords(weights, {})
    assert 0 <= words.coverage(tokens) <= 1.0 + 1e-12
    assert words.coverage(tokens) <= words.coverage(tokens | set(weights)) + 1e-12


@given(_TOKENS, _TOKENS)
def test_adjacency_is_a_share_and_whole_for_the_question_itself(
    question: list[str], text: list[str]
) -> None:
    words = QuestionWords({}, dict.fromkeys(pairwise(question), 1.5))
    assert 0 <= words.adjacency(text, set(text)) <= 1.0
    if words.pairs:
        assert words.adjacency([*text, *question], set(text) | set(question)) == 1.0
