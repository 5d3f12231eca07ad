"""Markup made to be slow costs time in proportion to its length, or is refused before it is parsed."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable

import pytest

from app.core.errors import Unreadable
from app.ingest.parsers import html, wikitext
from app.ingest.parsers.html import parse_html
from app.ingest.parsers.wikitext import parse_wikitext

WIKITEXT = {
    "templates": lambda n: "{{a|" * n + "}}" * n,
    "templates without end": lambda n: "{{a|" * n,
    "references": lambda n: "<ref>" * n,
    "reference tags": lambda n: "<ref name=a " * n,
    "nowiki": lambda n: "<nowiki>" * n,
    "links": lambda n: "[[" * n + "]]" * n,
    "links without end": lambda n: "[[" * n,
    "brackets in links": lambda n: "[[a [b] " * n,
    "tables": lambda n: "{|\n" * n,
    "headings": lambda n: "== " * n,
    "blanks": lambda n: "= " + " " * n + "x",
    "address": lambda n: "[http://" + "a" * n,
}
HTML = {
    "options": lambda n: "<select>" + "<option>a" * n,
    "divisions": lambda n: "<div>" * n,
    "tables": lambda n: "<table><tr><td>" * n,
    "formatting": lambda n: "<b><p>" * n,
    "hidden": lambda n: "<div hidden>a" * n,
    "items": lambda n: "<li>a</li>" * n,
}


class Counted:
    """A compiled expression that counts how often it goes through a text."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self.passes = 0

    def subn(self, replace: Callable[[re.Match[str]], str], text: str) -> tuple[str, int]:
        self.passes += 1
        return self.pattern.subn(replace, text)


@pytest.mark.parametrize("name", ["_TEMPLATE", "_LINK", "_BRACKETS_IN_LINK"])
@pytest.mark.parametrize("unit", ["templates", "links", "brackets in links"])
def test_nesting_costs_a_hundred_passes_at_most(
    monkeypatch: pytest.MonkeyPatch, name: str, unit: str
) -> None:
    counted = Counted(getattr(wikitext, name))
    monkeypatch.setattr(wikitext, name, counted)
    parse_wikitext(WIKITEXT[unit](3000), "T")
    assert counted.passes <= wikitext._MOST_PASSES


def processor_time(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def grows_linearly(small: Callable[[], object], large: Callable[[], object]) -> bool:
    """Compare work on one text with work on four such texts: 4 times is linear, 16 quadratic.

    One round of ten under 6 times is enough: other work on the machine slows single rounds,
    and no quadratic parser comes under 6 in any.
    """
    return any(processor_time(large) < 6 * processor_time(small) + 0.01 for _ in range(10))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("unit", WIKITEXT)
def test_four_times_the_wikitext_takes_less_than_six_times_the_time(unit: str) -> None:
    small, large = WIKITEXT[unit](5_000), WIKITEXT[unit](20_000)
    assert grows_linearly(lambda: parse_wikitext(small, "T"), lambda: parse_wikitext(large, "T"))


def read(source: str) -> None:
    with contextlib.suppress(Unreadable):
        parse_html(source.encode())


@pytest.mark.timeout(120)
@pytest.mark.parametrize("unit", HTML)
@pytest.mark.parametrize("n", [450, 20_000])
def test_four_times_the_html_takes_less_than_six_times_the_time(unit: str, n: int) -> None:
    small, large = HTML[unit](n), HTML[unit](4 * n)
    assert grows_linearly(lambda: read(small), lambda: read(large))


def test_the_bounds_of_html_are_named() -> None:
    with pytest.raises(Unreadable, match="more than 2,000 elements within one another"):
        parse_html(b"<div>" * 2_001)
    with pytest.raises(Unreadable, match="more than 1,000,000 elements"):
        parse_html(b"<br>" * 1_000_001)
    assert parse_html(b"<p>a" * 5_000).text.count("a") == 5_000
    assert parse_html(b"<div>" * 1_900 + b"deep").text == "deep"


def test_a_table_within_a_table_is_a_layout_and_the_inner_one_is_data() -> None:
    inner = "<table><tr><th>x</th><th>y</th></tr><tr><td>1</td><td>2</td></tr></table>"
    text = parse_html(f"<table><tr><td>left</td><td>{inner}</td></tr></table>".encode()).text
    assert "left" in text
    assert text.index("left") < text.index("x")
    assert html._nests(f"<div>{inner}</div>") == 2  # rows and cells need no end tag
