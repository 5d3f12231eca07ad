"""Yes or no is said only where one quoted sentence settles the question."""

from __future__ import annotations

import pytest

from app.generation.quote.candidates import candidates
from app.generation.quote.yes_no import settled_by
from tests.unit.generation.passages import evidence

LIGHTHOUSE = "The lighthouse of Skerry was built in 1854 by Thomas Stevenson."
HARBOUR = "The harbour is not open to fishing boats in winter."


@pytest.mark.parametrize(
    ("question", "text", "word"),
    [
        ("Was the lighthouse built in 1854?", LIGHTHOUSE, "Yes"),
        ("Is it true that the lighthouse was built by Thomas Stevenson?", LIGHTHOUSE, "Yes"),
        ("Was the lighthouse built in 1855?", LIGHTHOUSE, None),
        ("Was the lighthouse built by Alan Stevenson?", LIGHTHOUSE, None),
        ("Did Thomas Stevenson build the lighthouse?", LIGHTHOUSE, None),  # another order
        ("Was the lighthouse built in 1854 or in 1855?", LIGHTHOUSE, None),
        ("When was the lighthouse built?", LIGHTHOUSE, None),
        ("Is the harbour open to fishing boats?", HARBOUR, "No"),
        ("Is the harbour not open to fishing boats?", HARBOUR, None),
        ("Is the harbour open?", "The harbour, which is not deep, is open all year.", None),
        ("Is the harbour closed in winter?", "The harbour is open in winter.", "No"),
        ("Is the harbour open?", "The harbour may be open in spring.", None),
        ("Are all boats allowed in the harbour?", "Boats are allowed in the harbour.", None),
        ("Can you open the harbour?", "The harbour is open in winter.", None),
    ],
)
def test_a_word_needs_all_of_the_question(question: str, text: str, word: str | None) -> None:
    assert settled_by(question, candidates(evidence(text))) == word


def test_sentences_that_disagree_settle_nothing() -> None:
    found = candidates(
        evidence("The harbour is open in winter.", "The harbour is not open in winter.")
    )
    assert settled_by("Is the harbour open in winter?", found) is None
