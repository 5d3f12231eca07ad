"""The citation guard: marks `[n]` in an answer name evidence that exists.

Small models write marks in many ways: `[1, 2]`, `[1-3]`, `[Passage 2]`, `[^1]`, full-width
brackets, or as a Markdown link. All of these become `[1][2]`; numbers outside the evidence go. Code
spans are left alone, and so is `(1)`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from app.core.sentences import sentence_spans
from app.core.types import REFUSAL
from app.generation.language.claims import content_tokens

_ITEM = (
    r"(?:(?:passages?|sources?|documents?|docs?|refs?|references?|excerpts?|n|no\.?|p|\^"
    r"|#)[ \t]*[=:#]?[ \t]*)?\d{1,4}"
)
_SEPARATOR = r"[ \t]*(?:,|;|&|\band\b|-|\u2013|\u2014|\bto\b)[ \t]*"
_MARK = re.compile(
    rf"[ \t]*[\[\u3010](?P<body>[ \t]*{_ITEM}(?:{_SEPARATOR}{_ITEM})*[ \t]*)[\]\u3011]"
    r"(?:\((?=[^()\s]*[:/.#])[^()\s]*\))*",
    re.IGNORECASE,
)
_BARE_LINE = re.compile(r"^[ \t]*(?:\[\d{1,4}\][ \t.,;:]*)+(?:\n|\Z)", re.MULTILINE)
_FULL_STOPS = (".", "!", "\u3002", "\uff01")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_RANGE = re.compile(r"(\d{1,4})\s*(?:-|\u2013|\u2014|\bto\b)\s*\D{0,12}?(\d{1,4})")
_NUMBER = re.compile(r"\d{1,4}")
_MAX_MARK_CHARS = 60
"""A bracket that has not closed after so many characters is no mark; bounds what the stream
holds back."""

MARK = re.compile(r"\[(\d{1,4})\]")
"""A mark as it stands in a guarded answer."""


def mark_numbers(text: str) -> list[int]:
    """Return the numbers of the marks in a guarded text, in order, each once."""
    return list(dict.fromkeys(int(number) for number in MARK.findall(text)))


def without_marks(text: str) -> str:
    """Return a guarded text without its marks, for comparing words."""
    return re.sub(r"[ \t]*\[\d{1,4}\]", "", text).strip()


def with_mark(sentence: str, n: int) -> str:
    """Return a sentence with the mark `[n]` before its full stop.

    Or behind what closes the sentence.
    """
    body = sentence.rstrip(" \t|")
    tail = sentence[len(body) :]
    if body.endswith(_FULL_STOPS) and not body.endswith(".."):
        return f"{body[:-1].rstrip()} [{n}]{body[-1]}{tail}"
    return f"{body} [{n}]{tail}"


def normalise_marks(text: str, allowed: Collection[int]) -> str:
    """Return the text with allowed marks as `[n]`; remove all other marks.

    The blank before a removed mark goes too.

    Args:
        text: Model output.
        allowed: Numbers of the evidence.

    Returns:
        The text; idempotent, and unchanged where it has no marks.
    """
    pieces: list[str] = []
    at = 0
    for code in _CODE.finditer(text):
        pieces.append(_outside_code(text[at : code.start()], allowed))
        pieces.append(code.group())
        at = code.end()
    pieces.append(_outside_code(text[at:], allowed))
    return "".join(pieces)


def guard(text: str, allowed: Collection[int]) -> str:
    """Return a final answer: marks normalised, bare-mark lines gone, or the refusal.

    The refusal if no words are left.
    """
    guarded = _BARE_LINE.sub("", normalise_marks(text, allowed)).strip()
    return guarded if any(char.isalnum() for char in without_marks(guarded)) else REFUSAL


def _outside_code(text: str, allowed: Collection[int]) -> str:
    while True:  # taking a mark out can close the brackets around it into a new one: [[9]7]
        guarded = _MARK.sub(lambda match: _replacement(match, allowed), text)
        if guarded == text:
            return text
        text = guarded


def _replacement(match: re.Match[str], allowed: Collection[int]) -> str:
    mark = match.group()
    lead = mark[: len(mark) - len(mark.lstrip(" \t"))]
    kept = "".join(f"[{n}]" for n in _numbers(match.group("body"), allowed))
    return f"{lead}{kept}" if kept else ""


def _numbers(body: str, allowed: Collection[int]) -> list[int]:
    """Return the evidence numbers named by a mark's inside, in order, each once."""
    found: list[int] = []

    def spread(match: re.Match[str]) -> str:
        first, last = int(match.group(1)), int(match.group(2))
        found.extend(n for n in sorted(allowed) if first <= n <= last)
        return " "

    found.extend(int(number) for number in _NUMBER.findall(_RANGE.sub(spread, body)))
    return [n for n in dict.fromkeys(found) if n in allowed]


class StreamGuard:
    """Passes provisional tokens through and holds back what may become a mark.

    The pieces that come out, joined, are `normalise_marks` of the pieces that went in, except
    inside code and nested brackets; the closing event carries the exact text.
    """

    def __init__(self, allowed: Collection[int]) -> None:
        self._allowed = frozenset(allowed)
        self._held = ""

    def feed(self, piece: str) -> str:
        """Take the next piece of model output and return what can be shown now."""
        self._held += piece
        cut = self._safe_length()
        ready, self._held = self._held[:cut], self._held[cut:]
        return _outside_code(ready, self._allowed)

    def close(self) -> str:
        """Return what was still held back."""
        ready, self._held = self._held, ""
        return _outside_code(ready, self._allowed)

    def _safe_length(self) -> int:
        text = self._held
        opened = max(text.rfind("["), text.rfind("\u3010"))
        held = (
            opened >= 0 and len(text) - opened <= _MAX_MARK_CHARS and self._may_grow(text[opened:])
        )
        end = opened if held else len(text)
        while end and text[end - 1] in " \t":  # a mark that goes takes the blank before it along
            end -= 1
        return end

    @staticmethod
    def _may_grow(tail: str) -> bool:
        closed = max(tail.find("]"), tail.find("\u3011"))
        if closed < 0:
            return "\n" not in tail
        rest = tail[closed + 1 :]
        return rest == "" or (rest.startswith("(") and ")" not in rest)


# Decide which sentences claim something: no heading, table head or code.

_MARKUP = re.compile(r"[*_`#>|]+|^\s*[-+]\s+(?:\[[ xX]\]\s+)?|^\s*\d+[.)]\s+", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?:\A|(?<=\n\n))(?:(?: {4}|\t)[^\n]*(?:\n|\Z))+")
_CODE_ONLY = re.compile(r"\s*(?:[-*+]\s+)?`[^`]+`[.:;]?\s*")
_HEADING = re.compile(r"\s*#{1,6}\s")
_BOLD_LINE = re.compile(r"\s*(\*\*|__)(?:(?!\1).)+\1:?\s*")
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*")
_UNDERLINED = re.compile(r"[^\n]+\n(?:=+|-{3,})\s*")
_NUMBERED = re.compile(r"\s*\d{1,2}(?:\.\d{1,2})*\.?[ \t]+[A-Z]")
_ENDS, _LIST_ITEM = ".!;,\"'\u201d)", "-*+|\u2022"
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
        if sentence[-1] in _ENDS or sentence.lstrip()[0] in _LIST_ITEM:
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
