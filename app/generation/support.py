"""Judge whether a passage holds a claim, and where.

A claim is supported where one sentence or one row of the passage says it (`statements`, `rows`), or
where it is a copy. It is contradicted where such a place says something else, or where it has a
figure, a denial or an opposite that the passage has not while it shares nearly all its words. For
the rest a logistic model weighs what is shared and what differs, which tells a passage that is
about the claim from one that is not; its weights lie in `grounding.json` together with the command
that made them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.core.cancel import lazy
from app.core.text import tokenise
from app.core.types import Verdict
from app.generation.citations import without_marks
from app.generation.entailment import verdict_on
from app.generation.reading import (
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
from app.generation.rows import rows_say

# Find small contradictions between a claim and a text on the same subject.

FAITHFUL_FEATURES = (
    "names",  # names of the claim that the passage has not, nor misspelt
    "figures",  # figures of the claim, spelt ones too, that the passage has not, 2 at most
    "denials",  # how much more often the claim denies than the window
    "denied",  # how often the claim denies, 2 at most
    "opposites",  # words of the claim that the place has not, while it has their opposite
    "prefixes",  # the same for opposites made by a prefix: unable, able
)
"""Columns of a faithful row; each can only lower the support."""
OPPOSITES = FAITHFUL_FEATURES.index("opposites")


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


def faithful_row(placed: Placed) -> npt.NDArray[np.float64]:
    """Return FAITHFUL_FEATURES of a claim, float64 `[len(FAITHFUL_FEATURES)]`."""
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


def says_the_opposite(row: npt.NDArray[np.float64]) -> bool:
    """Return whether a faithful row shows an opposite."""
    return bool(row[OPPOSITES:].any())


# Compare a claim with a passage in figures: what is shared and what differs.

Floats = npt.NDArray[np.float64]

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

_NEAR_COPY = 0.35
"""Share of a claim in one run from which it copies its source; with a strange name 0.3 % of
right sentences are like that."""


def contradicts(placed: Placed, row: Floats) -> bool:
    """Return whether a claim differs from its passage in what must not differ.

    It has a figure that stands nowhere in the passage and is no year that the window implies, or
    denies more often than the window does, or is a near copy in which nothing but names is strange.

    Args:
        placed: What was said, and where it should stand.
        row: From `support_row`.
    """
    claim, passage = placed.claim, placed.passage
    names, run, unknown = (row[FEATURES.index(name)] for name in ("names", "run", "unknown_count"))
    if names >= 1 and unknown <= names and run >= _NEAR_COPY:
        return True
    if claim.specifics.negations > negations(placed.window):
        return True
    return bool(claim.figures - passage.figures - _implied_years(placed.window))


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
    places: dict[str, list[int]] = {}
    for at, token in enumerate(second):
        places.setdefault(token, []).append(at)
    best = 0
    before: dict[int, int] = {}
    for token in first:
        before = {at: before.get(at - 1, 0) + 1 for at in places.get(token, ())}
        best = max([best, *before.values()])
    return best


_RUN = FEATURES.index("run")

_VERBATIM = 0.999
_SAME_MATTER = 0.5
"""Coverage from which an opposite contradicts; under it a passage may speak of something else."""
_SOURCE_GIVEN = 3.0
"""Log-odds more that a claim stands in the text it was written from: summaries have half of
their words from elsewhere, and with less of it one in ten true ones is not found
(evaluation/reports/claims.md)."""
STATED = 0.9
"""Support of a claim that one place says in other words; a copy has 1."""
WEAK = 0.44
"""Most support of a claim that no one place says."""
_LONG_COPY = 12
"""Words from which a claim that is a part of a sentence, word for word, is a copy of it."""
CONTRADICTED = 0.1
"""Most support that a contradicted claim can have; under any sensible threshold."""


Origin = Literal["evidence", "source", "search"]
"""What passages are: the evidence that an answer was written from, the text that claims were
written from, or what a search for a claim found."""


@dataclass(frozen=True, slots=True, eq=False)
class SupportModel:
    """Logistic weights, the last entry the bias."""

    held: Floats
    """Weights of FEATURES."""
    faithful: Floats
    """Weights of FAITHFUL_FEATURES."""

    @staticmethod
    def load(path: Path | None = None) -> SupportModel:
        """Read weights from a file, or the packaged ones.

        Raises:
            ValueError: The file was made for other features.
        """
        source = path or Path(__file__).with_name("grounding.json")
        data = json.loads(source.read_text(encoding="utf-8"))
        if (tuple(data["features"]), tuple(data.get("faithful_features", ()))) != (
            FEATURES,
            FAITHFUL_FEATURES,
        ):
            raise ValueError(f"{source.name} was made for other features; run: {data['command']}")
        return SupportModel(
            np.asarray(data["held"], dtype=np.float64),
            np.asarray(data["faithful"], dtype=np.float64),
        )

    def examine(self, passages: Iterable[ReadPassage], are: Origin = "evidence") -> Examination:
        """Return the examination of claims against these passages; see `Examination`."""
        return Examination(passages, self, are)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A claim compared with a passage."""

    alignment: Alignment
    """The place: the sentence or row that says it or says otherwise, else the window nearest."""
    said: bool | None
    """Whether one place says the claim (True), says otherwise, or neither (None)."""
    differs: bool
    """From `contradicts`; of what a search found only if the place lacks no other word: it may
    speak of something else."""
    opposed: bool
    """The place has the opposite of a word, of the only one that it lacks unless the claim was
    written from it: in what a search found the opposite often belongs to something else."""
    copied: bool
    """It is whole sentences of the passage, or a long part of one, word for word."""
    verbatim: bool
    """It stands in the passage word for word."""
    held: float
    """Probability in [0, 1] by FEATURES that the passage is about the claim."""
    faithful: float
    """Probability in [0, 1] that nothing of the claim was changed."""

    @property
    def contradicted(self) -> bool:
        """Return whether the passage says otherwise."""
        if self.copied or self.said is not None:
            return self.said is False and not self.copied
        return self.opposed or self.differs

    @property
    def score(self) -> float:
        """Return the support of the claim, in [0, 1]; over WEAK only if one place says it."""
        if self.copied:
            return 1.0
        if self.said:
            return STATED
        return min(self.near, CONTRADICTED if self.contradicted else WEAK)

    @property
    def near(self) -> float:
        """Return the probability in [0, 1] that the passage is about the claim as it is."""
        return min(self.held, self.faithful)

    def verdict(self, least: float) -> Verdict:
        """Return what the passage makes of the claim.

        Args:
            least: The probability from which a passage is about a claim that it does not say.
        """
        if self.copied or self.said:
            return "supported"
        if self.contradicted:
            return "contradicted"
        return "weak" if self.near >= least else "not_found"


def verdict_of(found: Iterable[Comparison], least: float) -> tuple[Verdict, Comparison | None]:
    """Return what several passages make of one claim, and the one that decides.

    A passage that says it decides; else, of those that contradict it or are about it, the one that
    holds most of its words.
    """
    judged = [(one.verdict(least), one) for one in found]
    said = [one for verdict, one in judged if verdict == "supported"]
    if said:
        return "supported", max(said, key=lambda one: one.score)
    bearing = [
        (one.alignment.coverage, verdict == "contradicted", one)
        for verdict, one in judged
        if verdict == "weak"
        or (verdict == "contradicted" and one.alignment.coverage >= _SAME_MATTER)
    ]
    if not bearing:
        return "not_found", None
    _, against, best = max(bearing, key=lambda one: one[:2])
    return ("contradicted" if against else "weak"), best


class Examination:
    """An answer's claims and passages; reads texts once."""

    def __init__(self, passages: Iterable[ReadPassage], model: SupportModel, are: Origin) -> None:
        """Weigh the words of the passages.

        Args:
            passages: What the claims are held against.
            model: Weights of the features.
            are: Where the passages come from.
        """
        self._model = model
        self._are = are
        self._shift = _SOURCE_GIVEN if are == "source" else 0.0
        self._weights = token_weights(
            tokens for passage in passages for tokens in passage.sentence_tokens
        )

    def compare(self, claim: Claim, passage: ReadPassage) -> Comparison | None:
        """Return the comparison of a claim and a passage; None if they share no word."""
        found = align(claim, passage, self._weights)
        if found is None:
            return None
        placed = Placed(claim, passage, found)
        row, changes = support_row(placed), faithful_row(placed)
        verbatim = found.coverage >= _VERBATIM and bool(row[_RUN] >= _VERBATIM)
        copied = verbatim and (
            len(claim.tokens) >= _LONG_COPY
            or tokenise(without_marks(placed.window)) == claim.tokens
        )
        lacking = len(claim.wanted.difference(placed.near))
        opposed = (
            found.coverage >= _SAME_MATTER
            and says_the_opposite(changes)
            and (self._are == "source" or lacking == 1)
        )
        differs = contradicts(placed, row) and (self._are != "search" or lacking <= 1)
        said, place = (None, None) if copied else _said(claim, passage)
        return Comparison(
            replace(found, start=place[0], end=place[1]) if place else found,
            said,
            differs,
            opposed,
            copied,
            verbatim,
            _logistic(row, self._model.held, self._shift),
            _logistic(changes, self._model.faithful),
        )


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


def _logistic(row: Floats, weights: Floats, shift: float = 0.0) -> float:
    return 1.0 / (1.0 + math.exp(-float(row @ weights[:-1] + weights[-1] + shift)))
