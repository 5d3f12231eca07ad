"""Find running heads and feet: lines repeated on pages, such as page numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

_LEAST_PAGES = 3
_LEAST_SHARE = 0.2
"""Of all pages, that have the same line or a number which counts the pages; heads of left and of
right pages differ."""
_DEEPEST = 2
"""Lines at an edge of a page: a journal's name above the authors'."""
_LEAST_PAGES_OF_SECTIONS = 6
"""Of a document whose heads name its sections: in a short one, the same first line twice is more
often text."""
_LEAST_ALIKE = 4
"""Pages. A line that repeats, numbers aside, on so many pages and on that share of all is a running
line in any wording, such as a copyright notice."""
_DEEPEST_ALIKE = 6
_SHORTEST_ALIKE = 4
"""Words: fewer may be a figure's number, or the end of a sentence."""
_NUMBER = re.compile(r"(?P<first>\d{1,5})(?:\s+|\Z)|(?:\A|\s)(?P<last>\d{1,5})\Z")
_DIGITS = re.compile(r"\d+")
_ENDS_SENTENCE = re.compile(r"[.!?;,]\Z")

Edge = Literal["head", "foot"]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Line:
    """The next line at an edge of a page."""

    edge: Edge
    words: str
    """Without a number at either end."""
    counts: tuple[Edge, str, int] | None
    """For a number at one end: where, and how far it is from the page's own; the same on all
    pages that it counts."""
    shape: str
    """All of it with a sign for every number; slides count themselves between other words."""


@dataclass(frozen=True, slots=True)
class FramedPage:
    """A page's text with its running lines set apart."""

    text: str
    running: tuple[Span, ...]
    """Half-open spans of them in the text."""


def set_apart(pages: Sequence[str]) -> list[FramedPage]:
    """Return pages with a blank line between running heads or feet and the text.

    A sentence then does not begin with one. Only line ends are added. A line is a running one when
    its words, or a number that counts the pages, alone or next to words that come twice, stand at
    the same edge of a fifth of all pages, three at least; when it is the same, numbers aside, on as
    many, four at least; or when one of two pages before has the same head.

    Args:
        pages: Texts with newline line ends, none at their edges.
    """
    lines = [page.split("\n") for page in pages]
    heads, feet = [0] * len(pages), [0] * len(pages)
    for depth in range(_DEEPEST_ALIKE):
        edges = [_edge_lines(page, depth, heads[at], feet[at], at) for at, page in enumerate(lines)]
        repeated = _Repeated(edges)
        for at, found in enumerate(edges):
            for line in found:
                if repeated.is_alike(line) or (depth < _DEEPEST and repeated.is_running(line, at)):
                    heads[at] += line.edge == "head"
                    feet[at] += line.edge == "foot"
    return [_framed(page, head, foot) for page, head, foot in zip(lines, heads, feet, strict=True)]


class _Repeated:
    """Counts lines that repeat at one depth of all pages."""

    def __init__(self, edges: Sequence[Sequence[_Line]]) -> None:
        lines = list(chain(*edges))
        self._words = Counter((line.edge, line.words) for line in lines)
        self._counts = Counter(line.counts for line in lines)
        self._shapes = Counter((line.edge, line.shape) for line in lines)
        self._heads = [
            next((line.words for line in found if line.edge == "head"), "") for found in edges
        ]
        self._least = max(_LEAST_PAGES, _LEAST_SHARE * len(edges))

    def is_alike(self, line: _Line) -> bool:
        """Return whether a line repeats on pages, numbers aside."""
        return (
            self._shapes[line.edge, line.shape] >= max(_LEAST_ALIKE, self._least)
            and len(line.words.split()) >= _SHORTEST_ALIKE
        )

    def is_running(self, line: _Line, at: int) -> bool:
        """Return whether a line names the document, its part or the page."""
        same = self._words[line.edge, line.words]
        if (
            line.counts is not None
            and self._counts[line.counts] >= self._least
            and (not line.words or same > 1)
        ):
            return True
        if not line.words or _ENDS_SENTENCE.search(line.words):
            return False
        return same >= self._least or (
            line.edge == "head" and " " in line.words and line.words in self._heads_before(at)
        )

    def _heads_before(self, at: int) -> list[str]:
        """Return the heads of the two pages before: a left and a right one.

        The first page with a head may bear the heading itself.
        """
        return (
            self._heads[max(0, at - 2) : at] if len(self._heads) >= _LEAST_PAGES_OF_SECTIONS else []
        )


def _edge_lines(page: list[str], depth: int, heads: int, feet: int, number: int) -> list[_Line]:
    """Return the next line at each edge, if all lines outside it are running ones."""
    if len(page) <= heads + feet + 1:  # what is left is the page's text
        return []
    found = [_line("head", page[heads].strip(), number)] if heads == depth else []
    return [*found, _line("foot", page[-1 - feet].strip(), number)] if feet == depth else found


def _line(edge: Edge, text: str, number: int) -> _Line:
    found = _NUMBER.match(text) or _NUMBER.search(text)
    shape = _DIGITS.sub("#", text)
    if found is None or found.lastgroup is None:
        return _Line(edge, text, None, shape)
    words = (text[: found.start()] + text[found.end() :]).strip()
    return _Line(
        edge,
        words,
        (edge, found.lastgroup if words else "", int(found[found.lastgroup]) - number),
        shape,
    )


def _framed(page: list[str], heads: int, feet: int) -> FramedPage:
    end = len(page) - feet
    head, body, foot = ("\n".join(part) for part in (page[:heads], page[heads:end], page[end:]))
    text = "\n\n".join([*([head] if heads else []), body, *([foot] if feet else [])])
    spans = [
        *([(0, len(head))] if heads else []),
        *([(len(text) - len(foot), len(text))] if feet else []),
    ]
    return FramedPage(text, tuple(spans))
