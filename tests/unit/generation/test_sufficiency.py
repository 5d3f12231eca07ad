from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.generation.quote.candidates import candidates
from app.generation.quote.choosing import choose, quote_budget
from app.generation.quote.quote_features import (
    SUFFICIENCY,
    Vectors,
    candidate_weights,
    feature_rows,
    sentence_vectors,
    sufficiency_row,
)
from app.generation.quote.quoting import ExtractiveGenerator, ExtractiveModel
from tests.fakes.embedders import HashEmbedder
from tests.fakes.encoders import HashEncoder
from tests.unit.generation.passages import evidence

ROLLO = (
    "The Duchy of Normandy was created in 911. Rollo was the first ruler of the duchy and was"
    " baptised in Rouen. His third son did not inherit the land. The castle is a stoneless ruin."
)


def judged(question: str, *texts: str) -> dict[str, float]:
    found = candidates(evidence(*texts))
    rows = feature_rows(question, found, candidate_weights(found), None)
    scores = rows @ ExtractiveModel.load().words_only.ranking
    chosen = choose(question, found, scores, quote_budget(question))
    return dict(
        zip(SUFFICIENCY, sufficiency_row(question, found, rows, scores, chosen, None), strict=True)
    )


PLAIN = "The duchy was created in 911. Rollo was its first ruler and was baptised in Rouen."


@pytest.mark.parametrize(
    ("question", "text", "undenied"),
    [
        ("Who was the first ruler of the duchy?", PLAIN, 0.0),
        ("Who was not the first ruler of the duchy?", PLAIN, 1.0),
        ("Where wasn't the first ruler baptised?", PLAIN, 1.0),
        ("Who was not the heir?", PLAIN + " His son was not the heir.", 0.0),
        ("Which engine has no piston?", "The Wankel is a pistonless engine.", 0.0),
        ("What does the agent want?", "The agent wants a different present.", 0.0),
    ],
)
def test_a_question_that_denies_wants_a_quote_that_does(
    question: str, text: str, undenied: float
) -> None:
    assert judged(question, text)["undenied"] == undenied


@pytest.mark.parametrize(
    ("question", "opposite"),
    [("Who was the last ruler of the duchy?", 1.0), ("Who was its first ruler?", 0.0)],
)
def test_the_opposite_of_an_asked_word_is_noticed(question: str, opposite: float) -> None:
    assert judged(question, PLAIN)["opposite"] == opposite


@pytest.mark.parametrize(
    ("question", "unnamed"),
    [
        ("Where was Rollo baptised?", 0.0),
        ("Where was Robert baptised?", 1.0),
        ("Was the Duchy of Normandy created in 911?", 0.0),
        ("Was the Duchy of Normandy created in 1066?", 1.0),
        ("Which land did the 3rd son inherit?", 0.0),
    ],
)
def test_names_and_numbers_stand_in_or_near_the_quote(question: str, unnamed: float) -> None:
    assert judged(question, ROLLO)["unnamed"] == unnamed


@pytest.mark.parametrize(("ruler_at", "unnamed"), [(1, 0.0), (2, 1.0)])
def test_a_name_two_sentences_from_the_quote_is_not_near_it(ruler_at: int, unnamed: float) -> None:
    quoted = "The ruler was baptised in Rouen."
    between = "Grain was sold at the weekly market." if ruler_at == 2 else ""
    found = candidates(evidence(f"{quoted} {between} Then Robert ruled the land."))
    question = "Where was Robert baptised?"
    rows = feature_rows(question, found, candidate_weights(found), None)
    scores = np.arange(len(found), 0, -1, dtype=np.float64)
    row = sufficiency_row(question, found, rows, scores, found[:1], None)
    assert row[SUFFICIENCY.index("unnamed")] == unnamed


def test_the_question_that_denies_is_refused_and_the_other_answered() -> None:
    answerer = ExtractiveGenerator()
    sure = answerer.select("Who was the first ruler of the duchy?", evidence(PLAIN))
    unsure = answerer.select("Who was never the first ruler of the duchy?", evidence(PLAIN))
    assert sure.chosen
    assert not unsure.chosen
    assert unsure.sufficiency < sure.sufficiency


FILMS = """Filmography

Year: 2003 | Film: The Lost Key | Role: Anna | Director: Paul Weber
Year: 2005 | Film: Winter Harbour | Role: Clara | Director: Ines Roth
Year: 2009 | Film: A Quiet Street | Role: Judge Marlow | Director: Paul Weber"""


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("What role did she play in Winter Harbour?", "Role: Clara"),
        ("Who directed A Quiet Street in 2009?", "Film: A Quiet Street"),
        ("Who directed A Quiet Street in 1999?", None),
        ("What role did she play in The Blue Door?", None),
    ],
)
def test_a_row_answers_what_it_names_and_nothing_else(question: str, row: str | None) -> None:
    chosen = ExtractiveGenerator().select(question, evidence(FILMS)).chosen
    assert [str(row) in one.text for one in chosen] == ([True] if row else [])


def test_one_set_of_weights_serves_every_encoder() -> None:
    question = "Who was the first ruler of the Duchy of Normandy?"
    by_hash = ExtractiveGenerator(HashEncoder(HashEmbedder())).select(question, evidence(ROLLO))
    assert by_hash.chosen
    assert 0.0 <= by_hash.sufficiency <= 1.0


@pytest.mark.parametrize(
    ("cosines", "row", "stands_out"),
    [
        ([0.8, 0.2, 0.4], 0, 0.5),
        ([0.4, 0.1, 0.2], 0, 0.5),  # another scale, the same place
        ([0.8, 0.2, 0.4], 2, 0.0),
        ([0.8, np.nan, 0.4], 1, 0.0),
        ([-0.1, -0.2], 0, 0.0),
    ],
)
def test_a_sentence_stands_out_by_its_place_among_the_others_on_any_scale(
    cosines: list[float], row: int, stands_out: float
) -> None:
    blank = np.zeros((len(cosines), 2), dtype=np.float32)
    vectors = Vectors(blank, blank[0], np.asarray(cosines), np.asarray(cosines))
    assert vectors.stands_out(row) == pytest.approx(stands_out)


@given(st.text(max_size=60), st.lists(st.text(max_size=300), max_size=3))
def test_signals_are_finite_for_any_text(question: str, texts: list[str]) -> None:
    found = candidates(evidence(*texts))
    weights = candidate_weights(found)
    vectors = sentence_vectors(question or "?", found, weights, HashEncoder(HashEmbedder()))
    rows = feature_rows(question, found, weights, vectors)
    if found:
        scores = rows.sum(axis=1)
        row = sufficiency_row(
            question, found, rows, scores, choose(question, found, scores) or found[:1], vectors
        )
        assert row.shape == (len(SUFFICIENCY),)
        assert np.isfinite(row).all()
