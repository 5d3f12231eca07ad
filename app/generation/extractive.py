"""Answer without a model: quote and cite the sentences that answer best.

A linear model over `features.FEATURES` ranks the sentences, a logistic one over
`sufficiency.SUFFICIENCY` says how probably the quote answers the question: the confidence of
the answer. A quote that a table's row leads has weights of its own there (decision 0253). All
weights lie in `extractive.json` with the commands that made them. An answer leads with the best
sentence; others follow in reading order, as many as the kind of question has room for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.core.cancel import CancelToken
from app.core.ports import Embedder
from app.core.types import Evidence, Prompt, Token
from app.generation.answer_room import AnswerRoom, room_for
from app.generation.candidates import Candidate, candidates
from app.generation.choice import choose, quotable, quoted_text
from app.generation.features import (
    FEATURES,
    Floats,
    candidate_weights,
    feature_rows,
    sentence_vectors,
)
from app.generation.prompts import REFUSAL
from app.generation.sufficiency import SUFFICIENCY, lead_of, sufficiency_row


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """Weights of one way of reading: with vectors, or by words alone."""

    ranking: Floats
    """Of `FEATURES`."""
    sufficiency: Floats
    """Of `SUFFICIENCY` for a quote that a sentence leads; the last entry is the bias."""
    sufficiency_row: Floats
    """The same for one that a table's row leads."""

    @staticmethod
    def of(data: Mapping[str, Sequence[float]], way: str) -> Weighing:
        """Return the weights of a way, by the ends of their names in `extractive.json`."""
        names = ("ranking", "sufficiency", "sufficiency_row")
        return Weighing(*(np.asarray(data[f"{name}{way}"], dtype=np.float64) for name in names))

    def probability(
        self,
        question: str,
        found: Sequence[Candidate],
        rows: Floats,
        scores: Floats,
        chosen: Sequence[Candidate],
    ) -> float:
        """Return how probably the chosen sentences answer; arguments of `sufficiency_row`."""
        lead = found[lead_of(found, scores, chosen)]
        weights = self.sufficiency_row if lead.row else self.sufficiency
        return probability(sufficiency_row(question, found, rows, scores, chosen), weights)


@dataclass(frozen=True, slots=True, eq=False)
class ExtractiveModel:
    """Weights with and without vectors, and from where on there is a quote."""

    with_vectors: Weighing
    words_only: Weighing
    answer_from: float
    """Least probability that the quote is right for anything to be quoted."""

    @staticmethod
    def load(path: Path | None = None) -> ExtractiveModel:
        """Read weights from a file, or the packaged ones.

        Raises:
            ValueError: The file was made for other features.
        """
        source = path or Path(__file__).with_name("extractive.json")
        data = json.loads(source.read_text(encoding="utf-8"))
        if (
            tuple(data["features"]) != FEATURES
            or tuple(data["sufficiency_features"]) != SUFFICIENCY
        ):
            raise ValueError(f"{source.name} was made for other features; run: {data['command']}")
        return ExtractiveModel(
            Weighing.of(data, ""), Weighing.of(data, "_words_only"), float(data["answer_from"])
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """Sentences to quote, in order, and the probability that evidence is on topic."""

    chosen: tuple[Candidate, ...]
    sufficiency: float
    ranked: tuple[Candidate, ...] = ()
    """Every quotable sentence, best first; empty where nothing is quoted."""


class ExtractiveGenerator:
    """Answers with quoted sentences; needs no model, a sentence embedder helps."""

    def __init__(
        self, embedder: Embedder | None = None, model: ExtractiveModel | None = None
    ) -> None:
        """Keep the embedder, or None to go by words alone."""
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
        chosen = self.select(prompt.question, prompt.evidence).chosen
        for at in range(len(chosen)):
            cancel.raise_if_cancelled()
            yield Token(quoted_text(chosen[: at + 1])[len(quoted_text(chosen[:at])) :])
        if not chosen:
            yield Token(REFUSAL)
        cancel.raise_if_cancelled()
        yield Token("", finish="stop")

    def select(
        self, question: str, evidence: Sequence[Evidence], room: AnswerRoom | None = None
    ) -> Selection:
        """Return the sentences to quote; none if the evidence is off topic.

        Passages that failed the cutoff and were kept as a fallback for a model are not quoted.
        The room is that of the question unless it is given.
        """
        found = candidates([item for item in evidence if not item.hit.fallback])
        if not found:
            return Selection((), 0.0)
        model = self._model
        weights = candidate_weights(found)
        vectors = sentence_vectors(question, found, weights, self._embedder)
        rows = feature_rows(question, found, weights, vectors)
        weighing = model.with_vectors if vectors else model.words_only
        scores: Floats = rows @ weighing.ranking
        chosen = choose(found, scores, room or room_for(question))
        if not chosen:
            return Selection((), 0.0)
        sufficiency = weighing.probability(question, found, rows, scores, chosen)
        if sufficiency < model.answer_from:
            return Selection((), sufficiency)
        order = np.argsort(-scores, kind="stable")
        ranked = tuple(found[row] for row in order if quotable(found[row]))
        return Selection(chosen, sufficiency, ranked)


def probability(row: Floats, weights: Floats) -> float:
    """Return the logistic function of `row @ weights[:-1] + weights[-1]`."""
    return 1.0 / (1.0 + math.exp(-float(row @ weights[:-1] + weights[-1])))
