"""What a search costs over HTTP, against the sum of the bare look-ups it cannot do without, in one run.

    python -m evaluation.benchmarks.query [--data DIR] [--chunks N] [--questions N]

The floor of a question: its embedding, a bare Chroma query and a bare tantivy query for as many hits as our pool, and an empty
route. Server and floor take turns, question by question, on copies of the same stores; nothing is cached.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from app.core.types import Filters, FloatArray, Library
from app.index.options import IndexOptions
from app.index.store import IndexStore
from app.providers.minilm import MiniLmEmbedder
from app.retrieval.search import pool_size
from evaluation.lib.mixed_corpus import fill, questions, years_for
from evaluation.lib.paths import ROOT
from evaluation.lib.served import Line, Served, quantile, write

LIMIT = 1.5
FILTER_LIMIT = 1.2
RECALL_LIMIT = 0.99
SHARES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)
TOP_K = 10


def milliseconds(work: Callable[..., object], *args: object, **options: object) -> float:
    """Return how long a call takes."""
    begun = time.perf_counter()
    work(*args, **options)
    return (time.perf_counter() - begun) * 1000


def race(server: Served, store: IndexStore, embedder: MiniLmEmbedder, asked: list[str]) -> dict[str, list[float]]:
    """Return the times of every part, question by question, in milliseconds."""
    pool = pool_size(Library.PUBLIC, "general", TOP_K)
    times: dict[str, list[float]] = {name: [] for name in ("search", "embed", "chroma", "tantivy", "route")}
    collection = bare_collection(store)
    for text in asked:
        times["search"].append(milliseconds(server.client.query, text, library="public", retrieve_only=True, top_k=TOP_K))
        times["route"].append(milliseconds(server.client.get, "/health/live"))
        times["embed"].append(milliseconds(embedder.embed_query, text))
        vector = embedder.embed_query(text)
        times["chroma"].append(milliseconds(collection.query, query_embeddings=[vector], n_results=pool, include=["distances"]))
        times["tantivy"].append(milliseconds(store.lexical.search, Library.PUBLIC, text, pool))
    return times


def bare_collection(store: IndexStore) -> Any:  # noqa: ANN401  # chromadb's own class
    """Return Chroma's collection itself."""
    import chromadb  # noqa: PLC0415
    from chromadb.config import Settings as ChromaSettings  # noqa: PLC0415

    client = chromadb.PersistentClient(str(store.options.chroma_dir), ChromaSettings(anonymized_telemetry=False))
    return next(collection for collection in client.list_collections() if collection.name.startswith("public__"))


def filtered(server: Served, store: IndexStore, embedder: MiniLmEmbedder, asked: list[str]) -> tuple[list[Line], dict[str, float]]:
    """Return the cost and the recall of filters that let ever more through."""
    lines: list[Line] = []
    figures: dict[str, float] = {}
    for share in SHARES:
        until = years_for(share)
        allowed, rows = matching(store, until)
        plain: list[float] = []
        narrow: list[float] = []
        recalls: list[float] = []
        for text in asked:
            options = {"library": "public", "retrieve_only": True, "top_k": TOP_K}
            plain.append(milliseconds(server.client.query, text, **options))
            narrow.append(milliseconds(server.client.query, text, **options, filters={"year_to": until}))
            recalls.append(recall(store, embedder.embed_query(text), until, allowed, rows))
        ratio = quantile(narrow, 0.5) / quantile(plain, 0.5)
        lines.append(Line(f"filtered / unfiltered at {share:.1%}", ratio, FILTER_LIMIT, "x"))
        lines.append(
            Line(
                f"recall@{TOP_K} of the filtered dense leg at {share:.1%}", float(np.mean(recalls)), RECALL_LIMIT, "", at_most=False
            )
        )
        figures[f"filtered p50 ms at {share:.1%}"] = quantile(narrow, 0.5)
    return lines, figures


def recall(store: IndexStore, vector: FloatArray, until: int, allowed: list[int], rows: FloatArray) -> float:
    """Return the share of the true nearest ten under the filter that the dense leg finds, by a scan of the catalog."""
    truth = {allowed[i] for i in np.argsort(-(rows @ vector), kind="stable")[:TOP_K]}
    found = {hit.chunk_id for hit in store.vectors.search(Library.PUBLIC, vector, TOP_K, Filters(year_to=until))}
    return len(truth & found) / max(1, len(truth))


def matching(store: IndexStore, until: int) -> tuple[list[int], FloatArray]:
    """Return ids and float16-rounded vectors of chunks whose document passes, read from the catalog."""
    sql = (
        "SELECT c.chunk_id, v.vector FROM chunks c JOIN documents d ON d.doc = c.doc JOIN libraries l ON l.library = d.library"
        " JOIN vectors v ON v.key = (l.live_build << 40) | c.chunk_id WHERE d.library = 'public' AND d.year <= ?"
    )
    with store.database.read_raw() as cursor:
        found = cursor.execute(sql, (until,)).fetchall()
    return [row[0] for row in found], np.stack([np.frombuffer(row[1], np.float16) for row in found]).astype(np.float32)


def main() -> int:
    """Run the benchmark; the exit code says whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of collections")
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
        with Served(live) as server, IndexStore(IndexOptions(copy, copy / "chroma"), vector_store="foreground") as store:
            race(server, store, embedder, questions(args.data, "pubmedqa", 50))  # warm both sides with other questions
            times = race(server, store, embedder, asked)
            lines, figures = filtered(server, store, embedder, asked[:100])
    p50 = {name: quantile(values, 0.5) for name, values in times.items()}
    floor = p50["embed"] + p50["chroma"] + p50["tantivy"] + p50["route"]
    lines.insert(0, Line("retrieve_only over HTTP p50 / floor", p50["search"] / floor, LIMIT, "x"))
    figures |= {f"{name} p50 ms": value for name, value in p50.items()} | {
        "floor p50 ms": floor,
        "search p95 ms": quantile(times["search"], 0.95),
    }
    remarks = [
        f"{args.chunks} chunks, {len(asked)} distinct questions, top {TOP_K}; server and floor take turns, nothing is cached."
    ]
    return write("query", "Search over HTTP against its floor", remarks, lines, figures, "make bench-query")


if __name__ == "__main__":
    sys.exit(main())
