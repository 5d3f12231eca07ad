"""The answerer without a model: the sentences of the evidence that answer best, quoted and cited.

Candidates are ranked by a linear model over a few features; its weights lie in `extractive.json` beside the command that made them.
At most three sentences and 120 words, in reading order, and the refusal where the evidence does not bear on the question.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.core.cancel import CancelToken
from app.core.ports import Embedder
from app.core.text import sentence_spans, tokenise
from app.core.types import Evidence, Prompt, Token
from app.generation.alignment import FUNCTION_WORDS, content_tokens, coverage, term_weights
from app.generation.candidates import FEATURES, Candidate, Floats, candidates, feature_rows, similarities
from app.generation.prompts import REFUSAL

MAX_SENTENCES = 3
MAX_WORDS = 120
_NEAR_DUPLICATE = 0.7
"""Jaccard similarity of content words from which two sentences say the same."""


@dataclass(frozen=True, slots=True)
class ExtractiveModel:
    """Linear weights over `candidates.FEATURES`, and the support under which nothing is quoted."""

    weights: Floats
    abstain_below: float

    @staticmethod
    def load(path: Path | None = None) -> ExtractiveModel:
        """Read weights from a file, or the packaged ones.

        Raises:
            ValueError: The file was made for other features.
        """
        source = path or Path(__file__).with_name("extractive.json")
        data = json.loads(source.read_text(encoding="utf-8"))
        if tuple(data["features"]) != FEATURES:
            raise ValueError(f"{source.name} has features {data['features']!r}; expected {FEATURES!r}: run the study again")
        return ExtractiveModel(np.asarray(data["weights"], dtype=np.float64), float(data["abstain_below"]))


@dataclass(frozen=True, slots=True)
class Selection:
    """Chosen sentences in reading order, best first index, and how well the evidence bears on the question in [0, 1]."""

    chosen: tuple[Candidate, ...]
    support: float


class ExtractiveGenerator:
    """Answers with quoted sentences. Needs no model; a sentence embedder makes it better."""

    def __init__(self, embedder: Embedder | None = None, model: ExtractiveModel | None = None) -> None:
        """Keep the embedder of the library, or None to go by words alone."""
        self._embedder = embedder
        self._model = model or ExtractiveModel.load()

    @property
    def name(self) -> str:
        """`extractive`."""
        return "extractive"

    @property
    def context_tokens(self) -> int | None:
        """None: passages are read, not sent."""
        return None

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        """Yield the answer sentence by sentence, or the refusal, then the finish token.

        Raises:
            Cancelled: The token was cancelled.
        """
        cancel.raise_if_cancelled()
        selection = self.select(prompt.question, prompt.evidence)
        pieces = [rendered(candidate) for candidate in selection.chosen] or [REFUSAL]
        for index, piece in enumerate(pieces):
            cancel.raise_if_cancelled()
            yield Token(piece if index == 0 else f" {piece}")
        cancel.raise_if_cancelled()
        yield Token("", finish="stop")

    def select(self, question: str, evidence: Sequence[Evidence]) -> Selection:
        """Return the sentences to quote, none when the evidence does not support an answer."""
        usable = [item for item in evidence if not item.hit.fallback]
        found = candidates(usable)
        if not found:
            return Selection((), 0.0)
        weights = question_weights(found)
        cosines = similarities(question, found, weights, self._embedder)
        scores = feature_rows(question, found, weights, scaled(cosines)) @ self._model.weights
        support = support_of(question, found, weights, cosines)
        if support < self._model.abstain_below:
            return Selection((), support)
        return Selection(choose(found, scores), support)


def question_weights(found: Sequence[Candidate]) -> Mapping[str, float]:
    """Return a weight per stemmed token, rarer among the candidates is heavier."""
    weights = term_weights(candidate.text for candidate in found)
    return {token: weight for token, weight in weights.items() if token not in FUNCTION_WORDS}


def scaled(cosines: Floats) -> Floats:
    """Return cosines stretched to [0, 1] within the question; unknown ones are 0."""
    known = cosines[~np.isnan(cosines)]
    if not len(known) or known.max() - known.min() < 1e-9:
        return np.zeros(len(cosines))
    stretched: Floats = np.nan_to_num((cosines - known.min()) / (known.max() - known.min()), nan=0.0)
    return stretched


def support_of(question: str, found: Sequence[Candidate], weights: Mapping[str, float], cosines: Floats) -> float:
    """Return how well the best passage bears on the question, in [0, 1]."""
    asked = content_tokens(question)
    best = 0.0
    for item in {candidate.item.n: candidate.item for candidate in found}.values():
        passage = item.hit.passage
        share = coverage(asked, set(tokenise(f"{passage.document.title}\n{passage.chunk.text}")), weights)
        best = max(best, share if item.hit.signals.overlap is None else item.hit.signals.overlap)
    close = float(np.nanmax(cosines)) if not np.isnan(cosines).all() else best
    return 0.5 * best + 0.5 * max(0.0, close)


def choose(found: Sequence[Candidate], scores: Floats) -> tuple[Candidate, ...]:
    """Return at most three candidates, no two saying the same: the best first, then the others, neighbours in reading order."""
    chosen: list[Candidate] = []
    words = 0
    for row in np.argsort(-scores, kind="stable"):
        candidate = found[int(row)]
        length = len(candidate.text.split())
        if candidate.suspicious or (chosen and words + length > MAX_WORDS) or any(_alike(candidate, other) for other in chosen):
            continue
        if len(sentence_spans(rendered(candidate))) != 1:
            continue
        chosen.append(candidate)
        words += length
        if len(chosen) == MAX_SENTENCES:
            break
    return tuple(chosen)


def rendered(candidate: Candidate) -> str:
    """Return a candidate as it stands in an answer: its words, its mark before the full stop."""
    text = candidate.text
    mark = f"[{candidate.item.n}]"
    return f"{text[:-1].rstrip()} {mark}." if text.endswith(".") and not text.endswith("..") else f"{text} {mark}."


def _alike(one: Candidate, other: Candidate) -> bool:
    first, second = set(content_tokens(one.text)), set(content_tokens(other.text))
    return len(first & second) >= _NEAR_DUPLICATE * max(1, len(first | second))
