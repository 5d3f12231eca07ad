"""How well one passage holds one claim, as a probability, and where.

Words come first: a claim whose words stand in one place of the passage in the same order is supported without further ado. One with
a figure that the passage has not, or that denies what the passage does not, is contradicted, because it still shares nearly all its
words. For the rest a logistic model weighs what is shared and what differs, names among it; its weights lie in `grounding.json`
beside the command that made them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.core.ports import Embedder
from app.core.sentences import sentence_spans
from app.core.text import tokenise, words
from app.core.types import Passage
from app.generation.alignment import Alignment, align, content_tokens, specifics, spelt_figures, term_weights

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

_VERBATIM = 0.999
_NEAR_COPY = 0.35
"""Share of a claim in one run from which it copies its source; with a strange name 0.3 % of right sentences are like that."""
CONTRADICTED = 0.1
"""Most support that a contradicted claim can have; under any sensible threshold."""
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


class SupportJudge:
    """Judges claims against passages. Thread-safe as far as its embedder is."""

    def __init__(self, embedder: Embedder | None, model: SupportModel | None = None) -> None:
        """Keep the embedder, or None to go by words alone."""
        self._model = model or SupportModel.load()
        usable = embedder is not None and embedder.identity.model == self._model.embedding_model
        self._embedder = embedder if usable else None

    def judge(self, claim: str, passage: Passage, weights: Mapping[str, float]) -> Support | None:
        """Return how well a passage holds a claim, or None when they share no word.

        Args:
            claim: One sentence without marks and markup.
            passage: The cited passage.
            weights: From `term_weights` over the evidence.
        """
        found = align(claim, passage.chunk.text, weights)
        if found is None:
            return None
        row = support_row(claim, passage, found)
        if found.coverage >= _VERBATIM and row[FEATURES.index("run")] >= _VERBATIM:
            return Support(1.0, found)
        weights_of_row = self._model.words_only
        if self._embedder is not None:
            row[FEATURES.index("similarity")] = window_similarity(claim, passage, found, self._embedder)
            weights_of_row = self._model.with_vectors
        score = _logistic(row, weights_of_row)
        return Support(min(score, CONTRADICTED) if contradicts(claim, passage, found, row) else score, found)


def contradicts(claim: str, passage: Passage, found: Alignment, row: Floats) -> bool:
    """Whether a claim says something else than its passage in what must not differ.

    It has a figure that stands nowhere in the passage, or denies more often than the window does, or is a near copy in which
    nothing but names is strange.

    Args:
        claim: One sentence without marks and markup.
        passage: The cited passage.
        found: From `align`.
        row: From `support_row`.
    """
    own = specifics(claim)
    names, run, unknown = (row[FEATURES.index(name)] for name in ("names", "run", "unknown_count"))
    if names >= 1 and unknown <= names and run >= _NEAR_COPY:
        return True
    window = passage.chunk.text[found.start : found.end]
    if own.negations > specifics(window).negations:
        return True
    return bool(own.figures - spelt_figures(f"{passage.document.title}\n{passage.chunk.text}"))


def support_row(claim: str, passage: Passage, found: Alignment) -> Floats:
    """Return FEATURES of a claim and its passage, float64 `[len(FEATURES)]`, `similarity` 0."""
    text = passage.chunk.text
    context = f"{passage.document.title}\n{passage.chunk.section}\n{text}"
    window = text[found.start : found.end]
    own = specifics(claim)
    known = frozenset(tokenise(context))
    ordered = content_tokens(claim)
    unknown = [token for token in ordered if token not in known and not _misspelt(token, known)]
    pairs = set(pairwise(ordered))
    grams, tokens = _grams(claim), tokenise(claim)
    strange = [name for name in own.names if name not in known and not _is_named(name, known, context)]
    return np.asarray(
        [
            found.coverage,
            0.0,
            float(min(2, len(strange))),
            longest_run(tokens, tokenise(window)) / max(1, len(tokens)),
            len(unknown) / max(1, len(ordered)),
            float(min(5, len(unknown))),
            len(grams & _grams(context)) / max(1, len(grams)),
            len(pairs & set(pairwise(content_tokens(context)))) / max(1, len(pairs)),
            len(ordered) / 10,
        ]
    )


def window_similarity(claim: str, passage: Passage, found: Alignment, embedder: Embedder) -> float:
    """Return the cosine of a claim and its window behind the document's title; 0 when either is too long for the embedder."""
    texts = [claim, f"{passage.document.title}: {passage.chunk.text[found.start : found.end]}"]
    if max(embedder.count_tokens(texts)) > embedder.identity.max_tokens:
        return 0.0
    first, second = embedder.embed_passages(texts)
    return float(first @ second)


def evidence_weights(passages: Sequence[Passage]) -> dict[str, float]:
    """Return a weight per stemmed token over the sentences of the evidence: rarer is heavier."""
    return term_weights(passage.chunk.text[start:end] for passage in passages for start, end in sentence_spans(passage.chunk.text))


def longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common contiguous run of two token lists."""
    best = 0
    before: dict[int, int] = {}
    for token in first:
        now = {at: before.get(at - 1, 0) + 1 for at, other in enumerate(second) if other == token}
        best = max(best, *now.values()) if now else best
        before = now
    return best


def _logistic(row: Floats, weights: Floats) -> float:
    return 1.0 / (1.0 + math.exp(-float(row @ weights[:-1] + weights[-1])))


def _misspelt(token: str, known: frozenset[str]) -> bool:
    return any(
        abs(len(token) - len(other)) <= 2 and SequenceMatcher(None, token, other).ratio() >= _ALIKE
        for other in known
        if other[0] == token[0]
    )


def _is_named(name: str, known: frozenset[str], context: str) -> bool:
    """Whether a name stands in the passage in another form: misspelt, as an adjective of its country, or spelt out (EU)."""
    if _misspelt(name, known):
        return True
    if len(name) > _SHARED_STEM and any(other.startswith(name[:_SHARED_STEM]) for other in known):
        return True
    initials = "".join(word[0] for word in re.findall(r"\b[A-Z][a-z]+", context)).lower()
    return 2 <= len(name) <= 5 and name in initials


def _grams(text: str) -> set[str]:
    line = f" {' '.join(words(text))} "
    return {line[at : at + 4] for at in range(len(line) - 3)}
