from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.core.types import REFUSAL
from app.generation.check.citations import MARK, StreamGuard, guard, mark_numbers, normalise_marks

PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "[1]",
                " [2]",
                "[9]",
                "[1, 2]",
                "[1-3]",
                "[",
                "]",
                " ",
                "(1)",
                "Rollo",
                ".",
                "\n",
                "[^1]",
                "[Source 2]",
                "\u3010",
                "3",
            ]
        ),
        st.text(max_size=5),
    ),
    max_size=30,
)


@pytest.mark.parametrize(
    ("written", "guarded"),
    [
        ("Rollo led them [1].", "Rollo led them [1]."),
        ("Rollo led them [7].", "Rollo led them."),
        ("Rollo led them [0].", "Rollo led them."),
        ("Rollo led them [1, 2].", "Rollo led them [1][2]."),
        ("Rollo led them [1, 7].", "Rollo led them [1]."),
        ("Rollo led them [1-3].", "Rollo led them [1][2][3]."),
        ("Rollo led them [2\u20139].", "Rollo led them [2][3]."),
        ("Rollo led them [1][2].", "Rollo led them [1][2]."),
        ("Rollo led them (1).", "Rollo led them (1)."),
        ("Rollo led them [Passage 2].", "Rollo led them [2]."),
        ("Rollo led them [^1].", "Rollo led them [1]."),
        ("Rollo led them [sources 1 and 3].", "Rollo led them [1][3]."),
        ("Rollo led them \u30102\u3011.", "Rollo led them [2]."),
        ("Rollo led them [1](https://example.org/x).", "Rollo led them [1]."),
        ("Use `a[7]` for it.", "Use `a[7]` for it."),
        ("```\nx = a[7]\n```", "```\nx = a[7]\n```"),
        ("[Rollo] led them [citation needed].", "[Rollo] led them [citation needed]."),
        ("In 911 [2019] they came.", "In 911 they came."),
    ],
)
def test_marks_become_numbers_that_exist(written: str, guarded: str) -> None:
    assert normalise_marks(written, {1, 2, 3}) == guarded


@pytest.mark.parametrize("empty", ["", "  \n", "[1]", "[9] .", "..."])
def test_an_answer_left_empty_becomes_the_refusal(empty: str) -> None:
    assert guard(empty, {1}) == REFUSAL


def test_numbers_may_have_gaps() -> None:
    assert normalise_marks("a [1-4] b [2]", {1, 4}) == "a [1][4] b"


def test_mark_numbers_names_each_once() -> None:
    assert mark_numbers("a [2] b [1][2]") == [2, 1]


@given(PIECES, st.sets(st.integers(1, 4)))
def test_no_mark_outside_the_evidence_survives_and_a_second_pass_changes_nothing(
    pieces: list[str], allowed: set[int]
) -> None:
    once = normalise_marks("".join(pieces).replace("`", ""), allowed)
    assert {int(n) for n in MARK.findall(once)} <= allowed
    assert normalise_marks(once, allowed) == once


@given(PIECES)
def test_a_stream_shows_what_the_guard_would(pieces: list[str]) -> None:
    clean = [piece.replace("`", "") for piece in pieces]
    assume(
        not re.search(r"[\[\u3010][^\]\u3011]*[\[\u3010]", "".join(clean))
    )  # nested: the closing event decides
    stream = StreamGuard({1, 2, 3})
    shown = "".join(stream.feed(piece) for piece in clean) + stream.close()
    assert {int(n) for n in MARK.findall(shown)} <= {1, 2, 3}
    assert shown == normalise_marks("".join(clean), {1, 2, 3})


def test_a_stream_holds_back_only_what_may_become_a_mark() -> None:
    stream = StreamGuard({1})
    assert stream.feed("Rollo led") == "Rollo led"
    assert stream.feed(" them [") == " them"
    assert stream.feed("7") == ""
    assert stream.feed("] there.") == " there."
    assert stream.close() == ""
