"""How much an answer may quote."""

from __future__ import annotations

import numpy as np
import pytest

from app.core.cancel import CancelToken
from app.core.types import Prompt
from app.generation.quote.candidates import candidates
from app.generation.quote.choosing import PLAIN, SEVERAL, STEPS, QuoteBudget, choose, quote_budget
from app.generation.quote.quoting import ExtractiveGenerator
from tests.unit.generation.passages import evidence


@pytest.mark.parametrize(
    ("question", "room"),
    [
        ("What actions did the council take against smoke?", SEVERAL),
        ("Who led the revolt and what did it lead to?", SEVERAL),
        ("How do I reset the password of a device?", STEPS),
        ("Who swore fealty to King Charles?", PLAIN),
        ("Why did Rollo swear fealty?", PLAIN),
        ("How does a fief differ from a gift?", PLAIN),
        ("Into which parts is the manual divided?", SEVERAL),
        ("In which year was the manual printed?", PLAIN),
        ("How many towers had the castle?", PLAIN),
        ("What is a fief?", PLAIN),
        ("What are the three parts of the government?", PLAIN),
    ],
)
def test_room_by_what_is_asked_for(question: str, room: QuoteBudget) -> None:
    assert quote_budget(question) == room


def _quoted(question: str, *texts: str) -> str:
    prompt = Prompt((), question, evidence(*texts, title="Search engine"))
    return "".join(token.text for token in ExtractiveGenerator().stream(prompt, CancelToken()))


def test_an_announcement_gives_way_to_the_list_that_follows() -> None:
    text = _quoted(
        "Which modes does the search engine have?",
        "The search engine has these modes:\n\n- exact mode, for small libraries\n- fast"
        " mode\n\nIt was written in Rust.",
    )
    assert text == "- exact mode, for small libraries [1].\n- fast mode [1]."


def test_steps_stand_in_reading_order() -> None:
    text = _quoted(
        "How do I reset the password of the search engine?",
        "Open the page of settings first. Then choose the account whose password you forgot. Press"
        " the button to reset the"
        " password of the search engine. A new password is shown once.",
    )
    places = [
        text.find(words)
        for words in ("Open the page", "choose the account", "Press the button", "A new password")
    ]
    assert -1 not in places
    assert places == sorted(places)


def test_a_long_table_is_quoted_by_the_row() -> None:
    names = ("acme", "brown", "cole", "dane", "evans", "fox", "gray", "hill")
    rows = (
        "company name | net revenue of 2007 in million dollars | net revenue of 2008\n"
        + "\n".join(
            f"{name} works and sons | {n}1 million dollars of net revenue | {n}2 million"
            for n, name in enumerate(names, 3)
        )
    )
    text = _quoted("What was the net revenue of brown works and sons?", rows)
    assert text.startswith(
        "brown works and sons | 41 million dollars of net revenue | 42 million [1]"
    )


def test_a_sentence_that_announces_what_was_not_found_is_not_quoted() -> None:
    found = candidates(
        evidence("The price list of the harbour is as follows:", "A berth in the harbour costs 9.")
    )
    chosen = choose("What is the price list of the harbour?", found, np.array([2.0, 0.0]))
    assert [one.text for one in chosen] == ["A berth in the harbour costs 9."]
    alone = choose("What is the price list of the harbour?", found[:1], np.array([2.0]))
    assert [one.text for one in alone] == ["The price list of the harbour is as follows:"]


def test_a_list_in_running_text_is_quoted_to_the_end_of_its_last_paragraph() -> None:
    text = (
        "The new ferry is better in two ways: More room: It holds two decks. They are dry in storms.\n"
        "Less noise: It runs on batteries. Nobody hears it at night.\nIt was built in 2019."
    )
    found = candidates(evidence(text))
    chosen = choose("In which ways is the ferry better?", found, np.array([2.0, 0, 0, 0, 0]))
    assert [one.text for one in chosen] == [one.text for one in found[:-1]]
    alone = candidates(
        evidence("The ferry has one rule: No dogs: They bark. It was built in 2019.")
    )
    chosen = choose("Which rule has the ferry?", alone, np.array([2.0, 0]))
    assert chosen[0] == alone[0]


@pytest.mark.parametrize(
    ("question", "parted", "score", "quoted"),
    [
        ("What is a berth?", False, 4.1, 2),
        ("What is a berth?", False, 3.9, 1),
        ("What is a berth?", True, 4.1, 2),
        ("What is a berth?", True, 3.9, 1),
        ("What are the kinds of berths?", False, 3.9, 2),  # of one document, near or not
        ("What are the kinds of berths?", True, 3.9, 1),
    ],
)
def test_a_far_worse_sentence_is_left_out(
    question: str, parted: bool, score: float, quoted: int
) -> None:
    near, far = "A berth in the harbour costs 9.", "A berth on the ferry is warm and dry."
    found = candidates(evidence(near, far) if parted else evidence(f"{near} {far}"))
    assert len(choose(question, found, np.array([9.0, score]), quote_budget(question))) == quoted


@pytest.mark.parametrize(
    ("fourth", "score", "quoted"),
    [
        ("Workers painted it in green and white.", 3.0, 4),
        ("Workers painted it in green and white.", 2.7, 3),  # too far
        ("Workers sang on it in green and white.", 3.0, 3),  # brings nothing of the question
    ],
)
def test_a_fourth_sentence_is_near_and_brings_more_of_the_question(
    fourth: str, score: float, quoted: int
) -> None:
    text = "The ferry is old but loved. Ten sailors scrubbed the deck. Visitors bring cakes today."
    found = candidates(evidence(f"{text} {fourth}"))
    chosen = choose("When was the ferry painted?", found, np.array([5.0, 4.0, 4.0, score]))
    assert len(chosen) == quoted


def test_the_head_of_a_mail_answers_who_wrote_to_whom() -> None:
    head = "From: Samir Holt <samir@example.org>"
    found = candidates(evidence(f"{head}\n\nThe hall is booked for two days in June."))
    scores = np.array([3.0, 1.0])
    assert choose("Who gives the talk in the hall?", found, scores)[0].text != head
    assert choose("Who wrote about the hall?", found, scores)[0].text == head
