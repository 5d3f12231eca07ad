"""How well one passage holds one claim, as a probability, and where.

Words come first: a claim whose words stand in one place of the passage in the same order is supported without further ado. One with
a figure that the passage has not, or that denies what the passage does not, is contradicted, because it still shares nearly all its
words. For the rest a logistic model weighs what is shared and what differs, names among it; its weights lie in `grounding.json`
beside the command that made them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.core.ports import Embedder
from app.core.text import tokenise
from app.core.turns import let_others_run
from app.core.types import FloatArray, Passage
from app.generation.alignment import Alignment, align, token_weights
from app.generation.reading import Claim, ReadPassage, negations

Floats = npt.NDArray[np.float64]

FEATURES = (
    "coverage",  # idf-weighted share of the claim's words in the quoted window
    "similarity",  # cosine of claim and window behind its title; 0 without vectors
    "names",  # names in the claim that the passage has not, 2 at most
    "run",  # longest common run of words, relative to the claim
    "unknown",  # share of the claim's content words that stand nowhere in the passage, however spelt
    "unknown_count",  # their number, 5 at most
    "grams",  # share of the claim's character 4-grams in the passage
    "pairs",  # share of its neighbouring content words that are neighbours in the passage
    "length",  # tens of content words
)
"""Columns of a support row, in order."""
_SIMILARITY, _RUN = FEATURES.index("similarity"), FEATURES.index("run")

_VERBATIM = 0.999
_NEAR_COPY = 0.35
"""Share of a claim in one run from which it copies its source; with a strange name 0.3 % of right sentences are like that."""
CONTRADICTED = 0.1
"""Most support that a contradicted claim can have; under any sensible threshold."""
_MOST_COSINE = 1.001
"""What the cosine of two rows of norm 1 can be at most, rounding included."""
_ALIKE = 0.78
"""Edit similarity from which two words are one, misspelt or inflected: Dusquesne, Duquesne."""
_SHARED_STEM = 4
"""Letters that Britain and British, Poland and Polish share less one; enough when both are names."""


@dataclass(frozen=True, slots=True, eq=False)
class SupportModel:
    """Logistic weights, the last entry the bias, with and without sentence vectors."""

    with_vectors: Floats
    words_only: Floats
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
        if tuple(data["features"]) != FEATURES:
            raise ValueError(f"{source.name} was made for other features; run: {data['command']}")
        return SupportModel(
            np.asarray(data["with_vectors"], dtype=np.float64),
            np.asarray(data["words_only"], dtype=np.float64),
            str(data["embedding_model"]),
        )


@dataclass(frozen=True, slots=True)
class Support:
    """Probability in [0, 1] that the passage holds the claim, and the window of the chunk that does."""

    score: float
    alignment: Alignment


@dataclass(slots=True)
class Comparison:
    """One claim held against one passage; `settle` completes it where sentence vectors count."""

    claim: Claim
    passage: ReadPassage
    alignment: Alignment
    row: Floats
    """FEATURES, float64 `[len(FEATURES)]`."""
    contradicted: bool
    score: float = 0.0
    """Probability in [0, 1] that the passage holds the claim, once `settled`."""
    settled: bool = False

    @property
    def window(self) -> str:
        """The aligned characters behind the document's title."""
        return f"{self.passage.title}: {self.passage.text[self.alignment.start : self.alignment.end]}"


class Examination:
    """The claims of one answer against its passages: texts are read once, and sentence vectors made together."""

    def __init__(self, passages: Iterable[ReadPassage], model: SupportModel, embedder: Embedder | None, floor: float = 0.0) -> None:
        """Weigh the words of the passages.

        Args:
            passages: The evidence.
            model: Weights of FEATURES.
            embedder: One that the weights with vectors were made for, or None to go by words alone.
            floor: Scores under it need not be exact, in [0, 1].
        """
        self._model, self._embedder, self._floor = model, embedder, floor
        self._weights = token_weights(tokens for passage in passages for tokens in passage.sentence_tokens)
        self._vectors: dict[str, FloatArray | None] = {}

    def compare(self, claim: Claim, passage: ReadPassage) -> Comparison | None:
        """Return what words say of a claim in a passage, or None when they share none.

        The result is settled already when vectors cannot change it: the claim is a copy, there is no embedder, or the score stays
        under the floor whatever they are; such a score is the highest it could be.
        """
        let_others_run()
        found = align(claim, passage, self._weights)
        if found is None:
            return None
        row = support_row(claim, passage, found)
        if found.coverage >= _VERBATIM and row[_RUN] >= _VERBATIM:
            return Comparison(claim, passage, found, row, contradicted=False, score=1.0, settled=True)
        result = Comparison(claim, passage, found, row, contradicts(claim, passage, found, row))
        if self._embedder is None:
            result.score, result.settled = _score(result, self._model.words_only), True
        elif (most := self._bound(result)) < self._floor:
            result.score, result.settled = most, True
        return result

    def settle(self, comparisons: Iterable[Comparison]) -> None:
        """Embed what open comparisons need, in one batch, and score them."""
        waiting = [one for one in comparisons if not one.settled]
        if self._embedder is None or not waiting:
            return
        embed_new(dict.fromkeys(text for one in waiting for text in (one.claim.text, one.window)), self._embedder, self._vectors)
        for one in waiting:
            one.row[_SIMILARITY] = _cosine(self._vectors[one.claim.text], self._vectors[one.window])
            one.score, one.settled = _score(one, self._model.with_vectors), True

    def _bound(self, one: Comparison) -> float:
        """Return the highest score that a comparison can get from any vectors."""
        row = one.row.copy()
        row[_SIMILARITY] = math.copysign(_MOST_COSINE, self._model.with_vectors[_SIMILARITY])
        return _capped(_logistic(row, self._model.with_vectors), contradicted=one.contradicted)


class SupportJudge:
    """Judges claims against passages. Thread-safe as far as its embedder is."""

    def __init__(self, embedder: Embedder | None, model: SupportModel | None = None) -> None:
        """Keep the embedder, or None to go by words alone."""
        self._model = model or SupportModel.load()
        usable = embedder is not None and embedder.identity.model == self._model.embedding_model
        self._embedder = embedder if usable else None

    def examine(self, passages: Iterable[ReadPassage], floor: float = 0.0) -> Examination:
        """Return the examination of an answer from these passages; scores under `floor` need not be exact."""
        return Examination(passages, self._model, self._embedder, floor)

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


def contradicts(claim: Claim, passage: ReadPassage, found: Alignment, row: Floats) -> bool:
    """Whether a claim says something else than its passage in what must not differ.

    It has a figure that stands nowhere in the passage, or denies more often than the window does, or is a near copy in which
    nothing but names is strange.

    Args:
        claim: What was said.
        passage: The cited passage.
        found: From `align`.
        row: From `support_row`.
    """
    names, run, unknown = (row[FEATURES.index(name)] for name in ("names", "run", "unknown_count"))
    if names >= 1 and unknown <= names and run >= _NEAR_COPY:
        return True
    if claim.specifics.negations > negations(passage.text[found.start : found.end]):
        return True
    return bool(claim.specifics.figures - passage.figures)


def support_row(claim: Claim, passage: ReadPassage, found: Alignment) -> Floats:
    """Return FEATURES of a claim and its passage, float64 `[len(FEATURES)]`, `similarity` 0."""
    known, ordered = passage.known, claim.content
    unknown = [token for token in ordered if token not in known and not _misspelt(token, passage)]
    strange = [name for name in claim.specifics.names if name not in known and not _is_named(name, passage)]
    run = longest_run(claim.tokens, tokenise(passage.text[found.start : found.end]))
    return np.asarray(
        [
            found.coverage,
            0.0,
            float(min(2, len(strange))),
            run / max(1, len(claim.tokens)),
            len(unknown) / max(1, len(ordered)),
            float(min(5, len(unknown))),
            len(claim.grams & passage.grams) / max(1, len(claim.grams)),
            len(claim.pairs & passage.pairs) / max(1, len(claim.pairs)),
            len(ordered) / 10,
        ]
    )


def window_similarity(one: Comparison, embedder: Embedder) -> float:
    """Return the cosine of a claim and its window behind the document's title; 0 when either is too long for the embedder."""
    vectors: dict[str, FloatArray | None] = {}
    embed_new([one.claim.text, one.window], embedder, vectors)
    return _cosine(vectors[one.claim.text], vectors[one.window])


def embed_new(texts: Iterable[str], embedder: Embedder, vectors: dict[str, FloatArray | None]) -> None:
    """Add the vectors of texts that have none yet; None for a text that is too long for the embedder."""
    new = [text for text in texts if text not in vectors]
    fits = [count <= embedder.identity.max_tokens for count in embedder.count_tokens(new)] if new else []
    short = [text for text, fit in zip(new, fits, strict=True) if fit]
    vectors.update(dict.fromkeys(new))
    if short:
        vectors.update(zip(short, embedder.embed_passages(short), strict=True))


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


def _cosine(first: FloatArray | None, second: FloatArray | None) -> float:
    return 0.0 if first is None or second is None else float(first @ second)


def _score(one: Comparison, weights: Floats) -> float:
    return _capped(_logistic(one.row, weights), contradicted=one.contradicted)


def _capped(score: float, *, contradicted: bool) -> float:
    return min(score, CONTRADICTED) if contradicted else score


def _logistic(row: Floats, weights: Floats) -> float:
    return 1.0 / (1.0 + math.exp(-float(row @ weights[:-1] + weights[-1])))


def _misspelt(token: str, passage: ReadPassage) -> bool:
    """Whether the passage has a token with the same first letter that is this one, spelt a little differently."""
    return any(
        abs(len(token) - len(other)) <= 2
        # The ratio is at most this: no more characters can match than stand in the other. Most pairs are done here.
        and 2 * min(sum(map(other.__contains__, token)), sum(map(token.__contains__, other))) >= _ALIKE * (len(token) + len(other))
        and SequenceMatcher(None, token, other).ratio() >= _ALIKE
        for other in passage.known_by_initial.get(token[0], ())
    )


def _is_named(name: str, passage: ReadPassage) -> bool:
    """Whether a name stands in the passage in another form: misspelt, as an adjective of its country, or spelt out (EU)."""
    if _misspelt(name, passage):
        return True
    if len(name) > _SHARED_STEM and any(
        other.startswith(name[:_SHARED_STEM]) for other in passage.known_by_initial.get(name[0], ())
    ):
        return True
    return 2 <= len(name) <= 5 and name in passage.initials
