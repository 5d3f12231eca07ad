"""Run the parts and write evaluation/reports/bulk.{json,md}; exit 1 when a limit is not met.

    make bench-bulk                                     # about half an hour on two idle cores
    python -m evaluation.bench_bulk --steps 10000,100000 --skip-vectors

Ratios are of one run, sides in turn. A step's processes are sampled for memory; growth is fitted on the steps up to 100,000 chunks
and held against the largest.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from evaluation.bench_bulk import growth, throughput, wikitext
from evaluation.bench_bulk.report import Fit, Limit, Report, markdown

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "evaluation" / "reports"
DUMP = Path("wikipedia") / "enwiki-shortened.xml.bz2"
FITTED = ("index_cpu_s", "disk_mb", "bm25_p95_ms", "index_pss_mb")
FITTED_UP_TO = 100_000
WIKIPEDIA_CHUNKS = 25_000_000
"""English Wikipedia at the default chunk size."""
OPENINGS = 3
"""Each side's fastest of so many counts."""
_MEMORY_MB = 2 * 1024**3 / 1e6


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder with the real dump")
    parser.add_argument("--steps", default="10000,31623,100000,1000000", help="chunks of each library")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--throughput-chunks", type=int, default=40_000)
    parser.add_argument("--vectors", type=int, default=100_000, help="random vectors of the largest library; 0 leaves them out")
    args = parser.parse_args()
    steps = [int(step) for step in args.steps.split(",")]
    print("throughput", flush=True)
    speed = throughput.measure(args.throughput_chunks, args.rounds)
    print(speed, flush=True)
    dump = args.data / DUMP
    words = wikitext.measure(dump) if dump.exists() else None
    print(words, flush=True)
    grown = grow(steps, args.vectors)
    fits = fit(grown)
    report = Report(platform.machine(), os.cpu_count() or 1, speed, words, grown, fits, ())
    report = report.judged(limits(report))
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / "bulk.json").write_text(json.dumps(asdict(report), indent=1) + "\n", "utf-8")
    (REPORTS / "bulk.md").write_text(markdown(report), "utf-8")
    print(markdown(report))
    return 0 if all(limit.met for limit in report.limits) else 1


def grow(steps: list[int], vectors: int) -> list[growth.Figures]:
    """Fill a library for each step and measure it; the largest gets vectors too."""
    found = []
    with tempfile.TemporaryDirectory(prefix="documind-bench-") as directory:
        nothing = Path(directory) / "empty"
        growth.run_part("start", nothing)  # the first opening creates the files
        for step in steps:
            path = Path(directory) / str(step)
            figures = growth.run_part("index", path, step)
            figures |= growth.run_part("lexical", path)
            empty = [growth.run_part("start", nothing)["open_s"] for _ in range(OPENINGS)]
            figures |= min((growth.run_part("start", path) for _ in range(OPENINGS)), key=lambda found: found["open_s"])
            figures["empty_open_s"] = min(empty)
            if vectors and step == max(steps):
                figures |= growth.run_part("embed", path, vectors)
                figures |= growth.run_part("full", path)
            print(figures, flush=True)
            found.append(figures)
    return found


def fit(grown: list[growth.Figures]) -> list[Fit]:
    """Fit each figure on the small steps as a + b * chunks (latency: of the logarithms) and predict the largest step and all."""
    small = [figures for figures in grown if figures["chunks"] <= 1.05 * FITTED_UP_TO]
    largest = max(grown, key=lambda figures: figures["chunks"])
    if len(small) < 2:
        return []
    chunks = np.array([figures["chunks"] for figures in small])
    fits = []
    for name in FITTED:
        values = np.array([figures[name] for figures in small])
        power = name.endswith("_ms")
        if power:
            slope, intercept = np.polyfit(np.log(chunks), np.log(values), 1)
        else:
            slope, intercept = np.polyfit(chunks, values, 1)

        def at(count: float, slope: float = slope, intercept: float = intercept, power: bool = power) -> float:
            return float(np.exp(intercept) * count**slope if power else intercept + slope * count)

        predicted, measured = at(largest["chunks"]), largest[name]
        fits.append(Fit(name, power, float(slope), float(intercept), predicted, measured, at(WIKIPEDIA_CHUNKS)))
    return fits


def limits(report: Report) -> list[Limit]:
    """Return what the issue asks, with what was found."""
    speed, largest = report.throughput, max(report.steps, key=lambda figures: figures["chunks"])
    memory = max(value for figures in report.steps for name, value in figures.items() if name.endswith("_pss_mb"))
    found = [
        Limit("clean text: share of bare tantivy's speed", speed.share_of_tantivy, 0.7, at_least=True),
        Limit("clean text: share of the slower of tantivy and catalog", speed.share_of_slower, 0.9, at_least=True),
        Limit("memory (PSS, MB)", memory, _MEMORY_MB),
        Limit("BM25 p95, times bare tantivy", largest["bm25_p95_ms"] / largest["tantivy_p95_ms"], 2),
        Limit("opening, times an empty store", largest["open_s"] / largest["empty_open_s"], 2),
    ]
    if "full_p50_ms" in largest:
        found.append(Limit("full retrieval, times its floor", largest["full_p50_ms"] / largest["floor_p50_ms"], 1.5))
    if report.wikitext is not None:
        words = report.wikitext
        found += [
            Limit("wikitext: times mwparserfromhell", words.times_reference, 4, at_least=True),
            Limit("wikitext: word F1, median", words.f1_median, 0.97, at_least=True),
            Limit("wikitext: word F1, worst over 300 words", words.f1_min_over_300_words, 0.90, at_least=True),
            Limit("wikitext: marks per MB", words.marks_per_mb, 10),
        ]
    if largest["chunks"] > 1.05 * FITTED_UP_TO:
        found += [Limit(f"fit of {fit.name}: off by", abs(fit.predicted / fit.measured - 1), 0.25) for fit in report.fits]
    return found


if __name__ == "__main__":
    sys.exit(main())
