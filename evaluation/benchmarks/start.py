"""Measure time to ready and memory of a server at 10,000 chunks.

    python -m evaluation.benchmarks.start [--data DIR] [--chunks N] [--rounds N]

The fastest of several starts counts. Memory is the proportional set size of the server and its
children after a hundred questions.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from evaluation.benchmarks.query import filled
from evaluation.lib.reports import COLLECTIONS, options, write
from evaluation.lib.served import Served


def main() -> int:
    args = options(
        __doc__,
        **COLLECTIONS,
        chunks=(10_000, "size of the library"),
        rounds=(3, "number of starts"),
    )
    starts: list[float] = []
    pss = 0
    with tempfile.TemporaryDirectory(prefix="documind-start-") as folder:
        live = Path(folder) / "live"
        asked = filled(live, args.data, args.cache, args.chunks, Path(folder) / "inputs")
        for _ in range(args.rounds):
            with Served(live) as server:
                starts.append(server.start_s)
                for text in asked[:100]:
                    server.client.query(text, library="public")
                pss = max(pss, server.pss_bytes())
    figures = {
        "start-up s": min(starts),
        "memory after 100 questions MB": pss / 1e6,
        "chunks": float(args.chunks),
    }
    remarks = [
        "From the start of the process until `/health/ready` says so: index open, vector store"
        " checked, embedder warm."
    ]
    return write("start", "Start-up and memory", remarks, [], figures, "make bench-start")


if __name__ == "__main__":
    sys.exit(main())
