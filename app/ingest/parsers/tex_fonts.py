"""Text of TeX fonts that a PDF does not name, or names wrongly.

Papers set with bitmap fonts, or without a table from glyphs to characters, give PDFium the code of
a glyph instead of a character, U+001B in the middle of `different`. The codes below space are those
of TeX's two text encodings, and which of the two a document uses shows where one of them stands
inside a word. Codes of formulas are others' and stay unknown.

Older ones call the glyph of code 101 `a101`, which is also a name in the font Zapf Dingbats: an
ornament, U+2761, for every `e`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_T1 = {"\x1b": "ff", "\x1c": "fi", "\x1d": "fl", "\x1e": "ffi", "\x1f": "ffl"}
"""Cork encoding. Knappen: The European Computer Modern fonts, 1990; LaTeX's encoding guide,
section 2."""
_OT1 = {"\x0b": "ff", "\x0c": "fi", "\x0e": "ffi", "\x0f": "ffl"}
"""Knuth: Computer Modern Typefaces, 1986. Its fl is the carriage return, which PDFium writes at
every line end: left out."""
_T1_MARKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\x10(?=\w)"), "\u201c"),
    (re.compile(r"(?<=[\w.,;:!?])\x11"), "\u201d"),
    (re.compile(r"\x15(?:(?<=\d\x15)(?=\d)|(?<=\w \x15)(?= \w))"), "\u2013"),
    (re.compile(r"\x16(?:(?<=\w\x16)(?=\w)|(?<=\w \x16)(?= \w))"), "\u2014"),
)
_NO_CODES = bytes([*b"\x02\t\n\r", *range(0x20, 0x7F), *range(0x80, 0x100)])
_LETTER = r"[^\W\d_]"

# Adobe: zapfdingbats.txt of the Adobe Glyph List, 2002. First code, first character, how many;
# codes are of the encodings above.
_RUNS = (
    *(
        (11, 0x261B, 1),
        (12, 0x261E, 1),
        (14, 0x270D, 3),
        (17, 0x2711, 12),
        (29, 0x2722, 6),
        (35, 0x2605, 1),
        (36, 0x2729, 35),
    ),
    *(
        (71, 0x25CF, 1),
        (72, 0x274D, 1),
        (73, 0x25A0, 1),
        (74, 0x274F, 1),
        (75, 0x2751, 1),
        (76, 0x25B2, 1),
        (77, 0x25BC, 1),
    ),
    *(
        (78, 0x25C6, 1),
        (79, 0x2756, 1),
        (81, 0x25D7, 1),
        (82, 0x2758, 3),
        (85, 0x276F, 1),
        (86, 0x2771, 3),
        (89, 0x2768, 2),
    ),
    *(
        (91, 0x276C, 2),
        (93, 0x276A, 2),
        (95, 0x2774, 2),
        (97, 0x275B, 4),
        (101, 0x2761, 4),
        (105, 0x2710, 1),
        (106, 0x2765, 3),
    ),
    *(
        (109, 0x2660, 1),
        (110, 0x2665, 2),
        (112, 0x2663, 1),
        (117, 0x2709, 1),
        (118, 0x2708, 1),
        (119, 0x2707, 1),
    ),
    *((120, 0x2460, 10),),
)
_ORNAMENTS = {first + at: code + at for code, first, count in _RUNS for at in range(count)}
_ORNAMENTS |= {
    0x270C: 0xFB02,
    0x272C: 0x2019,
    0x2775: 0x2018,
}  # the older encoding's fl in one character, quotation marks
_ORNAMENT = re.compile("[" + "".join(map(chr, sorted(_ORNAMENTS))) + "]")
_PREFIXES = sorted({chr(point).encode()[:2] for point in _ORNAMENTS})
"""Of ornaments in UTF-8: a look for those takes a tenth of the expression's time."""
_ORNATE = 0.2
"""Least share of ornaments among the visible characters of a page whose letters they are; of a
text that is more than half."""
_BROKEN_WORD = re.compile(rf"(?<={_LETTER})-\r?\n(?={_LETTER})")


def name_tex_codes(pages: Sequence[str]) -> list[str]:
    """Return page texts with codes of TeX fonts replaced by their characters.

    A ligature is replaced where it touches a letter; marks only in documents that have ligatures of
    the same encoding. Pages of ornaments become letters, words that are broken at their line ends
    marked as PDFium marks them, by U+0002.
    """
    pages = [
        page if (plain := without_ornaments(page)) == page else _BROKEN_WORD.sub("\x02", plain)
        for page in pages
    ]
    coded = [at for at, page in enumerate(pages) if has_codes(page)]
    for codes, marks in ((_T1, _T1_MARKS), (_OT1, ())):
        inside, beside = _patterns("".join(codes))
        if any(inside.search(pages[at]) for at in coded):
            for at in coded:
                pages[at] = _named(pages[at], codes, beside, marks)
            break
    return pages


def has_codes(page: str) -> bool:
    """Return whether a text holds control characters that TeX fonts use.

    Takes a tenth of the time of an expression.
    """
    return bool(page.encode("utf-8", "surrogatepass").translate(None, _NO_CODES))


def without_ornaments(page: str) -> str:
    """Return a page's text of equal length with ornament letters replaced by codes."""
    data = page.encode("utf-8", "surrogatepass")
    if (
        not any(prefix in data for prefix in _PREFIXES)
        or not _ORNAMENT.search(page)
        or len(_ORNAMENT.findall(page)) < _ORNATE * len("".join(page.split()))
    ):
        return page
    return page.translate(_ORNAMENTS)


def _patterns(codes: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return (
        re.compile(rf"[{codes}](?<={_LETTER}.)(?={_LETTER})", re.DOTALL),
        re.compile(rf"[{codes}](?:(?<={_LETTER}.)|(?={_LETTER}))", re.DOTALL),
    )


def _named(
    page: str,
    codes: Mapping[str, str],
    beside: re.Pattern[str],
    marks: Sequence[tuple[re.Pattern[str], str]],
) -> str:
    page = beside.sub(lambda found: codes[found.group()], page)
    for pattern, mark in marks:
        page = pattern.sub(mark, page)
    return page
