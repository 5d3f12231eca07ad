"""Fit the support model on planted faults of even squad lines; report on odd.

    python -m evaluation.studies.grounding [--data DIR] [--write]

Claims are made from squad questions and answers: the answer takes the place of the question word.
Each is cited to its own passage (right), to one of another article, to one of the same article that
does not hold the answer, or to its own passage after one number, name or negation of the claim was
changed. A fault is caught when its citation is dropped. Reports go to
evaluation/reports/grounding.{json,md}; `--write` replaces the weights in
app/generation/grounding.json but those of evaluation/studies/claims.py, which is run after it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.core.ports import Embedder
from app.evaluation.collections import from_folder
from app.evaluation.statistics import bootstrap_interval
from app.generation.options import GenerationOptions
from app.generation.reading import Claim, ReadPassage
from app.generation.support import SupportJudge, window_similarity
from app.generation.support_rows import FEATURES, Floats
from app.providers.minilm import MiniLmEmbedder
from evaluation.lib.paths import REPORTS, ROOT
from evaluation.lib.planting import (
    Case,
    Planter,
)
from evaluation.lib.workbench import SEED, arguments

Flags = npt.NDArray[np.bool_]
COMMAND = "python -m evaluation.studies.grounding --write"
PLANTED = 100
"""Faults of each kind in the report."""
_RIDGE = 0.3
_LOSS = 0.02
"""Share of right citations on even lines, those left out that are taken for contradicted, which
the threshold may cost."""
_FIT = 700
_SHARES = {"right": 6.0, "random": 1.0, "article": 4.0, "number": 1.0, "name": 2.0, "negation": 1.0}
"""Weights of a case in fitting: right citations and near faults are the hard ones."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Cases as the support model sees them, in order."""

    held: Floats
    """Support rows with similarity and a final 1, `[n, len(FEATURES) + 1]`."""
    contradicted: Flags
    """Claims that say something else, or share no word with their passage."""
    changed: Flags
    """Claims that the packaged faithful weights drop at the threshold."""


def rows_of(cases: Sequence[Case], embedder: Embedder, threshold: float) -> Rows:
    """Return the cases compared."""
    rows = Rows(
        np.zeros((len(cases), len(FEATURES) + 1)),
        *(np.zeros(len(cases), dtype=bool) for _ in range(2)),
    )
    judge = SupportJudge(None)
    for at, case in enumerate(cases):
        passage = ReadPassage(case.passage)
        found = judge.examine([passage]).compare(Claim(case.claim), passage)
        rows.held[at, -1] = 1.0
        if found is None:
            rows.contradicted[at] = True
            continue
        rows.held[at, :-1] = found.row
        rows.held[at, FEATURES.index("similarity")] = window_similarity(found, embedder)
        rows.contradicted[at] = found.contradicted
        rows.changed[at] = found.faithful < threshold
    return rows


def without_vectors(rows: Floats) -> Floats:
    """Return rows as they are without an embedder."""
    plain = rows.copy()
    plain[:, FEATURES.index("similarity")] = 0.0
    return plain


def fit(rows: Floats, contradicted: Flags, cases: Sequence[Case], threshold: float) -> Floats:
    """Return logistic weights; the bias puts right citations' loss at the threshold."""
    from scipy.optimize import minimize  # noqa: PLC0415 - the eval extra

    right = np.array([case.kind == "right" for case in cases])
    share = np.array([_SHARES[case.kind] for case in cases])
    open_rows, open_right, open_share = (
        rows[~contradicted],
        right[~contradicted],
        share[~contradicted],
    )

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = open_rows @ weights
        slope = (
            open_rows.T @ (open_share * (1 / (1 + np.exp(-scores)) - open_right)) + _RIDGE * weights
        )
        likelihood = open_share * (np.logaddexp(0, scores) - open_right * scores)
        return float(likelihood.sum() + _RIDGE * (weights @ weights) / 2), slope

    weights: Floats = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x
    cut = float(np.quantile((open_rows @ weights)[open_right], _LOSS, method="higher"))
    weights[-1] += np.log(threshold / (1 - threshold)) - cut
    return weights


def report(
    rows: Floats, dropped_anyway: Flags, cases: Sequence[Case], weights: Floats, threshold: float
) -> dict[str, dict[str, float]]:
    """Return the share of dropped citations by group and kind, with intervals.

    By bootstrap.
    """
    dropped = dropped_anyway | (1 / (1 + np.exp(-(rows @ weights))) < threshold)
    result = {}
    for name in ("right", "random", "article", "changed", "number", "name", "negation"):
        chosen = np.array([name in {case.kind, case.group} for case in cases])
        interval = bootstrap_interval(dropped[chosen].astype(np.float64), seed=SEED, resamples=2000)
        result[name] = {
            "cases": int(chosen.sum()),
            "dropped": round(interval.mean, 4),
            "low": round(interval.low, 4),
            "high": round(interval.high, 4),
        }
    return result


def planted(cases: Sequence[Case], seed: int) -> list[Case]:
    """Return PLANTED faults of each group, drawn by a seed, and all right citations."""
    draw = random.Random(seed)
    faults = (
        [case for case in cases if case.group == group]
        for group in ("random", "article", "changed")
    )
    right = [case for case in cases if case.group == "right"]
    return [*right, *(case for group in faults for case in draw.sample(group, PLANTED))]


def main() -> None:
    """Fit, report, and on request write the weights."""
    parser = arguments("Fit and report the check of citations.")
    parser.add_argument(
        "--write", action="store_true", help="replace app/generation/grounding.json"
    )
    options = parser.parse_args()
    threshold = GenerationOptions().grounding_min_similarity
    squad = from_folder(options.data / "squad")
    questions = [q for q in squad.questions if q.answers]
    embedder = MiniLmEmbedder(options.cache / "graph", threads=1)

    def cases_of(parity: int, seed: int) -> list[Case]:
        planter = Planter(squad, seed)
        drawn = random.Random(seed).sample([q for q in questions if q.line % 2 == parity], _FIT)
        return [case for question in drawn for case in planter.cases(question)]

    even, odd = cases_of(0, SEED), cases_of(1, SEED + 1)
    of_even, of_odd = rows_of(even, embedder, threshold), rows_of(odd, embedder, threshold)
    rows_odd, no_odd = of_odd.held, of_odd.contradicted | of_odd.changed
    small = planted(odd, SEED)
    places = [odd.index(case) for case in small]
    result: dict[str, object] = {"command": COMMAND, "threshold": threshold}
    path = ROOT / "app" / "generation" / "grounding.json"
    packaged: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    packaged |= {
        "command": COMMAND,
        "embedding_model": embedder.identity.model,
        "features": list(FEATURES),
    }
    for name, change in (("with_vectors", np.copy), ("words_only", without_vectors)):
        weights = fit(change(of_even.held), of_even.contradicted, even, threshold)
        result[name] = {
            "planted_300": report(
                change(rows_odd)[places], no_odd[places], small, weights, threshold
            ),
            "all": report(change(rows_odd), no_odd, odd, weights, threshold),
        }
        packaged[name] = [round(float(value), 4) for value in weights]
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / "grounding.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (REPORTS / "grounding.md").write_text(markdown(result), encoding="utf-8")
    print(markdown(result))
    if options.write:
        path.write_text(json.dumps(packaged, indent=2) + "\n", encoding="utf-8")


def markdown(result: dict[str, object]) -> str:
    """Return the report as Markdown."""
    lines = [
        "# Citations: planted faults",
        "",
        f"Made by `{result['command']}`; weights fitted on even lines of squad, figures from odd"
        " lines. A citation is dropped when",
        f"its support is under {result['threshold']}: right ones should stay, faults should go. 95"
        " % bootstrap intervals.",
        "",
        "| weights | sample | citation | cases | dropped | interval |",
        "|---|---|---|---|---|---|",
    ]
    for weights in ("with_vectors", "words_only"):
        tables = result[weights]
        assert isinstance(tables, dict)
        for sample, table in tables.items():
            for name, row in table.items():
                interval = f"{row['low']:.3f} to {row['high']:.3f}"
                lines.append(
                    f"| {weights} | {sample} | {name} | {row['cases']} | {row['dropped']:.3f} |"
                    f" {interval} |"
                )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
