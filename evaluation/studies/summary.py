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
from typing import Any

from evaluation.lib.paths import REPORTS, publish

COLLECTIONS = ("squad", "cranfield", "pubmedqa", "clapnq")
LEVEL = 0.05
_MEAN = ("mean ratio to the better leg", "its 95 % interval, low", "its 95 % interval, high")


Read = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A figure, what it must be, and whether it is."""

    what: str
    value: str
    limit: str
    kept: bool
    report: str


def by_collection(report: Read) -> dict[str, Read]:
    return {experiment["collection"]: experiment for experiment in report["experiments"]}


def mean_of(experiment: Read, arm: str) -> float:
    """Return the mean nDCG@10 of an arm, in [0, 1]."""
    return float(
        next(a for a in experiment["arms"] if a["name"] == arm)["measures"]["nDCG@10"]["mean"]
    )


def comparison_of(experiment: Read, arm: str) -> Read:
    found: Read = next(c for c in experiment["comparisons"] if c["arm"] == arm)
    return found


def _fusion(report: Read) -> Iterator[Row]:
    found = by_collection(report)
    for arm, least in (("dense", 0.76), ("bm25", 0.87)):
        alone = mean_of(found["squad"], arm)
        yield Row(
            f"squad: {arm} alone, nDCG@10",
            f"{alone:.4f}",
            f"at least {least}",
            alone >= least,
            "fusion",
        )
    for name in COLLECTIONS:
        against = comparison_of(found[name], "default")
        difference, p = against["difference"], against["p_holm"]
        value = (
            f"{difference['mean']:+.4f} [{difference['low']:+.4f}, {difference['high']:+.4f}],"
            f" p {p:.4f}"
        )
        if name == "squad":
            kept = difference["mean"] >= 0.03 and p <= LEVEL
            yield Row(
                "squad: default above RRF (k = 60)",
                value,
                "at least 0.03, significantly",
                kept,
                "fusion",
            )
        else:
            kept = difference["mean"] >= 0 or p > LEVEL
            yield Row(
                f"{name}: default against RRF", value, "never significantly below", kept, "fusion"
            )
    figures = report["figures"]
    for name in COLLECTIONS:
        ratio = float(figures[f"{name}: default / better leg"])
        yield Row(
            f"{name}: default / better leg",
            f"{ratio:.4f}",
            "at least 0.995",
            ratio >= 0.995,
            "fusion",
        )
    gain = sum(
        mean_of(found[name], "default") - mean_of(found[name], "rrf") for name in COLLECTIONS
    )
    gain /= len(COLLECTIONS)
    yield Row(
        "default above RRF of the same legs, mean", f"{gain:+.4f}", "over 0", gain > 0, "fusion"
    )
    mean, low, high = (float(figures[key]) for key in _MEAN)
    yield Row(
        "mean ratio to the better leg", f"{mean:.4f}", "at least 1.03", mean >= 1.03, "fusion"
    )
    yield Row(
        "its 95 % interval", f"{low:.4f} to {high:.4f}", "lower end above 1.00", low > 1.0, "fusion"
    )


def _ann(report: Read) -> Iterator[Row]:
    largest = report["steps"][-1]
    value, vectors = float(largest["dense recall@10"]), int(largest["vectors"])
    yield Row(
        f"approximate search at {vectors:,} vectors, recall@10",
        f"{value:.4f} (p95 {largest['dense p95_ms']:.1f} ms)",
        "at least 0.97",
        value >= 0.97,
        "ann",
    )


def _poison(report: Read) -> Iterator[Row]:
    value = float(
        report["figures"]["share of the top five taken by a question's near-copies, default"]
    )
    yield Row(
        "20 topics x 5 near-copies: their share of the top five",
        f"{value:.3f}",
        "at most 0.2",
        value <= 0.2 + 1e-9,
        "poison",
    )


def _two(report: Read) -> Iterator[Row]:
    figures = report["figures"]
    sizes = (
        f"{int(figures['papers at a time'])} papers and {int(figures['public passages']):,}"
        " passages"
    )
    for k in (5, 10):
        alone, both = (
            float(figures[f"{title}: gold among {k}"])
            for title in ("papers alone", "both libraries")
        )
        value = f"{both:.3f} against {alone:.3f} alone"
        yield Row(
            f"{sizes}: gold among {k}",
            value,
            "at most 0.02 lost",
            alone - both <= 0.02,
            "two_libraries",
        )
    named = int(figures["library public: calls that name papers"])
    yield Row("`library: public`: reads of papers", str(named), "none", named == 0, "two_libraries")


def _closeness(report: Read) -> Iterator[Row]:
    figures: dict[str, float] = report["figures"]
    areas = {
        name: value
        for name, value in figures.items()
        if name.endswith("AUC closeness") and "unanswerable" not in name
    }
    least = min(areas, key=lambda name: areas[name])
    yield Row(
        f"questions of another subject, lowest AUC ({least.split(':')[0]})",
        f"{areas[least]:.4f}",
        "reported",
        True,
        "closeness",
    )
    for name, value in figures.items():
        if "unanswerable" in name and name.endswith("AUC closeness"):
            yield Row(
                "unanswerable squad questions, AUC",
                f"{value:.3f}",
                "reported, nothing is promised",
                True,
                "closeness",
            )


def _late(report: Read) -> Iterator[Row]:
    """The default against search without its five steps, on each development set."""
    gains = []
    for name, experiment in by_collection(report).items():
        difference = comparison_of(experiment, "default")["difference"]
        gains.append(float(difference["mean"]))
        yield Row(
            f"{name}, {experiment['questions']} questions: default against before",
            f"{difference['mean']:+.4f} [{difference['low']:+.4f}, {difference['high']:+.4f}]",
            "harms no set by more than 0.005",
            gains[-1] >= -0.005,
            "late",
        )
    mean = sum(gains) / len(gains)
    yield Row("its mean over the sets", f"{mean:+.4f}", "helps", mean > 0, "late")


LIMITS = {
    "fusion": _fusion,
    "late": _late,
    "closeness": _closeness,
    "poison": _poison,
    "ann": _ann,
    "two_libraries": _two,
}


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
    publish("retrieval", content, text)
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
