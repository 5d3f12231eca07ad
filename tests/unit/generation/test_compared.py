from __future__ import annotations

import pytest

from app.generation.quote.comparisons import NamedComparison, comparison_in


@pytest.mark.parametrize(
    ("question", "things", "respect"),
    [
        ("Compare coffee and tea in terms of caffeine", ("coffee", "tea"), "caffeine"),
        ("Compare the caffeine of coffee and tea.", ("coffee", "tea"), "caffeine"),
        ("Compare jazz with folk music", ("jazz", "folk music"), ""),
        ("What is the difference between a tide and an earthquake?", ("tide", "earthquake"), ""),
        ("What is the difference in price between gold and tin?", ("gold", "tin"), "price"),
        ("How does ReAct differ from chain-of-thought?", ("ReAct", "chain-of-thought"), ""),
        ("How do humans and chimpanzees differ?", ("humans", "chimpanzees"), ""),
        ("MiniLM vs. BERT", ("MiniLM", "BERT"), ""),
        ("What are the differences between A1, B2 and C3?", ("A1", "B2", "C3"), ""),
        ("Which is faster, BM25 or dense search?", ("BM25", "dense search"), "faster"),
        ("What distinguishes Arabica from Robusta?", ("Arabica", "Robusta"), ""),
    ],
)
def test_the_things_compared_and_the_respect_are_read(
    question: str, things: tuple[str, ...], respect: str
) -> None:
    assert comparison_in(question) == NamedComparison(things, respect)


@pytest.mark.parametrize(
    "question",
    [
        "Compare BERT and LLaMA: training data and number of parameters",
        "Compare BERT and LLaMA in terms of training data and the number of parameters.",
        "What is the difference between BERT and LLaMA regarding training data, and number of"
        " parameters?",
    ],
)
def test_several_points_are_no_things(question: str) -> None:
    named = comparison_in(question)
    assert named is not None
    assert named.things == ("BERT", "LLaMA")
    assert named.points == ("training data", "number of parameters")
    assert [one.query("BERT") for _, one in named.by_point()] == [
        "training data BERT",
        "number of parameters BERT",
    ]


def test_a_colon_inside_a_title_parts_nothing() -> None:
    named = comparison_in("Compare BERT: deep transformers and GPT")
    assert named is not None
    assert named.points == ()


@pytest.mark.parametrize(
    "question",
    [
        "Compare the papers on their methods",
        "What is tea?",
        "How did the unequal treatment of one group versus another seem?",
        "Who compared notes?",
        "What is the difference?",
    ],
)
def test_fewer_than_two_things_are_no_comparison(question: str) -> None:
    assert comparison_in(question) is None


def test_a_thing_is_searched_in_the_respect_that_is_compared() -> None:
    assert NamedComparison(("tea", "coffee"), "caffeine").query("tea") == "caffeine tea"
    assert NamedComparison(("tea", "coffee")).query("tea") == "tea"
