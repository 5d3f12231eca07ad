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

from evaluation.lib.reports import REPORTS, publish, table

COLLECTIONS = ("squad", "cranfield", "pubmedqa", "clapnq")
LEVEL = 0.05
Read = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    value: str
    limit: str
    kept: bool


def least(what: str, value: float, limit: float) -> Row:
    return Row(what, f"{value:.4f}", f"at least {limit}", value >= limit)


def most(what: str, value: float, limit: float) -> Row:
    return Row(what, f"{value:.3f}", f"at most {limit:g}", value <= limit + 1e-9)


def by_collection(report: Read) -> dict[str, Read]:
    return {experiment["collection"]: experiment for experiment in report["experiments"]}


def mean_of(experiment: Read, arm: str) -> float:
    """Return the mean nDCG@10 of an arm, in [0, 1]."""
    measured = next(one for one in experiment["arms"] if one["name"] == arm)["measures"]
    return float(measured["nDCG@10"]["mean"])


def difference_of(experiment: Read, arm: str) -> tuple[float, float, str]:
    """Return an arm's mean difference to the baseline, its corrected p, and both in words."""
    found = next(one for one in experiment["comparisons"] if one["arm"] == arm)
    gain, p = found["difference"], found["p_holm"]
    said = f"{gain['mean']:+.4f} [{gain['low']:+.4f}, {gain['high']:+.4f}], p {p:.4f}"
    return float(gain["mean"]), float(p), said


def _fusion(report: Read) -> Iterator[Row]:
    found, figures = by_collection(report), report["figures"]
    yield least("squad: dense alone, nDCG@10", mean_of(found["squad"], "dense"), 0.76)
    yield least("squad: bm25 alone, nDCG@10", mean_of(found["squad"], "bm25"), 0.87)
    for name in COLLECTIONS:
        gain, p, said = difference_of(found[name], "default")
        limit, kept = "never significantly below", gain >= 0 or p > LEVEL
        if name == "squad":
            limit, kept = "at least 0.03, significantly", gain >= 0.03 and p <= LEVEL
        yield Row(f"{name}: default against RRF (k = 60)", said, limit, kept)
    for name in COLLECTIONS:
        what = f"{name}: default / better leg"
        yield least(what, float(figures[what]), 0.995)
    gains = [mean_of(found[name], "default") - mean_of(found[name], "rrf") for name in COLLECTIONS]
    yield least("default above RRF of the same legs, mean", sum(gains) / len(gains), 0.0)
    what = "mean ratio to the better leg"
    yield least(what, float(figures[what]), 1.03)
    yield least("its 95 % interval, low", float(figures["its 95 % interval, low"]), 1.0)


def _late(report: Read) -> Iterator[Row]:
    """The default against search without its five steps, on each development set."""
    gains = []
    for name, experiment in by_collection(report).items():
        gain, _, said = difference_of(experiment, "default")
        gains.append(gain)
        what = f"{name}, {experiment['questions']} questions: default against before"
        yield Row(what, said, "harms no set by more than 0.005", gain >= -0.005)
    yield least("its mean over the sets", sum(gains) / len(gains), 0.0)


def _closeness(report: Read) -> Iterator[Row]:
    areas = {
        name: value for name, value in report["figures"].items() if name.endswith("AUC closeness")
    }
    told = {name: value for name, value in areas.items() if "unanswerable" not in name}
    lowest = min(told, key=lambda name: told[name])
    what = f"questions of another subject, lowest AUC ({lowest.split(':')[0]})"
    yield Row(what, f"{told[lowest]:.4f}", "reported", True)
    for name in areas.keys() - told.keys():
        what = "unanswerable squad questions, AUC"
        yield Row(what, f"{areas[name]:.3f}", "reported, nothing is promised", True)


def _poison(report: Read) -> Iterator[Row]:
    value = report["figures"]["share of the top five taken by a question's near-copies, default"]
    yield most("20 topics x 5 near-copies: their share of the top five", float(value), 0.2)


def _ann(report: Read) -> Iterator[Row]:
    largest = report["steps"][-1]
    what = f"approximate search at {largest['vectors']:,.0f} vectors, recall@10"
    yield least(what, float(largest["dense recall@10"]), 0.97)


def _two(report: Read) -> Iterator[Row]:
    figures = report["figures"]
    for k in (5, 10):
        alone, both = (
            float(figures[f"{title}: gold among {k}"])
            for title in ("papers alone", "both libraries")
        )
        yield most(f"gold among {k} lost where public is searched too", alone - both, 0.02)
    named = float(figures["library public: calls that name papers"])
    yield most("`library: public`: reads of papers", named, 0)


LIMITS = {
    "fusion": _fusion, "late": _late, "closeness": _closeness, "poison": _poison, "ann": _ann,
    "two_libraries": _two,
}  # fmt: skip
MORE = {
    "languages": "Other languages than English",
    "titles": "Weight of the title in BM25",
    "partly_embedded": "Libraries whose vectors are not all there yet",
    "extractive": "Answers without a model",
}
PAIRS = (
    ("scores instead of ranks (min-max against RRF)", "min-max", "rrf", ("fusion", "complete")),
    ("keyword overlap", "default", "without overlap", ("read", "rerank")),
    ("word pairs", "default", "without pairs", ("read", "rerank")),
    ("late interaction", "default", "without late", ("read", "rerank")),
    ("maximal marginal relevance", "mmr", "default", ("diversity",)),
)
"""Arms of the fusion study that differ in one step, and the stages that take its time."""


def main() -> int:
    reports: dict[str, Read] = {
        name: json.loads(path.read_text("utf-8"))
        for name in (*LIMITS, *MORE)
        if (path := REPORTS / f"{name}.json").exists()
    }
    rows = {name: list(rule(reports[name])) for name, rule in LIMITS.items() if name in reports}
    missing = [name for name in (*LIMITS, *MORE) if name not in reports]
    lines = [
        "# Retrieval: what is claimed, and what was measured",
        "",
        "Figures of [fusion](fusion.md) are from odd lines of the questions, its defaults from even"
        " ones. Late interaction, the guard and the title were chosen on the first questions of all"
        " seven sets together, which are those that [late](late.md) shows.",
        "",
        *table(
            ("what", "measured", "limit", "kept", "report"),
            [
                (
                    row.what,
                    row.value,
                    row.limit,
                    "yes" if row.kept else "**no**",
                    f"[{name}]({name}.md)",
                )
                for name, found in rows.items()
                for row in found
            ],
        ),
        "",
    ]
    if "fusion" in reports:
        lines += _fusion_tables(reports["fusion"])
    lines += [f"{said}: [{name}]({name}.md)." for name, said in MORE.items() if name in reports]
    lines += ["", f"Not run yet: {', '.join(missing)}."] if missing else []
    content = {
        "rows": {name: [asdict(row) for row in found] for name, found in rows.items()},
        "made_from": {name: report.get("provenance") for name, report in reports.items()},
        "missing": missing,
    }
    lines += ["", "Made by `python -m evaluation.studies.summary`."]
    publish("retrieval", content, "\n".join(lines) + "\n")
    return 0 if all(row.kept for found in rows.values() for row in found) else 1


def _fusion_tables(report: Read) -> list[str]:
    """Return nDCG@10 of each arm, and what each step gains, question by question."""
    from app.evaluation.metrics import compare  # noqa: PLC0415 - scipy takes a second

    found = by_collection(report)
    values = {
        name: {arm["name"]: arm["per_question"] for arm in found[name]["arms"]}
        for name in COLLECTIONS
    }

    def gain(name: str, arm: str, without: str) -> str:
        both = {one: values[name][one] for one in (arm, without)}
        (compared,) = compare(without, both, seed=7, resamples=2000)
        one = compared.difference
        star = "*" if compared.significant else ""
        return f"{one.mean:+.4f} [{one.low:+.4f}, {one.high:+.4f}]{star}"

    def ms(arm: str, stages: tuple[str, ...]) -> float:
        took = report["timings"]["squad"][arm]["stages_p50_ms"]
        return sum(float(took.get(stage, 0.0)) for stage in stages)

    heads = [f"{name}, {found[name]['questions']} questions" for name in COLLECTIONS]
    return [
        "## nDCG@10",
        "",
        *table(
            ("arm", *heads),
            [
                (arm, *(f"{mean_of(found[name], arm):.4f}" for name in COLLECTIONS))
                for arm in values["squad"]
            ],
        ),
        "",
        "## What each step gains, and what it takes",
        "",
        *table(
            ("step", *COLLECTIONS, "time of the step, median ms"),
            [
                (
                    title,
                    *(gain(name, arm, without) for name in COLLECTIONS),
                    f"{ms(arm, stages):.2f} against {ms(without, stages):.2f} ({' + '.join(stages)})",
                )
                for title, arm, without, stages in PAIRS
            ],
        ),
        "",
        "Gains are differences of nDCG@10 with their 95 % intervals; `*` marks those that"
        " chance hardly explains (p <= 0.05).",
        "Times are from a machine that had other work at the time; compare them with each"
        " other only.",
        "",
    ]


if __name__ == "__main__":
    sys.exit(main())
