from __future__ import annotations

import pytest

from app.core.sentences import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "one",
    [
        "We follow a study of sleep (Belenky et al. 2003) and its models.",
        "It was proposed by Zeileis et al. (2002) for regressions.",
        "Others agree, as in Hothorn et al. [4] and later.",
        "It was sold by Cyprus Copper Inc. (CCI) in spring.",
    ],
)
def test_an_abbreviation_before_a_year_or_a_bracket_ends_nothing(one: str) -> None:
    assert sentences(f"{one} Then came the next.") == [one, "Then came the next."]


def test_an_abbreviation_before_a_capital_may_end_a_sentence() -> None:
    assert sentences("So said Smith et al. Later work disagrees.") == [
        "So said Smith et al.",
        "Later work disagrees.",
    ]


@pytest.mark.parametrize(
    "heading",
    [
        "2. The recursive partitioning algorithm of models in trees",
        "4.3 Significance testing with fluctuation processes",
    ],
)
def test_a_numbered_heading_is_no_part_of_the_sentence_below(heading: str) -> None:
    assert sentences(f"{heading}\nThe idea is to grow a tree.") == [
        heading,
        "The idea is to grow a tree.",
    ]


def test_a_wrapped_line_that_begins_with_a_number_runs_on() -> None:
    text = "12 Angry men were seen in the cinemas of the whole country and of the\nTown of Leeds."
    assert sentences(text) == [text]


def test_the_number_of_an_item_is_no_sentence() -> None:
    assert sentences(
        "There are three ways [1]. 1. If times are tied, wait [2]. 2. Else go on."
    ) == ["There are three ways [1].", "1. If times are tied, wait [2].", "2. Else go on."]
    assert sentences("It was built in 1990. It fell in 1991.") == [
        "It was built in 1990.",
        "It fell in 1991.",
    ]
    assert sentences("E = mc\n\n(1)\nHere E is energy.") == [
        "E = mc",
        "(1)",
        "Here E is energy.",
    ], "of a formula"
    assert sentences("7.\n\nThe next page.") == ["7.", "The next page."]
    assert sentences("There were 12. Nobody knew.") == ["There were 12.", "Nobody knew."]


def test_a_row_of_a_table_is_one_sentence() -> None:
    lines = [
        "Year: 1979 | Work: And a Gull Sang... | Result: Nominated",
        "Year: 1985 | Work: Rope. A life! | Result: Won",
        "Guest parts",
        "Total | Works: 2 | Prizes: 1",
    ]
    text = "\n".join(
        ["It opened late. It closed early.", *lines, "", "It left. There was: a | bar. So."]
    )
    assert sentences(text) == [
        "It opened late.", "It closed early.", *lines, "It left.", "There was: a | bar.", "So.",
    ]  # fmt: skip
