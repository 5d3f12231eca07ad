"""Measure whether an answer's confidence is the probability that its quote is right.

    python -m evaluation.studies.confidence [--data DIR] [--write]

Questions of seven sets, each put to its own library; conversations (mtragun) are asked as they
stand and take no part in the fit. Quotes that a table's row leads have a fit of their own, on
fetaqa: as asked, and without what a question's own table gave. Figures are of weights that did not see the question: out of
five folds, and of weights fitted without a whole collection. `--write` puts the weights fitted on
all questions into app/generation/quote/extractive.json. Writes evaluation/reports/confidence.{md,json}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from app.generation.quote.quote_features import SUFFICIENCY, Floats
from app.retrieval.request import RetrievalOptions
from evaluation.lib.fits import area_under_curve, logistic
from evaluation.lib.reports import COLLECTIONS, hash_of, options, share, table, write
from evaluation.lib.workbench import made_with
from evaluation.studies.extractive import (
    ABSENT_TABLES,
    FOREIGN,
    TABLES,
    TOP_K,
    Groups,
    ReadQuestion,
    Weights,
    gather,
    keep,
    shipped,
)

COMMAND = "python -m evaluation.studies.confidence --write"
SETS = ("squad", "clapnq", "chunking", "covidqa", "whole", "mtragun", TABLES)
FOLDS = 5
_COLLECTIONS: Mapping[str, tuple[str, ...]] = {
    "squad": ("squad", "squad unanswerable", FOREIGN),
    "clapnq": ("clapnq",),
    "chunking": ("chunking",),
    "covidqa": ("covidqa",),
    "whole": ("whole",),
}
_RIDGE = 0.5
SHARES: Mapping[str, float] = {
    "squad": 2.0,
    "squad unanswerable": 0.44,
    "clapnq": 1.0,
    "chunking": 0.5,
    "covidqa": 0.25,
    "whole": 0.5,
    FOREIGN: 0.1,
}
"""Weight of a set for confidence, independent of its size. People ask about things in their
documents more often than squad's authors, who wrote every other question to have no answer."""
ROW_SHARES: Mapping[str, float] = {TABLES: 1.0, ABSENT_TABLES: 0.2}
"""The same for quotes that a table's row leads."""
_SCALE = 400.0

BINS = 10
PAIRS = (
    ("clapnq", "clapnq"),
    ("whole", "whole"),
    ("squad", "squad unanswerable"),
    ("squad", FOREIGN),
    ("mtragun", "mtragun"),
    ("fetaqa", "fetaqa absent"),
)
"""Where the answerable questions of a comparison are, and the others."""
HELD = ("squad", "clapnq", "covidqa", "whole")
"""Sets whose gold is text, which a passage has or has not."""


@dataclass(frozen=True, slots=True)
class Outcome:
    answerable: bool
    confidence: float
    right: bool
    """The quote is right, were it made."""
    held: bool
    """The passages that were found have what is asked for."""


Outcomes = Mapping[str, Sequence[Outcome]]
"""By set."""


def calibration_error(outcomes: Sequence[Outcome]) -> float:
    """Return the mean gap between confidence and outcome over ten equal bins.

    References:
        Naeini, Cooper, Hauskrecht: Obtaining well calibrated probabilities using Bayesian binning,
            AAAI 2015.
    """
    gaps = 0.0
    for at in range(BINS):
        held = [one for one in outcomes if min(int(one.confidence * BINS), BINS - 1) == at]
        if held:
            sure = float(np.mean([one.confidence for one in held]))
            gaps += abs(sure - float(np.mean([one.right for one in held]))) * len(held)
    return gaps / len(outcomes)


def refusals_table(found: Outcomes, answer_from: float) -> list[str]:
    """Return how the answerable questions of a set are told from the others."""
    rows = []
    for name, other in ((name, other) for name, other in PAIRS if {name, other} <= found.keys()):
        own = [one for one in found[name] if one.answerable]
        foreign = [one for one in found[other] if not one.answerable]
        wrongly = [one.confidence < answer_from for one in own]
        rightly = [one.confidence < answer_from for one in foreign]
        area = area_under_curve(
            [one.confidence for one in own], [one.confidence for one in foreign]
        )
        lost = [one.right and one.confidence < answer_from for one in own]
        precision = sum(rightly) / max(1, sum(rightly) + sum(wrongly))
        title = name if other != FOREIGN else f"{name}, others of another subject"
        counts = (str(len(own)), str(len(foreign)), f"{area:.3f}")
        refused = (share(wrongly), share(lost), share(rightly), f"{precision:.2f}")
        rows.append((title, *counts, *refused))
    head = (
        "set|answerable|not|AUC|refused of the answerable|right quotes refused"
        "|refused of the others|precision"
    )
    return table(head.split("|"), rows)


def held_table(found: Outcomes, answer_from: float) -> list[str]:
    """Return how often a question is refused whose passages have what is asked for."""
    rows = []
    for name in (name for name in HELD if name in found):
        refused = [one.confidence < answer_from for one in found[name] if one.held]
        rows.append((name, str(len(refused)), share(refused)))
    return ["", *table(("set", "the passages have it", "refused of these"), rows)]


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
    rows, right, weights = [], [], []
    for name in (name for name in groups if name in shares):
        usable = [one for one in groups[name] if one.usable]
        judged = [one.judged(ranking, words_only=words_only) for one in usable]
        fits = [by_row == led_by_row for _, by_row in judged]
        rows += list(compress((row for row, _ in judged), fits))
        right += [
            one.right(one.chosen(ranking, words_only=words_only)) for one in compress(usable, fits)
        ]
        weights += [_SCALE * shares[name] / max(1, len(groups[name]))] * sum(fits)
    matrix, target = np.vstack(rows), np.asarray(right, dtype=np.float64)
    middle, deviation = matrix.mean(axis=0), matrix.std(axis=0) + 1e-9
    scaled = np.c_[(matrix - middle) / deviation, np.ones(len(matrix))]
    penalty = np.r_[np.full(matrix.shape[1], _RIDGE), 0.0]

    fitted = logistic(scaled, target, np.asarray(weights), penalty)
    plain = fitted[:-1] / deviation
    unscaled: Floats = np.r_[plain, fitted[-1] - plain @ middle]
    return unscaled


def main() -> None:
    given = options(
        __doc__,
        **COLLECTIONS,
        write=(False, "replace the weights in app/generation/quote/extractive.json"),
        questions=(900, "most questions of a set"),
        answer_from=(0.37, "least probability for a quote"),
    )
    groups = gather(given.data, given.cache, given.questions, SETS)
    lines = [
        f"{TOP_K} passages a question; nothing is quoted under {given.answer_from}. Each collection is"
        f" judged by weights that were fitted without it, {TABLES} and the second table by those of"
        " five folds, each judged by the four others; mtragun takes no part in the fit. Shares with"
        " 95 % intervals."
    ]
    figures: dict[str, float] = {}
    for title, only in (("With vectors", False), ("By words alone", True)):
        way = shipped(words_only=only)
        part, found = _section(title, groups, way, given.answer_from)
        lines += part
        figures |= {f"{title.lower()}: {name}": value for name, value in found.items()}
    settings = hash_of(RetrievalOptions(), given.answer_from, SHARES, ROW_SHARES)
    made = made_with(settings)
    title = "Confidence: how probably is a quote right?"
    write("confidence", title, (), [], {}, COMMAND, tables=lines, aside=figures, made=made)
    if given.write:
        with_vectors, words_only = (
            fitted(groups, shipped(words_only=only)) for only in (False, True)
        )
        keep(
            command=COMMAND,
            sufficiency_features=list(SUFFICIENCY),
            sufficiency=with_vectors.sufficiency,
            sufficiency_words_only=words_only.sufficiency,
            sufficiency_row=with_vectors.sufficiency_row,
            sufficiency_row_words_only=words_only.sufficiency_row,
            answer_from=given.answer_from,
        )


def fitted(groups: Groups, way: Weights) -> Weights:
    prose, rows = (
        fit_sufficiency(groups, way.ranking, words_only=way.words_only, led_by_row=by_row)
        for by_row in (False, True)
    )
    return replace(way, sufficiency=prose, sufficiency_row=rows)


def _section(
    title: str, groups: Groups, way: Weights, answer_from: float
) -> tuple[list[str], dict[str, float]]:
    folds = _out_of_fold(groups, way)
    errors = _errors(folds, "")
    without = {
        left: _outcomes(
            {name: groups[name] for name in names},
            fitted({name: groups[name] for name in groups if name not in names}, way),
        )
        for left, names in _COLLECTIONS.items()
    }
    apart = {name: found for part in without.values() for name, found in part.items()}
    apart["mtragun"] = folds["mtragun"]
    errors |= _errors(apart, ", collection left out")
    lines = ["", f"## {title}", "", *refusals_table({**folds, **apart}, answer_from)]
    lines += held_table(folds, answer_from)
    refused = {
        f"refused of those whose passages have the answer, {name}": float(
            np.mean([one.confidence < answer_from for one in folds[name] if one.held])
        )
        for name in HELD
    }
    return lines, errors | refused


def _errors(found: Outcomes, how: str) -> dict[str, float]:
    """Return the calibration error of each collection; squad's unanswerable half is apart."""
    return {
        f"calibration error on {name}{how}": calibration_error(found[name])
        for name in (*_COLLECTIONS, TABLES, ABSENT_TABLES)
        if name in found
    }


def _out_of_fold(groups: Groups, way: Weights) -> Outcomes:
    """Return every question's outcome by the weights of the folds that it is not in."""
    found: dict[str, list[Outcome]] = {name: [] for name in groups}
    for fold in range(FOLDS):
        others = {
            name: [one for at, one in enumerate(questions) if at % FOLDS != fold]
            for name, questions in groups.items()
        }
        weights = fitted(others, way)
        for name, questions in groups.items():
            found[name] += [_outcome(weights, one) for one in questions[fold::FOLDS]]
    return found


def _outcomes(groups: Groups, weights: Weights) -> Outcomes:
    return {
        name: [_outcome(weights, one) for one in questions] for name, questions in groups.items()
    }


def _outcome(weights: Weights, one: ReadQuestion) -> Outcome:
    asked = one.asking.question.answerable
    return Outcome(asked, weights.confidence(one), weights.right(one), one.held)


if __name__ == "__main__":
    main()
