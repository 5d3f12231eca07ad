from __future__ import annotations

import pytest

from app.answer.summaries import summary_wish, wish_of
from app.core.types import Question


@pytest.mark.parametrize(
    ("question", "about", "explicit"),
    [
        ("Summarise the SuperGLUE paper in three bullet points", "SuperGLUE", True),
        ("Could you please summarize this document?", "", True),
        ("What is this paper about?", "", False),
        ("What's this all about?", "", False),
        ("What is the paper PaSa about?", "PaSa", False),
        ("What is the lighthouse article about?", "lighthouse", False),
        ("Give me a short overview of my documents", "", True),
        ("Fasse das Dokument zusammen", "", True),
        ("Fasse das Dokument Lighthouse zusammen", "Lighthouse", True),
        ("What are the key findings of this paper?", "", True),
        ('Summarise "The Whole of It" for me', "The Whole of It", True),
        ("Summarise what is known about tides", "tides", True),
        ("tl;dr", "", True),
    ],
)
def test_a_wish_says_what_is_to_be_summarised(question: str, about: str, *, explicit: bool) -> None:
    wish = summary_wish(question)
    assert wish is not None
    assert (wish.about, wish.explicit) == (about, explicit)
    assert wish.names_something is bool(about)


@pytest.mark.parametrize(
    ("question", "read_all"),
    [
        ("Summarise all of it", True),
        ("Summarise the whole paper", True),
        ("Summarise the entire SuperGLUE paper", True),
        ("Fasse das ganze Dokument zusammen", True),
        ("Summarise this paper", False),
        ("What is this paper about?", False),
        ("Summarise all my documents", False),
        ('Summarise "The Whole of It" for me', False),
    ],
)
def test_only_who_asks_for_all_of_it_has_it_read(question: str, *, read_all: bool) -> None:
    wish = summary_wish(question)
    assert wish is not None
    assert wish.read_all is read_all


@pytest.mark.parametrize(
    "question",
    [
        "What does the summary say about the harvest?",
        "What is photosynthesis about light?",
        "Who designed the lighthouse?",
        "What is the main character about in life?",
    ],
)
def test_plain_questions_are_no_wish(question: str) -> None:
    assert summary_wish(question) is None


def test_in_the_mode_every_text_names_what_to_summarise() -> None:
    named = wish_of(Question("the paper PaSa, please", "papers", "summary"))
    assert named is not None
    assert named.about == "PaSa"
    assert wish_of(Question("Summarise it", "papers", "compare")) is None
    assert wish_of(Question("Summarise it", "papers", retrieve_only=True)) is None
