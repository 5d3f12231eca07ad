"""Report the benchmark's findings, as values and as a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evaluation.benchmarks.bulk.growth import Figures
from evaluation.benchmarks.bulk.throughput import Cost, Throughput
from evaluation.benchmarks.bulk.wikitext import Wikitext

Law = Literal["linear", "logarithmic"]

LAWS: dict[str, tuple[Law, str]] = {
    "index_cpu_s": (
        "linear",
        "every chunk is cut, stored and indexed once, and merged a few times",
    ),
    "disk_mb": ("linear", "every chunk has its rows and its postings"),
    "bm25_p95_ms": (
        "linear",
        "a posting list is as long as its word is frequent, and the words of a question are read"
        " through",
    ),
    "index_pss_mb": (
        "logarithmic",
        "heaps and caches have fixed sizes; what is added is a segment for each doubling or so,"
        " and its share of a merge",
    ),
}
"""What each figure should follow, and why."""
FITTED_UP_TO = 100_000
WIKIPEDIA_CHUNKS = 25_000_000
"""English Wikipedia at the default chunk size."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Growth of a figure: `intercept + slope * f(chunks)`, f identity or natural logarithm."""

    name: str
    law: Law
    why: str
    slope: float
    intercept: float
    predicted: float
    """At the largest step."""
    measured: float
    at_wikipedia: float
    """At 25 million chunks."""


def fit(steps: Sequence[Figures]) -> list[Fit]:
    """Fit steps up to 100,000 chunks, at least two; predict the largest and Wikipedia."""
    small = [figures for figures in steps if figures["chunks"] <= 1.05 * FITTED_UP_TO]
    if len(small) < 2:
        return []
    largest = max(steps, key=lambda figures: figures["chunks"])
    return [_fit(name, law, why, small, largest) for name, (law, why) in LAWS.items()]


def _fit(name: str, law: Law, why: str, small: Sequence[Figures], largest: Figures) -> Fit:
    along: Callable[[npt.ArrayLike], npt.NDArray[np.float64]] = (
        np.log if law == "logarithmic" else np.asarray
    )
    slope, intercept = np.polyfit(
        along([figures["chunks"] for figures in small]), [figures[name] for figures in small], 1
    )

    def at(chunks: float) -> float:
        return float(intercept + slope * along(chunks))

    return Fit(
        name,
        law,
        why,
        float(slope),
        float(intercept),
        at(largest["chunks"]),
        largest[name],
        at(WIKIPEDIA_CHUNKS),
    )


@dataclass(frozen=True, slots=True)
class Limit:
    name: str
    found: float
    limit: float
    at_least: bool = False
    judged: bool = True
    """False when the measurement was disturbed."""

    @property
    def met(self) -> bool:
        """Return whether it holds."""
        return self.judged and (
            self.found >= self.limit if self.at_least else self.found <= self.limit
        )


@dataclass(frozen=True, slots=True)
class Report:
    """Everything of one run."""

    machine: str
    cores: int
    throughput: Throughput
    wikitext: Wikitext | None
    """None without the real dump."""
    steps: Sequence[Figures]
    fits: Sequence[Fit]
    limits: Sequence[Limit]
    remarks: Sequence[str] = ()
    """What was measured apart from the rest, and when."""

    def judged(self, limits: Sequence[Limit]) -> Report:
        return replace(self, limits=limits)


def read(found: Mapping[str, Any]) -> Report:
    """Return the report that a file holds."""
    speed = found["throughput"]
    costs = {
        name: Cost(**speed[name]) for name in ("product", "tantivy", "tantivy_grouped", "catalog")
    }
    return Report(
        found["machine"],
        found["cores"],
        Throughput(**{"others_share": 1.0, **speed, **costs}),
        Wikitext(**found["wikitext"]) if found["wikitext"] else None,
        found["steps"],
        [Fit(**entry) for entry in found["fits"]],
        [Limit(**entry) for entry in found["limits"]],
        found.get("remarks", []),
    )


def _verdict(limit: Limit) -> str:
    if not limit.judged:
        return "not judged: others used the machine"
    return "met" if limit.met else "NOT met"


def markdown(report: Report) -> str:
    lines = [
        "# Bulk indexing",
        "",
        f"Written by `make bench-bulk` on {report.cores} cores ({report.machine}).",
        *(line for remark in report.remarks for line in ("", remark)),
        "",
        "| asked | found | limit | |",
        "|---|---|---|---|",
    ]
    for limit in report.limits:
        sign = "at least" if limit.at_least else "at most"
        lines.append(
            f"| {limit.name} | {limit.found:.3g} | {sign} {limit.limit:.4g} | {_verdict(limit)} |"
        )
    speed = report.throughput
    lines += [
        "",
        f"## Clean text, {speed.chunks:,} chunks, median of {speed.rounds} rounds in turn",
        "",
        "| | seconds | processor seconds |",
        "|---|---|---|",
        *(
            f"| {name} | {cost.wall_s:.2f} | {cost.cpu_s:.2f} |"
            for name, cost in (
                ("durable and searchable", speed.product),
                ("bare tantivy, chunks cut beforehand, durable as often", speed.tantivy),
                ("bare tantivy, commits as rare as our index's", speed.tantivy_grouped),
                ("the catalog's writer alone", speed.catalog),
            )
        ),
        "",
        *(
            []
            if speed.others_share is None
            else [
                f"Others had {speed.others_share:.0%} of the processors' time in these rounds.",
                "",
            ]
        ),
        f"{speed.chunks_per_s:,.0f} chunks/s; by processor time {speed.share_of_tantivy_cpu:.2f}"
        " of bare tantivy. With every core"
        " busy from the first moment to the last the share could be"
        f" {speed.highest_share(report.cores):.2f}. The product's rows"
        " are durable after each transaction, their words in tantivy after a group of them; of"
        " bare tantivy that commits as rarely,"
        f" and would lose a group to a crash, its share is {speed.share_of_grouped:.2f} (ADR"
        " 0163).",
    ]
    if (words := report.wikitext) is not None:
        lines += [
            "",
            f"## Wikitext, {words.articles} real articles, {words.wikitext_mb:.1f} MB",
            "",
            f"{words.fast_mb_per_cpu_s:.1f} MB/s of processor time against"
            f" {words.reference_mb_per_cpu_s:.1f} of mwparserfromhell;"
            f" worst article over 300 words: {words.f1_worst_title}; handed to the reference:"
            f" {words.fallback_share:.1%}.",
        ]
    names = list(dict.fromkeys(name for step in report.steps for name in step))
    lines += [
        "",
        "## Growth",
        "",
        "| | " + " | ".join(f"{step['chunks']:,.0f}" for step in report.steps) + " |",
    ]
    lines.append("|---" * (len(report.steps) + 1) + "|")
    for name in names:
        cells = [f"{step[name]:.4g}" if name in step else "" for step in report.steps]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    if report.fits:
        lines += [
            "",
            "## Fitted up to 100,000 chunks",
            "",
            "| | law | largest step | predicted | 25 million chunks |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {fit.name} | {fit.law} | {fit.measured:.4g} | {fit.predicted:.4g} |"
            f" {fit.at_wikipedia:.4g} |"
            for fit in report.fits
        ]
        lines += ["", *(f"- {fit.name} is {fit.law}: {fit.why}" for fit in report.fits)]
    return "\n".join(lines) + "\n"
