"""Weights of the quoting answerer: fitted, read, written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from app.generation.quote_features import FEATURES, SUFFICIENCY, Floats
from app.generation.quoting import ExtractiveModel, Weighing
from evaluation.lib.extractive.asked import ABSENT_TABLES, TABLES, Groups, ReadQuestion
from evaluation.lib.paths import ROOT

WEIGHTS = ROOT / "app" / "generation" / "extractive.json"
_RIDGE = 0.5
SHARES: Mapping[str, float] = {
    "squad": 2.0,
    "squad unanswerable": 0.44,
    "clapnq": 1.0,
    "chunking": 0.5,
    "covidqa": 0.25,
}
"""Weight of a set for confidence, independent of its size. People ask about things in their
documents more often than squad's authors, who wrote every other question to have no answer."""
ROW_SHARES: Mapping[str, float] = {TABLES: 1.0, ABSENT_TABLES: 0.2}
"""The same for quotes that a table's row leads."""
_SCALE = 400.0


def _minimum(loss: Callable[[Floats], tuple[float, Floats]], size: int) -> Floats:
    """Return a convex loss's minimum by L-BFGS from zero: deterministic."""
    from scipy.optimize import minimize  # noqa: PLC0415 - the eval extra

    found: Floats = minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B").x
    return found


def fit_ranking(questions: Sequence[ReadQuestion], *, words_only: bool) -> Floats:
    """Return weights that make a sentence with the answer its question's likeliest.

    The loss is the negative logarithm of the softmax mass on sentences that hold an answer, with a
    ridge.
    """
    usable = [one for one in questions if one.gold.any() and not one.gold.all()]
    rows = np.vstack([one.rows_words_only if words_only else one.rows for one in usable])
    gold = np.concatenate([one.gold for one in usable])
    sizes = [len(one.gold) for one in usable]
    owner = np.repeat(np.arange(len(usable)), sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = rows @ weights
        mass = np.exp(scores - np.maximum.reduceat(scores, starts)[owner])
        right = mass * gold
        whole, part = np.add.reduceat(mass, starts), np.add.reduceat(right, starts)
        slope = rows.T @ (mass / whole[owner] - right / part[owner]) + _RIDGE * weights
        return float(
            -(np.log(part) - np.log(whole)).sum() + _RIDGE * (weights @ weights) / 2
        ), slope

    return _minimum(loss, rows.shape[1])


def fit_sufficiency(
    groups: Groups, ranking: Floats, *, words_only: bool, led_by_row: bool
) -> Floats:
    """Return logistic weights, bias last, for the probability that a quote is right.

    Columns are scaled to deviation 1 while fitting, so that the ridge treats them alike.

    Args:
        groups: Questions by set.
        ranking: Weights of FEATURES.
        words_only: Fit the way without vectors.
        led_by_row: Fit the quotes that a table's row leads, by ROW_SHARES; else those that a
            sentence leads, by SHARES.
    """
    shares = ROW_SHARES if led_by_row else SHARES
    rows, right, share = [], [], []
    for name in (name for name in groups if name in shares):
        usable = [one for one in groups[name] if one.usable]
        judged = [one.judged(ranking, words_only=words_only) for one in usable]
        fits = [by_row == led_by_row for _, by_row in judged]
        rows += list(compress((row for row, _ in judged), fits))
        right += [
            one.right(one.chosen(ranking, words_only=words_only)) for one in compress(usable, fits)
        ]
        share += [_SCALE * shares[name] / max(1, len(groups[name]))] * sum(fits)
    matrix, target, weight = np.vstack(rows), np.asarray(right, dtype=np.float64), np.asarray(share)
    middle, deviation = matrix.mean(axis=0), matrix.std(axis=0) + 1e-9
    scaled = np.c_[(matrix - middle) / deviation, np.ones(len(matrix))]
    penalty = np.r_[np.full(matrix.shape[1], _RIDGE), 0.0]

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = scaled @ weights
        likelihood = weight * (np.logaddexp(0, scores) - target * scores)
        slope = scaled.T @ (weight * (1 / (1 + np.exp(-scores)) - target)) + penalty * weights
        return float(likelihood.sum() + (penalty * weights) @ weights / 2), slope

    fitted = _minimum(loss, scaled.shape[1])
    plain = fitted[:-1] / deviation
    unscaled: Floats = np.r_[plain, fitted[-1] - plain @ middle]
    return unscaled


@dataclass(frozen=True, slots=True, eq=False)
class Weights(Weighing):
    """The fit of one way of reading."""

    words_only: bool

    def confidence(self, one: ReadQuestion) -> float:
        """Return the probability that a question's quote is right; 0 without a quote."""
        if not one.usable:
            return 0.0
        rows = one.rows_words_only if self.words_only else one.rows
        chosen = one.chosen(self.ranking, words_only=self.words_only)
        text = one.asking.question.text
        return self.probability(text, one.found, rows, rows @ self.ranking, chosen)

    def right(self, one: ReadQuestion) -> bool:
        """Return whether the quote, were it made, answers the question."""
        return one.right(one.chosen(self.ranking, words_only=self.words_only))


def shipped(*, words_only: bool) -> Weights:
    """Return the weights in use."""
    model = ExtractiveModel.load()
    used = model.words_only if words_only else model.with_vectors
    return Weights(used.ranking, used.sufficiency, used.sufficiency_row, words_only)


def _plain(values: Floats) -> list[float]:
    return [round(float(value), 4) for value in values]


def packaged_ranking(with_vectors: Floats, words_only: Floats, command: str) -> dict[str, object]:
    """Return what `app/generation/extractive.json` holds of the ranking."""
    return {
        "ranking_command": command,
        "features": list(FEATURES),
        "ranking": _plain(with_vectors),
        "ranking_words_only": _plain(words_only),
    }


def packaged_confidence(
    with_vectors: Weights, words_only: Weights, answer_from: float, command: str
) -> dict[str, object]:
    """Return what `app/generation/extractive.json` holds of the confidence."""
    return {
        "command": command,
        "sufficiency_features": list(SUFFICIENCY),
        "sufficiency": _plain(with_vectors.sufficiency),
        "sufficiency_words_only": _plain(words_only.sufficiency),
        "sufficiency_row": _plain(with_vectors.sufficiency_row),
        "sufficiency_row_words_only": _plain(words_only.sufficiency_row),
        "answer_from": answer_from,
    }


def keep(part: dict[str, object]) -> None:
    """Replace a part of `app/generation/extractive.json`."""
    kept = json.loads(WEIGHTS.read_text(encoding="utf-8")) | part
    WEIGHTS.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
