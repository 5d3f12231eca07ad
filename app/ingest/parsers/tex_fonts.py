"""Ligatures, quotation marks and dashes of TeX fonts that a PDF does not name.

Papers set with bitmap fonts, or without a table from glyphs to characters, give PDFium the code of a glyph instead of a character,
U+001B in the middle of `different`. The codes below space are those of TeX's two text encodings, and which of the two a document
uses shows where one of them stands inside a word. Codes of formulas are others' and stay unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_T1 = {"\x1b": "ff", "\x1c": "fi", "\x1d": "fl", "\x1e": "ffi", "\x1f": "ffl"}
"""Cork encoding. Knappen: The European Computer Modern fonts, 1990; LaTeX's encoding guide, section 2."""
_OT1 = {"\x0b": "ff", "\x0c": "fi", "\x0e": "ffi", "\x0f": "ffl"}
"""Knuth: Computer Modern Typefaces, 1986. Its fl is the carriage return, which PDFium writes at every line end: left out."""
_T1_MARKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\x10(?=\w)"), "\u201c"),
    (re.compile(r"(?<=[\w.,;:!?])\x11"), "\u201d"),
    (re.compile(r"\x15(?:(?<=\d\x15)(?=\d)|(?<=\w \x15)(?= \w))"), "\u2013"),
    (re.compile(r"\x16(?:(?<=\w\x16)(?=\w)|(?<=\w \x16)(?= \w))"), "\u2014"),
)
_LETTER = r"[^\W\d_]"


def name_tex_codes(pages: Sequence[str]) -> list[str]:
    """Return the texts of a document's pages with the codes of TeX's text fonts replaced by what they stand for.

    A ligature is replaced where it touches a letter; marks only in documents that have ligatures of the same encoding.
    """
    for codes, marks in ((_T1, _T1_MARKS), (_OT1, ())):
        inside, beside = _patterns("".join(codes))
        if any(inside.search(page) for page in pages):
            return [_named(page, codes, beside, marks) for page in pages]
    return list(pages)


def _patterns(codes: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return (
        re.compile(rf"[{codes}](?<={_LETTER}.)(?={_LETTER})", re.DOTALL),
        re.compile(rf"[{codes}](?:(?<={_LETTER}.)|(?={_LETTER}))", re.DOTALL),
    )


def _named(page: str, codes: Mapping[str, str], beside: re.Pattern[str], marks: Sequence[tuple[re.Pattern[str], str]]) -> str:
    page = beside.sub(lambda found: codes[found.group()], page)
    for pattern, mark in marks:
        page = pattern.sub(mark, page)
    return page
