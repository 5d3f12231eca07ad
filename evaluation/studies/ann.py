"""Compare approximate with exact search over 50,000 sentences: recall, cost.

Recall at 20.

    python -m evaluation.studies.ann [--data DIR] [--vectors N]

Needs the vectors of `evaluation.lib.windows`. Questions are real ones of three collections; the
store and its settings are the server's. Writes evaluation/reports/ann.{md,json}.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from app.bootstrap.libraries import fingerprint_of
from app.core.ids import fingerprint8
from app.core.release import checkout_sha
from app.core.types import FloatArray, Library
from app.evaluation.collections import from_folder
from app.evaluation.metrics import percentile
from app.evaluation.report import Provenance
from app.index.options import IndexOptions
from app.index.store import IndexStore
from app.ingest.options import IngestOptions
from app.providers.minilm import MiniLmEmbedder
from app.retrieval.search import pool_size
from evaluation.lib.windows import collected, fill, vectors
from evaluation.lib.workbench import SEED, Figures, arguments, hash_of, say, write_figures

DEPTH = 20
LIMIT = 0.99
COLLECTIONS = ("squad", "cranfield", "pubmedqa")


def main() -> None:
    """Measure and write."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--vectors", type=int, default=50_000)
    parser.add_argument("--questions", type=int, default=150, help="most questions per collection")
    given = parser.parse_args()
    embedder = MiniLmEmbedder(given.cache / "graph")
    windows = collected(given.data, 100_000)[
        : given.vectors
    ]  # as `evaluation.lib.windows` cuts and keeps them
    rows = np.concatenate(
        vectors([window.text for window in windows], embedder, given.cache / "windows")
    )
    asked = [
        q.text
        for name in COLLECTIONS
        for q in from_folder(given.data / name).sample(given.questions, SEED).questions
    ]
    queries = np.stack([embedder.embed_query(text) for text in asked])
    fingerprint = fingerprint_of(embedder.identity, IngestOptions())
    pool = pool_size(Library.PUBLIC, "general", DEPTH)
    with tempfile.TemporaryDirectory(prefix="documind-ann-") as folder:
        options = IndexOptions(Path(folder), Path(folder) / "chroma", vector_cache_vectors=0)
        with IndexStore(options) as store:
            fill(store, windows, rows, fingerprint)
            say(f"{store.vectors.count(Library.PUBLIC)} vectors; asking {len(queries)} questions")
            approximate, ms = _ask(
                lambda q: [s.chunk_id for s in store.vectors.search(Library.PUBLIC, q, pool)],
                queries,
            )
        with IndexStore(replace(options, vector_cache_vectors=given.vectors)) as store:
            exact, exact_ms = _ask(
                lambda q: [s.chunk_id for s in store.vectors.search(Library.PUBLIC, q, pool)],
                queries,
            )
    pairs = list(zip(approximate, exact, strict=True))
    recalls = {
        depth: [len(set(a[:depth]) & set(e[:depth])) / depth for a, e in pairs]
        for depth in (10, DEPTH, pool)
    }
    recall = float(np.mean(recalls[DEPTH]))
    identity, settings = embedder.identity, replace(options, data_dir=Path(), chroma_dir=Path())
    figures = Figures(
        "Approximate search: recall against exact search",
        Provenance(
            checkout_sha(),
            hash_of(settings),
            fingerprint8(fingerprint),
            {identity.model: identity.digest},
            SEED,
        ),
        {
            "vectors": len(rows),
            "questions": len(queries),
            "ef_search": options.ef_search,
            "neighbours asked for": pool,
            **{f"recall@{depth}": float(np.mean(values)) for depth, values in recalls.items()},
            f"questions with all {DEPTH} right": float(np.mean(np.array(recalls[DEPTH]) == 1.0)),
            f"lowest recall@{DEPTH} of a question": min(recalls[DEPTH]),
        },
        {
            "approximate p50 ms": percentile(ms, 0.5),
            "approximate p95 ms": percentile(ms, 0.95),
            "exact p50 ms": percentile(exact_ms, 0.5),
            "exact p95 ms": percentile(exact_ms, 0.95),
        },
        (
            "Sentences of pubmedqa, squad, cranfield (windows of words, for its sentences cannot be found) and an early dump of the"
            " English Wikipedia. Exact search is the scan that the server uses for small libraries; its order is the truth.",
            f"Limit: recall@{DEPTH} of at least {LIMIT}: {'kept' if recall >= LIMIT else 'MISSED'}.",
        ),
    )
    write_figures(figures, "ann")


def _ask(
    search: Callable[[FloatArray], list[int]], queries: FloatArray
) -> tuple[list[list[int]], list[float]]:
    """Ask every question; the first ten warm up and are asked again."""
    for query in queries[:10]:
        search(query)
    found, times = [], []
    for query in queries:
        start = time.perf_counter()
        found.append(search(query))
        times.append((time.perf_counter() - start) * 1000)
    return found, times


if __name__ == "__main__":
    main()
