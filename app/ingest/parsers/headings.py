"""Find headings of plain text: numbers, short capital lines, paper sections."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal

from app.core.types import Heading
from app.ingest.parsers.numbering import HeadingCandidate, counting

_ENDS = (
    r"abstract|(?:table of )?contents|limitations|acknowledge?ments?|references|bibliography"
    r"|appendi(?:x|ces)"
    r"|supplementary material"
)
_KNOWN = (
    rf"{_ENDS}|summary|introduction|background|related works?|preliminaries|methods?|methodology"
    r"|materials and methods|approach"
    r"|experiments?|experimental (?:setup|results)|evaluation|results(?: and discussion)?"
    r"|discussion|conclusions?"
    r"|conclusions? and future work|future work"
)
# One alternation, so that a text is scanned once; what it finds is judged line by line.
_CANDIDATE = re.compile(
    r"^[ \t]*(?:"
    rf"(?P<known>(?i:{_KNOWN}))[ \t]*:?"
    r"|(?:(?P<number>\d{1,2}(?:\.\d{1,2}){0,3}|[A-H](?:\.\d{1,2}){0,2}"
    r"|[IVX]{1,4}(?=\.)(?:\.[A-H](?:\.\d{1,2})?)?)\.?[ \t]+"
    r"|(?:Chapter|CHAPTER|Kapitel|Chapitre)[ \t]+(?P<chapter>\d{1,2})(?:[.:]?[ \t]*\n{1,2}[ \t]*"
    r"|[.:]?[ \t]+))"
    r"(?P<title>[^\W\d_][^\n]{1,88})"
    r"|(?P<caps>[A-Z][A-Z0-9 \t,:&'()/+\u2013\u2019-]{3,60})"
    r")[ \t]*$",
    re.MULTILINE,
)
# "Abstract-We show" and "Abstract. We show" run on in the same line (IEEE, Springer).
_RUN_IN = re.compile(
    r"^[ \t]*(?P<known>abstract)[ \t]*(?:\u2014|\u2013|\.[ \t]|:[ \t])(?=\S)",
    re.MULTILINE | re.IGNORECASE,
)
_CONTENTS = re.compile(
    r"^[ \t]*(?:table of contents|contents|inhalt(?:sverzeichnis)?|sommaire|table des"
    r" mati\u00e8res)[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_ENDS_WITH_PAGE = re.compile(r"(?<=[ .\t])[\divx]{1,5}[ \t]*\Z")
_LEAST_ENTRIES = 0.4
"""Share of the lines below "Contents"; entries of two lines, and heads of pages, are among them."""
_FRAME = re.compile(rf"(?i:{_ENDS})[ \t]*:?\Z")
_NOT_A_TITLE = re.compile(
    r"\d[.,]\d|\.{3}|\. \.|@|https?:|[=<>{}|\\\ufffd]|\Achapter \d", re.IGNORECASE
)
_NO_END = ".,;:!\u3002\uff0c\u3001\uff1b\uff1a"
_INDEXED = re.compile(r", ?\d+[ \t]*\Z")
"""An index names pages behind its words."""
_CAPITAL_WORD = re.compile(r"\b[A-Z]{4,}\b")
_MAX_WORDS = 14
_FRONT_MATTER_CHARACTERS = 8_000
"""An abstract or introduction that starts later does not open a paper."""


def find_headings(
    text: str, apart: Sequence[tuple[int, int]] = (), *, isolated_caps: bool = False
) -> list[Heading]:
    """Return the headings of a plain text, in order.

    In a paper, only its abstract or introduction opens the text: title and affiliations before it
    may look like headings. Top-level numbers must count upwards. Where headings are numbered,
    unnumbered ones are only those that papers never number.

    Args:
        text: Text with newline line ends.
        apart: Half-open spans where nothing is a heading: the running heads of pages.
        isolated_caps: A line in capitals must stand between blank lines (plain text, where emphasis
            is written so).
    """
    found = sorted(_candidates(text, isolated_caps), key=lambda c: c.heading.start)
    found = [candidate for candidate in found if not _within(candidate.heading.start, apart)]
    opening = next((c.heading.start for c in found if _opens_paper(c.heading.title)), 0)
    if opening > _FRONT_MATTER_CHARACTERS:
        opening = 0
    contents = _CONTENTS.search(text, 0, _FRONT_MATTER_CHARACTERS)
    found = [c for c in found if c.heading.start >= opening or _CONTENTS.fullmatch(c.heading.title)]
    found = counting(found, contents.start() if contents else None)
    numbered = sum(c.kind == "number" for c in found) >= 3
    headings: list[Heading] = []
    for heading, kind, *_ in found:
        if kind != "number" and numbered and not _FRAME.match(heading.title):
            continue
        if not headings or heading.start >= headings[-1].end:
            headings.append(heading)
    ends = [*(heading.start for heading in headings[1:]), len(text)]
    return [
        h
        for h, end in zip(headings, ends, strict=False)
        if not _CONTENTS.fullmatch(h.title) or _lists_pages(text[h.end : end])
    ]


def _lists_pages(text: str) -> bool:
    """Return whether enough lines end with a page number.

    Unknown headings after such a list would make the text part of it.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    return sum(_ENDS_WITH_PAGE.search(line) is not None for line in lines) >= _LEAST_ENTRIES * len(
        lines
    )


def _within(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a place lies in one of some ordered spans."""
    before = bisect_right(spans, at, key=lambda span: span[0])
    return before > 0 and at < spans[before - 1][1]


def _candidates(text: str, isolated_caps: bool) -> Iterator[HeadingCandidate]:
    run_in = _RUN_IN.search(text, 0, _FRONT_MATTER_CHARACTERS)
    if run_in is not None:
        yield HeadingCandidate(
            _heading(text, run_in.start("known"), run_in.end("known"), 1), "known"
        )
    for match in _CANDIDATE.finditer(text):
        line = match.group()
        start, end = (
            match.start() + len(line) - len(line.lstrip()),
            match.end() - len(line) + len(line.rstrip()),
        )
        number, title = match["number"] or match["chapter"], (match["title"] or "").rstrip()
        if match["known"]:
            if not line.lstrip()[0].islower():
                yield HeadingCandidate(_heading(text, start, end, 1), "known")
        elif (
            number
            and _is_title(title)
            and not _continues(text, end)
            and (number[0].isdigit() or len(title) > 3)
        ):
            yield HeadingCandidate(
                _heading(text, start, end, number.count(".") + 1),
                "number",
                number,
                title,
                _style(match),
            )
        elif _is_capital_line(line) and (
            not isolated_caps or _stands_alone(text, match.start(), match.end())
        ):
            yield HeadingCandidate(_heading(text, start, end, 1), "caps")


def _style(match: re.Match[str]) -> Literal["bare", "stop", "chapter"]:
    if match["chapter"]:
        return "chapter"
    return "stop" if match.string.startswith(".", match.end("number")) else "bare"


def _opens_paper(title: str) -> bool:
    lowered = title.lower()
    return lowered.startswith("abstract") or lowered.endswith("introduction")


def _heading(text: str, start: int, end: int, level: int) -> Heading:
    return Heading(start, end, level, " ".join(text[start:end].split()))


def _is_title(title: str) -> bool:
    if (
        len(title.split()) > _MAX_WORDS
        or title[0].islower()
        or title[-1] in _NO_END
        or _NOT_A_TITLE.search(title)
    ):
        return False
    letters = sum(map(str.isalpha, title))
    return letters >= (2 if title[0] > "\u2e80" else 3) and letters >= 0.6 * len(
        title.replace(" ", "")
    )


def _continues(text: str, end: int) -> bool:
    """Return whether the line continues in the next: a list item, not a heading."""
    following = text[end : end + 24].lstrip(" \t").removeprefix("\n").lstrip(" \t")
    return following[:1].islower()


def _is_capital_line(line: str) -> bool:
    letters = sum(map(str.isalpha, line))
    return (
        line.isupper()
        and letters >= 0.7 * len(line.replace(" ", ""))
        and len(line.split()) <= 8
        and line.rstrip()[-1] not in ",-(/"
        and not _INDEXED.search(line)
        and _CAPITAL_WORD.search(line) is not None
    )


def _stands_alone(text: str, start: int, end: int) -> bool:
    return (start == 0 or text[max(0, start - 2) : start] in ("\n\n", "\n")) and text[
        end : end + 2
    ] in ("", "\n", "\n\n")
