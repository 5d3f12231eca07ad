"""Decide which numbered lines are headings: in sequence, outside contents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, NamedTuple

from app.core.types import Heading

_ENTRY = re.compile(r"(?P<title>.*\w)[\W_]+(?P<page>\d{1,4})\Z")
_LEAST_ENTRIES = 2
"""Of a table of contents, its lines with leaders aside, which are no candidates anyway."""
_FARTHEST_ENTRY = 5_000
"""Characters from one of its sections to the next, over a page of subsections."""
_MOST_MISSED = 4
"""Numbers in a row that are on lines of another form."""
_SHORTEST_SECTION = 400
_MOST_OF_SECTIONS = 0.9
"""Numbers of one style are preferred that find so many of the sections which all find."""
_LISTS = ("references", "bibliography")
_ROMAN = {
    "I": 1,
    "II": 2,
    "III": 3,
    "IV": 4,
    "V": 5,
    "VI": 6,
    "VII": 7,
    "VIII": 8,
    "IX": 9,
    "X": 10,
    "XI": 11,
    "XII": 12,
}


class HeadingCandidate(NamedTuple):
    """A line that may be a heading."""

    heading: Heading
    kind: Literal["known", "number", "caps"]
    number: str = ""
    """Levels divided by full stops: `3.1`, `A.2`, `IV`, `II.A`."""
    title: str = ""
    """What stands behind the number."""
    style: Literal["bare", "stop", "chapter"] = "bare"
    """`3 Results`, `3. Results`, `Chapter 3: Results`."""


def counting(found: list[HeadingCandidate], contents: int | None) -> list[HeadingCandidate]:
    """Return candidates in order whose numbers count up, or that have none.

    Numbers are Arabic ones with letters for appendices, or, where the first to count are, Roman
    ones with letters below them and Arabic ones below those (IEEE, APS).

    Args:
        found: In order.
        contents: Where the text says that its table of contents begins; None if it does not.
    """
    found = _without_contents(found, contents)
    mixed, roman = _arabic(found), _roman(found)
    alike = max((_arabic(some) for some in _by_style(found)), key=_sections, default=mixed)
    arabic = alike if _sections(alike) >= _MOST_OF_SECTIONS * _sections(mixed) else mixed
    first = next((c for c in arabic if c.number[:1].isdigit()), None)
    romans = [c for c in roman if c.number in _ROMAN]
    dotted = any(c.number[:1].isdigit() and "." in c.number for c in arabic)
    if (
        len(romans) >= 2
        and not dotted
        and (first is None or romans[0].heading.start < first.heading.start)
    ):
        return roman
    return arabic


def _without_contents(
    found: list[HeadingCandidate], contents: int | None
) -> list[HeadingCandidate]:
    """Drop the entries of a table of contents.

    They stand close together and end with page numbers that do not fall; one of them comes again as
    a heading, or the text says what they are. Otherwise they would count first, and the headings
    themselves would be out of sequence.
    """
    again = [(c.number, c.title.casefold()) for c in found]
    last = {key: at for at, key in enumerate(again)}
    runs: list[list[int]] = []
    before = (0, 0)
    for at, candidate in enumerate(found):
        entry = _ENTRY.match(candidate.title) if candidate.number else None
        if entry is None:
            continue
        start, page = candidate.heading.start, int(entry["page"])
        if not runs or start - before[0] > _FARTHEST_ENTRY or page < before[1]:
            runs.append([])
        runs[-1].append(at)
        before = start, page
    dropped: set[int] = set()
    for run in runs:
        announced = (
            contents is not None and 0 < found[run[0]].heading.start - contents < _FARTHEST_ENTRY
        )
        if len(run) >= _LEAST_ENTRIES and (
            announced or any(last.get(_heading_of(found[at]), -1) > at for at in run)
        ):
            dropped.update(run)
    return [candidate for at, candidate in enumerate(found) if at not in dropped]


def _heading_of(candidate: HeadingCandidate) -> tuple[str, str]:
    """Return number and title of the heading that a contents entry names.

    Letter case is ignored.
    """
    entry = _ENTRY.match(candidate.title)
    return candidate.number, entry["title"].casefold() if entry else ""


def _by_style(found: list[HeadingCandidate]) -> Iterator[list[HeadingCandidate]]:
    """Yield candidates grouped by the style of each level's numbers.

    List items and footnotes often have another style.
    """
    styles = {c.style for c in found if c.number.isdigit()}
    for style in sorted(styles) if len(styles) > 1 else ():
        yield [c for c in found if c.style == style or not c.number.isdigit()]


def _sections(kept: list[HeadingCandidate]) -> int:
    """Count the numbered ones that text follows."""
    starts = [c.heading.start for c in kept]
    return sum(
        bool(c.number) and end - c.heading.start > _SHORTEST_SECTION
        for c, end in zip(kept, starts[1:], strict=False)
    )


def _arabic(found: list[HeadingCandidate]) -> list[HeadingCandidate]:
    """Drop numbered lines out of sequence: list items, table rows, footnotes.

    Letters count only after other headings. A number that comes nowhere later has been missed, and
    the count goes on behind it.
    """
    later = {candidate.number.partition(".")[0]: at for at, candidate in enumerate(found)}
    kept: list[HeadingCandidate] = []
    seen: set[tuple[str, str]] = set()
    last = 0
    letter = ""
    for at, candidate in enumerate(found):
        top, _, deeper = candidate.number.partition(".")
        key = (candidate.number, candidate.title.casefold())
        if top and key in seen:  # at the head of a page once more
            continue
        if top.isdigit():
            value = int(top)
            follows = value == last + 1 or (
                0 < last < value <= last + _MOST_MISSED
                and all(later.get(str(missed), -1) < at for missed in range(last + 1, value))
            )
            if letter or not (follows or (deeper and value == last)):
                continue
            last = value
        elif top in _ROMAN:
            continue
        elif top:
            expected = chr(ord(letter) + 1) if letter else "A"
            if not kept or top not in ((letter, expected) if deeper else (expected,)):
                continue
            letter = top
        seen.add(key)
        kept.append(candidate)
    return kept


def _roman(found: list[HeadingCandidate]) -> list[HeadingCandidate]:
    """Keep Roman numbers in sequence, letters below them, then Arabic numbers.

    The first Roman number may be missing. Behind a list of references nothing counts: there, such
    lines begin with an author's initial.
    """
    kept: list[HeadingCandidate] = []
    section, letter, item = 0, "", 0
    for candidate in found:
        if candidate.kind == "known" and candidate.heading.title.lower().startswith(_LISTS):
            return kept + [
                c for c in found if c.heading.start >= candidate.heading.start and not c.number
            ]
        top, *deeper = candidate.number.split(".")
        level = 1 + len(deeper)
        if top in _ROMAN:
            value = _ROMAN[top]
            if value != (section if deeper else section + 1) and (section, value, deeper) != (
                0,
                2,
                [],
            ):
                continue
            section, letter, item = value, deeper[0] if deeper else "", 0
        elif top.isdigit():
            if deeper or not letter or int(top) != item + 1:
                continue
            item, level = item + 1, 3
        elif top:
            if deeper or not section or top != (chr(ord(letter) + 1) if letter else "A"):
                continue
            letter, item, level = top, 0, 2
        kept.append(
            candidate._replace(heading=replace(candidate.heading, level=level))
            if top
            else candidate
        )
    return kept
