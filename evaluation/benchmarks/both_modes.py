"""Fill and ask the embedded server and the shared mode side by side, at growing sizes.

    python -m evaluation.benchmarks.both_modes [--sizes 10000 100000 300000]

One process each; PostgreSQL is real, Qdrant the double in a process of its own (the extra
`shared`). Writes evaluation/reports/both_modes.{md,json}.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
import psutil
from sqlalchemy import Engine, event

from app.bootstrap import build_services
from app.bootstrap.services import Services
from app.core.types import FloatArray, Question
from app.core.vectors import l2_normalise
from app.ingest.embedding import fingerprint_of
from app.ingest.options import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.settings import Settings
from evaluation.lib.corpus import LIBRARY, Figures, TextPool, give_vectors, index_articles
from evaluation.lib.growth import timed
from evaluation.lib.reports import SEED, Line, options, quantile, say, table, write
from tests.fakes.postgres_server import running_server
from tests.shared.engines import DoubleProcess

CHUNKS_PER_ARTICLE = 4.9
"""Of synthetic text."""
WARM_UP = 5
SETTLED_S, WAIT_S = 3600, 0.1
"""How long vectors may take until they are found, and how often it is looked, seconds."""
RATE, OWN_PROCESSOR = "text, chunks/s", "text, processor of DocuMind, ms a chunk"
HALF = 0.5
"""How fast the shared mode takes text in at least, of the embedded rate."""


@contextmanager
def engines(folder: Path) -> Iterator[tuple[dict[str, str], dict[str, int]]]:
    """Yield settings of the shared mode and the processes of its engines."""
    double = DoubleProcess(folder / "engine")
    with running_server() as postgres:
        double.start()
        try:
            addresses = {"database_url": postgres.url(), "search_url": double.url}
            yield addresses, {"PostgreSQL": postgres.pid, "double": double.pid}
        finally:
            double.kill()


def cpu_s(pid: int) -> float:
    """Return the processor seconds of a process so far, of an engine with its children."""
    root = psutil.Process(pid)
    children = [] if pid == os.getpid() else root.children(recursive=True)
    times = [one.cpu_times() for one in (root, *children)]
    return sum(one.user + one.system for one in times)


def filled(services: Services, text: TextPool, size: int, pids: dict[str, int]) -> Figures:
    """Index about `size` chunks by the bulk path and give them vectors; return rates."""
    before = {who: cpu_s(pid) for who, pid in pids.items()}
    begun = time.perf_counter()
    index_articles(services.store, text.articles(round(size / CHUNKS_PER_ARTICLE)))
    text_s = time.perf_counter() - begun
    chunks = services.catalog.counts(LIBRARY).chunks
    used = {
        f"text, processor of {who}, ms a chunk": cpu_s(pid) - before[who]
        for who, pid in pids.items()
    }
    embedder = MiniLmEmbedder()
    rng = np.random.default_rng(SEED)

    def rows(_: int, n: int) -> FloatArray:
        drawn = rng.standard_normal((n, embedder.identity.dimension))
        return l2_normalise(drawn.astype(np.float32))

    begun = time.perf_counter()
    made_with = fingerprint_of(embedder.identity, IngestOptions())
    give_vectors(services.store, made_with, chunks, rows)
    settle(services)
    return {
        "chunks": chunks,
        RATE: chunks / text_s,
        "vectors, chunks/s": chunks / (time.perf_counter() - begun),
        **{what: 1000 * seconds / chunks for what, seconds in used.items()},
    }


def settle(services: Services) -> None:
    """Wait until every vector is found."""
    store, deadline_s = services.store, time.monotonic() + SETTLED_S
    kinds = {library: dense.replica.kind for library, dense in store.dense.items()}
    while store.loader.log.behind(kinds) or not store.supervisor.wait(1):
        assert time.monotonic() < deadline_s
        time.sleep(WAIT_S)


def asked(services: Services, questions: list[str]) -> Figures:
    """Return the median time of a search, and how often it goes to each engine."""
    taken = 0

    def begun(*_: object) -> None:
        nonlocal taken
        taken += 1

    def search(text: str) -> dict[str, int]:
        counts = {calls.engine: calls.count for calls in services.store.calls} | {"": taken}
        services.rag.answer(Question(text, LIBRARY.value, retrieve_only=True))
        after = {calls.engine: calls.count for calls in services.store.calls} | {"": taken}
        return {engine: count - counts[engine] for engine, count in after.items()}

    event.listen(Engine, "checkout", begun)
    try:
        found, took_ms = timed(search, questions)
    finally:
        event.remove(Engine, "checkout", begun)
    took_ms, found = took_ms[WARM_UP:], found[WARM_UP:]
    figures = {"a question, p50 ms": quantile(took_ms, 0.5)}
    if services.store.calls:
        figures |= {
            "transactions a question": median(one[""] for one in found),
            "requests to the engine a question": median(one["search"] for one in found),
        }
    return figures


def measured(
    folder: Path,
    text: TextPool,
    size: int,
    questions: list[str],
    addresses: dict[str, str],
    pids: dict[str, int],
) -> Figures:
    """Fill a new library in one mode and ask it."""
    settings = Settings(
        _env_file=None, data_dir=folder, embedding_provider="minilm", samples=False, ocr="off",
        late_interaction_max_chunks=0, database_url=addresses.get("database_url", ""),
        search_url=addresses.get("search_url", ""),
    )  # fmt: skip
    with build_services(settings) as services:
        figures = filled(services, text, size, {"DocuMind": os.getpid(), **pids})
        figures |= asked(services, questions)
    say(f"{folder.name}: {figures}")
    return figures


def main() -> int:
    given = options(
        __doc__,
        sizes=((10_000, 100_000), "chunks, about"),
        questions=(100, "of each library"),
        busy=(False, "say in the report that others used the machine"),
    )
    text, modes = TextPool(), ("embedded", "shared")
    questions = text.queries(WARM_UP + given.questions)
    found: dict[tuple[str, int], Figures] = {}
    for size in sorted(given.sizes):
        with tempfile.TemporaryDirectory() as name, engines(Path(name)) as (addresses, pids):
            for mode, at, of in zip(modes, ({}, addresses), ({}, pids), strict=True):
                found[mode, size] = measured(Path(name) / mode, text, size, questions, at, of)
    least, most = ("shared", min(given.sizes)), ("shared", max(given.sizes))
    ratios = {
        what: found[most][what] / found["embedded", most[1]][what] for what in (RATE, OWN_PROCESSOR)
    }
    lines = [
        Line(f"{RATE}, to the embedded server", ratios[RATE], HALF, at_most=False),
        Line(f"{OWN_PROCESSOR}, to the embedded server", ratios[OWN_PROCESSOR], 1 / HALF, "times"),
        *(
            Line(f"{what} more at the largest size", found[most][what] - found[least][what])
            for what in ("transactions a question", "requests to the engine a question")
        ),
    ]
    remarks = [
        "Synthetic text by the bulk path, random vectors; a question is a search by words and vectors",
        "without an answer. One server, PostgreSQL without fsync, and a **double** of Qdrant: its",
        "engine, one shard on one node behind HTTP of our own in Python, that does one call at a time",
        "and takes three quarters of its processor time to read requests. All share the machine, so",
        "processor time decides; engines on machines of their own leave that of DocuMind.",
    ]
    remarks += (
        ["", "Others used the machine meanwhile: read ratios, not times."] if given.busy else []
    )
    keys = list(dict.fromkeys(key for figures in found.values() for key in figures))
    head = ("", *(f"{mode}, {size:,}" for mode, size in found))
    tables = table(head, [(key, *(of.get(key, "") for of in found.values())) for key in keys])
    sizes = " ".join(map(str, sorted(given.sizes)))
    command = f"python -m evaluation.benchmarks.both_modes --sizes {sizes}"
    extra = {"found": {f"{mode}, {size}": of for (mode, size), of in found.items()}}
    title = "The embedded and the shared mode side by side"
    return write("both_modes", title, remarks, lines, {}, command, tables=tables, extra=extra)


if __name__ == "__main__":
    raise SystemExit(main())
