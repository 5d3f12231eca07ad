"""The parts whose seconds count, one behind the other in a process of their own.

A machine that others use too has to be left alone for only as long as this takes: `--undisturbed
CMD` of the benchmark runs it behind a command that sees to that.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from evaluation.benchmarks.bulk import growth, throughput
from evaluation.benchmarks.bulk.throughput import Cost, Throughput
from evaluation.lib.paths import parser_of
from evaluation.lib.served import Served

OPENINGS = 3
"""Each library's fastest of so many counts; libraries come in turn, for a machine has slow
minutes."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Measurements without other load."""

    throughput: Throughput
    steps: dict[str, growth.Figures]
    """Latency and opening of each library, by the name of its directory."""


def run(directory: Path, steps: Sequence[int], chunks: int, rounds: int, prefix: str) -> Timed:
    """Measure libraries that are there, in a process behind the command `prefix`.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    program = [sys.executable, "-m", "evaluation.benchmarks.bulk.timed"]
    arguments = [*program, str(directory), str(chunks), str(rounds), *map(str, steps)]
    output = subprocess.run(
        [*shlex.split(prefix), *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    found = json.loads(output.splitlines()[-1])
    speed = found["throughput"]
    costs = {
        name: Cost(**speed[name]) for name in ("product", "tantivy", "tantivy_grouped", "catalog")
    }
    return Timed(Throughput(**{**speed, **costs}), found["steps"])


def server_start_s(path: Path) -> float:
    """Return a server's seconds from process start on a data directory to ready."""
    with Served(path) as server:
        return server.start_s


def starts(path: Path, empty: Path, name: str) -> growth.Figures:
    """Start servers on both directories in turn; the first start makes files."""
    pairs = [(server_start_s(path), server_start_s(empty)) for _ in range(OPENINGS + 1)][1:]
    return {
        f"{name}_s": min(pair[0] for pair in pairs),
        f"{name}_empty_s": min(pair[1] for pair in pairs),
    }


def _asked(path: Path) -> growth.Figures:
    return growth.run_part("lexical", path) | growth.run_part("start", path)


def _best(turns: Sequence[growth.Figures]) -> growth.Figures:
    """Return the shortest of each time and the most of the rest, which is memory."""
    return {
        name: (min if name.endswith(("_ms", "_s")) else max)(turn[name] for turn in turns)
        for name in turns[0]
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("chunks", type=int)
    parser.add_argument("rounds", type=int)
    parser.add_argument("steps", type=int, nargs="+")
    args = parser.parse_args()
    speed = throughput.measure(args.chunks, args.rounds)
    turns = [
        {str(step): _asked(args.directory / str(step)) for step in args.steps}
        for _ in range(OPENINGS)
    ]
    found = {str(step): _best([turn[str(step)] for turn in turns]) for step in args.steps}
    largest = str(max(args.steps))
    found[largest] |= starts(args.directory / largest, args.directory / "empty", "server_start")
    print(json.dumps(asdict(Timed(speed, found))))


if __name__ == "__main__":
    main()
