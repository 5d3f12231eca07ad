"""Fit the support model on planted faults of even squad lines; report on odd.

    python -m evaluation.studies.grounding [--data DIR] [--write]

Claims are made from squad questions and answers: the answer takes the place of the question word.
Each is cited to its own passage (right), to one of another article, to one of the same article that
does not hold the answer, or to its own passage after one number, name or negation of the claim was
changed. A fault is caught when its citation is dropped. Reports go to
evaluation/reports/grounding.{json,md}; `--write` fits anew and replaces the weights in
app/generation/grounding.json but those of evaluation/studies/claims.py, which is run after it.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.core.sentences import sentence_spans
from app.evaluation.collections import from_folder
from app.evaluation.metrics import bootstrap_interval
from app.generation.prompts import GenerationOptions
from app.generation.reading import Claim, ReadPassage
from app.generation.support import FEATURES, Comparison, Floats, SupportModel
from evaluation.lib.fits import logistic
from evaluation.lib.growth import table
from evaluation.lib.paths import ROOT
from evaluation.lib.planting import Case, Planter
from evaluation.lib.served import write
from evaluation.lib.workbench import SEED, arguments

COMMAND = "python -m evaluation.studies.grounding"
_RIDGE = 0.3
_LOSS = 0.02
"""Share of right citations on even lines, those left out that are taken for contradicted, which
the threshold may cost."""
_FIT = 700
_SHARES = {"right": 6.0, "random": 1.0, "article": 4.0, "number": 1.0, "name": 2.0, "negation": 1.0}
"""Weights of a case in fitting: right citations and near faults are the hard ones."""


def compared(cases: Sequence[Case]) -> list[Comparison | None]:
    """Return the cases compared, in order; None where they share no word."""
    judge = SupportModel.load()
    found = []
    for case in cases:
        passage = ReadPassage(case.passage)
        found.append(judge.examine([passage]).compare(Claim(case.claim), passage))
    return found


def fit(cases: Sequence[Case], found: Sequence[Comparison | None], threshold: float) -> Floats:
    """Return logistic weights; the bias puts right citations' loss at the threshold.

    Only what the rules leave open is fitted: neither said nor contradicted.
    """
    opened = [
        (case, one)
        for case, one in zip(cases, found, strict=True)
        if one is not None and one.verdict(0.0) == "weak"
    ]
    rows = np.array([[*one.row, 1.0] for _, one in opened])
    right = np.array([case.kind == "right" for case, _ in opened])
    share = np.array([_SHARES[case.kind] for case, _ in opened])
    penalty = np.full(rows.shape[1], _RIDGE)
    weights = logistic(rows, right.astype(np.float64), share, penalty)
    cut = float(np.quantile((rows @ weights)[right], _LOSS, method="higher"))
    weights[-1] += np.log(threshold / (1 - threshold)) - cut
    return weights


def report(
    cases: Sequence[Case], found: Sequence[Comparison | None], weights: Floats, threshold: float
) -> dict[str, dict[str, float]]:
    """Return the shares of supported and of weak or supported citations by group and kind."""
    verdicts = [
        replace(one, held=1 / (1 + math.exp(-float(np.r_[one.row, 1.0] @ weights)))).verdict(
            threshold
        )
        if one is not None
        else "not_found"
        for one in found
    ]
    result = {}
    for name in ("quote", "right", "random", "article", "changed", "number", "name", "negation"):
        chosen = [
            verdict
            for case, verdict in zip(cases, verdicts, strict=True)
            if name in {case.kind, case.group}
        ]
        row: dict[str, float] = {"cases": len(chosen)}
        for said, kept in (("supported", ["supported"]), ("kept", ["supported", "weak"])):
            values = np.array([float(verdict in kept) for verdict in chosen])
            interval = bootstrap_interval(values, seed=SEED, resamples=2000)
            row |= {
                said: round(interval.mean, 4),
                f"{said}_low": round(interval.low, 4),
                f"{said}_high": round(interval.high, 4),
            }
        result[name] = row
    return result


def quotes(cases: Sequence[Case], seed: int) -> list[Case]:
    """Return a whole sentence of each right case's passage, as a quote of it."""
    draw = random.Random(seed)
    found = []
    for case in cases:
        text = case.passage.chunk.text
        if case.kind == "right":
            start, end = draw.choice(sentence_spans(text))
            found.append(Case("quote", " ".join(text[start:end].split()), case.passage))
    return found


def main() -> None:
    parser = arguments("Fit and report the check of citations.")
    parser.add_argument(
        "--write", action="store_true", help="replace app/generation/grounding.json"
    )
    options = parser.parse_args()
    threshold = GenerationOptions().grounding_min_similarity
    squad = from_folder(options.data / "squad")
    questions = [q for q in squad.questions if q.answers]

    def cases_of(parity: int, seed: int) -> list[Case]:
        planter = Planter(squad, seed)
        drawn = random.Random(seed).sample([q for q in questions if q.line % 2 == parity], _FIT)
        return [case for question in drawn for case in planter.cases(question)]

    even, odd = cases_of(0, SEED), cases_of(1, SEED + 1)
    odd += quotes(odd, SEED)
    weights = fit(even, compared(even), threshold) if options.write else SupportModel.load().held
    citations = report(odd, compared(odd), weights, threshold)
    path = ROOT / "app" / "generation" / "grounding.json"
    packaged: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    packaged |= {
        "command": f"{COMMAND} --write",
        "features": list(FEATURES),
        "held": [round(float(value), 4) for value in weights],
    }
    rows = [
        (
            name,
            row["cases"],
            *(
                cell
                for said in ("supported", "kept")
                for cell in (
                    f"{row[said]:.3f}",
                    f"{row[f'{said}_low']:.3f} to {row[f'{said}_high']:.3f}",
                )
            ),
        )
        for name, row in citations.items()
    ]
    remarks = [
        "The packaged weights were fitted on even lines of squad, figures are from odd lines. Quotes"
        " and right claims should stay, supported or weak (kept); the others have no mark that is"
        " green, and most should have none at all. 95 % bootstrap intervals.",
    ]
    head = ("citation", "cases", "supported", "interval", "kept", "interval")
    write(
        "grounding", "Citations: planted faults", remarks, [], {"threshold": threshold}, COMMAND,
        tables=table(head, rows), extra={"citations": citations},
    )  # fmt: skip
    if options.write:
        path.write_text(json.dumps(packaged, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
