"""Follow-ups without a model."""

from __future__ import annotations

import pytest

from app.answer.questions import carried, extract_question
from app.core.types import Library, Message, Question
from tests.stores import passage
from tests.unit.answer.bench import Bench

RAREST_FIRST = "toolchain engine deploy fit code app".split()
PASSAGES = [passage(" ".join(RAREST_FIRST[at:]), key=str(at)) for at in range(len(RAREST_FIRST))]


def _ask(question: str, *earlier: str) -> str | None:
    return carried(question, earlier, "papers", Bench(PASSAGES).searcher_for)


def test_the_rarest_words_of_the_last_questions_go_with_a_question_without_a_subject() -> None:
    assert _ask(
        "How much does it cost?", "How do I deploy an app?", "Which toolchain fits the Engine?"
    ) == ("toolchain engine: How much does it cost?")


def test_words_come_from_the_last_question_that_stands_alone() -> None:
    earlier = ("How do I deploy an app?", "Which toolchain fits?", "And its code?")
    assert _ask("How much does it cost?", *earlier) == "toolchain fits: How much does it cost?"


@pytest.mark.parametrize(
    ("question", "earlier"),
    [
        ("How much does it cost?", ()),
        ("What does Kubernetes cost?", ("Which toolchain fits?",)),  # names its own subject
        ("How much does it cost?", ("Who painted the chapel?",)),  # the library knows no word of it
        ("What does the Code Engine cost?", ("Which toolchain fits Code Engine?",)),
        ("Which toolchain?", ("The toolchain?",)),  # says it itself
    ],
)
def test_others_stay_as_they_are(question: str, earlier: tuple[str, ...]) -> None:
    assert _ask(question, *earlier) is None


def test_a_follow_up_is_answered_without_a_model() -> None:
    bench = Bench()
    history = (
        Message("user", "How well does copper conduct electricity?"),
        Message("assistant", "Well."),
    )
    answer = bench.ask(Question("And its melting point?", Library.PAPERS.value, history=history))
    assert answer.rewritten_query is not None
    assert "copper" in answer.rewritten_query
    assert "1085" in answer.text


def test_a_follow_up_is_searched_as_it_stands_too() -> None:
    bench = Bench()
    history = (
        Message("user", "How well does copper conduct electricity?"),
        Message("assistant", "Well."),
    )
    question = "And its melting point?"
    answer = bench.ask(Question(question, Library.PAPERS.value, history=history))
    assert answer.rewritten_query is not None
    searched = [one.text for one in bench.retriever.requests if not one.keep_weak]
    assert searched[-2:] == [answer.rewritten_query, question]


MILL = (
    "I am writing a text for our village paper about the old mill and need one thing that I could"
    " not find, namely the year in which it burned."
)


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        ("My bike got me there in the rain. What is paid per kilometre?", "What is paid per"),
        (f"Hello! I hope you are well. {MILL} Could you please tell me?", "the year in which it"),
        (
            "I would like to know the following, because my sister could not help: when was the"
            " mill built?",
            "when was the mill built?",
        ),
        ("Is the pool open? How much is it for a child? I ask for a friend.", "Is the pool open?"),
    ],
)
def test_a_letter_asks_what_its_question_asks(message: str, asked: str) -> None:
    text, around = extract_question(message)
    assert text.startswith(asked)
    assert around
    assert not any(one in text for one in around)


@pytest.mark.parametrize(
    "message",
    [
        "We rent a flat in Brook and our landlord says that only owners can join. Is he right?",
        "when did the mill burn",
        "What does RFC 7: the mill say?",
        "Summarise: what is a mill?",
        "Late bleeding after an operation of the tonsils: is it an event of the night?",
        "Patients at high risk of falls after rehabilitation: do we meet the guidelines?",
        "The mill burned. It was rebuilt.",
        "",
    ],
)
def test_what_tells_nothing_beside_its_question_stays_whole(message: str) -> None:
    assert extract_question(message) == (message, ())
