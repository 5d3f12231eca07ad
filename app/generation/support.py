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
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from app.core.text import tokenise
from app.core.types import Passage, Verdict
from app.generation.alignment import Alignment, align, token_weights
from app.generation.citations import without_marks
from app.generation.faithful import FAITHFUL_FEATURES, faithful_row, says_the_opposite
from app.generation.reading import Claim, ReadPassage
from app.generation.rows import rows_say
from app.generation.spelling import unknown_words
from app.generation.statements import verdict_on
from app.generation.support_rows import FEATURES, Floats, contradicts, support_row

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


@dataclass(frozen=True, slots=True)
class Comparison:
    """A claim compared with a passage."""

    claim: Claim
    passage: ReadPassage
    alignment: Alignment
    """The place: the sentence or row that says it or says otherwise, else the window nearest."""
    row: Floats
    """FEATURES, float64 `[len(FEATURES)]`."""
    changes: Floats
    """FAITHFUL_FEATURES, float64 `[len(FAITHFUL_FEATURES)]`."""
    said: bool | None
    """Whether one place says the claim (True), says otherwise, or neither (None)."""
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
        return contradicts(self.claim, self.passage, self.alignment, self.row) or (
            self.alignment.coverage >= _SAME_MATTER and says_the_opposite(self.changes)
        )

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

    def __init__(
        self, passages: Iterable[ReadPassage], model: SupportModel, *, source_given: bool = False
    ) -> None:
        """Weigh the words of the passages.

        Args:
            passages: The evidence.
            model: Weights of the features.
            source_given: The passage is what the claims were written from, not one of many that a
                search found.
        """
        self._model = model
        self._shift = _SOURCE_GIVEN if source_given else 0.0
        self._weights = token_weights(
            tokens for passage in passages for tokens in passage.sentence_tokens
        )

    def compare(self, claim: Claim, passage: ReadPassage) -> Comparison | None:
        """Return the comparison of a claim and a passage; None if they share no word."""
        found = align(claim, passage, self._weights)
        if found is None:
            return None
        row = support_row(claim, passage, found)
        window = passage.text[found.start : found.end]
        changes = faithful_row(claim, passage, window, unknown_words(claim, passage))
        verbatim = found.coverage >= _VERBATIM and bool(row[_RUN] >= _VERBATIM)
        copied = verbatim and (
            len(claim.tokens) >= _LONG_COPY or tokenise(without_marks(window)) == claim.tokens
        )
        said, place = (None, None) if copied else _said(claim, passage)
        return Comparison(
            claim,
            passage,
            replace(found, start=place[0], end=place[1]) if place else found,
            row,
            changes,
            said,
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


class SupportJudge:
    """Judges claims against passages; stateless."""

    def __init__(self, model: SupportModel | None = None) -> None:
        """Keep the weights, or the packaged ones."""
        self._model = model or SupportModel.load()

    def examine(
        self, passages: Iterable[ReadPassage], *, source_given: bool = False
    ) -> Examination:
        """Return the examination of claims against these passages; see `Examination`."""
        return Examination(passages, self._model, source_given=source_given)

    def judge(self, claim: str, passage: Passage) -> Comparison | None:
        """Return how well a passage holds a claim, or None when they share no word.

        Args:
            claim: One sentence without marks and markup.
            passage: The only evidence.
        """
        read = ReadPassage(passage)
        return self.examine([read]).compare(Claim(claim), read)


def _logistic(row: Floats, weights: Floats, shift: float = 0.0) -> float:
    return 1.0 / (1.0 + math.exp(-float(row @ weights[:-1] + weights[-1] + shift)))
