"""Markup made to be slow is read to its end in bounded passes, or is refused before it is parsed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable

import pytest
from selectolax.lexbor import LexborHTMLParser

from app.core.errors import Unreadable
from app.ingest.parsers import html, wikitext
from app.ingest.parsers.html import parse_html
from app.ingest.parsers.markdown import parse_markdown
from app.ingest.parsers.wikitext import parse_wikitext
from tests.fakes.hostile.markup import HTML, WIKITEXT


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


@pytest.mark.parametrize("unit", WIKITEXT)
def test_long_wikitext_is_read_to_its_end(unit: str) -> None:
    """evaluation/reports/hostile.md shows how the time grows; here it only has to end."""
    parse_wikitext(WIKITEXT[unit](20_000), "T")


@pytest.mark.parametrize("unit", HTML)
@pytest.mark.parametrize("n", [1_800, 80_000])
def test_long_html_is_read_to_its_end_or_refused(unit: str, n: int) -> None:
    with contextlib.suppress(Unreadable):
        parse_html(HTML[unit](n).encode())


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


@pytest.mark.parametrize("attribute", [" a{}=1", ' a{}="x>y"', "/a{}", ' "{}', " a{}<b", " =a{} b"])
def test_a_tag_keeps_its_first_hundreds_of_attributes(
    monkeypatch: pytest.MonkeyPatch, attribute: str
) -> None:
    seen: list[str] = []

    def spied(source: str) -> LexborHTMLParser:
        seen.append(source)
        return LexborHTMLParser(source)

    monkeypatch.setattr(html, "LexborHTMLParser", spied)
    many = "".join(attribute.format(number) for number in range(5_000))
    source = f'<p{many}>The heron</p><p class="a" title="b > c">eats.</p>'
    assert parse_html(source.encode()).text == "The heron\n\neats."
    assert seen[0].count("a") <= 330
    assert seen[0].endswith('>The heron</p><p class="a" title="b > c">eats.</p>')


@pytest.mark.parametrize(
    "unit", ["[a](", "[a](b", "![a](", "[", "[a][b](", "<http://a", "[a]((", "**a ", "`a"]
)
def test_long_markdown_is_read_to_its_end(unit: str) -> None:
    assert parse_markdown(f"{unit * 2_000}\n\nend".encode()).text.endswith("end")


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("See [the heron](http://x.org/Heron_(bird)).", "See the heron."),
        ("![a [b](c) d](e", "![a b d](e"),
        ("[![logo](a.png)](b) and [c](d(e)f)", "logo and c"),
        ("<https://x.org/a> [a](", "https://x.org/a [a]("),
    ],
)
def test_links_are_read_by_their_text(source: str, read: str) -> None:
    assert parse_markdown(source.encode()).text == read
