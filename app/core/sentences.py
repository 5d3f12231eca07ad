"""Split text into sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from app.core.dates import MONTHS
from app.core.languages import LANGUAGES

# Abbreviations after which a full stop does not end a sentence, lower-case without the stop.
_ABBREVIATIONS = frozenset(
    "al approx art av bros ca cf ch co col corp dept dr ed eds eg eq eqs esp est etc fig"
    " figs fl ft gen gov hon hr ie inc incl jr lt ltd maj messrs min mr mrs ms mt no nos nr"
    " op p pl pp prof rep rev ref refs sec sen sgt sr st tab vol vols vs viz jan feb mar"
    " apr jun jul aug sep sept oct nov dec e.g i.e u.s u.k u.n ph.d b.c a.d a.m p.m d.c".split()
)
_ABBREVIATIONS |= frozenset(
    word for language in LANGUAGES.values() for word in language.abbreviations.split()
)
_NEVER_FINAL = frozenset(
    "dr mr mrs ms prof st sr jr fig figs eq eqs cf vs vol vols pp ed eds e.g i.e eg ie gen lt col"
    " sgt rev hon no nos v".split()
)
_BOUNDARY = re.compile(
    # All begin with one of a few characters, which are found at a tenth of the cost of asking each
    # alternative everywhere.
    r"[.!?\u061f\u06d4\u2026\u3002\uff01\uff1f\n](?:"
    # Runs are taken whole, from their beginning: giving characters back could not help, and would
    # cost the square of their number.
    r"(?<=[.!?\u061f\u06d4\u2026])(?<![.!?\u061f\u06d4\u2026]{2})"
    r"(?P<stop>[.!?\u061f\u06d4\u2026]*+[\"'\u201d\u2019)\]]*+(?:\[\d+\])*+)(?=\s|\Z)"
    r"|(?<=[\u3002\uff01\uff1f])(?P<cjk>[\u3002\uff01\uff1f]*[\u300d\u300f\u201d\u2019]*)"
    r"|(?<=\n)(?:(?P<gap>[ \t]*\n\s*)|(?P<line>)))"
)
_AT_TIME = (
    r"\[?(?:\d{4}[-/]\d\d?[-/]\d\d?|\d\d?[./]\d\d?[./]\d{2,4})(?:T|,? )\d\d?:\d\d"
    r"|\[\d\d?:\d\d"
)
AT_TIME = re.compile(_AT_TIME)
"""A line of a log or chat begins with its time."""
_LINE_START = re.compile(rf"[ \t]*(?:(?:[-*\u2022\u2013#>|]|\d{{1,3}}[.)])[ \t]+|{_AT_TIME})")
_ITEM_NUMBER = re.compile(r"\s*\d{1,3}[.)][ \t]*\n?")
"""All that stands between two boundaries, the second no blank line."""
_LONGEST_ITEM_NUMBER = 12
"""Characters, blanks before it included: what is longer need not be looked at."""


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Return half-open spans of sentences within `[start, end)`, in order.

    Blank margins are trimmed. Every non-blank character is in exactly one span. Blank lines always
    end a sentence; single line breaks do where a list item or heading starts or the line before it
    ended short without punctuation and the next begins in upper case. The number of an item belongs
    to what it numbers. A table's row, `Name | Label: value`, is one sentence whatever its cells
    say.
    """
    stop = len(text) if end is None else end
    spans: list[tuple[int, int]] = []
    begin = start
    places = _boundaries(text, start, stop)
    for at in places if text.find(CELLS, start, stop) < 0 else _beside_rows(text, start, stop):
        if at - begin <= _LONGEST_ITEM_NUMBER and _ITEM_NUMBER.fullmatch(text, begin, at):
            continue
        _append_trimmed(spans, text, begin, at)
        begin = at
    _append_trimmed(spans, text, begin, stop)
    return spans


CELLS = " | "
"""Stands between the cells of a table's row."""
_LABEL = re.compile(r"[^\s:]: \S")
_PROSE = re.compile(r"[a-z)]{3}[.!?] [A-Z]")
"""An end of a sentence, which no row's first cell has."""


def is_row(line: str) -> bool:
    """Return whether a line is a row of a table with labels in its cells."""
    first, *cells = line.split(CELLS)
    return bool(cells) and _LABEL.search(line) is not None and _PROSE.search(first) is None


_LABELS = re.compile(r"(?:(?<=\A)|(?<= \| ))[^:|=\n]{1,60}(?=:[ \t]|[ \t]?=)")
_SHORT = re.compile(r"(?<![^\W_])[^\W\d_]+(?![^\W_])\.?|n[\u00b0\u00ba]")
_SPELT: Mapping[str, str] = {
    short: spelt
    for language in reversed(list(LANGUAGES.values()))
    for short, _, spelt in (one.partition("=") for one in language.short_labels.split())
} | {month[:3]: month for month in MONTHS}
_OF_TIME = frozenset(
    short for short, spelt in _SPELT.items() if spelt in MONTHS or spelt[-3:] == "day"
)
"""Short names of months and days, which mean something else among other words."""


def spelt_out(line: str) -> str:
    """Return a row or a field with short forms in its labels spelt out: `Feb`, `no.`, `tel.`."""

    def spelt(label: re.Match[str]) -> str:
        is_time = len(_SHORT.findall(label.group())) == 1

        def word(found: re.Match[str]) -> str:
            short = found.group().rstrip(".").lower()
            known = is_time or short not in _OF_TIME
            return _SPELT.get(short, found.group()) if known else found.group()

        return _SHORT.sub(word, label.group())

    return _LABELS.sub(spelt, line)


def _beside_rows(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield boundaries of a text with rows: none is in a row, one is on each side of it."""
    begin = at = start
    while at < stop:
        after = (text.find("\n", at, stop) + 1) or stop
        if is_row(text[at:after]):
            yield from (one for one in _boundaries(text, begin, at) if one < at)
            yield from (at, after)
            begin = after
        at = after
    yield from _boundaries(text, begin, stop)


def _append_trimmed(spans: list[tuple[int, int]], text: str, begin: int, at: int) -> None:
    while begin < at and text[begin].isspace():
        begin += 1
    while at > begin and text[at - 1].isspace():
        at -= 1
    if begin < at:
        spans.append((begin, at))


def _boundaries(text: str, start: int, stop: int) -> Iterator[int]:
    for match in _BOUNDARY.finditer(text, start, stop):
        if match.lastgroup in {"gap", "cjk"}:
            yield match.end()
        elif match.lastgroup == "line":
            if _line_breaks_sentence(text, match.start(), match.end(), start, stop):
                yield match.end()
        elif _stop_ends_sentence(text, match.start(), match.end(), start, stop):
            yield match.end()


def _line_breaks_sentence(text: str, at: int, after: int, start: int, stop: int) -> bool:
    if _LINE_START.match(text, after, stop):
        return True
    line_start = text.rfind("\n", start, at) + 1 or start
    line = text[line_start:at].strip()
    rest = text[after : after + 1]
    longest = 100 if _NUMBERED.match(line) else 50
    short = len(line) < longest and not line.endswith((",", ";", "-", "\u2013", "("))
    begins = rest.isupper() or rest.isdigit()
    if short and line and begins and line.split()[-1].lower() not in _CONTINUING:
        return True
    return _is_between_fields(text, line_start, after, start, stop)


_FIELD = re.compile(
    r"[ \t]*[^\W\d](?:[\w/()-]|\.(?! )| (?! )){0,40}(?::[ \t]+|[ \t]?=[ \t]?)(?![=>])"
    r"[^\s][^\n]{0,200}(?:\n|\Z)"
)
"""A line that is a label with its value."""


def _is_between_fields(text: str, at: int, after: int, start: int, stop: int) -> bool:
    """Return whether a line end is one of several lines `label: value` or `label=value`.

    The lines before it and after it begin at `at` and `after`.
    """
    is_field = _FIELD.match(text, at, stop) is not None
    if _FIELD.match(text, after, stop):
        behind = text.find("\n", after, stop) + 1
        return is_field or (behind > 0 and _FIELD.match(text, behind, stop) is not None)
    before = text.rfind("\n", start, max(start, at - 1)) + 1 or start
    return is_field and before < at and _FIELD.match(text, before, stop) is not None


_NUMBERED = re.compile(r"(?:\d{1,2}\.|\d{1,2}(?:\.\d{1,2})+\.?|\d{1,2})[ \t]+[A-Z][a-z]")
"""How a numbered heading begins."""
_CONTINUING = frozenset(
    "the a an of in on at to for by and or with from as is are was were that which".split()
)


def _stop_ends_sentence(text: str, at: int, after: int, start: int, stop: int) -> bool:
    found = _NOT_BLANK.search(text, after, stop)
    following = found.group() if found else ""
    if following.islower():
        return False
    if text[at] != "." or text[at : at + 2] in ("..", ".\u2026"):
        return True
    word = _WORD_BEFORE.search(text, max(start, at - 40), at)
    return (
        not following
        or word is None
        or _may_be_final(
            word.group(),
            following,
            at_line_start=text[word.start() - 1 : word.start()] in ("", "\n"),
        )
    )


_OPENING = frozenset("([")
_NOT_BLANK = re.compile(r"\S")
_WORD_BEFORE = re.compile(r"[^\s(\[\"'\u201c\u2018]+\Z")
_DOTTED = re.compile(r"(?:[a-z]\.)+[a-z]\Z")


def stop_may_be_final(text: str) -> bool:
    """Return whether a final full stop ends a sentence: not after `Charles W`.

    Judged by the last word alone.
    """
    word = _WORD_BEFORE.search(text[-41:-1])
    return word is None or _may_be_final(word.group(), "", at_line_start=False)


def _may_be_final(word: str, following: str, *, at_line_start: bool) -> bool:
    """Return whether the full stop after `word` can end a sentence.

    `following` is the next visible character, which is not in lower case.
    """
    lowered = word.lower()
    # a title, or an initial: J. Smith
    if lowered in _NEVER_FINAL or (len(word) == 1 and word.isupper()):
        return False
    if lowered in _ABBREVIATIONS or _DOTTED.match(lowered):  # Smith et al. (2003)
        return lowered in _MAY_END and not (following.isdigit() or following in _OPENING)
    return not (at_line_start and word.isdigit() and len(word) <= 3)  # a numbered item: "1. Title"


_MAY_END = frozenset("etc inc ltd co corp bros ph.d b.c a.d a.m p.m d.c al".split())
