"""Find headings of plain text: numbers, short capital lines, paper sections."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from app.core.types import Heading, PageSpan

# Decide which numbered lines are headings: in sequence, outside contents.

_ENTRY = re.compile(r"(?P<title>.*\w)[\W_]+(?P<page>\d{1,4})\Z")
_LEAST_NUMBERED_ENTRIES = 2
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
    numeral: number
    for number, numeral in enumerate("I II III IV V VI VII VIII IX X XI XII".split(), 1)
}


class HeadingCandidate(NamedTuple):
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

    `contents` is where the text says that its table of contents begins; None if it does not.
    """
    found = _without_contents(found, contents)
    mixed, roman = _arabic(found), _roman(found)
    alike = max((_arabic(some) for some in _by_style(found)), key=_sections, default=mixed)
    arabic = alike if _sections(alike) >= _MOST_OF_SECTIONS * _sections(mixed) else mixed
    first = next((c for c in arabic if c.number[:1].isdigit()), None)
    romans = [c for c in roman if c.number in _ROMAN]
    dotted = any(c.number[:1].isdigit() and "." in c.number for c in arabic)
    is_roman = len(romans) >= 2 and not dotted
    if is_roman and (first is None or romans[0].heading.start < first.heading.start):
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
    last = {(c.number, c.title.casefold()): at for at, c in enumerate(found)}
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
        begin = found[run[0]].heading.start
        announced = contents is not None and 0 < begin - contents < _FARTHEST_ENTRY
        comes_again = any(last.get(_heading_of(found[at]), -1) > at for at in run)
        if len(run) >= _LEAST_NUMBERED_ENTRIES and (announced or comes_again):
            dropped.update(run)
    return [candidate for at, candidate in enumerate(found) if at not in dropped]


def _heading_of(candidate: HeadingCandidate) -> tuple[str, str]:
    """Return number and title, in lower case, of the heading that a contents entry names."""
    entry = _ENTRY.match(candidate.title)
    return candidate.number, entry["title"].casefold() if entry else ""


def _by_style(found: list[HeadingCandidate]) -> Iterator[list[HeadingCandidate]]:
    """Group candidates by the style of each level's numbers: footnotes often have another."""
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
            is_second = (section, value, deeper) == (0, 2, [])
            if value != (section if deeper else section + 1) and not is_second:
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
        heading = replace(candidate.heading, level=level) if top else candidate.heading
        kept.append(candidate._replace(heading=heading))
    return kept


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
    r"\d[.,]\d|\.{3}|\. \.|@|https?:|[=<>{}|\\\ufffd]|\w\[|\Achapter \d", re.IGNORECASE
)
_HAS_WORD = re.compile(r"[^\W\d_]{3}|[\u2e80-\uffff]{2}")
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
    """Return whether enough lines end with a page number for a table of contents."""
    lines = [line for line in text.split("\n") if line.strip()]
    entries = sum(_ENDS_WITH_PAGE.search(line) is not None for line in lines)
    return entries >= _LEAST_ENTRIES * len(lines)


def _within(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a place lies in one of some ordered spans."""
    before = bisect_right(spans, at, key=lambda span: span[0])
    return before > 0 and at < spans[before - 1][1]


def _candidates(text: str, isolated_caps: bool) -> Iterator[HeadingCandidate]:
    run_in = _RUN_IN.search(text, 0, _FRONT_MATTER_CHARACTERS)
    if run_in is not None:
        yield HeadingCandidate(_heading(text, *run_in.span("known"), 1), "known")
    for match in _CANDIDATE.finditer(text):
        line = match.group()
        start = match.start() + len(line) - len(line.lstrip())
        end = match.start() + len(line.rstrip())
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
            heading = _heading(text, start, end, number.count(".") + 1)
            yield HeadingCandidate(heading, "number", number, title, _style(match))
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
    if len(title.split()) > _MAX_WORDS or title[0].islower() or title[-1] in _NO_END:
        return False
    if _NOT_A_TITLE.search(title) or not _HAS_WORD.search(title):
        return False
    letters, visible = sum(map(str.isalpha, title)), len(title.replace(" ", ""))
    return letters >= (2 if title[0] > "\u2e80" else 3) and letters >= 0.6 * visible


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
    before, behind = text[max(0, start - 2) : start], text[end : end + 2]
    return before in ("", "\n\n", "\n") and behind in ("", "\n", "\n\n")


# Headings that a PDF's outline (its bookmarks) names.


class OutlineEntry(NamedTuple):
    level: int
    """From 1."""
    title: str
    page: int
    """Its index, from 0."""


_LEAST_MATCHED = 3
_MOST_LINES = 3
"""Of a heading."""
_LONGEST_NUMBER = 12
_NUMBERED = re.compile(
    r"(?:chapter|appendix|section|part|kapitel|chapitre|anhang)?[a-z]?[\divxlc]*\Z"
)
"""A number before a title, without stops and blanks, in lower case."""
_NO_LETTERS = re.compile(r"[\W_]+")
_LEADING_NUMBER = re.compile(
    r"\s*(?:(?:chapter|appendix|section|part|kapitel|chapitre|anhang)\s+)?"
    r"(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)+|[A-Z]|[IVXLC]+)(?:[.:)]\s*|\s+)(?=\S)",
    re.IGNORECASE,
)


def with_outline(
    text: str,
    pages: Sequence[PageSpan],
    outline: Sequence[OutlineEntry],
    found: Sequence[Heading],
    apart: Sequence[tuple[int, int]] = (),
) -> list[Heading]:
    """Return the headings of an outline whose titles stand in the text, with those it leaves out.

    Those are the frame of a paper (abstract, references), and numbered ones deeper than it goes. An
    outline of which hardly anything is found adds to what the text says.

    Args:
        text: With the lines of the pages.
        pages: Where they are.
        outline: In order.
        found: What the text itself says.
        apart: See `find_headings`.
    """
    named: list[Heading] = []
    lines: dict[int, list[tuple[int, int, str]]] = {}
    for entry in outline:
        wanted = {_key(entry.title), _key(_LEADING_NUMBER.sub("", entry.title, count=1))} - {""}
        for index in (entry.page, entry.page + 1):
            if index >= len(pages) or not wanted:
                continue
            if index not in lines:
                lines[index] = _lines_of(text, pages[index], apart)
            after = named[-1].end if named else 0
            if (span := _find_title(lines[index], wanted, after)) is not None:
                title = " ".join(text[span[0] : span[1]].split())
                named.append(Heading(*span, entry.level, title))
                break
    trusted = len(named) >= max(_LEAST_MATCHED, len(outline) / 2)
    deepest = max((heading.level for heading in named), default=0)
    taken = {at for heading in named for at in range(heading.start, heading.end)}
    others = [
        heading
        for heading in found
        if heading.start not in taken
        and (not trusted or _FRAME.match(heading.title) or _depth(heading.title) > deepest)
    ]
    return sorted([*named, *others], key=lambda heading: heading.start)


def _depth(title: str) -> int:
    """Return the level that a title's number says, 0 without dots."""
    number = title.partition(" ")[0].rstrip(".")
    return number.count(".") + 1 if "." in number and number[-1:].isdigit() else 0


def _key(text: str) -> str:
    return _NO_LETTERS.sub("", unicodedata.normalize("NFKC", text)).casefold()


def _lines_of(
    text: str, page: PageSpan, apart: Sequence[tuple[int, int]]
) -> list[tuple[int, int, str]]:
    """Return start, end and key of the lines of a page."""
    made = []
    start = page.start
    for line in text[page.start : page.end].split("\n"):
        if line.strip() and not _within(start, apart):
            left = start + len(line) - len(line.lstrip())
            made.append((left, left + len(line.strip()), _key(line)))
        start += len(line) + 1
    return made


def _find_title(
    lines: Sequence[tuple[int, int, str]], wanted: set[str], after: int
) -> tuple[int, int] | None:
    """Return the first span of up to three whole lines, behind `after`, that is a title."""
    for at, (start, _, _) in enumerate(lines):
        if start < after:
            continue
        joined = ""
        for _, end, key in lines[at : at + _MOST_LINES]:
            joined += key
            if any(_is_titled(joined, one) for one in wanted):
                if lines[at][2].isdigit() and _find_title(lines[at + 1 :], wanted, after):
                    break  # the number above is the page's
                return start, end
            if not any(_may_go_on(joined, one) for one in wanted):
                break
    return None


def _may_go_on(line: str, title: str) -> bool:
    """Return whether a line, perhaps behind a number, is the beginning of a title."""
    return any(title.startswith(line[at:]) for at in range(_LONGEST_NUMBER))


def _is_titled(line: str, title: str) -> bool:
    """Return whether a line is a title, perhaps behind its number."""
    if line == title:
        return True
    number = line.removesuffix(title)
    return number != line and len(number) <= _LONGEST_NUMBER and _NUMBERED.match(number) is not None
