"""A draft with what the model thought of each of its words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from app.core.sentences import sentence_spans
from app.core.types import Token

_MARK = re.compile(r"\[\d{1,4}\]")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Word:
    """A run of non-blank characters `[start, end)` of the draft.

    `probability` is that of its least probable token.
    """

    start: int
    end: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class UnsureSentence:
    """A sentence of a draft that holds an improbable word or a gap."""

    text: str
    start: int
    """Where it begins in the draft."""
    words: tuple[Word, ...]

    def without_words_under(self, probability: float) -> str:
        """Return the sentence without improbable words: Jiang 2023's implicit query."""
        return " ".join(word.text for word in self.words if word.probability >= probability)

    def least_sure_words(self) -> str:
        """Return the improbable words around the least probable: an explicit query."""
        lowest = min(range(len(self.words)), key=lambda i: self.words[i].probability)
        bound = max(2 * self.words[lowest].probability, 0.5)
        first = last = lowest
        while first > 0 and self.words[first - 1].probability < bound:
            first -= 1
        while last + 1 < len(self.words) and self.words[last + 1].probability < bound:
            last += 1
        return " ".join(word.text for word in self.words[first : last + 1])


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft's text and its words."""

    text: str
    words: tuple[Word, ...]
    has_probabilities: bool

    def first_unsure(self, threshold: float, skip: int = 0) -> UnsureSentence | None:
        """Return the first sentence with an unsure word or a `??` gap, else None.

        Args:
            threshold: Probability in [0, 1].
            skip: Sentences at the start that count as sure.
        """
        for start, end in sentence_spans(self.text)[skip:]:
            words = tuple(word for word in self.words if word.start < end and word.end > start)
            if words and (
                "??" in self.text[start:end] or min(word.probability for word in words) < threshold
            ):
                return UnsureSentence(self.text[start:end], start, words)
        return None


def read_draft(tokens: Iterable[Token], accepted: str = "") -> Draft:
    """Return a draft from its tokens.

    Words without a letter or digit and citation marks are as probable as can be: they claim
    nothing. A model that repeats the accepted beginning instead of going on after it has it taken
    off.

    Args:
        tokens: A finished call.
        accepted: What the model was to go on after.
    """
    pieces: list[tuple[int, int, float | None]] = []
    text = ""
    for token in tokens:
        pieces.append((len(text), len(text) + len(token.text), token.logprob))
        text += token.text
    begin = len(text) - len(text.lstrip())
    if accepted and text[begin:].startswith(accepted):
        begin += len(accepted)
        begin += len(text[begin:]) - len(text[begin:].lstrip())
    marks = [match.span() for match in _MARK.finditer(text)]
    words = []
    for match in _WORD.finditer(text, begin):
        start, end = match.span()
        known = [
            math.exp(logprob)
            for a, b, logprob in pieces
            if logprob is not None
            and a < end
            and b > start
            and _claims(text[max(a, start) : min(b, end)], a, b, marks)
        ]
        words.append(Word(start - begin, end - begin, match.group(), min(known, default=1.0)))
    return Draft(text[begin:], tuple(words), any(logprob is not None for *_, logprob in pieces))


def _claims(piece: str, start: int, end: int, marks: list[tuple[int, int]]) -> bool:
    return any(char.isalnum() for char in piece) and not any(
        a <= start and end <= b for a, b in marks
    )
