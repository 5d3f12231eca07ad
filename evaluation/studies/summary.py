"""Summarise the retrieval studies, each figure with its limit.

`python -m evaluation.studies.summary`

Reads the JSON reports that the studies wrote and writes evaluation/reports/retrieval.{md,json}.
Exit code 1 when a limit is missed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from evaluation.lib.paths import REPORTS
from evaluation.lib.retrieval_limits import (
    COLLECTIONS,
    LIMITS,
    Read,
    by_collection,
    mean_of,
)


@dataclass(frozen=True, slots=True)
class Step:
    """A search step's gain on each collection, and its time."""

    name: str
    gains: dict[str, str]
    ms: str


def main() -> int:
    """Read, compare, write; returns the exit code."""
    reports = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in REPORTS.glob("*.json")
    }
    wanted = (
        "fusion",
        "late",
        "closeness",
        "poison",
        "ann",
        "two_libraries",
        "titles",
        "partly_embedded",
        "extractive",
    )
    missing = [name for name in wanted if name not in reports]
    rows = [
        row
        for name in wanted
        if name not in missing and name in LIMITS
        for row in LIMITS[name](reports[name])
    ]
    lines = [
        "# Retrieval: what is claimed, and what was measured",
        "",
        "Figures of [fusion](fusion.md) are from odd lines of the questions, its defaults from even"
        " ones. Late interaction, the guard and the title were chosen on the first questions of all"
        " seven sets together, which are those that [late](late.md) shows.",
        "",
        "| what | measured | limit | kept | report |",
        "|---|---|---|---|---|",
        *(
            f"| {r.what} | {r.value} | {r.limit} | {'yes' if r.kept else '**no**'} |"
            f" [{r.report}]({r.report}.md) |"
            for r in rows
        ),
        "",
    ]
    steps: list[Step] = []
    if "fusion" in reports:
        steps = list(_steps(reports["fusion"]))
        lines += [*_table(reports["fusion"]), ""]
        lines += ["## What each step gains, and what it takes", ""]
        lines += [
            f"| step | {' | '.join(COLLECTIONS)} | time of the step, median ms |",
            "|---|" + "---|" * (len(COLLECTIONS) + 1),
        ]
        lines += [
            f"| {s.name} | {' | '.join(s.gains.get(name, '') for name in COLLECTIONS)} | {s.ms} |"
            for s in steps
        ]
        lines += [
            "",
            "Gains are differences of nDCG@10 with their 95 % intervals; `*` marks those that"
            " chance hardly explains (p <= 0.05).",
            "Times are from a machine that had other work at the time; compare them with each"
            " other only.",
            "",
        ]
    lines += [*_more(reports)]
    if missing:
        lines += ["", f"Not run yet: {', '.join(missing)}."]
    text = "\n".join(lines) + "\n"
    content = {
        "rows": [asdict(row) for row in rows],
        "steps": [{"name": step.name, "gains": step.gains} for step in steps],
        "made_from": {name: reports[name].get("provenance") for name in wanted if name in reports},
        "missing": missing,
        "timings": {step.name: step.ms for step in steps},
    }
    (REPORTS / "retrieval.md").write_text(text, encoding="utf-8")
    (REPORTS / "retrieval.json").write_text(
        json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    print(text)
    return 0 if all(row.kept for row in rows) else 1


def _table(report: Read) -> list[str]:
    found = by_collection(report)
    arms = [arm["name"] for arm in found["squad"]["arms"]]
    lines = [
        "## nDCG@10",
        "",
        f"| arm | {' | '.join(_sized(found[name]) for name in COLLECTIONS)} |",
    ]
    lines.append("|---|" + "---|" * len(COLLECTIONS))
    lines += [
        f"| {arm} | {' | '.join(f'{mean_of(found[name], arm):.4f}' for name in COLLECTIONS)} |"
        for arm in arms
    ]
    return lines


def _sized(experiment: Read) -> str:
    return f"{experiment['collection']}, {experiment['questions']} questions"


_PAIRS = (
    ("scores instead of ranks (min-max against RRF)", "min-max", "rrf", ("fusion", "complete")),
    ("keyword overlap", "default", "without overlap", ("read", "rerank")),
    ("word pairs", "default", "without pairs", ("read", "rerank")),
    ("late interaction", "default", "without late", ("read", "rerank")),
    ("maximal marginal relevance", "mmr", "default", ("diversity",)),
)


def _steps(report: Read) -> Iterator[Step]:
    """Compare arms that differ in one step, question by question."""
    found = by_collection(report)
    for title, arm, without, stages in _PAIRS:
        gains = {name: _gain(found[name], arm, without) for name in COLLECTIONS}
        yield Step(title, gains, _times(report, "squad", arm, without, stages))


def _gain(experiment: Read, arm: str, without: str) -> str:
    from app.evaluation.metrics import compare  # noqa: PLC0415 - scipy takes a second

    values = {
        a["name"]: a["per_question"] for a in experiment["arms"] if a["name"] in (arm, without)
    }
    (found,) = compare(without, values, seed=7, resamples=2000)
    difference = found.difference
    return (
        f"{difference.mean:+.4f} [{difference.low:+.4f},"
        f" {difference.high:+.4f}]{'*' if found.significant else ''}"
    )


def _times(report: Read, collection: str, arm: str, without: str, stages: tuple[str, ...]) -> str:
    def taken(name: str) -> float:
        return sum(
            float(report["timings"][collection][name]["stages_p50_ms"].get(stage, 0.0))
            for stage in stages
        )

    return f"{taken(arm):.2f} against {taken(without):.2f} ({' + '.join(stages)})"


def _more(reports: dict[str, Read]) -> Iterator[str]:
    """Sentences about reports without a limit of their own."""
    if "languages" in reports:
        yield "Other languages than English: [languages](languages.md). "
    if "titles" in reports:
        yield "Weight of the title in BM25: [titles](titles.md). "
    if "partly_embedded" in reports:
        yield (
            "Libraries whose vectors are not all there yet: [partly_embedded](partly_embedded.md). "
        )
    if "extractive" in reports:
        yield "Answers without a model: [extractive](extractive.md). "


if __name__ == "__main__":
    sys.exit(main())
