"""Classify a message without a model: question, pleasantry, or look back.

A look back asks about the conversation. Only whole messages count as pleasantries ("Hello!",
"vielen Dank"), so that "Hello, what is entropy?" stays a question. What is polite and empty in
front of a question is taken off before it is embedded, because it pulls the vector away from the
subject.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from app.answer import phrases
from app.answer.phrases import Pleasantry
from app.core.languages import LANGUAGES
from app.core.types import Message

_SPECIAL = str.maketrans("ßøæœ\u0131\u2019\u2018", "soaoi''")


def folded(text: str) -> str:
    """Return text in lower case without accents, with offsets unchanged."""
    if text.isascii():
        return text.lower()
    return "".join(map(_without_mark, text)).translate(_SPECIAL)


def _without_mark(char: str) -> str:
    """Return a letter in lower case without its accent; a syllable of Hangul as it is."""
    parts = unicodedata.normalize("NFD", char)
    is_syllable = len(parts) > 1 and not unicodedata.combining(parts[1])
    return char if is_syllable else (parts[0].lower() or char)[0]


def any_of(groups: Iterable[str]) -> str:
    """Return a pattern for one of several groups, not followed by a letter or digit."""
    return "(?:" + "|".join(groups) + r")(?!\w)"


_EMOJI = r"\U0001f300-\U0001faff\u2600-\u27bf\ufe0f"
_SIGNS = r"\u3001\u3002\uff01\uff0c\uff1f\u061f\u2026~\-\u2013\u2014\u00a1\u00bf"
_GAP = rf"[\s,;:.!?{_SIGNS}()'\"{_EMOJI}]*"
_SAYS: dict[tuple[Pleasantry, str], re.Pattern[str]] = {
    key: re.compile(r"\b" + any_of(map(folded, patterns)))
    for key, patterns in phrases.PLEASANTRIES.items()
}
_PLEASANTRIES = [folded(one) for patterns in phrases.PLEASANTRIES.values() for one in patterns]
_ONLY_PLEASANTRY = re.compile(rf"{_GAP}(?:\b{any_of([*_PLEASANTRIES, *phrases.FILLERS])}{_GAP})+")
_RECALL = re.compile(
    rf"{_GAP}{any_of(phrases.RECALLS)}(?:\s+{any_of(phrases.RECALL_ENDINGS)})*{_GAP}"
)
_STOP = r"\s*[,.!;:\u2026]+\s*|\s*[\u2013\u2014]\s*|\s+-+\s+|\s+"
_LEAD_IN = re.compile(
    rf"[\s\u00bf\u00a1]*(?:{any_of(_PLEASANTRIES)}(?:\s+(?:there|everyone|all|again|documind"
    rf"|bot)\b)?(?:{_STOP})"
    rf"|{any_of(phrases.LEAD_INS)}(?:{_STOP}))"
)


@dataclass(frozen=True, slots=True)
class Intent:
    """The kind of a message.

    `text` is the question without polite words in front; the whole message for other kinds.
    """

    kind: Literal["question", "greeting", "thanks", "recall"]
    text: str
    reply: str = ""
    """The canned answer to a pleasantry."""


def detect(message: str) -> Intent:
    """Return what a message wants; no model, no state.

    A greeting or thanks must be the whole message; the reply is in the same language.
    """
    plain = folded(message)
    if _ONLY_PLEASANTRY.fullmatch(plain):
        for (kind, language), pattern in _SAYS.items():
            if pattern.search(plain):
                one = LANGUAGES[language]
                return Intent(kind, message, one.welcome if kind == "thanks" else one.greeting)
    question = without_politeness(message)
    if _RECALL.fullmatch(folded(question)):
        return Intent("recall", message)
    return Intent("question", question)


def without_politeness(message: str) -> str:
    """Return the message without leading greetings and polite phrases.

    Never empty for a non-blank message. Idempotent; what is returned is the end of the message,
    words and case unchanged.
    """
    text = message.strip()
    while match := _LEAD_IN.match(folded(text)):
        rest = text[match.end() :]
        if not any(char.isalnum() for char in rest):
            break
        text = rest
    return text


def past_questions(history: Iterable[Message]) -> list[str]:
    """Return the user's past questions, oldest first, without pleasantries.

    Without look-backs too.
    """
    asked = [detect(message.content) for message in history if message.role == "user"]
    return [intent.text for intent in asked if intent.kind == "question"]
