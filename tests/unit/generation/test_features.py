from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.generation.quote.candidates import candidates, one_line
from app.generation.quote.quote_features import (
    FEATURES,
    MAX_EMBEDDED,
    candidate_weights,
    feature_rows,
    question_kinds,
    sentence_vectors,
)
from tests.fakes.embedders import HashEmbedder
from tests.fakes.encoders import HashEncoder
from tests.unit.generation.passages import evidence

NORMANS = (
    "Normans\n\nThe Normans came from Norse raiders [3]. Their leader Rollo swore fealty\nto King"
    " Charles III in the year 911,"
    " be-\n"
    "cause he wanted land. Who was Rollo? He died in 930. and the chunk ends in the mid"
)


def column(question: str, name: str, encoder: HashEncoder | None = None) -> list[float]:
    found = candidates(evidence(NORMANS))
    weights = candidate_weights(found)
    vectors = sentence_vectors(question, found, weights, encoder)
    values: list[float] = feature_rows(question, found, weights, vectors)[
        :, FEATURES.index(name)
    ].tolist()
    return values


def test_candidates_are_sentences_as_they_read() -> None:
    found = candidates(evidence(NORMANS))
    assert [candidate.text for candidate in found] == [
        "The Normans came from Norse raiders.",
        "Their leader Rollo swore fealty to King Charles III in the year 911, because he wanted"
        " land.",
        "He died in 930. and the chunk ends in the mid",
    ]
    assert [candidate.whole for candidate in found] == [True, True, False]
    assert [candidate.points_back for candidate in found] == [False, True, True]
    assert all(NORMANS[c.start : c.end].startswith(c.text[:3]) for c in found)


def test_one_line_leaves_out_what_the_page_put_in() -> None:
    assert (
        one_line("\u2022 as shown [12, 13] by exam-\nples\n of it [4].")
        == "as shown by examples of it."
    )


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("When did Rollo die?", {"time"}),
        ("How many raiders came?", {"number"}),
        ("Who was their leader?", {"name"}),
        ("Why did he swear?", {"reason"}),
        ("In what year and where did he die?", {"time", "name"}),
        ("Describe the Normans", set()),
    ],
)
def test_kinds_of_answers(question: str, kinds: set[str]) -> None:
    assert question_kinds(question) == kinds


def test_an_answer_of_the_asked_kind_is_one_that_the_question_does_not_name() -> None:
    assert column("When did Rollo swear?", "time") == [0, 1, 1]
    assert column("In what year 911 did he swear?", "time") == [0, 0, 1]
    assert column("Who came from raiders?", "name") == [1, 1, 0]
    assert column("Why did Rollo swear fealty?", "reason") == [0, 1, 0]


def test_coverage_and_pairs_by_hand() -> None:
    assert column("Norse raiders", "coverage") == [1, 0, 0]
    assert column("Norse raiders", "pairs") == [1, 0, 0]
    assert column("Norse raiders", "coverage_rank") == [0, -1, -1]
    assert column("Norse raiders", "coverage_around") == [1, 1, 0]


def test_without_an_embedder_similarities_are_nothing() -> None:
    assert column("Norse raiders", "similarity") == [0, 0, 0]
    near = column("Norse raiders", "similarity", HashEncoder(HashEmbedder()))
    assert near[0] == max(near)


def test_no_more_sentences_are_embedded_than_the_time_allows() -> None:
    embedder = HashEmbedder()
    found = candidates(
        evidence(" ".join(f"Raider number {i} came from Norway." for i in range(60)))
    )
    vectors = sentence_vectors(
        "Who came from Norway?", found, candidate_weights(found), HashEncoder(embedder)
    )
    assert vectors is not None
    assert len(embedder.embedded) == MAX_EMBEDDED == int((~np.isnan(vectors.cosines)).sum())


@given(st.text(max_size=60), st.lists(st.text(max_size=300), max_size=3))
def test_features_are_finite_whatever_is_asked(question: str, texts: list[str]) -> None:
    found = candidates(evidence(*texts))
    weights = candidate_weights(found)
    vectors = sentence_vectors(question or "?", found, weights, HashEncoder(HashEmbedder()))
    rows = feature_rows(question, found, weights, vectors)
    assert rows.shape == (len(found), len(FEATURES))
    assert np.isfinite(rows).all()
