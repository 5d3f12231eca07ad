"""Where in its passage a sentence of an answer stands: deterministic, without a model.

A claim is compared with windows of one to three consecutive sentences by the weighted share of its words that the window holds; the
shortest best window becomes the quote. Weights are inverse document frequencies over the sentences of the evidence at hand, so that
words which all passages share decide nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.core.sentences import sentence_spans
from app.core.text import tokenise

MAX_QUOTE_CHARS = 600
"""A quote is something to read beside the sentence, not a page."""
_MAX_WINDOW = 3
_LENGTH_PENALTY = 0.03
"""What a further sentence in a window must add to the coverage to be worth quoting."""
_WORD = re.compile(r"[^\W_]+")

FUNCTION_WORDS = frozenset(
    tokenise(
        "a about after all also although am an and any are as at be because been before being between both but by can could did do"
        " does doing during each for from further had has have having he her here hers him his how however i if in into is it its"
        " itself just may me might more most must my no nor not of off on once only or other our out over own same shall she should"
        " so some such than that the their them then there these they this those through to too under until up upon us very was we"
        " were what when where whether which while who whom whose why will with would you your"
    )
)
"""Stemmed words that carry no claim of their own."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Characters `[start, end)` of the passage that hold `coverage` in [0, 1] of the claim's weighted words."""

    start: int
    end: int
    coverage: float


def content_tokens(text: str) -> list[str]:
    """Return stemmed tokens without function words, in order."""
    return [token for token in tokenise(text) if token not in FUNCTION_WORDS]


def term_weights(sentences: Iterable[str]) -> dict[str, float]:
    """Return `log(1 + N / df)` per stemmed token over N sentences; unknown tokens deserve `log(1 + N)` (see `weight_of`)."""
    frequencies: Counter[str] = Counter()
    total = 0
    for sentence in sentences:
        frequencies.update(set(tokenise(sentence)))
        total += 1
    return {token: math.log(1 + total / df) for token, df in frequencies.items()}


def coverage(claim: Iterable[str], found: frozenset[str] | set[str], weights: Mapping[str, float]) -> float:
    """Return the weighted share of the claim's distinct tokens that were found, in [0, 1]; 0 for an empty claim."""
    heaviest = max(weights.values(), default=1.0)
    whole = part = 0.0
    for token in set(claim):
        weight = weights.get(token, heaviest)
        whole += weight
        part += weight if token in found else 0.0
    return part / whole if whole else 0.0


def align(claim: str, passage: str, weights: Mapping[str, float]) -> Alignment | None:
    """Return the best window of the passage for a claim, or None when they share no content word.

    Args:
        claim: One sentence, without citation marks.
        passage: The text that offsets count in.
        weights: From `term_weights`.
    """
    wanted = set(content_tokens(claim)) or set(tokenise(claim))
    spans = [piece for span in sentence_spans(passage) for piece in _bounded(passage, *span)]
    tokens = [frozenset(tokenise(passage[start:end])) & wanted for start, end in spans]
    best: tuple[float, Alignment] | None = None
    for first in range(len(spans)):
        found: set[str] = set()
        for last in range(first, min(first + _MAX_WINDOW, len(spans))):
            start, end = spans[first][0], spans[last][1]
            if end - start > MAX_QUOTE_CHARS:
                break
            found |= tokens[last]
            share = coverage(wanted, found, weights)
            value = share - _LENGTH_PENALTY * (last - first)
            if found and (best is None or value > best[0] + 1e-9):
                best = (value, Alignment(start, end, share))
    return best[1] if best else None


def _bounded(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the span in pieces of at most MAX_QUOTE_CHARS, cut between words."""
    pieces: list[tuple[int, int]] = []
    while end - start > MAX_QUOTE_CHARS:
        cut = start + MAX_QUOTE_CHARS
        while cut > start and not text[cut - 1].isspace():
            cut -= 1
        cut = cut if cut > start else start + MAX_QUOTE_CHARS
        stop = cut
        while stop > start and text[stop - 1].isspace():
            stop -= 1
        if stop > start:
            pieces.append((start, stop))
        start = cut
    if start < end:
        pieces.append((start, end))
    return pieces


@dataclass(frozen=True, slots=True)
class Specifics:
    """What must not differ between a claim and its source: figures, names and whether it is denied."""

    figures: frozenset[str]
    names: frozenset[str]
    negations: int


_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
        " nineteen twenty".split()
    )
}
_NEGATION = re.compile(r"\b(?:not|never|cannot|neither|nor|without|none|no)\b|n['\u2019]t\b", re.IGNORECASE)


def specifics(text: str) -> Specifics:
    """Return the figures, names and negations of a text.

    Figures are written in digits and come without thousands separators. Names are stemmed words that are capitalised not only
    because a sentence starts with them.
    """
    names: set[str] = set()
    for start, end in sentence_spans(text):
        for position, match in enumerate(_WORD.finditer(text, start, end)):
            word = match.group()
            if word[0].isupper() and (position > 0 or any(char.isupper() for char in word[1:])):
                names.update(tokenise(word))
    figures = frozenset(_plain_number(match) for match in _NUMBER.findall(text))
    return Specifics(figures, frozenset(names - FUNCTION_WORDS), len(_NEGATION.findall(text)))


def spelt_figures(text: str) -> frozenset[str]:
    """Return the figures of a text and those it spells out, up to twenty."""
    spelt = {_NUMBER_WORDS[word] for word in map(str.lower, _WORD.findall(text)) if word in _NUMBER_WORDS}
    return specifics(text).figures | spelt


def _plain_number(text: str) -> str:
    plain = text.replace(",", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain.lstrip("0") or "0"
