"""Fill the embedded server and the shared mode alike, and ask both.

    python -m evaluation.benchmarks.load_shared [--chunks N] [--real N] [--servers N]
        [--workers N] [--data DIR]

The shared mode has a real PostgreSQL and the double of Qdrant (tests/fakes/qdrant_double.py), so
the extra `shared` is needed: `make bench-load-shared`. Writes
evaluation/reports/load_shared.{md,json}.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from app.client import DocuMindClient, FileToSend
from app.ingest.embedding import fingerprint_of
from app.ingest.options import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.corpus import QUESTIONS, WINDOWS, Figures, fill_library, make_inputs
from evaluation.lib.growth import timed
from evaluation.lib.reports import COLLECTIONS, ROOT, Line, options, quantile, say, write
from evaluation.lib.served import pss_bytes
from tests.fakes.postgres_server import PostgresServer, running_server
from tests.shared.engines import DoubleProcess, data_of, several

TOP_K = 10
CLIENTS = 8
UPLOADS = 40
WARM_UP = 20
EMBEDDED = {"PUBLIC_VECTOR_STORE": "faiss", "VECTOR_CACHE_VECTORS": "0"}
"""So that the embedded server searches a graph's substitute too, at every size."""
WITHOUT_CODES = {"LATE_INTERACTION_MAX_CHUNKS": "0"}
"""As in a library of a million chunks; else servers would make codes while they are asked."""

Item = TypeVar("Item")
Ranking = list[tuple[str, str]]
"""Document and passage of each hit, best first."""


def search(client: DocuMindClient, text: str) -> Ranking:
    hits = client.search(text, "public", limit=TOP_K)["hits"]
    return [(str(hit["doc_id"]), str(hit["text"])) for hit in hits]


def send(client: DocuMindClient, path: Path) -> Ranking:
    client.ingest([FileToSend(path)], "public")
    return []


def spread(
    urls: Sequence[str],
    items: Sequence[Item],
    clients: int,
    work: Callable[[DocuMindClient, Item], Ranking],
) -> tuple[list[float], list[Ranking], float]:
    """Do the items with several clients; return milliseconds, replies and seconds in all."""

    def share(number: int) -> tuple[list[Ranking], list[float]]:
        with DocuMindClient(urls[number % len(urls)]) as client:
            return timed(lambda item: work(client, item), items[number::clients])

    begun = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        parts = list(pool.map(share, range(clients)))
    wall_s = time.perf_counter() - begun
    took = [one for _, part in parts for one in part]
    return took, [reply for part, _ in parts for reply in part], wall_s


def asked(urls: Sequence[str], questions: Sequence[str]) -> tuple[Figures, list[Ranking]]:
    """Return times of one client and of several, and the rankings of the first."""
    figures: Figures = {}
    rankings: list[Ranking] = []
    for who, count in ((f"{CLIENTS} clients", CLIENTS), ("one client", 1)):
        took, rankings, wall_s = spread(urls if count > 1 else urls[:1], questions, count, search)
        figures |= {
            f"{who}, questions/s": len(took) / wall_s,
            f"{who}, p50 ms": quantile(took, 0.5),
            f"{who}, p95 ms": quantile(took, 0.95),
        }
    return figures, rankings


_OPTIMISE = """
import sys
from pathlib import Path
import qdrant_edge as edge
for path in filter(Path.is_dir, Path(sys.argv[1]).iterdir()):
    shard = edge.EdgeShard.load(str(path))
    shard.optimize()
    shard.flush()
    shard.close()
"""


def optimise(double: DoubleProcess, folder: Path) -> float:
    """Build the graphs of all collections; return seconds."""
    double.kill()
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", _OPTIMISE, str(folder)], cwd=ROOT, check=True)
    seconds = time.perf_counter() - begun
    double.start()
    return seconds


def database_bytes(postgres: PostgresServer) -> int:
    postgres.run("VACUUM")
    return int(postgres.run("SELECT pg_database_size(current_database())"))


@dataclass(frozen=True, slots=True)
class Side:
    """One way to keep the library: a folder, named as the side, and its servers."""

    folder: Path
    settings: dict[str, str]
    servers: int = 1
    workers: int = 0
    """With workers the servers run no jobs."""

    def fill(self, inputs: Path, chunks: int, embedder: MiniLmEmbedder) -> Figures:
        """Write the library by the bulk path; return chunks a second."""
        path = data_of(self.folder, "1")
        options = IndexOptions(
            path,
            path / "chroma",
            database_url=self.settings.get("DATABASE_URL", ""),
            search_url=self.settings.get("SEARCH_URL", ""),
            public_store="faiss",
            vector_cache_vectors=0,
            max_dense_vectors=100_000_000,
        )
        made_by = fingerprint_of(embedder.identity, IngestOptions())
        with IndexStore(options, vector_store="foreground") as store:
            found = fill_library(store, inputs, chunks, made_by)
        return {
            "text, chunks/s": found["vectors"] / found["index_s"],
            "vectors, chunks/s": found["vectors"] / found["vectors_s"],
        }

    def ask(self, inputs: Path, questions: Sequence[str]) -> tuple[Figures, list[Ranking]]:
        """Start, ask, send files; return the figures and one client's rankings."""
        uploads = self.folder / "uploads"
        uploads.mkdir()
        texts = json.loads((inputs / "sentences.json").read_text("utf-8"))[:UPLOADS]
        paths = [uploads / f"upload-{number}.txt" for number in range(len(texts))]
        for number, path in enumerate(paths):
            path.write_text(f"File {number}.\n\n{texts[number]}\n", "utf-8")
        settings = self.settings | WITHOUT_CODES
        with several(self.folder, self.servers, self.workers, **settings) as (servers, _):
            urls = [server.url for server in servers]
            for url in urls:
                asked([url], questions[:WARM_UP])
            figures, rankings = asked(urls, questions)
            figures["memory of a server MB"] = max(server.pss_bytes() for server in servers) / 1e6
            took, _, wall_s = spread(urls, paths, CLIENTS, send)
        uploaded = {"uploads files/s": len(took) / wall_s, "upload p50 ms": quantile(took, 0.5)}
        return figures | uploaded, rankings


def main() -> int:
    given = options(
        __doc__,
        **COLLECTIONS,
        chunks=(1_000_000, "of each library"),
        real=(WINDOWS, "vectors that are no copies"),
        servers=(2, "API servers of the shared mode"),
        workers=(2, "0: the servers run the jobs"),
        questions=(QUESTIONS, "at most"),
    )
    embedder = MiniLmEmbedder()
    with (
        tempfile.TemporaryDirectory(prefix="documind-load-", dir=given.cache) as place,
        ExitStack() as stack,
    ):
        folder = Path(place)
        inputs, engine = folder / "inputs", folder / "engine"
        inputs.mkdir()
        real = make_inputs(given.data, given.cache, embedder, given.chunks, inputs, given.real)
        questions = json.loads((inputs / "questions.json").read_text("utf-8"))[: given.questions]
        figures = {"chunks": given.chunks, "real vectors": real, "questions": len(questions)}
        postgres = stack.enter_context(running_server())
        double = DoubleProcess(engine)
        double.start()
        stack.callback(double.kill)
        empty = database_bytes(postgres)
        both = {"DATABASE_URL": postgres.url(), "SEARCH_URL": double.url}
        sides = [
            Side(folder / "embedded", EMBEDDED),
            Side(folder / "shared", both, given.servers, given.workers),
        ]
        rankings: list[list[Ranking]] = []
        for side in sides:
            found = side.fill(inputs, given.chunks, embedder)
            figures |= {f"{side.folder.name}: {key}": value for key, value in found.items()}
        figures["shared: graph built by the engine, s"] = optimise(double, engine)
        for side in sides:
            found, ranking = side.ask(inputs, questions)
            found["load average"] = os.getloadavg()[0]
            say(f"{side.folder.name}: {found}")
            figures |= {f"{side.folder.name}: {key}": value for key, value in found.items()}
            rankings.append(ranking)
        held = database_bytes(postgres)
        files = sum(512 * path.stat().st_blocks for path in engine.rglob("*") if path.is_file())
        figures |= {
            "shared: PostgreSQL memory MB": pss_bytes(postgres.pid) / 1e6,
            "shared: double memory MB": pss_bytes(double.pid) / 1e6,
            "PostgreSQL, bytes a chunk": (held - empty) / given.chunks,
            "double, bytes a chunk": files / given.chunks,
        }
    shares = [
        len(set(one) & set(two)) / max(1, len(one)) for one, two in zip(*rankings, strict=True)
    ]
    figures["overlap@10 of both"] = sum(shares) / len(shares)
    remarks = [
        f"{given.chunks:,} chunks of real sentences; {real:,} vectors are real, the others noisy"
        " copies of them. Both sides are filled by the bulk path and asked the same questions of"
        " squad over HTTP (ranked passages, no answer). Uploads are text files that are cut, embedded"
        " and stored. The embedded server keeps vectors in faiss. The shared mode has"
        f" {given.servers} API servers, {given.workers} workers, PostgreSQL without fsync, and a"
        " **double** of Qdrant: its engine, one shard on one node behind HTTP of our own that does"
        " one call at a time. Replication, majorities and a network were not run. Everything shares"
        " the machine, so the shared mode pays here for processes that others would give machines of"
        " their own."
    ]
    command = (
        f"make bench-load-shared LOAD='--chunks {given.chunks} --real {real} --servers"
        f" {given.servers} --workers {given.workers} --questions {len(questions)}'"
    )
    one = "one client, p50 ms"
    ratio = figures[f"shared: {one}"] / figures[f"embedded: {one}"]
    lines = [
        Line("a question over the engine, to that of the embedded server", ratio, 2.5, "times")
    ]
    return write("load_shared", "The shared mode under load", remarks, lines, figures, command)


if __name__ == "__main__":
    sys.exit(main())
