"""Measure a server under many readers, a bulk run and a long day.

    python -m evaluation.benchmarks.load [--only PART...] [--parts DIR] [--seconds S] [--questions
    N] [--cycles N]

Parts: `streams` (five minutes), `over` (one), `loop` (two), `soak` (ten). Server, model host
(Ollama's double at a fixed rate) and load generator are processes of their own. With `--parts DIR`
each part is kept in a file as soon as it is measured, and one that is there already is not measured
again: a run that was spoilt can go on. The report is written when no part is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from evaluation.benchmarks.load.loop import bench_loop
from evaluation.benchmarks.load.soak import bench_soak
from evaluation.benchmarks.load.streams import (
    CLIENTS,
    ROUNDS,
    STREAMS,
    TOKENS_PER_S,
    Part,
    bench_over,
    bench_streams,
)
from evaluation.lib.served import Line, write

PARTS = ("streams", "over", "loop", "soak")


def _kept(part: str, folder: Path | None) -> Part | None:
    """Return a part's figures from its file, or None without one."""
    path = None if folder is None else folder / f"{part}.json"
    if path is None or not path.exists():
        return None
    found = json.loads(path.read_text("utf-8"))
    return [Line(**line) for line in found["lines"]], found["figures"]


def _measured(part: str, measure: Callable[[], Part], folder: Path | None) -> Part:
    """Measure a part, with the machine's load before and after, and keep it."""
    before = os.getloadavg()[0]
    lines, figures = measure()
    figures |= {
        f"machine load before {part}": before,
        f"machine load after {part}": os.getloadavg()[0],
    }
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        kept = {"lines": [asdict(line) for line in lines], "figures": figures}
        (folder / f"{part}.json").write_text(json.dumps(kept), "utf-8")
    return lines, figures


def _report(parts: Sequence[Part]) -> int:
    remarks = [
        f"The model host writes {TOKENS_PER_S:g} tokens a second per answer, each by its own"
        " clock, not in step with others,",
        f"reworded sentences of the passages with their marks. {ROUNDS} rounds of one reader and"
        " then of all are taken together.",
        "Latency is from there to the reader, another process on the same machine; what readers"
        " straight at the model host see is",
        f"the machine and the measurement. Of {CLIENTS} clients {STREAMS} read, and the others"
        " come while all streams are taken.",
        "A gap of the event loop is how much later than asked a pause of 5 ms ended; an idle"
        " process shows what the",
        "machine alone does. Chroma is written in its own process during the run. The machine was"
        " shared: its load",
        "(waiting and running processes, mean of a minute) is among the figures.",
    ]
    lines = [line for found, _ in parts for line in found]
    figures = {name: value for _, found in parts for name, value in found.items()}
    return write(
        "load",
        "Many streams, a free event loop, and a long day",
        remarks,
        lines,
        figures,
        "make bench-load",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts; the exit code says whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="measure these")
    parser.add_argument("--parts", type=Path, help="folder that keeps the figures of each part")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of 64 streams, and of the bulk run"
    )
    parser.add_argument("--questions", type=int, default=5000, help="of the soak")
    parser.add_argument(
        "--cycles", type=int, default=300, help="documents of the soak that come and go"
    )
    asked = parser.parse_args(arguments)
    found: dict[str, Part] = {}
    with tempfile.TemporaryDirectory(prefix="documind-load-") as name:
        folder = Path(name)
        measures: dict[str, Callable[[], Part]] = {
            "streams": lambda: bench_streams(folder, asked.seconds),
            "over": lambda: bench_over(folder, asked.seconds),
            "loop": lambda: bench_loop(folder, asked.seconds),
            "soak": lambda: bench_soak(folder, asked.questions, asked.cycles),
        }
        for part in PARTS:
            part_found = _kept(part, asked.parts)
            if part_found is None and part in asked.only:
                part_found = _measured(part, measures[part], asked.parts)
            if part_found is not None:
                found[part] = part_found
    if len(found) == len(PARTS):
        return _report(list(found.values()))
    for lines, figures in found.values():
        print(
            json.dumps(
                {
                    "lines": [(line.what, line.measured, line.holds) for line in lines],
                    "figures": figures,
                },
                indent=1,
            )
        )
    return 0 if all(line.holds for lines, _ in found.values() for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
