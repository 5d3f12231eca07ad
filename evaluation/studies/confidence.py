"""Measure whether an answer's confidence is the probability that its quote is right.

    python -m evaluation.studies.confidence [--data DIR] [--write]

Questions of six sets, each put to its own library; conversations (mtragun) are asked as they
stand and take no part in the fit. Quotes that a table's row leads have a fit of their own, on
fetaqa: as asked, and without what a question's own table gave. Figures are of weights that did not see the question: out of
five folds, and of weights fitted without a whole collection. `--write` puts the weights fitted on
all questions into app/generation/extractive.json. Writes evaluation/reports/confidence.{md,json}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.bootstrap.libraries import fingerprint_of
from app.core.ids import checkout_sha, fingerprint8
from app.evaluation.report import ReportProvenance
from app.ingest.names import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions
from evaluation.lib.extractive import (
    ABSENT_TABLES,
    ROW_SHARES,
    SHARES,
    TABLES,
    TOP_K,
    Groups,
    Outcome,
    Outcomes,
    ReadQuestion,
    Weights,
    calibration_error,
    fit_sufficiency,
    gather,
    keep,
    packaged_confidence,
    refusals_table,
    reliability_table,
    shipped,
)
from evaluation.lib.workbench import SEED, Figures, arguments, hash_of, write_figures

COMMAND = "python -m evaluation.studies.confidence --write"
SETS = ("squad", "clapnq", "chunking", "covidqa", "mtragun", TABLES)
FOLDS = 5
_CURVES = ("clapnq", "chunking", TABLES)
_COLLECTIONS: Mapping[str, tuple[str, ...]] = {
    "squad": ("squad", "squad unanswerable"),
    "clapnq": ("clapnq",),
    "chunking": ("chunking",),
    "covidqa": ("covidqa",),
}


def main() -> None:
    parser = arguments("Measure confidence.")
    parser.add_argument(
        "--write", action="store_true", help="replace the weights in app/generation/extractive.json"
    )
    parser.add_argument("--questions", type=int, default=900, help="most questions of a set")
    parser.add_argument(
        "--answer-from", type=float, default=0.39, help="least probability for a quote"
    )
    given = parser.parse_args()
    groups = gather(given.data, given.cache, given.questions, SETS)
    lines = [
        f"{TOP_K} passages a question. Weights of five folds, each judged by the four others;"
        " nothing"
        f" is quoted under {given.answer_from}. Shares with 95 % intervals. mtragun takes no part"
        " in"
        " the fit.",
    ]
    figures: dict[str, float] = {}
    for title, only in (("With vectors", False), ("By words alone", True)):
        way = shipped(words_only=only)
        part, found = _section(title, groups, way, given.answer_from)
        lines += part
        figures |= {f"{title.lower()}: {name}": value for name, value in found.items()}
    model = MiniLmEmbedder(given.cache / "graph").identity
    made = ReportProvenance(
        checkout_sha(),
        hash_of(RetrievalOptions(), given.answer_from, SHARES, ROW_SHARES),
        fingerprint8(fingerprint_of(model, IngestOptions())),
        {model.model: model.digest},
        SEED,
    )
    title = "Confidence: how probably is a quote right?"
    write_figures(Figures(title, made, figures, tables=[*lines, ""]), "confidence")
    if given.write:
        ways = [fitted(groups, shipped(words_only=only)) for only in (False, True)]
        keep(packaged_confidence(ways[0], ways[1], given.answer_from, COMMAND))


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
    lines = ["", f"## {title}", "", *refusals_table(folds, answer_from)]
    for name in _CURVES:
        lines += reliability_table(name, folds[name])
    lines += ["", "Each collection judged by weights that were fitted without it:", ""]
    return [*lines, *refusals_table(apart, answer_from)], errors


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
    return Outcome(one.asking.question.answerable, weights.confidence(one), weights.right(one))


if __name__ == "__main__":
    main()
