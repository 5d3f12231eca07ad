"""Running heads and feet: lines that stand on a page because it is a page, with its number, the title, the authors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

_LEAST_PAGES = 3
_LEAST_SHARE = 0.2
"""Of all pages, that have the same line or a number which counts the pages; heads of left and of right pages differ."""
_DEEPEST = 2
"""Lines at an edge of a page: a journal's name above the authors'."""
_NUMBER = re.compile(r"(?P<first>\d{1,5})(?:\s+|\Z)|(?:\A|\s)(?P<last>\d{1,5})\Z")
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
    """For a number at one end: where, and how far it is from the page's own; the same on all pages that it counts."""


@dataclass(frozen=True, slots=True)
class FramedPage:
    """A page's text with its running lines set apart."""

    text: str
    running: tuple[Span, ...]
    """Half-open spans of them in the text."""


def set_apart(pages: Sequence[str]) -> list[FramedPage]:
    """Return pages with a blank line between running heads or feet and what they frame; a sentence then does not begin with one.

    Only line ends are added. A line is a running one when its words, or a number that counts the pages alone or beside words that
    come twice, stand at the same edge of a fifth of all pages, three at least.

    Args:
        pages: Texts with newline line ends, none at their edges.
    """
    lines = [page.split("\n") for page in pages]
    heads, feet = [0] * len(pages), [0] * len(pages)
    least = max(_LEAST_PAGES, _LEAST_SHARE * len(pages))
    for depth in range(_DEEPEST):
        edges = [_edge_lines(page, depth, heads[at], feet[at], at) for at, page in enumerate(lines)]
        words = Counter((line.edge, line.words) for line in chain(*edges))
        counts = Counter(line.counts for line in chain(*edges))
        for at, found in enumerate(edges):
            for line in found:
                same = words[line.edge, line.words]
                counting = line.counts is not None and counts[line.counts] >= least and (not line.words or same > 1)
                if counting or (line.words and same >= least and not _ENDS_SENTENCE.search(line.words)):
                    heads[at] += line.edge == "head"
                    feet[at] += line.edge == "foot"
    return [_framed(page, head, foot) for page, head, foot in zip(lines, heads, feet, strict=True)]


def _edge_lines(page: list[str], depth: int, heads: int, feet: int, number: int) -> list[_Line]:
    """Return the next line at either edge of a page, where all lines outside it are running ones."""
    if len(page) <= heads + feet + 1:  # what is left is the page's text
        return []
    found = [_line("head", page[heads].strip(), number)] if heads == depth else []
    return [*found, _line("foot", page[-1 - feet].strip(), number)] if feet == depth else found


def _line(edge: Edge, text: str, number: int) -> _Line:
    found = _NUMBER.match(text) or _NUMBER.search(text)
    if found is None or found.lastgroup is None:
        return _Line(edge, text, None)
    words = (text[: found.start()] + text[found.end() :]).strip()
    return _Line(edge, words, (edge, found.lastgroup if words else "", int(found[found.lastgroup]) - number))


def _framed(page: list[str], heads: int, feet: int) -> FramedPage:
    end = len(page) - feet
    head, body, foot = ("\n".join(part) for part in (page[:heads], page[heads:end], page[end:]))
    text = "\n\n".join([*([head] if heads else []), body, *([foot] if feet else [])])
    spans = [*([(0, len(head))] if heads else []), *([(len(text) - len(foot), len(text))] if feet else [])]
    return FramedPage(text, tuple(spans))
