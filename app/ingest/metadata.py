"""Find title, authors, year and arXiv id in parser data and leading text.

Guesses are careful and correctable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from app.core.dates import MONTHS
from app.core.normalisation import normalise
from app.core.types import Metadata, ParsedDocument

_LEADING_CHARACTERS = 4_000
_MAX_TITLE_CHARACTERS = 300
_MAX_AUTHORS = 100
_JUNK_TITLE = re.compile(
    r"\A(?:\(?(?:untitled|anonymous|unspecified)\b.*|word document|document\d*"
    r"|microsoft word\b.*"
    r"|powerpoint presentation|slide \d+|undefined|<[\da-f]*>"
    r"|.*\.(?:docx?|pdf|tex|dvi|e?ps|indd|html?|rtf|od[tp]|pptx?|xlsx?|txt|md)"
    r"|(?:arxiv|draft|preprint|title|no title|home|index).{0,12}|[\W\d_]*)\Z",
    re.IGNORECASE,
)
_NOT_A_TITLE = re.compile(
    r"published (?:as|in)|under review|proceedings|accepted (?:at|to|for)|preprint|arxiv:|doi[:.]"
    r"|https?:|www\.|@|^\W*\d+\W*$"
    r"|all rights reserved"
    r"|^(?:vol(?:ume)?|issn|isbn|page|journal of|copyright|\u00a9|draft|technical report|research"
    r" article"
    r"|original (?:article|paper))\b",
    re.IGNORECASE,
)
_LONGEST_LINE = 100
_PROSE = re.compile(r"[a-z\d)][.;] .*[.;,]\Z")
"""A stop within and one at the end: sentences."""
_AFFILIATION = re.compile(
    r"universit|institut|foundation|hugging face|mailing list|clinic\b|department|dept\b|school"
    r"|college|laborator|\blabs?\b|research\b|academy|centre|center\b|hospital|faculty|"
    r"google|microsoft|deepmind|openai|meta ai|\binc\b|\bltd\b|\bgmbh\b|corp\b|@|https?:|\{|demo:",
    re.IGNORECASE,
)
_FOOTNOTE_MARKS = "\u2217*\u2020\u2021\u00a7\u00b6\u2016#\u00b9\u00b2\u00b3\u2070-\u2079"
_MARKED_NAME = re.compile(rf"[{_FOOTNOTE_MARKS}]|(?<=[a-z])\d")
_MARKS = re.compile(rf"[{_FOOTNOTE_MARKS}\d]+")
_CAPITALISED = r"[^\W\d_a-z][\w'\u2019.-]*"
_NAME = re.compile(
    rf"{_CAPITALISED}(?:[ ](?:van|von|de|der|den|da|di|du|la|le|bin|al|el|ten|ter"
    rf"|{_CAPITALISED})){{1,5}}\Z"
)
_SEPARATORS = re.compile(r"\s*(?:,|;|&|\band\b|\u00b7|\u2022|\|)\s*|\s{2,}")
_LOWER_WORD = re.compile(r"\b[a-z]{3,}\b")
_COMMON_CHARACTERS = 60_000
_BY = re.compile(r"\A(?:by|authors?\s*:|written by)\s+", re.IGNORECASE)
_TITLE_RUNS_ON = frozenset(
    "a an the of in on at to for by and or with from as is are via using towards toward into under"
    " over versus vs between".split()
)
_ARXIV = re.compile(
    r"arXiv:\s?((?:\d{4}\.\d{4,5})|(?:[a-z-]+(?:\.[A-Z]{2})?/\d{7}))(?:v\d+)?"
    r"(?:\s*\[[\w.-]+\]\s*(\d{1,2}\s+\w{3,9}\s+(\d{4})))?"
)
_ARXIV_NAME = re.compile(r"(?<![\d.])(\d{4}\.\d{4,5})(?:v\d+)?(?![\d.])")
_DATED = re.compile(
    r"(?:published|conference|proceedings|journal|copyright|\u00a9|\(c\)|accepted|received"
    r"|workshop|symposium|date|updated)[^\n]{0,80}?"
    r"\b(?:19[5-9]\d|20[0-4]\d)\b(?:\s?[,\u2013-]\s?(?:19[5-9]\d|20[0-4]\d)\b)*",
    re.IGNORECASE,
)
_YEARS = re.compile(r"\b(?:19[5-9]\d|20[0-4]\d)\b")
_COPYRIGHT = re.compile(r"(?:copyright|\u00a9|\(c\))[^\n]*", re.IGNORECASE)
_DATE_LINE = re.compile(
    r"^\W*(?:\d{1,2}\.?\s+)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov"
    r"|dec)[a-z]*\.?\s+(?:\d{1,2},?\s+)?(19[5-9]\d|20[0-4]\d)\W*$"
    r"|^\W*(19[5-9]\d|20[0-4]\d)(?:-\d{2}-\d{2})?\W*$",
    re.IGNORECASE | re.MULTILINE,
)


def describe(parsed: ParsedDocument, filename: str) -> Metadata:
    """Return what can be told about a document.

    What the file itself declares wins (unless it is a template's default), except over the authors
    that a PDF's first page prints: a PDF often names the program or the person that made the file.
    Then the leading text, up to the abstract or the first heading, is read; the title falls back to
    the file name.
    """
    leading = parsed.text[:_LEADING_CHARACTERS]
    front = _front_lines(parsed, leading)
    arxiv_id, arxiv_year = _arxiv(leading, parsed, filename)
    is_paged = bool(parsed.pages) or any(
        h.title.lower().endswith("abstract") for h in parsed.headings[:4]
    )
    declared = _clean(parsed.title or "")
    declared = "" if _JUNK_TITLE.match(declared) else declared
    title_lines = _title_lines(front, paged=is_paged)
    title = declared or _heading_title(parsed) or " ".join(title_lines) or _title_of_name(filename)
    authors = _declared_authors(parsed.authors)
    printed = _authors(front, title_lines, parsed.text) if is_paged else ()
    if parsed.pages:  # printed names are trusted, unless the file declares all of them
        authors = _without_common(authors, parsed.text)
        authors = authors if set(printed) <= set(authors) else printed
    authors = authors or printed
    return Metadata(
        title=title[:_MAX_TITLE_CHARACTERS],
        authors=authors[:_MAX_AUTHORS],
        year=parsed.year or arxiv_year or _year(leading, front),
        arxiv_id=arxiv_id,
    )


def _front_lines(parsed: ParsedDocument, leading: str) -> list[str]:
    """Return the lines before the first heading after the title, which may be one.

    Paragraphs of a text without pages are parted by an empty line, which ends a title.
    """
    stops = [
        h.start
        for h in parsed.headings
        if h.start
        and h.title.lower().split(" ")[-1] in {"abstract", "introduction", "summary", "contents"}
    ]
    end = stops[0] if stops else next((h.start for h in parsed.headings if h.start), len(leading))
    apart = {block.start for block in parsed.blocks}  # rows, fields and notes
    lines: list[str] = []
    start = 0
    for line in leading[:end].split("\n"):
        parts = not line.strip() and not parsed.pages and lines[-1:] not in ([], [""])
        if parts or (line.strip() and start not in apart):
            lines.append(line.strip())
        start += len(line) + 1
    return lines[:30]


def _declared_authors(authors: tuple[str, ...]) -> tuple[str, ...]:
    """Split joined names; drop user names of an operating system, such as "python-docx"."""
    names: list[str] = []
    for entry in authors:
        for part in re.split(r"\s*;\s*|,?\s+and\s+", _clean(entry)):
            listed = re.split(r"\s*,\s*", part)
            names += (
                listed if all(" " in name for name in listed) else [part]
            )  # "Doe, Jane" stays one name
    return tuple(dict.fromkeys(name for name in names if " " in name))


def _clean(value: str) -> str:
    return " ".join(normalise(value)[0].split())


def _heading_title(parsed: ParsedDocument) -> str | None:
    """Return the first heading of level 1 at the very start of a marked-up text."""
    if not parsed.headings or parsed.pages or parsed.media_type == "text/plain":
        return None
    first = parsed.headings[0]
    opens = first.level == 1 and not parsed.text[: first.start].strip()
    return first.title if opens else None


def _title_lines(front: list[str], *, paged: bool) -> list[str]:
    start = next((i for i, line in enumerate(front[:8]) if _may_be_title(line, paged)), None)
    if start is None:
        return []
    lines = [front[start]]
    for line in front[start + 1 : start + 4]:
        if not _continues_title(lines[-1], line):
            break
        lines.append(line)
    return lines if sum(map(len, lines)) <= _MAX_TITLE_CHARACTERS else lines[:1]


def _may_be_title(line: str, paged: bool) -> bool:
    """Return whether a line can be a title.

    On pages, short ones are numbers and marks of a journal, and long ones, where a page of pictures
    comes first, text that flows.
    """
    if _NOT_A_TITLE.search(line) or len(line) < (4 if paged else 2):
        return False
    return not (paged and len(line) > _LONGEST_LINE and (line[0].islower() or _PROSE.search(line)))


def _continues_title(before: str, line: str) -> bool:
    if not line or _NOT_A_TITLE.search(line) or _MARKED_NAME.search(line):
        return False
    runs_on = before.rsplit(maxsplit=1)[-1].lower() in _TITLE_RUNS_ON
    if runs_on or before.endswith((":", "-", ",", "\u2013", "\u2014", "&")) or line[0].islower():
        return True
    if _AFFILIATION.search(line):
        return False
    if before.isupper() and line.isupper() and len(before) > 25:
        return True
    inner = {word.lower() for word in line.split()[1:]}
    return bool(inner & (_TITLE_RUNS_ON - {"and"})) and "," not in line and not line.endswith(".")


def _authors(front: list[str], title_lines: list[str], text: str) -> tuple[str, ...]:
    """Return the names on lines of their own behind the title, affiliations between them."""
    start = front.index(title_lines[-1]) + 1 if title_lines and title_lines[-1] in front else 0
    names: list[str] = []
    for line in front[start:]:
        found = _names_of(_BY.sub("", line))
        names += found
        if not found and not _AFFILIATION.search(line) and (names or len(line) > _LONGEST_LINE):
            break
    return _without_common(names, text)


def _without_common(names: Sequence[str], text: str) -> tuple[str, ...]:
    """Return what may be names: not mostly words that the text writes in lower case."""
    common = set(_LOWER_WORD.findall(text[:_COMMON_CHARACTERS])) if names else set()
    return tuple(dict.fromkeys(name for name in names if not _is_common(name, common)))


def _is_common(name: str, common: set[str]) -> bool:
    """Return whether more than half of it are such words, or an abbreviation leads (ETH Zurich)."""
    first, *rest = name.split()
    if len(first) > 2 and first.isupper() and not all(map(str.isupper, rest)):
        return True
    words = [word.lower() for word in name.split()]
    return 2 * sum(word in common or word in MONTHS for word in words) > len(words)


def is_name(text: str) -> bool:
    """Return whether a text looks like the name of a person: two to six words in capitals."""
    return len(text) <= 60 and _NAME.match(text) is not None and not _AFFILIATION.search(text)


def _names_of(line: str) -> list[str]:
    """Return a line's names if it holds nothing else; a number or mark ends a name."""
    if _AFFILIATION.search(line) or len(line) > 600:
        return []
    parts = [part.strip(" .,-") for part in _SEPARATORS.split(_MARKS.sub(" , ", line))]
    parts = [part for part in parts if part]
    return parts if parts and all(_NAME.match(part) and len(part) <= 60 for part in parts) else []


def _arxiv(leading: str, parsed: ParsedDocument, filename: str) -> tuple[str | None, int | None]:
    """Return the id without version and the year of the stamp, or of the id itself."""
    stamp = _ARXIV.search(parsed.text[: parsed.pages[0].end] if parsed.pages else leading[:1000])
    if stamp is not None:
        return stamp[1], int(stamp[3]) if stamp[3] else _arxiv_year(stamp[1])
    named = _ARXIV_NAME.fullmatch(PurePosixPath(filename).stem)
    return (named[1], _arxiv_year(named[1])) if named else (None, None)


def _arxiv_year(arxiv_id: str) -> int | None:
    year = int(arxiv_id.rsplit("/", maxsplit=1)[-1][:2])
    return (1900 if year > 90 else 2000) + year


def _year(leading: str, front: list[str]) -> int | None:
    """Return the year of publication: the last one of a range, and of copyrights."""
    dated = _DATED.search(leading)
    if dated:
        years = [int(year) for year in _YEARS.findall(dated[0])][-1:]
        for notice in _COPYRIGHT.finditer(leading) if _COPYRIGHT.match(dated[0]) else ():
            years += map(int, _YEARS.findall(notice[0]))
        return max(years)
    line = _DATE_LINE.search("\n".join(front))
    return int(line[1] or line[2]) if line else None


def _title_of_name(filename: str) -> str:
    stem = PurePosixPath(filename).stem if "." in filename.strip(".") else filename
    return " ".join(re.sub(r"[_\-]+", " ", stem).split()) or filename or "untitled"
