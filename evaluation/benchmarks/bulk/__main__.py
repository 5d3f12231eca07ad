"""Run the parts, write evaluation/reports/bulk.{json,md}; exit 1 past a limit.

    make bench-bulk                                     # about twenty minutes on two idle cores
    python -m evaluation.benchmarks.bulk --steps 10000,100000 --vectors 0

Ratios are of one run, sides in turn. A step's processes are sampled for memory; growth is fitted on
the steps up to 100,000 chunks and held against the largest.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from evaluation.benchmarks import scale_page
from evaluation.benchmarks.bulk import growth, throughput, timed, wikitext
from evaluation.benchmarks.bulk.report import FITTED_UP_TO, Limit, Report, fit, markdown, read
from evaluation.lib.paths import DATA, REPORTS, parser_of
from evaluation.lib.paths import publish as keep

DUMP = Path("wikipedia") / "enwiki-shortened.xml.bz2"
_MEMORY_MB = 2 * 1024**3 / 1e6


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the real dump")
    parser.add_argument(
        "--steps", default="10000,31623,100000,1000000", help="chunks of each library"
    )
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--throughput-chunks", type=int, default=120_000)
    parser.add_argument(
        "--vectors",
        type=int,
        default=100_000,
        help="random vectors of the largest library; 0 leaves them out",
    )
    parser.add_argument(
        "--undisturbed", default="", help="a command that runs another with the machine to itself"
    )
    parser.add_argument(
        "--throughput-only",
        action="store_true",
        help="measure clean text again and leave the rest of the report",
    )
    args = parser.parse_args()
    if args.throughput_only:
        before = read(json.loads((REPORTS / "bulk.json").read_text("utf-8")))
        anew = throughput.measure(args.throughput_chunks, args.rounds)
        kept = [remark for remark in before.remarks if not remark.startswith("Clean text")]
        return publish(
            replace(
                before,
                throughput=anew,
                remarks=[*kept, "Clean text was measured apart from the rest."],
            )
        )
    steps = [int(step) for step in args.steps.split(",")]
    dump = args.data / DUMP
    words = wikitext.measure(dump) if dump.exists() else None
    print(words, flush=True)
    with tempfile.TemporaryDirectory(prefix="documind-bench-") as name:
        directory = Path(name)
        grown = {step: growth.run_part("index", directory / str(step), step) for step in steps}
        print(grown, flush=True)
        measured = timed.run(
            directory, steps, args.throughput_chunks, args.rounds, args.undisturbed
        )
        print(measured, flush=True)
        grown = {step: figures | measured.steps[str(step)] for step, figures in grown.items()}
        if args.vectors:
            largest = directory / str(max(steps))
            grown[max(steps)] |= growth.run_part("embed", largest, args.vectors) | growth.run_part(
                "full", largest
            )
            grown[max(steps)] |= timed.starts(
                largest, directory / "empty", "server_start_with_vectors"
            )
    figures = list(grown.values())
    return publish(
        Report(
            platform.machine(),
            os.cpu_count() or 1,
            measured.throughput,
            words,
            figures,
            fit(figures),
            (),
        )
    )


def publish(report: Report) -> int:
    """Judge a report and write it; return 1 when a limit is not met."""
    report = report.judged(limits(report))
    keep("bulk", asdict(report), markdown(report))
    scale_page.main()
    return 0 if all(limit.met for limit in report.limits) else 1


def limits(report: Report) -> list[Limit]:
    """Return what the issue asks, with what was found."""
    speed, largest = report.throughput, max(report.steps, key=lambda figures: figures["chunks"])
    alone = speed.others_share is None or speed.others_share <= throughput.DISTURBED
    memory = max(
        value
        for figures in report.steps
        for name, value in figures.items()
        if name.endswith("_pss_mb")
    )
    found = [
        Limit(
            "clean text: share of bare tantivy's speed, durable as often",
            speed.share_of_tantivy,
            0.7,
            at_least=True,
            judged=alone,
        ),
        Limit(
            "clean text: share of the slower of tantivy and catalog",
            speed.share_of_slower,
            0.9,
            at_least=True,
            judged=alone,
        ),
        Limit("memory (PSS, MB)", memory, _MEMORY_MB),
        Limit(
            "BM25 p95, times bare tantivy", largest["bm25_p95_ms"] / largest["tantivy_p95_ms"], 2
        ),
    ]
    for start, what in (
        ("server_start", "words alone"),
        ("server_start_with_vectors", "with vectors"),
    ):
        if f"{start}_s" in largest:
            found.append(
                Limit(
                    f"start of a server, times an empty one, {what}",
                    _times_empty(largest, start),
                    2,
                )
            )
    if "full_p50_ms" in largest:
        found.append(
            Limit(
                "full retrieval, times its floor",
                largest["full_p50_ms"] / largest["floor_p50_ms"],
                1.5,
            )
        )
    if report.wikitext is not None:
        words = report.wikitext
        found += [
            Limit("wikitext: times mwparserfromhell", words.times_reference, 4, at_least=True),
            Limit("wikitext: word F1, median", words.f1_median, 0.97, at_least=True),
            Limit(
                "wikitext: word F1, worst over 300 words",
                words.f1_min_over_300_words,
                0.90,
                at_least=True,
            ),
            Limit("wikitext: marks per MB", words.marks_per_mb, 10),
        ]
    if largest["chunks"] > 1.05 * FITTED_UP_TO:
        found += [
            Limit(f"fit of {fit.name}: off by", abs(fit.predicted / fit.measured - 1), 0.25)
            for fit in report.fits
        ]
    return found


def _times_empty(figures: growth.Figures, start: str) -> float:
    return figures[f"{start}_s"] / figures[f"{start}_empty_s"]


if __name__ == "__main__":
    sys.exit(main())
