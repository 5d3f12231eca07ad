"""How long a server takes to be ready and what it weighs, at 10,000 chunks, against what it cannot do without, in one run.

    python -m evaluation.benchmarks.start [--data DIR] [--chunks N] [--rounds N]

The floor is one process that imports the same libraries, opens the model and opens the same Chroma store with one query. Rounds
alternate and the best of each counts. Memory is the proportional set size of the server and its children after a hundred questions.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from app.index.options import IndexOptions
from app.index.store import IndexStore
from app.providers.minilm import MiniLmEmbedder
from evaluation.lib.mixed_corpus import fill, questions
from evaluation.lib.paths import ROOT
from evaluation.lib.served import Line, Served, write

START_LIMIT = 2.0
MEMORY_LIMIT_MB = 700.0
_FLOOR = """
import sys
from pathlib import Path
import alembic, chromadb, fastapi, onnxruntime, pydantic_settings, requests, sqlalchemy, tantivy, tokenizers, uvicorn
from chromadb.config import Settings
from app.providers.minilm import MiniLmEmbedder
vector = MiniLmEmbedder(Path(sys.argv[1])).embed_query("warm up")
client = chromadb.PersistentClient(sys.argv[2], Settings(anonymized_telemetry=False))
for collection in client.list_collections():
    collection.query(query_embeddings=[vector], n_results=10)
"""


def floor_s(graph: Path, chroma: Path) -> float:
    """Return the seconds of a process that does only what cannot be left out."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", _FLOOR, str(graph), str(chroma)], cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - begun


def main() -> int:
    """Run the benchmark; the exit code says whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of collections")
    parser.add_argument("--chunks", type=int, default=10_000, help="size of the library")
    parser.add_argument("--rounds", type=int, default=3, help="how often each side runs")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="documind-start-") as name:
        live = Path(name) / "live"
        graph = live / "models"
        embedder = MiniLmEmbedder(graph)
        with IndexStore(IndexOptions(live, live / "chroma"), vector_store="foreground") as store:
            fill(store, args.data, args.chunks, embedder)
        shutil.copytree(live / "chroma", Path(name) / "chroma")
        floors: list[float] = []
        starts: list[float] = []
        pss = 0
        for _ in range(args.rounds):
            floors.append(floor_s(graph, Path(name) / "chroma"))
            with Served(live) as server:
                starts.append(server.start_s)
                for text in questions(args.data, "squad", 100):
                    server.client.query(text, library="public")
                pss = max(pss, server.pss_bytes())
    lines = [
        Line("start-up / floor", min(starts) / min(floors), START_LIMIT, "x"),
        Line("memory after 100 questions", pss / 1e6, MEMORY_LIMIT_MB, "MB"),
    ]
    figures = {"start-up s": min(starts), "floor s": min(floors), "chunks": float(args.chunks)}
    remarks = ["From the start of the process until `/health/ready` says so: index open, Chroma probed and open, embedder warm."]
    return write("start", "Start-up and memory", remarks, lines, figures, "make bench-start")


if __name__ == "__main__":
    sys.exit(main())
