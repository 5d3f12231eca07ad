"""Measure search time over HTTP with filters, and the filters' recall.

python -m evaluation.benchmarks.query [--data DIR] [--chunks N] [--questions N]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from app.core.types import Filters, FloatArray, Library
from app.models.minilm import MiniLmEmbedder
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.mixed_corpus import fill, questions, years_for
from evaluation.lib.paths import DATA
from evaluation.lib.served import Line, Served, quantile, write

RECALL_LIMIT = 0.99
SHARES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)
TOP_K = 10


def milliseconds(work: Callable[..., object], *args: object, **options: object) -> float:
    """Return how long a call takes."""
    begun = time.perf_counter()
    work(*args, **options)
    return (time.perf_counter() - begun) * 1000


def searched(server: Served, text: str, **options: object) -> float:
    """Return how many milliseconds a search takes."""
    fixed = {"library": "public", "retrieve_only": True, "top_k": TOP_K}
    return milliseconds(server.client.query, text, **fixed, **options)


def filtered(
    server: Served, store: IndexStore, embedder: MiniLmEmbedder, asked: list[str]
) -> tuple[list[Line], dict[str, float]]:
    """Return recall, and time in milliseconds, of ever wider filters."""
    lines: list[Line] = []
    figures: dict[str, float] = {}
    for share in SHARES:
        until = years_for(share)
        allowed, rows = matching(store, until)
        took = [searched(server, text, filters={"year_to": until}) for text in asked]
        recalls = [
            recall(store, embedder.embed_query(text), until, allowed, rows) for text in asked
        ]
        what = f"recall@{TOP_K} of the filtered dense leg at {share:.1%}"
        lines.append(Line(what, float(np.mean(recalls)), RECALL_LIMIT, "", at_most=False))
        figures[f"filtered p50 ms at {share:.1%}"] = quantile(took, 0.5)
    return lines, figures


def recall(
    store: IndexStore, vector: FloatArray, until: int, allowed: list[int], rows: FloatArray
) -> float:
    """Return the share of the true filtered top ten, by a scan, that the dense leg finds."""
    truth = {allowed[i] for i in np.argsort(-(rows @ vector), kind="stable")[:TOP_K]}
    found = {
        hit.chunk_id
        for hit in store.vectors.search(Library.PUBLIC, vector, TOP_K, Filters(year_to=until))
    }
    return len(truth & found) / max(1, len(truth))


def matching(store: IndexStore, until: int) -> tuple[list[int], FloatArray]:
    """Return ids and float16-rounded vectors of matching chunks, from the catalog."""
    sql = (
        "SELECT c.chunk_id, v.vector FROM chunks c JOIN documents d ON d.doc = c.doc JOIN"
        " libraries l ON l.library = d.library"
        " JOIN vectors v ON v.key = (l.live_build << 40) | c.chunk_id WHERE d.library = 'public'"
        " AND d.year <= ?"
    )
    with store.database.read_raw() as cursor:
        found = cursor.execute(sql, (until,)).fetchall()
    return [row[0] for row in found], np.stack(
        [np.frombuffer(row[1], np.float16) for row in found]
    ).astype(np.float32)


def main() -> int:
    """Run the benchmark; the exit code says whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of collections")
    parser.add_argument("--chunks", type=int, default=50_000, help="size of the library")
    parser.add_argument("--questions", type=int, default=1000, help="distinct questions")
    args = parser.parse_args()
    asked = questions(args.data, "squad", args.questions)
    with tempfile.TemporaryDirectory(prefix="documind-query-") as folder:
        live, copy = Path(folder) / "live", Path(folder) / "copy"
        embedder = MiniLmEmbedder(Path(tempfile.gettempdir()) / "documind-vectors" / "graph")
        with IndexStore(IndexOptions(live, live / "chroma"), vector_store="foreground") as store:
            fill(store, args.data, args.chunks, embedder)
        shutil.copytree(live, copy)
        with (
            Served(live) as server,
            IndexStore(IndexOptions(copy, copy / "chroma"), vector_store="foreground") as store,
        ):
            for text in questions(args.data, "pubmedqa", 50):  # warm up with other questions
                searched(server, text)
            times = [searched(server, text) for text in asked]
            route = [milliseconds(server.client.get, "/health/live") for _ in asked]
            lines, figures = filtered(server, store, embedder, asked[:100])
    figures |= {
        "search p50 ms": quantile(times, 0.5),
        "search p95 ms": quantile(times, 0.95),
        "route p50 ms": quantile(route, 0.5),
    }
    remarks = [
        f"{args.chunks} chunks, {len(asked)} distinct questions, top {TOP_K}; nothing is cached."
    ]
    return write("query", "Search over HTTP", remarks, lines, figures, "make bench-query")


if __name__ == "__main__":
    sys.exit(main())
