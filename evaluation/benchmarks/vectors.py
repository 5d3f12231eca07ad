"""Measure a library of a million vectors and chunks on the faiss store.

    python -m evaluation.benchmarks.vectors [--data DIR] [--cache DIR] [--kills 20]

Libraries of three sizes are made and asked 500 questions of squad: recall against exact search,
time of the dense leg with and without filters, memory, time of BM25. Then a process that writes to
the store is killed at random moments, and bytes of its files are flipped. Writes
evaluation/reports/ann.{md,json}.
"""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.core.errors import IndexDamaged
from app.core.ids import checkout_sha
from app.core.trace import Trace
from app.core.types import EmbedderIdentity, Filters, Fingerprint, FloatArray
from app.evaluation.report import ReportProvenance
from app.models.minilm import MiniLmEmbedder
from app.retrieval.candidates import pool_size
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions, SearchRequest
from app.storage.catalog.schema import BUILD_SHIFT
from app.storage.files.durable import Steps
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.vectors.faiss import FaissStore
from evaluation.lib.corpus import (
    LIBRARY,
    WINDOWS,
    YEARS,
    Figures,
    HalfArray,
    fill_library,
    make_inputs,
    set_years,
)
from evaluation.lib.growth import Law, Part, fit, is_part, percentiles, run_part, tables, timed
from evaluation.lib.reports import COLLECTIONS, SEED, Line, hash_of, options, say, write
from evaluation.lib.served import pss_bytes
from evaluation.lib.vector_checks import UNSTAMPED

IdArray = npt.NDArray[np.int64]
MODULE = "evaluation.benchmarks.vectors"
SIZES = (100_000, 300_000, 1_000_000)
DIMENSION = 384
TOP = 10
POOL = pool_size(LIBRARY, "general", 20)
WORDS_POOL = 50
FILTERED = 200
"""Questions that are asked under each filter."""
LIMITS = (
    ("bytes_each", "bytes a vector in memory", 120.0, True),
    ("dense recall@10", "recall@10 after rescoring", 0.97, False),
    ("dense_p95_ms", "dense leg, p95 ms", 20.0, True),
    *(
        (f"filter {share:g} recall@10", f"recall@10, a filter of {share:.1%}", 0.97, False)
        for share, _ in YEARS
    ),
    ("bm25_p95_ms", "BM25 p95 ms, questions of squad", 8.0, True),
)
"""Figures of the largest library, what they are called, limits, and whether less is better."""
LAWS: dict[str, tuple[Law, str]] = {
    "bytes_each": ("constant", "code, id and mark; the lists' centres grow with the square root"),
    "dense_p50_ms": ("linear", "a question reads the same share of the codes"),
    "bm25_p95_ms": ("linear", "a posting list is as long as its word is frequent"),
}
_BLOCK = 50_000


def rows_of(path: Path) -> tuple[HalfArray, IdArray, IdArray]:
    """Return all vectors of a catalog, float16, their chunk ids and their years."""
    with closing(sqlite3.connect(path / "catalog.sqlite3")) as catalog:
        found = catalog.execute(
            "SELECT c.chunk_id, v.vector, d.year FROM vectors v"
            f" JOIN chunks c ON c.chunk_id = v.key & {(1 << BUILD_SHIFT) - 1}"
            " JOIN documents d ON d.doc = c.doc ORDER BY v.key"
        ).fetchall()
    rows = np.frombuffer(b"".join(row[1] for row in found), np.float16).reshape(len(found), -1)
    ids, years = (np.array([row[at] for row in found], np.int64) for at in (0, 2))
    return rows, ids, years


def exact(
    queries: FloatArray, rows: HalfArray, ids: IdArray, where: IdArray, k: int
) -> list[list[int]]:
    """Return the ids of each question's k nearest rows among those at `where`."""
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


def index_options(path: Path) -> IndexOptions:
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
    made_by = Fingerprint("all-MiniLM-L6-v2", "copies", DIMENSION, "", "", "bench", "en_stem")
    with IndexStore(index_options(path), vector_store="off") as store:
        figures = fill_library(store, inputs, chunks, made_by)
    set_years(path)
    return {name: figures[name] for name in ("index_s", "vectors")}


def fill(path: Path, _: Path, __: int) -> Figures:
    """Fill the store from the catalog, as a start with a changed setting does."""
    shutil.rmtree(path / "faiss", ignore_errors=True)
    started = time.perf_counter()
    with IndexStore(index_options(path), vector_store="foreground") as store:
        seconds = time.perf_counter() - started
        assert store.supervisor.ready
    files = sum(file.stat().st_size for file in (path / "faiss").rglob("*") if file.is_file())
    return {"fill_s": seconds, "disk_bytes": files}


def memory(path: Path, inputs: Path, _: int) -> Figures:
    """Open the store alone and search it; return what it takes, and how long a search.

    A small store is opened and searched before, so that the code of faiss is not counted.
    """
    queries: FloatArray = np.load(inputs / "queries.npy")
    with tempfile.TemporaryDirectory() as folder:
        for _made_then_read in range(2):
            small = FaissStore(Path(folder), Steps(), learn_from=len(queries))
            small.upsert("small", range(1, len(queries) + 1), queries, UNSTAMPED)
            small.search("small", queries[0], 2 * POOL)
            small.flush("small", at_once=True)
            small.close()
    store = FaissStore(path / "faiss", Steps())
    gc.collect()
    before = pss_bytes(os.getpid())
    (name,) = store.collections()
    count = store.count(name)
    took = timed(lambda query: store.search(name, query, 2 * POOL), list(queries))[1]
    gc.collect()
    taken = pss_bytes(os.getpid()) - before
    store.close()
    return {"memory_bytes": taken, "bytes_each": taken / count, **percentiles("store", took)}


def ask(path: Path, inputs: Path, _: int) -> Figures:
    """Ask every question of vectors, under filters, of words and of both."""
    queries: FloatArray = np.load(inputs / "queries.npy")
    texts: list[str] = json.loads((inputs / "questions.json").read_text("utf-8"))
    figures: Figures = {}
    rows, ids, years = rows_of(path)
    with IndexStore(index_options(path), vector_store="foreground") as store:
        for share, year in ((1.0, None), *YEARS):
            filters = None if year is None else Filters(year_from=year, year_to=year)
            asked = queries if year is None else queries[:FILTERED]
            where = np.arange(len(rows)) if year is None else np.flatnonzero(years == year)

            def search(query: FloatArray, filters: Filters | None = filters) -> list[int]:
                found = store.vectors.search(LIBRARY, query, POOL, filters)
                return [hit.chunk_id for hit in found]

            timed(search, list(queries[:20]))
            answers, took = timed(search, list(asked))
            name = "dense" if year is None else f"filter {share:g}"
            right = [
                len(set(found[:TOP]) & set(wanted)) / len(wanted)
                for found, wanted in zip(answers, exact(asked, rows, ids, where, TOP), strict=True)
            ]
            figures |= {f"{name} recall@{TOP}": float(np.mean(right)), **percentiles(name, took)}
        del rows
        return figures | _words(store, texts, queries)


def _words(store: IndexStore, texts: Sequence[str], queries: FloatArray) -> Figures:
    """Time BM25 alone, and retrieval as the server does it but for the embedding."""
    vector_of = dict(zip(texts, queries, strict=True))
    timed(lambda text: store.lexical.search(LIBRARY, text, WORDS_POOL), texts[:20])
    _, words = timed(lambda text: store.lexical.search(LIBRARY, text, WORDS_POOL), texts)
    known = _Known(vector_of)
    retrieval = RetrievalOptions(embed_on_query_budget_ms=0)
    retriever = Retriever(store.catalog, store.vectors, store.lexical, known, retrieval)

    def retrieve(text: str) -> None:
        retriever.retrieve(SearchRequest(text, LIBRARY, top_k=5), Trace())

    _, both = timed(retrieve, texts)
    return percentiles("bm25", words) | percentiles("full", both)


class _Known:
    """An embedder that knows the questions: only searches are timed."""

    identity = EmbedderIdentity("bench", "all-MiniLM-L6-v2", "copies", DIMENSION, 256)

    def __init__(self, vectors: dict[str, FloatArray]) -> None:
        self._vectors = vectors

    def embed_query(self, text: str) -> FloatArray:
        """Return its vector, or any of a question whose spelling was corrected."""
        return self._vectors.get(text, next(iter(self._vectors.values())))

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        raise NotImplementedError(f"{len(texts)} passages were not expected")

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


# --- kills and flipped bytes

NAME = "public__kills"
BATCH, DELETED = 200, 20
"""Vectors that a batch adds, and how many of them it then removes."""
_LONGEST_S = 1.5
FLIPS = 100


def opened(path: Path) -> FaissStore:
    """Open the store with limits so low that lists are learnt and files written between kills."""
    return FaissStore(path, Steps(), learn_from=4_000, least_kept=2_000)


def write_batches(path: Path, _: Path, batch: int) -> Figures:
    """Write batches without end; print each that is acknowledged."""
    with closing(opened(path)) as store:
        print("open", flush=True)
        while True:
            ids = list(range(batch * BATCH + 1, (batch + 1) * BATCH + 1))
            rows = np.random.default_rng(batch).standard_normal((BATCH, DIMENSION))
            store.upsert(NAME, ids, rows.astype(np.float32), UNSTAMPED)
            store.delete(NAME, ids[:DELETED])
            store.flush(NAME, at_once=True)
            print(batch, flush=True)
            batch += 1


PARTS: dict[str, Part] = {
    "index": index, "fill": fill, "memory": memory, "ask": ask, "write_batches": write_batches,
}  # fmt: skip


def kills(count: int) -> Figures:
    """Kill the writing process `count` times; return what was lost."""
    rng, lost, extra, acknowledged = random.Random(SEED), 0, 0, -1
    with tempfile.TemporaryDirectory(prefix="documind-kills-") as folder:
        path = Path(folder) / "faiss"
        for _ in range(count):
            acknowledged = max(acknowledged, _killed(path, acknowledged + 1, rng))
            wanted = {
                at + 1
                for at in range((acknowledged + 1) * BATCH)
                if at % BATCH >= DELETED  # the rest were removed
            }
            with closing(opened(path)) as store:
                held = store.ids(NAME)
            lost += len(wanted - held)
            limit = (acknowledged + 2) * BATCH  # the batch that was being written
            extra += len({i for i in held - wanted if i > limit or i <= limit - BATCH})
        found = sum(_flip_is_found(path, rng) for _ in range(FLIPS))
    return {
        "kills": count,
        "vectors acknowledged": (acknowledged + 1) * (BATCH - DELETED),
        "acknowledged vectors lost": lost,
        "removed vectors that came back": extra,
        "flipped bytes": FLIPS,
        "flipped bytes found": found,
    }


def _killed(path: Path, batch: int, rng: random.Random) -> int:
    """Let the process write for a while and kill it; return the last acknowledged batch."""
    command = [sys.executable, "-m", MODULE, "--part", "write_batches", str(path), ".", str(batch)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        time.sleep(rng.uniform(0, _LONGEST_S))
        writer.kill()
        told = writer.stdout.read().splitlines()
    return max((int(line) for line in told), default=batch - 1)


def _flip_is_found(path: Path, rng: random.Random) -> bool:
    file = rng.choice(sorted(file for file in path.rglob("*") if file.is_file()))
    content = file.read_bytes()
    damaged = bytearray(content)
    damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    file.write_bytes(damaged)
    try:
        with closing(opened(path)) as store:
            store.count(NAME)
    except IndexDamaged:
        return True
    finally:
        file.write_bytes(content)
    return False


def main() -> int:
    given = options(
        __doc__,
        **COLLECTIONS,
        sizes=(SIZES, "vectors of each library"),
        real=(WINDOWS, "vectors that are no copies"),
        kills=(20, "of the writing process"),
    )
    embedder = MiniLmEmbedder()
    with tempfile.TemporaryDirectory(prefix="documind-millions-", dir=given.cache) as folder:
        inputs = Path(folder)
        real = make_inputs(given.data, given.cache, embedder, max(given.sizes), inputs, given.real)
        killed = kills(given.kills)
        say(f"kills: {killed}")
        steps: list[Figures] = []
        for size in sorted(given.sizes):
            found: Figures = {}
            for part in ("index", "fill", "memory", "ask"):
                found |= run_part(MODULE, part, inputs / str(size), inputs, size)
                found[f"{part} load"] = os.getloadavg()[0]
            say(f"{size}: {found}")
            steps.append(found)
            shutil.rmtree(inputs / str(size))
    fits = fit(LAWS, steps, "vectors")
    lines = [Line(called, steps[-1][name], limit, "", less) for name, called, limit, less in LIMITS]
    lines += [Line(name, killed[name]) for name in killed if " that " in name or "lost" in name]
    remarks = [
        f"{real:,} vectors are of real sentences and runs of sentences of squad, pubmedqa, cranfield"
        " and an early dump of the English Wikipedia, the others noisy copies of them at cosines"
        " between .9 and .95. Chunks are real sentences drawn at random. The questions are squad's."
        " Every part runs in a process of its own; the catalog's vectors score what the store"
        " proposes, as in the server, without a cache. Load averages are of the machine, which"
        " others use too."
    ]
    identity = embedder.identity
    used = {identity.model: identity.digest}
    return write(
        "ann", "Millions of vectors: the faiss store, the dense leg, filters, words", remarks, lines,
        killed, "make bench-vectors", tables=tables(steps, "vectors", fits),
        extra={"steps": steps, "fits": [asdict(one) for one in fits]},
        made=ReportProvenance(checkout_sha(), hash_of(LIMITS), "", used, SEED),
    )  # fmt: skip


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        sys.exit(None if is_part(PARTS) else main())
