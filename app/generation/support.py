"""Estimate the probability that a passage holds a claim, and where.

Words come first: a claim whose words stand in one place of the passage in the same order is
supported without further ado. One with a figure that the passage has not, or that denies what the
passage does not, is contradicted, because it still shares nearly all its words. For the rest a
logistic model weighs what is shared and what differs, names among it; its weights lie in
`grounding.json` together with the command that made them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.core.ports import Embedder
from app.core.types import FloatArray, Passage
from app.generation.alignment import Alignment, align, token_weights
from app.generation.faithful import FAITHFUL_FEATURES, faithful_row, says_the_opposite
from app.generation.reading import Claim, ReadPassage
from app.generation.spelling import unknown_words
from app.generation.support_rows import FEATURES, Floats, contradicts, support_row

_SIMILARITY, _RUN = FEATURES.index("similarity"), FEATURES.index("run")

_VERBATIM = 0.999
_SAME_MATTER = 0.5
"""Coverage from which an opposite contradicts; under it a passage may speak of something else."""
_SOURCE_GIVEN = 3.0
"""Log-odds more that a claim stands in the text it was written from: summaries have half of
their words from elsewhere, and with less of it one in ten true ones is not found
(evaluation/reports/claims.md)."""
CONTRADICTED = 0.1
"""Most support that a contradicted claim can have; under any sensible threshold."""
_MOST_COSINE = 1.001
"""What the cosine of two rows of norm 1 can be at most, rounding included."""


@dataclass(frozen=True, slots=True, eq=False)
class SupportModel:
    """Logistic weights, the last entry the bias, with and without sentence vectors."""

    with_vectors: Floats
    words_only: Floats
    faithful: Floats
    """Weights of FAITHFUL_FEATURES, the last entry the bias."""
    embedding_model: str
    """The weights with vectors are for this model's cosines; others count as none."""

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
            np.asarray(data["with_vectors"], dtype=np.float64),
            np.asarray(data["words_only"], dtype=np.float64),
            np.asarray(data["faithful"], dtype=np.float64),
            str(data["embedding_model"]),
        )


@dataclass(frozen=True, slots=True)
class Support:
    """Probability in [0, 1] that the passage holds the claim, and its window."""

    score: float
    alignment: Alignment


@dataclass(slots=True)
class Comparison:
    """A claim compared with a passage; `settle` adds sentence vectors if needed."""

    claim: Claim
    passage: ReadPassage
    alignment: Alignment
    row: Floats
    """FEATURES, float64 `[len(FEATURES)]`."""
    contradicted: bool
    changes: Floats
    """FAITHFUL_FEATURES, float64 `[len(FAITHFUL_FEATURES)]`."""
    faithful: float = 1.0
    """Probability in [0, 1] that nothing of the claim was changed; `score` is at most this."""
    held: float = 0.0
    """Probability in [0, 1] by FEATURES alone."""
    score: float = 0.0
    """Probability in [0, 1] that the passage holds the claim, once `settled`."""
    settled: bool = False

    @property
    def verbatim(self) -> bool:
        """Return whether the passage has the claim word for word."""
        return self.alignment.coverage >= _VERBATIM and bool(self.row[_RUN] >= _VERBATIM)

    @property
    def window(self) -> str:
        """The aligned characters behind the document's title."""
        text = self.passage.text[self.alignment.start : self.alignment.end]
        return f"{self.passage.title}: {text}" if self.passage.title else text


class Examination:
    """An answer's claims and passages; reads texts once, batches sentence vectors."""

    def __init__(
        self,
        passages: Iterable[ReadPassage],
        model: SupportModel,
        embedder: Embedder | None,
        floor: float = 0.0,
        *,
        source_given: bool = False,
    ) -> None:
        """Weigh the words of the passages.

        Args:
            passages: The evidence.
            model: Weights of FEATURES.
            embedder: One that the weights with vectors were made for, or None to go by words alone.
            floor: Scores under it need not be exact, in [0, 1].
            source_given: The passage is what the claims were written from, not one of many that a
                search found.
        """
        self._model, self._embedder, self._floor = model, embedder, floor
        self._shift = _SOURCE_GIVEN if source_given else 0.0
        self._weights = token_weights(
            tokens for passage in passages for tokens in passage.sentence_tokens
        )
        self._vectors: dict[str, FloatArray | None] = {}

    def compare(self, claim: Claim, passage: ReadPassage) -> Comparison | None:
        """Return the lexical comparison of a claim and a passage; None if disjoint.

        The result is settled already when vectors cannot change it: the claim is a copy, there is
        no embedder, or the score stays under the floor in any case; such a score is the highest it
        could be.
        """
        found = align(claim, passage, self._weights)
        if found is None:
            return None
        row = support_row(claim, passage, found)
        changes = faithful_row(
            claim, passage, passage.text[found.start : found.end], unknown_words(claim, passage)
        )
        result = Comparison(claim, passage, found, row, contradicted=False, changes=changes)
        if result.verbatim:
            result.held = result.score = 1.0
            result.settled = True
            return result
        result.contradicted = contradicts(claim, passage, found, row) or (
            found.coverage >= _SAME_MATTER and says_the_opposite(changes)
        )
        result.faithful = _logistic(changes, self._model.faithful)
        if self._embedder is None:
            result.score, result.settled = self._score(result, self._model.words_only), True
        elif (most := self._bound(result)) < self._floor:
            result.score, result.settled = most, True
        return result

    def settle(self, comparisons: Iterable[Comparison]) -> None:
        """Embed what open comparisons need, in one batch, and score them."""
        waiting = [one for one in comparisons if not one.settled]
        if self._embedder is None or not waiting:
            return
        embed_new(
            dict.fromkeys(text for one in waiting for text in (one.claim.text, one.window)),
            self._embedder,
            self._vectors,
        )
        for one in waiting:
            one.row[_SIMILARITY] = _cosine(self._vectors[one.claim.text], self._vectors[one.window])
            one.score, one.settled = self._score(one, self._model.with_vectors), True

    def _bound(self, one: Comparison) -> float:
        """Return the highest score that a comparison can get from any vectors."""
        row = one.row.copy()
        row[_SIMILARITY] = math.copysign(_MOST_COSINE, self._model.with_vectors[_SIMILARITY])
        return self._capped(_logistic(row, self._model.with_vectors, self._shift), one)

    def _score(self, one: Comparison, weights: Floats) -> float:
        one.held = _logistic(one.row, weights, self._shift)
        return self._capped(one.held, one)

    @staticmethod
    def _capped(held: float, one: Comparison) -> float:
        return min(held, one.faithful, CONTRADICTED if one.contradicted else 1.0)


class SupportJudge:
    """Judges claims against passages. Thread-safe as far as its embedder is."""

    def __init__(self, embedder: Embedder | None, model: SupportModel | None = None) -> None:
        """Keep the embedder, or None to go by words alone."""
        self._model = model or SupportModel.load()
        usable = embedder is not None and embedder.identity.model == self._model.embedding_model
        self._embedder = embedder if usable else None

    def examine(
        self, passages: Iterable[ReadPassage], floor: float = 0.0, *, source_given: bool = False
    ) -> Examination:
        """Return the examination of an answer from these passages; see `Examination`.

        A given source is compared by words alone: vectors lose right sentences there
        (docs/decisions/0051).
        """
        embedder = None if source_given else self._embedder
        return Examination(passages, self._model, embedder, floor, source_given=source_given)

    def judge(self, claim: str, passage: Passage) -> Support | None:
        """Return how well a passage holds a claim, or None when they share no word.

        Args:
            claim: One sentence without marks and markup.
            passage: The only evidence.
        """
        read = ReadPassage(passage)
        examination = self.examine([read])
        found = examination.compare(Claim(claim), read)
        if found is None:
            return None
        examination.settle([found])
        return Support(found.score, found.alignment)


def window_similarity(one: Comparison, embedder: Embedder) -> float:
    """Return the cosine of a claim and its titled window; 0 if either is too long."""
    vectors: dict[str, FloatArray | None] = {}
    embed_new([one.claim.text, one.window], embedder, vectors)
    return _cosine(vectors[one.claim.text], vectors[one.window])


def embed_new(
    texts: Iterable[str], embedder: Embedder, vectors: dict[str, FloatArray | None]
) -> None:
    """Add the vectors of texts that have none yet; None for over-long texts."""
    new = [text for text in texts if text not in vectors]
    fits = (
        [count <= embedder.identity.max_tokens for count in embedder.count_tokens(new)]
        if new
        else []
    )
    short = [text for text, fit in zip(new, fits, strict=True) if fit]
    vectors.update(dict.fromkeys(new))
    if short:
        vectors.update(zip(short, embedder.embed_passages(short), strict=True))


def _cosine(first: FloatArray | None, second: FloatArray | None) -> float:
    return 0.0 if first is None or second is None else float(first @ second)


def _logistic(row: Floats, weights: Floats, shift: float = 0.0) -> float:
    return 1.0 / (1.0 + math.exp(-float(row @ weights[:-1] + weights[-1] + shift)))
