"""Count how often the check calls a false sentence supported, and a true one.

    python -m evaluation.studies.false_claims [--collections DIR] [--show KIND]

The committed sentences (evaluation/false_claims.json) are always read; with DIR, 600 true and 600
false ones are made from squad, foreign/{covidqa,clapnq,fetaqa,tatqa} and whole. Each sentence is
checked against its own text. Reports go to evaluation/reports/false_claims.{json,md}.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np

from app.answer.checking import CheckService
from app.core.types import Library, Verdict
from app.evaluation.metrics import bootstrap_interval
from app.generation.prompts import GenerationOptions
from evaluation.lib.false_claims import LEFT_OUT, Case, by_hand, generated
from evaluation.lib.paths import REPORTS
from evaluation.lib.workbench import SEED

COMMAND = "python -m evaluation.studies.false_claims --collections DIR"
_EACH = 600
Row = dict[str, float]


def checker() -> CheckService:
    """Return the check without libraries and vectors: each sentence has its text."""

    def no_library(_: Library) -> None:
        raise AssertionError("a given source is never searched")

    return CheckService(
        searcher_for=no_library,  # type: ignore[arg-type]
        options=GenerationOptions(),
    )


def verdict_of(service: CheckService, case: Case) -> Verdict:
    """Return the verdict on a sentence; of several, which a rule may cut, the worst."""
    order = ("contradicted", "not_found", "weak", "supported", "no_claim")
    found = {one.verdict for one in service.against(case.sentence, case.text).sentences}
    return next(verdict for verdict in order if verdict in found)


def table(judged: Sequence[tuple[Case, Verdict]], *, halves: bool) -> dict[str, dict[str, Row]]:
    """Return the figures of true and of false sentences by kind, of all, and of both halves."""
    return {
        name: {
            kind: _row(found) for kind, found in _by_kind(judged, true=true, halves=halves).items()
        }
        for name, true in (("true", True), ("false", False))
    }


def _by_kind(
    judged: Iterable[tuple[Case, Verdict]], *, true: bool, halves: bool
) -> Mapping[str, list[Verdict]]:
    groups: dict[str, list[Verdict]] = {}
    for case, verdict in judged:
        if case.true == true:
            half = ["kinds left out" if case.kind in LEFT_OUT else "kinds used"] if halves else []
            for group in ("all", *half, case.kind):
                groups.setdefault(group, []).append(verdict)
    return groups


def _row(found: Sequence[Verdict]) -> Row:
    counts: Counter[str] = Counter(found)
    interval = bootstrap_interval(
        np.array([float(verdict == "supported") for verdict in found]), seed=SEED, resamples=2000
    )
    share = {"supported": interval.mean, "low": interval.low, "high": interval.high}
    kept = (counts["supported"] + counts["weak"]) / max(1, len(found))
    return {
        "sentences": len(found),
        **{f"n_{verdict}": counts[verdict] for verdict in get_args(Verdict)},
        **{name: round(float(value), 4) for name, value in share.items()},
        "supported_or_weak": round(kept, 4),
    }


def markdown(result: Mapping[str, Mapping[str, Mapping[str, Row]]]) -> str:
    """Return the report as Markdown."""
    lines = [
        "# False sentences that the check calls supported",
        "",
        f"Made by `{COMMAND}`. Each sentence is checked against its own text of about a page,",
        "by words alone. Supported: the share with a 95 % bootstrap interval; kept: supported or",
        "weak. Kinds with a star were left out of every choice of a rule or a threshold.",
        "The probe was written and judged before it was first measured: texts of other subjects,",
        "true sentences in words of their own. Decision 0257 gives its first figures.",
    ]
    verdicts = get_args(Verdict)
    for name, sets in result.items():
        for said, kinds in sets.items():
            lines += [
                "",
                f"## {name}: {said} sentences",
                "",
                f"| kind | sentences | {' | '.join(verdicts)} | supported | interval | kept |",
                "|" + "---|" * (len(verdicts) + 5),
            ]
            for kind, row in kinds.items():
                star = " *" if kind in LEFT_OUT and name == "generated" else ""
                counts = " | ".join(str(row[f"n_{verdict}"]) for verdict in verdicts)
                lines.append(
                    f"| {kind}{star} | {row['sentences']} | {counts} | {row['supported']:.3f} |"
                    f" {row['low']:.3f} to {row['high']:.3f} | {row['supported_or_weak']:.3f} |"
                )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Check both sets and report; or show the sentences of a kind that went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collections", type=Path, help="folder of the public collections")
    parser.add_argument("--show", action="append", help="print the wrong verdicts of a kind")
    options = parser.parse_args()
    sets = {"by hand": list(by_hand()), "probe": list(by_hand("probe"))}
    if options.collections:
        sets["generated"] = generated(options.collections, SEED, _EACH)
    service = checker()
    result = {}
    for name, cases in sets.items():
        judged = [(case, verdict_of(service, case)) for case in cases]
        result[name] = table(judged, halves=name == "generated")
        for case, verdict in judged:
            if case.kind in (options.show or ()) and (verdict == "supported") != case.true:
                print(f"{name} {case.kind} {verdict}: {case.sentence}")
    print(markdown(result))
    if options.collections and not options.show:
        written = {"command": COMMAND, "sets": result}
        (REPORTS / "false_claims.json").write_text(
            json.dumps(written, indent=1) + "\n", encoding="utf-8"
        )
        (REPORTS / "false_claims.md").write_text(markdown(result), encoding="utf-8")


if __name__ == "__main__":
    main()
