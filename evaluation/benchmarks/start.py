"""Measure time to ready and memory of a server at 10,000 chunks.

    python -m evaluation.benchmarks.start [--data DIR] [--chunks N] [--rounds N]

The fastest of several starts counts. Memory is the proportional set size of the server and its
children after a hundred questions.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from app.models.minilm import MiniLmEmbedder
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.mixed_corpus import fill, questions
from evaluation.lib.paths import DATA
from evaluation.lib.served import Served, write


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of collections")
    parser.add_argument("--chunks", type=int, default=10_000, help="size of the library")
    parser.add_argument("--rounds", type=int, default=3, help="number of starts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="documind-start-") as name:
        live = Path(name) / "live"
        embedder = MiniLmEmbedder(live / "models")
        with IndexStore(IndexOptions(live, live / "chroma"), vector_store="foreground") as store:
            fill(store, args.data, args.chunks, embedder)
        starts: list[float] = []
        pss = 0
        for _ in range(args.rounds):
            with Served(live) as server:
                starts.append(server.start_s)
                for text in questions(args.data, "squad", 100):
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
