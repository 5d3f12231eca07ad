"""Report the benchmark: limits, figures by size, and what they make of 25 million."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.core.ids import checkout_sha
from app.evaluation.report import ReportProvenance
from evaluation.benchmarks.bulk.growth import Figures
from evaluation.benchmarks.bulk.report import WIKIPEDIA_CHUNKS
from evaluation.lib.paths import publish
from evaluation.lib.workbench import SEED, hash_of

LIMITS = (
    ("bytes_each", "bytes a vector in memory", 120.0, False),
    ("dense recall@10", "recall@10 after rescoring", 0.97, True),
    ("dense p95_ms", "dense leg, p95 ms", 20.0, False),
    ("filter 0.1 recall@10", "recall@10, a filter of 10 %", 0.97, True),
    ("filter 0.01 recall@10", "recall@10, a filter of 1 %", 0.97, True),
    ("filter 0.001 recall@10", "recall@10, a filter of 0.1 %", 0.97, True),
    ("bm25_p95_ms", "BM25 p95 ms, questions of squad", 8.0, False),
)
"""Figures of the largest library, what they are called, limits, and whether more is better."""

FITTED = {
    "bytes_each": "constant: code, id and mark; the lists' centres grow with the square root",
    "dense p50_ms": "linear: a question reads the same share of the codes, and scores as many"
    " candidates",
    "bm25_p95_ms": "linear: a posting list is as long as its word is frequent",
}
"""How a figure grows with the number of chunks, and why."""

NAME = "ann"


@dataclass(frozen=True, slots=True)
class Ann:
    """Everything of one run."""

    cores: int
    real: int
    """Vectors that are real; the others are noisy copies."""
    steps: Sequence[Figures]
    kills: Figures
    model: str
    digest: str


def at_wikipedia(name: str, steps: Sequence[Figures]) -> tuple[float, float]:
    """Return a figure at 25 million chunks, and the largest size by the smaller ones.

    The first is fitted on every size, the second, which tests the law, without the largest.
    """
    if name == "bytes_each":
        return steps[-1][name], steps[0][name]
    sizes = [step["vectors"] for step in steps]
    values = [step[name] for step in steps]
    slope, intercept = np.polyfit(sizes, values, 1)
    tested = np.polyfit(sizes[:-1], values[:-1], 1) if len(steps) > 2 else (slope, intercept)
    return (
        float(slope * WIKIPEDIA_CHUNKS + intercept),
        float(tested[0] * sizes[-1] + tested[1]),
    )


def write(found: Ann) -> None:
    """Write evaluation/reports/ann.md and ann.json."""
    made = ReportProvenance(checkout_sha(), hash_of(LIMITS), "", {found.model: found.digest}, SEED)
    fits = [
        {
            "name": name,
            "law": law,
            "at_wikipedia": at,
            "predicted": tested,
            "measured": found.steps[-1][name],
        }
        for name, law in FITTED.items()
        if len(found.steps) > 1  # one size shows no growth
        for at, tested in [at_wikipedia(name, found.steps)]
    ]
    content = {
        "cores": found.cores,
        "real": found.real,
        "steps": list(found.steps),
        "fits": fits,
        "kills": found.kills,
        "made": made.in_words(),
    }
    publish(NAME, content, markdown(found, fits, made.in_words()))


def markdown(found: Ann, fits: Sequence[dict[str, object]], made: str) -> str:
    """Return the report for people."""
    last = found.steps[-1]
    limits = [
        (called, last[name], f"{'at least' if more else 'at most'} {limit:g}",
         "kept" if (last[name] >= limit if more else last[name] <= limit) else "NOT kept")
        for name, called, limit, more in LIMITS
    ]  # fmt: skip
    names = [name for name in last if not name.endswith("load")]
    loads = [name for name in last if name.endswith("load")]
    size = f"{last['vectors']:,.0f}"
    lines = [
        "# Millions of vectors: the faiss store, the dense leg, filters, words",
        "",
        f"{size} vectors on {found.cores} cores: {found.real:,} of real sentences and runs of"
        " sentences of squad, pubmedqa,"
        " cranfield and an early dump of the English Wikipedia, and noisy copies of them at"
        " cosines between .9 and .95."
        " Chunks are real sentences drawn at random, five a document. The questions are squad's."
        " Every part runs in a process of"
        " its own; the catalog's vectors score what the store proposes, as in the server, without"
        " a cache.",
        "",
        *_table(("asked", "found", "limit", ""), limits),
        "",
        "## By size",
        "",
        *_table(
            ("", *(f"{step['vectors']:,.0f}" for step in found.steps)),
            [(name, *(step[name] for step in found.steps)) for name in names],
        ),
        "",
        "Others used the machine; load averages meanwhile:",
        "",
        *_table(
            ("", *(f"{step['vectors']:,.0f}" for step in found.steps)),
            [(name, *(step[name] for step in found.steps)) for name in loads],
        ),
        "",
        f"## At {WIKIPEDIA_CHUNKS:,} chunks, by arithmetic",
        "",
        *_table(
            ("", "at that size", f"predicted at {size}", "measured", "law"),
            [(fit["name"], fit["at_wikipedia"], fit["predicted"], fit["measured"], fit["law"]) for fit in fits],
        ),
        "",
        f"Memory of all vectors there: {last['bytes_each'] * WIKIPEDIA_CHUNKS / 1e9:.1f} GB.",
        "",
        "## Kills and flipped bytes",
        "",
        *_table(("", ""), list(found.kills.items())),
        "",
        f"Made by `make bench-vectors` from {made}.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return lines + [f"| {' | '.join(map(_written, row))} |" for row in rows]


def _written(value: object) -> str:
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if value >= 1000 or float(value).is_integer() else f"{value:.4g}"
