"""Measure the time of a search over HTTP at 50,000 chunks, with and without filters.

python -m evaluation.benchmarks.query [--data DIR] [--chunks N]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from app.evaluation.collections import from_folder
from app.ingest.embedding import fingerprint_of
from app.ingest.options import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.corpus import YEARS, fill_library, make_inputs, set_years
from evaluation.lib.growth import timed
from evaluation.lib.reports import COLLECTIONS, SEED, options, quantile, write
from evaluation.lib.served import Served

TOP_K = 10
REAL = 5_000
"""Vectors that are no copies."""


def filled(data: Path, given_data: Path, cache: Path, chunks: int, folder: Path) -> list[str]:
    """Fill the data directory `data` as its server will read it; return questions."""
    embedder = MiniLmEmbedder()
    folder.mkdir()
    make_inputs(given_data, cache, embedder, chunks, folder, min(REAL, chunks))
    made_by = fingerprint_of(embedder.identity, IngestOptions())
    with IndexStore(IndexOptions(data, data / "chroma"), vector_store="foreground") as store:
        fill_library(store, folder, chunks, made_by)
    set_years(data)
    found: list[str] = json.loads((folder / "questions.json").read_text("utf-8"))
    return found


def main() -> int:
    args = options(__doc__, **COLLECTIONS, chunks=(50_000, "size of the library"))
    with tempfile.TemporaryDirectory(prefix="documind-query-") as folder:
        live = Path(folder) / "live"
        asked = filled(live, args.data, args.cache, args.chunks, Path(folder) / "inputs")
        with Served(live) as server:

            def search(text: str, **filters: object) -> object:
                return server.client.query(
                    text, library="public", retrieve_only=True, top_k=TOP_K, filters=filters
                )

            others = from_folder(args.data / "pubmedqa").sample(50, SEED).questions
            timed(lambda question: search(question.text), others)  # a warm-up
            _, times = timed(search, asked)
            _, route = timed(lambda _: server.client.get("/health/live"), asked)
            figures = {
                "search p50 ms": quantile(times, 0.5),
                "search p95 ms": quantile(times, 0.95),
                "route p50 ms": quantile(route, 0.5),
            }
            for share, year in YEARS:
                _, times = timed(
                    lambda text, year=year: search(text, year_from=year, year_to=year),  # type: ignore[misc]
                    asked[:100],
                )
                figures[f"filtered p50 ms at {share:.1%}"] = quantile(times, 0.5)
    remarks = [
        f"{args.chunks} chunks, {len(asked)} distinct questions, top {TOP_K}; nothing is cached."
    ]
    return write("query", "Search over HTTP", remarks, [], figures, "make bench-query")


if __name__ == "__main__":
    sys.exit(main())
