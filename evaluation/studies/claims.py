"""Fit and measure the check of edited summaries, on domains left out.

    python -m evaluation.studies.claims [--data DIR] [--write]

SummEdits holds summaries with small edits; label 0 where an edit made one inconsistent with its
document. A summary counts as good when all its sentences are supported or weak. Weights are fitted on the
sentences of three domains and on planted faults of squad (even lines), and read on the fourth
domain: those figures carry over to other texts. The packaged weights are fitted on all four.
Reports go to evaluation/reports/claims.{json,md}; `--write` replaces the faithful weights in
app/generation/grounding.json.

References:
    Laban et al.: LLMs as Factual Reasoners, 2023, arXiv 2305.14540 (SummEdits).
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.core.sentences import sentence_spans
from app.core.types import Verdict
from app.evaluation.collections import from_folder, json_lines
from app.evaluation.metrics import bootstrap_interval
from app.generation.prompts import GenerationOptions
from app.generation.reading import Claim, ReadPassage
from app.generation.support import FAITHFUL_FEATURES, Comparison, Floats, Origin, SupportModel
from evaluation.lib.fits import logistic
from evaluation.lib.growth import table
from evaluation.lib.paths import ROOT
from evaluation.lib.planting import Planter
from evaluation.lib.served import write
from evaluation.lib.workbench import SEED, arguments


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence of a summary, compared with its document."""

    verdict: Verdict
    """`weak` for all that the rules leave open."""
    held: float
    row: Floats
    good: bool
    weight: float


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of a domain with its label: whether the document holds all of it."""

    domain: str
    good: bool
    sentences: tuple[Said, ...]


def summaries(folder: Path, judge: SupportModel) -> Iterator[Summary]:
    """Yield each domain's summaries, compared; untouched sentences count a third."""
    for path in sorted(folder.glob("*.jsonl")):
        for row in json_lines(path):
            left = {
                row["original_summary"][start:end]
                for start, end in sentence_spans(row["original_summary"])
            }
            good = row["label"] == 1
            texts = [row["summary"][start:end] for start, end in sentence_spans(row["summary"])]
            compared = compare(
                judge,
                [(text, ReadPassage.of_text(row["doc"])) for text in texts],
                "source",
            )
            yield Summary(
                path.stem,
                good,
                tuple(
                    Said(
                        found.verdict(0.0) if found else "not_found",
                        found.held if found else 0.0,
                        changes,
                        good or text in left,
                        1.0 if good or text not in left else 0.3,
                    )
                    for text, (found, changes) in zip(texts, compared, strict=True)
                ),
            )


def compare(
    judge: SupportModel, pairs: Sequence[tuple[str, ReadPassage]], are: Origin
) -> list[tuple[Comparison | None, Floats]]:
    """Return each claim's comparison with its passage, and faithful row."""
    out: list[tuple[Comparison | None, Floats]] = []
    for text, passage in pairs:
        examination = judge.examine([passage], are)
        found = examination.compare(Claim(text), passage)
        out.append((found, found.changes if found else np.zeros(len(FAITHFUL_FEATURES))))
    return out


COMMAND = "python -m evaluation.studies.claims --write"
_RIDGE = 10.0
_CASES = 3000.0
"""Weight of all fitted cases together, against the ridge."""
_PLANTED = 0.1
"""Share of that weight which planted faults have."""
_QUESTIONS = 400
_LOSS = 0.06
"""Share of right citations of squad that the faithful weights may cost on even lines."""
_FALLIBLE = ("right", "number", "name", "negation")
_EDGES = 300


def fit(rows: Floats, right: Floats, share: Floats) -> Floats:
    """Return logistic weights, bias last, none over 0: no edit speaks for a claim."""
    d = rows.shape[1]
    bounds = [*[(None, 0.0)] * d, (None, None)]
    penalty = np.r_[np.full(d, _RIDGE), 0.0]
    return logistic(np.c_[rows, np.ones(len(rows))], right, share, penalty, bounds)


def balanced(good: Floats, passed: Floats) -> float:
    """Return the mean share of good ones that pass and bad ones that do not."""
    return float((passed[good == 1].mean() + 1 - passed[good == 0].mean()) / 2)


def passes(one: Summary, weights: Floats, least: float) -> bool:
    """Return whether every sentence is supported or weak, the faithful part by these weights."""
    return all(score(said, weights) >= least for said in one.sentences)


def score(said: Said, weights: Floats) -> float:
    """Return how sure a sentence is to stay under other faithful weights than the packaged."""
    if said.verdict != "weak":
        return float(said.verdict == "supported")
    faithful = 1 / (1 + math.exp(-float(said.row @ weights[:-1] + weights[-1])))
    return min(said.held, faithful)


def fitted(
    train: Sequence[Summary], planted: Sequence[tuple[str, Comparison | None, Floats]], least: float
) -> Floats:
    """Return weights of the best balanced accuracy, the bias moved to the threshold."""
    said = [one for summary in train for one in summary.sentences if one.verdict == "weak"]
    rows = np.array([one.row for one in said])
    good, share = np.array([one.good for one in said]), np.array([one.weight for one in said])
    cases = [
        (kind, row)
        for kind, found, row in planted
        if found is not None and found.verdict(0.0) == "weak" and kind in _FALLIBLE
    ]
    more, right = (
        np.array([row for _, row in cases]),
        np.array([kind == "right" for kind, _ in cases]),
    )
    shares = (
        np.r_[(1 - _PLANTED) * _even(good, share), _PLANTED * _even(right, np.ones(len(right)))]
        * _CASES
    )
    weights = fit(np.r_[rows, more], np.r_[good, right].astype(np.float64), shares)
    of_right = np.array([row @ weights[:-1] for kind, _, row in planted if kind == "right"])
    most = np.quantile(of_right, _LOSS)
    cuts = [
        cut
        for cut in np.unique(np.quantile(rows @ weights[:-1], np.linspace(0, 1, _EDGES)))
        if cut <= most
    ]
    labels = np.array([summary.good for summary in train], dtype=np.float64)

    def at(cut: float) -> Floats:
        return np.append(weights[:-1], np.log(least / (1 - least)) - cut + 1e-6)

    def accuracy(tried: Floats) -> float:
        return balanced(
            labels, np.array([passes(one, tried, least) for one in train], dtype=np.float64)
        )

    return max(map(at, cuts), key=accuracy)


def _even(right: npt.NDArray[np.bool_], share: Floats) -> Floats:
    """Return shares that sum to 1, right and wrong ones to a half each."""
    even: Floats = np.where(right, share / share[right].sum(), share / share[~right].sum()) / 2.0
    return even


def planted_cases(folder: Path, judge: SupportModel) -> list[tuple[str, Comparison | None, Floats]]:
    """Return kind, comparison and faithful row of planted faults, even squad lines."""
    squad = from_folder(folder)
    questions = [q for q in squad.questions if q.answers and q.line % 2 == 0]
    planter = Planter(squad, SEED)
    cases = [
        case
        for question in random.Random(SEED).sample(questions, _QUESTIONS)
        for case in planter.cases(question)
    ]
    compared = compare(
        judge, [(case.claim, ReadPassage(case.passage)) for case in cases], "evidence"
    )
    return [(case.kind, found, row) for case, (found, row) in zip(cases, compared, strict=True)]


def figures(tested: Sequence[Summary], weights: Floats, least: float) -> dict[str, float]:
    """Return balanced accuracy, its interval, and what is kept and caught."""
    good = np.array([one.good for one in tested], dtype=np.float64)
    passed = np.array([passes(one, weights, least) for one in tested], dtype=np.float64)
    kept, caught = passed[good == 1], 1 - passed[good == 0]
    parts = [bootstrap_interval(part, seed=SEED, resamples=2000) for part in (kept, caught)]
    spread = math.hypot(*(part.high - part.mean for part in parts)) / 2
    middle = balanced(good, passed)
    found = {
        "balanced": middle,
        "low": middle - spread,
        "high": middle + spread,
        "kept": kept.mean(),
        "caught": caught.mean(),
    }
    return {
        "summaries": len(tested),
        **{name: round(float(value), 4) for name, value in found.items()},
    }


def main() -> None:
    parser = arguments("Fit and report the check of a text against its source.")
    parser.add_argument(
        "--write",
        action="store_true",
        help="replace the faithful weights in app/generation/grounding.json",
    )
    options = parser.parse_args()
    least = GenerationOptions().grounding_min_similarity
    path = ROOT / "app" / "generation" / "grounding.json"
    packaged = json.loads(path.read_text(encoding="utf-8"))
    model = replace(SupportModel.load(), faithful=np.r_[np.zeros(len(FAITHFUL_FEATURES)), 9.0])
    judge = model
    everything = list(summaries(options.data / "foreign" / "summedits", judge))
    planted = planted_cases(options.data / "squad", judge)
    result: dict[str, dict[str, float]] = {}
    for domain in sorted({one.domain for one in everything}):
        weights = fitted([one for one in everything if one.domain != domain], planted, least)
        result[domain] = figures(
            [one for one in everything if one.domain == domain], weights, least
        )
    whole = fitted(everything, planted, least)
    result["all four, packaged weights"] = figures(everything, whole, least)
    packaged["faithful"] = [round(float(value), 4) for value in whole]
    rows = [
        (
            domain,
            row["summaries"],
            f"{row['balanced']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            f"{row['kept']:.3f}",
            f"{row['caught']:.3f}",
        )
        for domain, row in result.items()
    ]
    remarks = [
        "On SummEdits. A domain's weights were fitted on the other three and on planted faults of"
        " squad; the last row is fitted and read on the same texts. Kept: good summaries all of whose"
        " sentences are supported or weak. Caught: bad ones with a sentence that is contradicted or"
        " not found. 95 % bootstrap intervals.",
    ]
    head = ("domain", "summaries", "balanced accuracy", "interval", "kept", "caught")
    write(
        "claims", "Check of a text: edited summaries", remarks, [], {}, COMMAND,
        tables=table(head, rows), extra={"domains": result},
    )  # fmt: skip
    if options.write:
        packaged["faithful_features"], packaged["faithful_command"] = (
            list(FAITHFUL_FEATURES),
            COMMAND,
        )
        path.write_text(json.dumps(packaged, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
