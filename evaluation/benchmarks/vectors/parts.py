"""The parts of the benchmark, each in a process of its own that prints its figures."""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from app.core.trace import Trace
from app.core.types import EmbedderIdentity, Filters, Fingerprint, FloatArray, Library
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions, SearchRequest
from app.retrieval.search import pool_size
from app.storage.catalog.schema import BUILD_SHIFT
from app.storage.files.durable import Steps
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.vectors.faiss import FaissStore
from evaluation.benchmarks.bulk.growth import Figures, pss_bytes
from evaluation.benchmarks.vectors.corpus import HalfArray, fill_library
from evaluation.lib.vector_checks import UNSTAMPED

IdArray = npt.NDArray[np.int64]

FILTERED_YEARS = ((0.1, 2010), (0.01, 2011), (0.001, 2012))
"""Shares of the documents, and the years that they have."""

YEARS = (
    "CASE WHEN doc % 10 = 1 THEN 2010 WHEN doc % 100 = 2 THEN 2011 WHEN doc % 1000 = 3 THEN"
    " 2012 ELSE 1990 END"
)
"""A document's year, as SQL."""

_BLOCK = 50_000


def rows_of(path: Path) -> tuple[HalfArray, IdArray, IdArray]:
    """Return all vectors of a catalog, float16, their chunk ids and their years."""
    with closing(sqlite3.connect(path / "catalog.sqlite3")) as catalog:
        found = catalog.execute(
            "SELECT c.chunk_id, v.vector, d.year FROM vectors v"
            f" JOIN chunks c ON c.chunk_id = v.key & {(1 << BUILD_SHIFT) - 1}"
            " JOIN documents d ON d.doc = c.doc ORDER BY v.key"
        )
        ids, years, frames = [], [], []
        for chunk_id, frame, year in found:
            ids.append(chunk_id)
            years.append(year)
            frames.append(frame)
    rows = np.frombuffer(b"".join(frames), np.float16).reshape(len(ids), -1)
    return rows, np.array(ids, np.int64), np.array(years, np.int64)


def exact(
    queries: FloatArray,
    rows: HalfArray,
    ids: IdArray,
    mask: npt.NDArray[np.bool_] | None,
    k: int,
) -> list[list[int]]:
    """Return the ids of each question's k nearest rows among those of the mask."""
    where = np.arange(len(rows)) if mask is None else np.flatnonzero(mask)
    best = np.full((len(queries), k), -2.0, np.float32)
    which = np.zeros((len(queries), k), np.int64)
    for at in range(0, len(where), _BLOCK):
        some = where[at : at + _BLOCK]
        block = rows[some].astype(np.float32)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        cosines = np.hstack([best, queries @ block.T])
        found = np.hstack([which, np.broadcast_to(ids[some], (len(queries), len(some)))])
        top = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        best, which = np.take_along_axis(cosines, top, 1), np.take_along_axis(found, top, 1)
    return [list(map(int, row)) for row in which]


LIBRARY = Library.PUBLIC
DIMENSION = 384
TOP = 10
POOL = pool_size(LIBRARY, "general", 20)
WORDS_POOL = 50
FILTERED = 200
"""Questions that are asked under each filter."""


def options(path: Path) -> IndexOptions:
    """Return a library whose vectors faiss finds, without a cache."""
    return IndexOptions(
        path,
        path / "chroma",
        papers_store="faiss",
        public_store="faiss",
        vector_cache_vectors=0,
        max_dense_vectors=100_000_000,
    )


def index(path: Path, inputs: Path, chunks: int) -> Figures:
    """Index about `chunks` chunks and give each a vector; set years that filters ask."""
    identity = EmbedderIdentity("bench", "all-MiniLM-L6-v2", "copies", DIMENSION, 256)
    made_by = Fingerprint(identity.model, identity.digest, DIMENSION, "", "", "bench", "en_stem")
    with IndexStore(options(path), vector_store="off") as store:
        figures = fill_library(store, inputs, chunks, made_by)
    with closing(sqlite3.connect(path / "catalog.sqlite3")) as catalog, catalog:
        catalog.execute(f"UPDATE documents SET year = {YEARS}")
    return {name: figures[name] for name in ("index_s", "vectors")}


def fill(path: Path, _: Path, __: int) -> Figures:
    """Fill the store from the catalog, as a start with a changed setting does."""
    shutil.rmtree(path / "faiss", ignore_errors=True)
    started = time.perf_counter()
    with IndexStore(options(path), vector_store="foreground") as store:
        seconds = time.perf_counter() - started
        assert store.supervisor.ready
    files = sum(file.stat().st_size for file in (path / "faiss").rglob("*") if file.is_file())
    return {"fill_s": seconds, "disk_bytes": files}


def memory(path: Path, inputs: Path, _: int) -> Figures:
    """Open the store alone and search it; return what it takes, and how long a search.

    A small store is opened and searched before, so that the code of faiss is not counted.
    """
    queries: FloatArray = np.load(inputs / "queries.npy")
    _open_a_small_one(queries)
    store = FaissStore(path / "faiss", Steps())
    gc.collect()
    before = pss_bytes(os.getpid())
    (name,) = store.collections()
    count = store.count(name)
    seconds = [_timed(lambda q=query: store.search(name, q, 2 * POOL)) for query in queries]  # type: ignore[misc]
    gc.collect()
    taken = pss_bytes(os.getpid()) - before
    store.close()
    return {
        "memory_bytes": taken,
        "bytes_each": taken / count,
        "store_p50_ms": _ms(seconds, 50),
        "store_p95_ms": _ms(seconds, 95),
    }


def _open_a_small_one(rows: FloatArray) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):  # made, then read
            store = FaissStore(Path(folder), Steps(), learn_from=len(rows))
            store.upsert("small", range(1, len(rows) + 1), rows, UNSTAMPED)
            store.search("small", rows[0], 2 * POOL)
            store.close()


def ask(path: Path, inputs: Path, _: int) -> Figures:
    """Ask every question of vectors, under filters, of words and of both."""
    queries: FloatArray = np.load(inputs / "queries.npy")
    texts: list[str] = json.loads((inputs / "questions.json").read_text("utf-8"))
    figures: Figures = {}
    rows, ids, years = rows_of(path)
    with IndexStore(options(path), vector_store="foreground") as store:
        for share, year in ((1.0, None), *FILTERED_YEARS):
            filters = None if year is None else Filters(year_from=year, year_to=year)
            asked = queries if year is None else queries[:FILTERED]
            truth = exact(asked, rows, ids, None if year is None else years == year, TOP)

            def search(query: FloatArray, filters: Filters | None = filters) -> list[int]:
                found = store.vectors.search(LIBRARY, query, POOL, filters)
                return [hit.chunk_id for hit in found]

            for query in queries[:20]:
                search(query)
            answers, seconds = _each(search, list(asked))
            name = "dense" if year is None else f"filter {share:g}"
            right = [
                len(set(found[:TOP]) & set(wanted)) / len(wanted)
                for found, wanted in zip(answers, truth, strict=True)
            ]
            figures |= {
                f"{name} recall@{TOP}": float(np.mean(right)),
                f"{name} p50_ms": _ms(seconds, 50),
                f"{name} p95_ms": _ms(seconds, 95),
            }
        del rows
        figures |= _words(store, texts, queries)
    return figures


def _words(store: IndexStore, texts: Sequence[str], queries: FloatArray) -> Figures:
    """Time BM25 alone, and retrieval as the server does it but for the embedding."""
    vector_of = dict(zip(texts, queries, strict=True))
    for text in texts[:20]:
        store.lexical.search(LIBRARY, text, WORDS_POOL)
    _, words = _each(lambda text: store.lexical.search(LIBRARY, text, WORDS_POOL), texts)
    embedder = _Known(queries[0])
    retrieval = RetrievalOptions(embed_on_query_budget_ms=0)
    retriever = Retriever(store.catalog, store.vectors, store.lexical, embedder, retrieval)

    def retrieve(text: str) -> None:
        embedder.vector = vector_of[text]
        retriever.retrieve(SearchRequest(text, LIBRARY, top_k=5), Trace())

    _, both = _each(retrieve, texts)
    return {
        "bm25_p50_ms": _ms(words, 50),
        "bm25_p95_ms": _ms(words, 95),
        "full_p50_ms": _ms(both, 50),
        "full_p95_ms": _ms(both, 95),
    }


class _Known:
    """An embedder that was told the vector of the next question: only searches are timed."""

    identity = EmbedderIdentity("bench", "all-MiniLM-L6-v2", "copies", DIMENSION, 256)

    def __init__(self, vector: FloatArray) -> None:
        self.vector = vector

    def embed_query(self, text: str) -> FloatArray:
        assert text
        return self.vector

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        raise NotImplementedError(f"{len(texts)} passages were not expected")

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


def _each(
    call: Callable[[Asked], Answer], asked: Sequence[Asked]
) -> tuple[list[Answer], list[float]]:
    answers, seconds = [], []
    for one in asked:
        started = time.perf_counter()
        answers.append(call(one))
        seconds.append(time.perf_counter() - started)
    return answers, seconds


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _ms(seconds: Sequence[float], percentile: float) -> float:
    values: npt.NDArray[np.float64] = np.asarray(seconds)
    return float(np.percentile(values, percentile)) * 1000


PARTS: dict[str, Callable[[Path, Path, int], Figures]] = {
    "index": index,
    "fill": fill,
    "memory": memory,
    "ask": ask,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("path", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("amount", type=int)
    given = parser.parse_args()
    given.path.mkdir(parents=True, exist_ok=True)
    print(json.dumps(PARTS[given.part](given.path, given.inputs, given.amount)))
