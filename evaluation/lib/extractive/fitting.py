"""Weights of the quoting answerer: fitted, read, written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.generation.candidates import Candidate
from app.generation.extractive import choose, probability
from app.generation.features import (
    FEATURES,
    SUFFICIENCY,
    Floats,
)
from evaluation.lib.extractive.asked import Asked, Material
from evaluation.lib.paths import ROOT

WEIGHTS = ROOT / "app" / "generation" / "extractive.json"
_RIDGE = 0.5


def fit_ranking(questions: Sequence[Asked], *, words_only: bool) -> Floats:
    """Return weights that make a sentence with the answer its question's likeliest.

    The loss is the negative logarithm of the softmax mass on sentences that hold an answer, with a ridge; convex enough for L-BFGS
    to end in the same place from zero each time.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - the eval extra

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
        return float(-(np.log(part) - np.log(whole)).sum() + _RIDGE * (weights @ weights) / 2), slope

    found: Floats = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x
    return found


def fit_sufficiency(groups: Sequence[tuple[Sequence[Asked], bool]], *, words_only: bool) -> Floats:
    """Return logistic weights and bias that tell on-topic from off-topic evidence.

    Groups of any size count alike, and both classes count alike.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - the eval extra

    rows, labels, shares = [], [], []
    for questions, bears in groups:
        same = sum(label == bears for _, label in groups)
        for one in questions:
            rows.append(np.append(one.judged_words_only if words_only else one.judged, 1.0))
            labels.append(bears)
            shares.append(1000.0 / (same * len(questions)))
    matrix, target, share = np.vstack(rows), np.asarray(labels, dtype=np.float64), np.asarray(shares)

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = matrix @ weights
        likelihood = share * (np.logaddexp(0, scores) - target * scores)
        slope = matrix.T @ (share * (1 / (1 + np.exp(-scores)) - target)) + _RIDGE * weights
        return float(likelihood.sum() + _RIDGE * (weights @ weights) / 2), slope

    found: Floats = minimize(loss, np.zeros(matrix.shape[1]), jac=True, method="L-BFGS-B").x
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The fit of one way of reading: with vectors, or words only."""

    ranking: Floats
    sufficiency: Floats
    words_only: bool

    def probability(self, one: Asked) -> float:
        """Return the probability that a question's evidence bears on it; 0 for a fallback."""
        if one.fallback or not one.found:
            return 0.0
        return probability(one.judged_words_only if self.words_only else one.judged, self.sufficiency)

    def chosen(self, one: Asked) -> tuple[Candidate, ...]:
        """Return the sentences that would be quoted if any are."""
        return choose(one.found, (one.rows_words_only if self.words_only else one.rows) @ self.ranking)


def shipped(*, words_only: bool) -> Weights:
    """Return the weights in use."""
    kept = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    kind = "_words_only" if words_only else ""
    return Weights(np.array(kept[f"ranking{kind}"]), np.array(kept[f"sufficiency{kind}"]), words_only)


def fit(material: Material, *, words_only: bool) -> Weights:
    """Return weights fitted on even lines."""
    even = {name: [one for one in questions if one.even] for name, questions in (material.own | material.foreign).items()}
    groups = [(even[name], name in material.own) for name in even]
    ranking = fit_ranking(even["squad"], words_only=words_only)
    return Weights(ranking, fit_sufficiency(groups, words_only=words_only), words_only)


def packaged(with_vectors: Weights, words_only: Weights, answer_from: float, command: str) -> dict[str, object]:
    """Return what `app/generation/extractive.json` holds; `command` says what made it."""

    def plain(values: Floats) -> list[float]:
        return [round(float(value), 4) for value in values]

    return {
        "command": command,
        "embedding_model": "all-MiniLM-L6-v2",
        "features": list(FEATURES),
        "ranking": plain(with_vectors.ranking),
        "ranking_words_only": plain(words_only.ranking),
        "sufficiency_features": list(SUFFICIENCY),
        "sufficiency": plain(with_vectors.sufficiency),
        "sufficiency_words_only": plain(words_only.sufficiency),
        "answer_from": answer_from,
    }
