from __future__ import annotations

import pytest

from app.answer.questions import listed


@pytest.mark.parametrize(
    ("reply", "lines"),
    [
        ("a b\nc d", ["a b", "c d"]),
        ("Here are three lines:\n1) first one\n2) second one", ["first one", "second one"]),
        ('- "quoted query"\n* Query 2: labelled', ["quoted query", "labelled"]),
        ("same\nSAME\nother", ["same", "other"]),
        ("1998 world cup\n5 largest lakes", ["1998 world cup", "5 largest lakes"]),
        ("", []),
    ],
)
def test_lists_are_read_from_messy_replies(reply: str, lines: list[str]) -> None:
    assert listed(reply) == lines
