"""What somebody says of himself in a mail is quoted behind the line that says who wrote it."""

from __future__ import annotations

import numpy as np
import pytest

from app.generation.quote.candidates import candidates
from app.generation.quote.choosing import choose
from tests.unit.generation.passages import evidence

MAIL = (
    "From: Siv Moe <siv@korvik.example>\nTo: Ola Vik <ola@korvik.example>\n\n"
    "No, that is too much. We pay 31,500 at most. The offer ends in May.\n\n"
    "On Mon, 2 Jun 2025 at 17:40, Ola Vik wrote:\n\nThe crane costs 38,000. Weeks pass."
)


@pytest.mark.parametrize(
    ("question", "lead", "writer"),
    [
        ("How much is paid at most?", "We pay 31,500 at most.", "From: Siv Moe"),
        ("Who wrote that the crane costs 38,000?", "The crane costs 38,000.", "On Mon, 2 Jun"),
        ("When does the offer end?", "The offer ends in May.", ""),
    ],
)
def test_the_writer_stands_above(question: str, lead: str, writer: str) -> None:
    found = candidates(evidence(MAIL, title="Crane"), question)
    scores = np.array([3.0 if one.text == lead else -5.0 for one in found])
    first, *others = [one.text for one in choose(question, found, scores)]
    if writer:
        assert first.startswith(writer)
        assert others[0] == lead
    else:
        assert (first, others) == (lead, [])
