"""Summarise the retrieval studies, each figure with its limit.

`python -m evaluation.studies.summary`

Reads the JSON reports that the studies wrote and writes evaluation/reports/retrieval.{md,json}.
Rows of studies that are answered, and whose programs are gone, are those that it has already.
Exit code 1 when a limit is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from app.evaluation.metrics import LEVEL, compare
from evaluation.lib.reports import publish, report, table

COLLECTIONS = ("squad", "cranfield", "pubmedqa", "clapnq")
Read = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    value: str
    limit: str
    kept: bool


def least(what: str, value: float, limit: float) -> Row:
    return Row(what, f"{value:.4f}", f"at least {limit}", value >= limit)


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


def _fusion(read: Read) -> Iterator[Row]:
    found, figures = by_collection(read), read["figures"]
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


def _ann(read: Read) -> Iterator[Row]:
    largest = read["steps"][-1]
    what = f"approximate search at {largest['vectors']:,.0f} vectors, recall@10"
    yield least(what, float(largest["dense recall@10"]), 0.97)


RULES = {"fusion": _fusion, "ann": _ann}
ORDER = ("fusion", "late", "closeness", "poison", "ann", "two_libraries")
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
    reports = {name: found for name in (*ORDER, *MORE) if (found := report(name))}
    earlier = report("retrieval").get("rows", {})
    rows = {
        name: list(RULES[name](reports[name]))
        if name in RULES
        else [Row(**row) for row in earlier.get(name, ())]
        for name in ORDER
        if name in reports
    }
    missing = [name for name in (*ORDER, *MORE) if name not in reports]
    cells = [
        (row.what, row.value, row.limit, "yes" if row.kept else "**no**", f"[{name}]({name}.md)")
        for name, found in rows.items()
        for row in found
    ]
    lines = [
        "# Retrieval: what is claimed, and what was measured",
        "",
        "Figures of [fusion](fusion.md) are from odd lines of the questions, its defaults from even"
        " ones. Late interaction, the guard and the title were chosen on the first questions of all"
        " seven sets together, which are those that [late](late.md) shows.",
        "",
        *table(("what", "measured", "limit", "kept", "report"), cells),
        "",
    ]
    if "fusion" in reports:
        lines += _fusion_tables(reports["fusion"])
    lines += [f"{said}: [{name}]({name}.md)." for name, said in MORE.items() if name in reports]
    lines += ["", f"Not run yet: {', '.join(missing)}."] if missing else []
    content = {
        "rows": {name: [asdict(row) for row in found] for name, found in rows.items()},
        "made_from": {name: found.get("provenance") for name, found in reports.items()},
        "missing": missing,
    }
    lines += ["", "Made by `python -m evaluation.studies.summary`."]
    publish("retrieval", content, "\n".join(lines) + "\n")
    return 0 if all(row.kept for found in rows.values() for row in found) else 1


def _fusion_tables(read: Read) -> list[str]:
    """Return nDCG@10 of each arm, and what each step gains, question by question."""
    found = by_collection(read)
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
        took = read["timings"]["squad"][arm]["stages_p50_ms"]
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
