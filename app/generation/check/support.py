"""Judge whether a passage holds a claim, and where.

What stands in one sentence or one row, word for word or by rules of form, is read off
(`entailment`, `rows`); hardly a false sentence is. What stands there in other words is read by a
small trained model, the claim with the window of the passage that shares most words with it. What
differs in a figure, a name, a denial or an opposite is never supported by the model's word alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.core.lazy import lazy
from app.core.ports import Reader
from app.core.sentences import sentence_spans
from app.core.text import tokenise
from app.core.types import Stance, Verdict
from app.generation.check.citations import without_marks
from app.generation.check.entailment import verdict_on
from app.generation.language.claims import (
    Alignment,
    Claim,
    ReadPassage,
    align,
    antonyms,
    is_named,
    is_spelt_out,
    negations,
    prefixed,
    spelt_figures,
    token_weights,
    unknown_words,
)
from app.generation.language.rows import rows_say, stands_under_another_head
from app.generation.language.windows import window_for

# Find small contradictions between a claim and a text on the same subject.


Floats = npt.NDArray[np.float64]

DIFFERENCE_FEATURES = (
    "names",  # names of the claim that the passage has not, nor misspelt
    "figures",  # figures of the claim, spelt ones too, that the passage has not, 2 at most
    "denials",  # how much more often the claim denies than the window
    "denied",  # how often the claim denies, 2 at most
    "opposites",  # words of the claim that the place has not, while it has their opposite
    "prefixes",  # the same for opposites made by a prefix: unable, able
)
"""Columns of a difference row; each can only lower the support."""
OPPOSITES = DIFFERENCE_FEATURES.index("opposites")


class Placed:
    """A claim at its place in a passage, the window that holds most of it."""

    def __init__(self, claim: Claim, passage: ReadPassage, found: Alignment) -> None:
        self.claim = claim
        self.passage = passage
        self.found = found
        self.window = passage.text[found.start : found.end]
        self.near = tokenise(self.window)

    @lazy
    def unknown(self) -> frozenset[str]:
        """Content words of the claim that stand nowhere in the passage, however spelt."""
        return unknown_words(self.claim, self.passage)

    @lazy
    def run(self) -> float:
        """Share of the claim's words in one run of the place, in [0, 1]."""
        return longest_run(self.claim.tokens, self.near) / max(1, len(self.claim.tokens))


def difference_row(placed: Placed) -> Floats:
    """Return DIFFERENCE_FEATURES of a claim, float64 `[len(DIFFERENCE_FEATURES)]`."""
    claim, passage, unknown = placed.claim, placed.passage, placed.unknown
    near, known = frozenset(placed.near), antonyms()
    denied = claim.specifics.negations
    opposites = prefixes = 0
    for token in claim.wanted:
        if token in near:
            continue
        place = passage.known if token in unknown else near
        opposites += not place.isdisjoint(known.get(token, ()))
        prefixes += token in unknown and not passage.known.isdisjoint(prefixed(token))
    return np.asarray(
        [
            float(sum(not is_spelt_out(name, passage) for name in claim.specifics.names & unknown)),
            float(min(2, len(claim.figures - passage.figures))),
            float(max(0, denied - negations(placed.window))),
            float(min(2, denied)),
            float(opposites),
            float(prefixes),
        ]
    )


def says_the_opposite(row: Floats) -> bool:
    """Return whether a difference row shows an opposite."""
    return bool(row[OPPOSITES:].any())


_NEAR_COPY = 0.35
"""Share of a claim in one run from which it copies its source; with a strange name 0.3 % of
right sentences are like that."""


def differs(placed: Placed) -> bool:
    """Return whether a claim differs from its passage in what must not differ.

    It has a figure that stands nowhere in the passage and is no year that the window implies, or
    denies more often than the window does, is a near copy in which nothing but names is strange, or
    copies half of itself from a sentence that has another word right next to it.
    """
    claim, passage = placed.claim, placed.passage
    strange = [
        name
        for name in claim.specifics.names
        if name not in passage.known and not is_named(name, passage)
    ]
    unknown = sum(token in placed.unknown for token in claim.content)
    if strange and unknown <= len(strange) and placed.run >= _NEAR_COPY:
        return True
    if claim.specifics.negations > negations(placed.window) or _has_another_word(placed):
        return True
    return bool(claim.figures - passage.figures - _implied_years(placed.window))


_COPIED = 0.5
"""Share of a claim in one run from which the word next to the run is compared: of six published
sets one right claim of 311 that the reader supports differs there."""


def _has_another_word(placed: Placed) -> bool:
    """Return whether a claim has a word of the passage where the sentence it copies has another."""
    claim, window = placed.claim, placed.window
    sentences = [window[start:end] for start, end in sentence_spans(window)]
    runs = [(common_run(claim.tokens, tokenise(one)), one) for one in sentences]
    (length, at, other), sentence = max(runs, default=((0, 0, 0), ""), key=lambda run: run[0][0])
    if length < _COPIED * len(claim.tokens):
        return False
    copied = Claim(sentence)
    own = placed.passage.known.intersection(claim.content).difference(copied.tokens)
    other_words = frozenset(copied.content).difference(claim.tokens)
    beside = ((at - 1, other - 1), (at + length, other + length))
    return any(
        0 <= mine < len(claim.tokens)
        and 0 <= its < len(copied.tokens)
        and claim.tokens[mine] in own
        and copied.tokens[its] in other_words
        for mine, its in beside
    )


def _implied_years(text: str) -> frozenset[str]:
    """Return the years that a text gives by another: 2014, in "2016, two years after"."""
    figures = [int(figure) for figure in spelt_figures(text) if figure.isdigit()]
    return frozenset(
        str(year + sign * span)
        for year in figures
        for span in figures
        for sign in (1, -1)
        if 1000 <= year <= 2100 and span < 1000
    )


# Compare a claim with a passage in figures: what is shared and what differs.

FEATURES = (
    "coverage",  # idf-weighted share of the claim's words in the quoted window
    "names",  # names in the claim that the passage has not, 2 at most
    "run",  # longest common run of words, relative to the claim
    # share of the claim's content words that stand nowhere in the passage, however spelt
    "unknown",
    "unknown_count",  # their number, 5 at most
    "length",  # tens of content words
)
"""Columns of a support row, in order."""


def support_row(placed: Placed) -> Floats:
    """Return FEATURES of a claim and its passage, float64 `[len(FEATURES)]`."""
    claim, passage, ordered = placed.claim, placed.passage, placed.claim.content
    unknown = [token for token in ordered if token in placed.unknown]
    strange = [
        name
        for name in claim.specifics.names
        if name not in passage.known and not is_named(name, passage)
    ]
    run = longest_run(claim.tokens, placed.near)
    return np.asarray(
        [
            placed.found.coverage,
            float(min(2, len(strange))),
            run / max(1, len(claim.tokens)),
            len(unknown) / max(1, len(ordered)),
            float(min(5, len(unknown))),
            len(ordered) / 10,
        ]
    )


def longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common contiguous run of two token lists."""
    return common_run(first, second)[0]


def common_run(first: Sequence[str], second: Sequence[str]) -> tuple[int, int, int]:
    """Return the longest common contiguous run: its length, and where it begins in each list."""
    places: dict[str, list[int]] = {}
    for at, token in enumerate(second):
        places.setdefault(token, []).append(at)
    best = 0, 0, 0
    before: dict[int, int] = {}
    for begin, token in enumerate(first):
        before = {at: before.get(at - 1, 0) + 1 for at in places.get(token, ())}
        if before and (length := max(before.values())) > best[0]:
            at = max(before, key=before.__getitem__)
            best = length, begin - length + 1, at - length + 1
    return best


# Compare a claim with passages, and say what they make of it.

SUPPORTED_FROM = 0.65
"""Least probability with which a window states a claim that is `supported`
(evaluation/reports/two_rates.md)."""
SUPPORT_UNREAD = 0.44
"""Support of a claim that nothing has read."""
ABOUT_IT = 0.4
"""Least probability, by words, with which a passage is about a claim that is `unsure`."""
_SOURCE_LOG_ODDS = 3.0
"""Log-odds more that a claim stands in the text it was written from: summaries have half of
their words from elsewhere."""
CONTRADICTED_FROM = 0.75
"""Least probability with which a window denies a claim that is `contradicted`."""
MOST_READ = 4
"""Passages of which a window is read for a claim: those that share most words with it."""
SUPPORT_STATED = 0.9
"""Support of a claim that one place says by the rules; a copy has 1."""
_VERBATIM = 0.999
_SAME_MATTER = 0.5
"""Coverage from which an opposite or another figure contradicts; under it a passage may speak of
something else."""
_LONG_COPY = 12
"""Words from which a claim that is a part of a sentence, word for word, is a copy of it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Weights:
    """Logistic weights, the last entry the bias; fitted at commit c32a60b3."""

    held: Floats
    """Of FEATURES."""
    faithful: Floats
    """Of DIFFERENCE_FEATURES."""


@cache
def _weights() -> _Weights:
    data = json.loads(Path(__file__).with_name("grounding.json").read_text(encoding="utf-8"))
    held, faithful = (np.asarray(data[name], dtype=np.float64) for name in ("held", "faithful"))
    return _Weights(held, faithful)


def _logistic(row: Floats, weights: Floats, shift: float = 0.0) -> float:
    return 1.0 / (1.0 + math.exp(-float(row @ weights[:-1] + weights[-1] + shift)))


Origin = Literal["evidence", "source", "search"]
"""What passages are: the evidence that an answer was written from, the text that claims were
written from, or what a search for a claim found."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A claim compared with a passage."""

    alignment: Alignment
    """The place: the sentence or row that says it or says otherwise, else the window nearest."""
    said: bool | None
    """Whether one place says the claim (True), says otherwise, or neither (None)."""
    changed: bool
    """It differs in a figure, name or denial, or the place has the opposite of a word."""
    copied: bool
    """It is whole sentences of the passage, or a long part of one, word for word."""
    verbatim: bool
    """It stands in the passage word for word."""
    misplaced: bool
    """It gives a figure of a row to another head, which the reader alone does not see. As many true
    as false claims do that people wrote over tables, so it denies nothing."""
    near: float
    """Probability in [0, 1] that the passage is about the claim as it is, by words."""
    stance: Stance | None = None
    """What the reader makes of it; None where there is none, or nothing to read."""

    @property
    def is_read_off(self) -> bool:
        """Return whether the passage says it by rules of form alone."""
        return self.copied or self.said is True

    @property
    def denied(self) -> bool:
        """Return whether rules of form say that the passage says otherwise."""
        differs = self.changed if self.said is None else not self.said
        return differs and not self.copied and self.alignment.coverage >= _SAME_MATTER

    @property
    def score(self) -> float:
        """Return the support of the claim, in [0, 1]."""
        if self.is_read_off:
            return 1.0 if self.copied else SUPPORT_STATED
        held = SUPPORT_UNREAD if self.stance is None else self.stance.supported
        doubtful = self.denied or self.misplaced
        return min(held, SUPPORT_STATED) * (_DENIED_FACTOR if doubtful else 1.0)

    @property
    def verdict(self) -> Verdict:
        if self.is_read_off:
            return "supported"
        if self.stance is None:
            return "contradicted" if self.denied else "unsure"
        if self.denied:
            return "unsure" if self.stance.supported >= SUPPORTED_FROM else "contradicted"
        if self.stance.supported >= SUPPORTED_FROM:
            return "unsure" if self.misplaced else "supported"
        if self.stance.contradicted >= CONTRADICTED_FROM:
            return "contradicted"
        return "unsure" if self.near >= ABOUT_IT else "not_found"

    @property
    def relevance(self) -> float:
        """Return how much the passage has to do with the claim, in [0, 1]."""
        read = 0.0 if self.stance is None else 1 - self.stance.not_stated
        return max(read, self.alignment.coverage if self.denied else 0.0)


_DENIED_FACTOR = 0.5
"""Share of its support that a claim keeps where rules of form deny it, or doubt it."""


def verdict_of(found: Iterable[Comparison]) -> tuple[Verdict, Comparison | None]:
    """Return what several passages make of one claim, and the one that decides.

    A passage that says it decides; else the one that has most to do with it.
    """
    judged = list(found)
    said = [one for one in judged if one.verdict == "supported"]
    if said:
        return "supported", max(said, key=lambda one: one.score)
    bearing = [one for one in judged if one.verdict != "not_found"]
    if not bearing:
        return "not_found", None
    best = max(bearing, key=lambda one: (one.relevance, one.alignment.coverage))
    return best.verdict, best


class ClaimComparer:
    """An answer's claims and passages; reads texts once."""

    def __init__(
        self, passages: Iterable[ReadPassage], reader: Reader | None, are: Origin = "evidence"
    ) -> None:
        """Weigh the words of the passages.

        Args:
            passages: What the claims are held against.
            reader: Reads claims next to passages; without one only what is read off is supported.
            are: Where the passages come from.
        """
        self._reader = reader
        self._are = are
        self._weights = token_weights(
            tokens for passage in passages for tokens in passage.sentence_tokens
        )

    def compare(self, claim: Claim, passages: Sequence[ReadPassage]) -> dict[int, Comparison]:
        """Return comparisons with the passages that bear most on a claim, by their places."""
        found = {
            at: self._compared(claim, passage, place)
            for at, passage in enumerate(passages)
            if (place := align(claim, passage, self._weights))
        }
        nearest = sorted(
            found, key=lambda at: (not found[at].is_read_off, -found[at].alignment.coverage)
        )
        chosen = nearest[:MOST_READ]
        if (
            self._reader is None
            or any(found[at].is_read_off for at in chosen)
            or not all(passages[at].english for at in chosen)  # the reader knows no other language
        ):
            return {at: found[at] for at in chosen}
        pairs = [(claim.text, window_for(claim.text, passages[at].text)) for at in chosen]
        stances = self._reader.stances(pairs)
        return {
            at: replace(found[at], stance=stance)
            for at, stance in zip(chosen, stances, strict=True)
        }

    def _compared(self, claim: Claim, passage: ReadPassage, place: Alignment) -> Comparison:
        placed = Placed(claim, passage, place)
        verbatim = place.coverage >= _VERBATIM and placed.run >= _VERBATIM
        copied = verbatim and (
            len(claim.tokens) >= _LONG_COPY
            or tokenise(without_marks(placed.window)) == claim.tokens
        )
        said, at = (None, None) if copied else _said(claim, passage)
        row, changes = support_row(placed), difference_row(placed)
        shift = _SOURCE_LOG_ODDS if self._are == "source" else 0.0
        near = min(_logistic(row, _weights().held, shift), _logistic(changes, _weights().faithful))
        return Comparison(
            replace(place, start=at[0], end=at[1]) if at else place,
            said,
            said is None and self._changed(placed, changes),
            copied,
            verbatim,
            said is None and not copied and stands_under_another_head(claim.read, passage.rows),
            near,
        )

    def _changed(self, placed: Placed, changes: Floats) -> bool:
        """Return whether the place says the same of something else, or something else of it.

        In what a search found the opposite, or another figure, often belongs to something else: it
        counts only where the place lacks no other word.
        """
        lacking = len(placed.claim.wanted.difference(placed.near))
        if (self._are == "source" or lacking == 1) and says_the_opposite(changes):
            return True
        return (self._are != "search" or lacking <= 1) and differs(placed)


def _said(claim: Claim, passage: ReadPassage) -> tuple[bool | None, tuple[int, int] | None]:
    """Return whether a sentence or row says the claim or says otherwise, and where."""
    if not passage.english:
        return None, None
    by_row, row = rows_say(claim.read, passage.rows)
    if by_row and row:
        return True, (row.start, row.end)
    said, at = verdict_on(claim.read, passage.read_sentences, passage.read_above)
    if said is not None:
        return said, passage.sentence_span(at)
    return by_row, (row.start, row.end) if row else None
