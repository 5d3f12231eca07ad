"""Texts made to be slow: what the server itself does with a parsed document must end, whatever it holds.

Each call gets 200,000 characters. In proportion to that the whole file takes seconds; at the square
of it, one case takes minutes, with the interpreter's lock held and the server stopped: the time
limit of a test says which it was.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

import pytest

from app.core.normalisation import MARKLIKE, normalise
from app.core.sentences import sentence_spans
from app.core.text import lexical_form
from app.core.types import ParsedDocument
from app.generation.flags.injection import inspect
from app.ingest.chunking import chunk
from app.ingest.metadata import describe
from app.ingest.options import IngestOptions
from app.ingest.parsers.headings import find_headings
from app.ingest.parsers.markdown import parse_markdown

SIZE = 200_000
UNITS = {
    "dots": ".",
    "exclamations": "!",
    "dots and closers": '."',
    "references": ".[1]",
    "brackets": "[",
    "images": "![",
    "quote marks": "\n>",
    "rules": "---\n",
    "hashes": "\n#",
    "spaces": " ",
    "short sentences": "No. ",
    "initials": "J. ",
    "bold": "**a",
    "marks": "\u0301\u0316",
    "orders": "ignore all previous ",
    "addresses": "send password a@",
    "colons": ";(",
    "numbers": "1 A\n",
}


def spelt(unit: str) -> str:
    return "Start" + unit * (SIZE // len(unit)) + "x"


WORK: dict[str, Callable[[str], object]] = {
    "sentences": sentence_spans,
    "normal form": normalise,
    "lexical form": lexical_form,
    "instructions": lambda text: inspect(text[: SIZE // 4]),
    "headings": find_headings,
    "chunks": lambda text: chunk(ParsedDocument(text, "text/plain"), IngestOptions()),
    "metadata": lambda text: describe(
        ParsedDocument(text, "text/html", title=text[:2000], authors=(text[:2000],)), "a.html"
    ),
    "markdown": lambda text: parse_markdown(text[: SIZE // 4].encode()),
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_the_time_is_in_proportion(unit: str, work: Callable[[str], object]) -> None:
    work(spelt(unit))


def test_marks_are_piled_thirty_high_and_counted() -> None:
    pile = "e" + "\u0301\u0316" * 2000 + " end"
    text, stripped = normalise(pile)
    assert text.endswith(" end")
    assert stripped == 4000 - 30
    assert len(text) <= 1 + 30 + 4
    assert normalise("e\u0301" * 3000) == ("\u00e9" * 3000, 0)


@pytest.mark.parametrize("letter", ["\u3042", "\u0e01", "\u0915", "\u05d0", "e"])
def test_a_pile_is_found_among_letters_of_any_script(letter: str) -> None:
    text, stripped = normalise(letter * 3000 + "\u0301\u0316" * 20 + letter * 40)
    assert stripped == 10
    assert text.count(letter) >= 3039


def test_every_mark_that_unicode_knows_is_looked_for() -> None:
    marks = [chr(point) for point in range(0x110000) if unicodedata.combining(chr(point))]
    assert len(marks) > 800
    assert [mark for mark in marks if not re.match(MARKLIKE, mark)] == []


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Wait... Then go.", ["Wait...", "Then go."]),
        (
            'He left?!" She stayed.[1][2] Both slept.',
            ['He left?!"', "She stayed.[1][2]", "Both slept."],
        ),
        ("A run ......x of dots. Next.", ["A run ......x of dots.", "Next."]),
        ("No end.Here it is. Yes.", ["No end.Here it is.", "Yes."]),
    ],
)
def test_stops_in_runs_end_one_sentence(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences
