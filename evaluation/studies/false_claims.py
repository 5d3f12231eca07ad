"""Count how often the check calls a false sentence supported, and a true one.

    python -m evaluation.studies.false_claims [--show KIND]

The sentences are those of evaluation/false_claims.json, each checked against its own text. Writes
evaluation/reports/false_claims.{json,md}.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from app.answer.checking import CheckService
from app.core.types import Library, Verdict
from app.evaluation.metrics import bootstrap_interval
from app.generation.prompts import GenerationOptions
from evaluation.lib.reports import ROOT, SEED, options, publish

SETS = {"by hand": "", "probe": "probe"}
COMMAND = "python -m evaluation.studies.false_claims"
Row = dict[str, float]


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence over a text, and whether the text says it."""

    kind: str
    true: bool
    sentence: str
    text: str


def by_hand(group: str) -> list[Case]:
    entries = json.loads((ROOT / "evaluation" / "false_claims.json").read_text(encoding="utf-8"))
    return [
        Case(said["kind"], true, said["sentence"], entry["text"])
        for entry in entries
        if entry.get("group", "") == group
        for true in (True, False)
        for said in entry["true" if true else "false"]
    ]


def verdict_of(service: CheckService, case: Case) -> Verdict:
    """Return the verdict on a sentence; of several, which a rule may cut, the worst."""
    order = ("contradicted", "not_found", "weak", "supported", "no_claim")
    found = {one.verdict for one in service.against(case.sentence, case.text).sentences}
    return next(verdict for verdict in order if verdict in found)


def shares(found: Sequence[Verdict]) -> Row:
    counts: Counter[str] = Counter(found)
    supported = np.array([float(verdict == "supported") for verdict in found])
    interval = bootstrap_interval(supported, seed=SEED, resamples=2000)
    return {
        "sentences": len(found),
        **{f"n_{verdict}": counts[verdict] for verdict in get_args(Verdict)},
        "supported": round(interval.mean, 4),
        "low": round(interval.low, 4),
        "high": round(interval.high, 4),
        "supported_or_weak": round((counts["supported"] + counts["weak"]) / len(found), 4),
    }


def markdown(result: Mapping[str, Mapping[str, Mapping[str, Row]]]) -> str:
    verdicts = get_args(Verdict)
    lines = [
        "# False sentences that the check calls supported",
        "",
        f"Made by `{COMMAND}`. Each sentence is checked against its own text of about a page, by",
        "words alone. Supported: the share with a 95 % bootstrap interval; kept: supported or weak.",
        "The probe was written and judged before it was first measured: texts of other subjects,",
        "true sentences in words of their own; at commit 4d3b0d3a 5 of its 40 true and 1 of its 40",
        "false sentences were supported. Sentences that a program made:"
        " [false_claims_generated](false_claims_generated.md).",
    ]
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
                counts = " | ".join(str(row[f"n_{verdict}"]) for verdict in verdicts)
                lines.append(
                    f"| {kind} | {row['sentences']} | {counts} | {row['supported']:.3f} |"
                    f" {row['low']:.3f} to {row['high']:.3f} | {row['supported_or_weak']:.3f} |"
                )
    return "\n".join(lines) + "\n"


def main() -> None:
    show = options(__doc__, show=((), "print the wrong verdicts of these kinds", str)).show

    def no_library(_: Library) -> None:
        raise AssertionError("a given source is never searched")

    service = CheckService(searcher_for=no_library, options=GenerationOptions())  # type: ignore[arg-type]
    result: dict[str, dict[str, dict[str, Row]]] = {}
    for name, group in SETS.items():
        found: dict[str, dict[str, list[Verdict]]] = {"true": {}, "false": {}}
        for case in by_hand(group):
            verdict = verdict_of(service, case)
            for kind in ("all", case.kind):
                found[str(case.true).lower()].setdefault(kind, []).append(verdict)
            if case.kind in show and (verdict == "supported") != case.true:
                print(f"{name} {case.kind} {verdict}: {case.sentence}")
        result[name] = {
            said: {kind: shares(verdicts) for kind, verdicts in kinds.items()}
            for said, kinds in found.items()
        }
    publish("false_claims", {"command": COMMAND, "sets": result}, markdown(result))


if __name__ == "__main__":
    main()
