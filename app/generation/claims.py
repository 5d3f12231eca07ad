"""Decide which sentences claim something: no heading, table head or code.

No lead-in either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.core.sentences import sentence_spans
from app.generation.citations import without_marks
from app.generation.reading import content_tokens

_MARKUP = re.compile(r"[*_`#>|]+|^\s*[-+]\s+(?:\[[ xX]\]\s+)?|^\s*\d+[.)]\s+", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?:\A|(?<=\n\n))(?:(?: {4}|\t)[^\n]*(?:\n|\Z))+")
_CODE_ONLY = re.compile(r"\s*(?:[-*+]\s+)?`[^`]+`[.:;]?\s*")
_HEADING = re.compile(r"\s*#{1,6}\s")
_BOLD_LINE = re.compile(r"\s*(\*\*|__)(?:(?!\1).)+\1:?\s*")
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*")
_UNDERLINED = re.compile(r"[^\n]+\n(?:=+|-{3,})\s*")
_NUMBERED = re.compile(r"\s*\d{1,2}(?:\.\d{1,2})*\.?[ \t]+[A-Z]")
_ENDS, _ITEM = ".!;,\"'\u201d)", "-*+|\u2022"
"""Characters that headings do not end with, and that lists and tables begin with."""
_MOST_HEADING_WORDS = 10
_SMALL = frozenset("a an and as at by for from in into is of on or the to vs with".split())
"""Words that titles leave in lower case."""


def plain_claim(sentence: str) -> str:
    """Return a sentence without citation marks and markup, blanks single."""
    return " ".join(_MARKUP.sub(" ", without_marks(sentence)).split())


@dataclass(frozen=True, slots=True)
class ClaimReader:
    """Tells which spans of one text claim something."""

    text: str
    code: tuple[tuple[int, int], ...]
    """Spans of fenced and indented code."""

    @staticmethod
    def of(text: str) -> ClaimReader:
        """Look the text through for code."""
        return ClaimReader(
            text,
            tuple(match.span() for match in (*_FENCE.finditer(text), *_INDENTED.finditer(text))),
        )

    def claims(self, start: int, end: int) -> bool:
        """Return whether the sentence at `[start, end)` can be true or false."""
        sentence = self.text[start:end]
        plain = plain_claim(sentence)
        return not (
            any(begin < end and start < stop for begin, stop in self.code)
            or not content_tokens(plain)
            or plain.endswith((":", "?"))
            or _CODE_ONLY.fullmatch(sentence)
            or _TABLE_RULE.fullmatch(sentence)
            or self._is_heading(sentence, end)
            or self._is_table_head(sentence, end)
        )

    def _is_heading(self, sentence: str, end: int) -> bool:
        """Return whether a sentence is a heading.

        By its marks, or as a short line in title case or numbered, above other text.
        """
        if (
            _HEADING.match(sentence)
            or _BOLD_LINE.fullmatch(sentence)
            or _UNDERLINED.fullmatch(sentence)
        ):
            return True
        below = self.text[end:]
        words = sentence.split()
        if (
            "\n" in sentence
            or not below.startswith("\n\n")
            or not below.strip()
            or len(words) > _MOST_HEADING_WORDS
        ):
            return False
        if sentence[-1] in _ENDS or sentence.lstrip()[0] in _ITEM:
            return False
        titled = all(
            word[0].isupper() or not word[0].isalpha()
            for word in words
            if word.lower() not in _SMALL
        )
        return titled or bool(_NUMBERED.match(sentence))

    def _is_table_head(self, sentence: str, end: int) -> bool:
        """Return whether a sentence is a table's head row, with or without the rule."""
        rows = [
            row
            for row in f"{sentence}{self.text[end:].split(chr(10), 2)[0]}".split("\n")
            if row.strip()
        ]
        rows += self.text[end:].split("\n", 2)[1:2]
        return "|" in rows[0] and len(rows) > 1 and bool(_TABLE_RULE.fullmatch(rows[1]))


def claim_spans(text: str) -> list[tuple[int, int, bool]]:
    """Return start, end and whether it claims something, of every sentence.

    Only sentences with letters or digits.
    """
    reader = ClaimReader.of(text)
    spans = [
        (start, end)
        for start, end in sentence_spans(text)
        if any(char.isalnum() for char in text[start:end])
    ]
    return [(start, end, reader.claims(start, end)) for start, end in spans]
