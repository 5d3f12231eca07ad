"""A sentence brings a number with its noun, a date, or a place, where one is asked for."""

from __future__ import annotations

import pytest

from app.generation.quote.quote_features import matches_answer_type


@pytest.mark.parametrize(
    ("kind", "question", "brings", "brings_not"),
    [
        (
            "number",
            "How many people live in Arbon?",
            "It has 14,000 people.",
            "It lies 399 metres up.",
        ),
        (
            "number",
            "How many European countries are members?",
            "It unites 27 countries.",
            "It has 3 courts.",
        ),
        ("number", "How tall is the tower?", "It rises 31 metres.", "It has 199 steps."),
        ("number", "How old is the bridge?", "It is 600 years old.", "It is 40 metres long."),
        ("time", "When was it finished?", "It opened in March 1854.", "The work took 12 years."),
        ("time", "How long did the work take?", "It took 12 years.", "It ended in 1854."),
        ("name", "Where was she born?", "She was born in Leiden.", "Her teacher was Kramers."),
        ("name", "Which city has the harbour?", "Ships sail from Bergen.", "Haakon built ships."),
    ],
)
def test_the_exact_kind_counts(kind: str, question: str, brings: str, brings_not: str) -> None:
    assert matches_answer_type(question, [brings_not, brings], kind) == [False, True]


def test_any_number_counts_where_none_has_its_noun() -> None:
    sentences = ["Arbon counted 14,000 in 2020.", "Arbon lies on a lake."]
    assert matches_answer_type("How many souls live in Arbon?", sentences, "number") == [
        True,
        False,
    ]


def test_who_asks_for_any_name_that_the_question_has_not() -> None:
    sentences = ["It was built in Leiden.", "It was built in stone.", "Anna Holm built it."]
    assert matches_answer_type("Who is Anna Holm?", sentences, "name") == [True, False, False]
