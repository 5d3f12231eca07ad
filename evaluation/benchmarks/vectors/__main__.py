"""Measure a library of a million vectors and chunks on the faiss store.

    python -m evaluation.benchmarks.vectors [--data DIR] [--cache DIR] [--kills 20]

Libraries of three sizes are made and asked 500 questions of squad: recall against exact search,
time of the dense leg with and without filters, memory, time of BM25. Then a writer is killed and
bytes are flipped. Writes evaluation/reports/ann.{md,json}.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from app.models.minilm import MiniLmEmbedder
from evaluation.benchmarks.bulk.growth import Figures
from evaluation.benchmarks.vectors.corpus import make_inputs
from evaluation.benchmarks.vectors.kills import kills
from evaluation.benchmarks.vectors.report import Ann, write
from evaluation.lib.workbench import arguments, say

SIZES = (100_000, 300_000, 1_000_000)
PARTS = ("index", "fill", "memory", "ask")


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--kills", type=int, default=20)
    given = parser.parse_args()
    embedder = MiniLmEmbedder(given.cache / "graph")
    with tempfile.TemporaryDirectory(prefix="documind-millions-", dir=given.cache) as folder:
        inputs = Path(folder)
        real = make_inputs(given.data, given.cache, embedder, max(given.sizes), inputs)
        killed = kills(given.kills)
        say(f"kills: {killed}")
        steps: list[Figures] = []
        for size in sorted(given.sizes, reverse=True):  # the largest matters most
            steps.insert(0, _measured(inputs / str(size), inputs, size))
            shutil.rmtree(inputs / str(size))
            identity = embedder.identity
            cores = os.cpu_count() or 1
            write(Ann(cores, real, steps, killed, identity.model, identity.digest))


def _measured(path: Path, inputs: Path, size: int) -> Figures:
    figures: Figures = {}
    for part in PARTS:
        before = os.getloadavg()[0]
        command = [sys.executable, "-m", "evaluation.benchmarks.vectors.parts", part]
        output = subprocess.run(
            [*command, str(path), str(inputs), str(size)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        found: Figures = json.loads(output.splitlines()[-1])
        figures |= found | {f"{part} load": (before + os.getloadavg()[0]) / 2}
        say(f"{size} {part}: {found}")
    return figures


if __name__ == "__main__":
    main()
