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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from app.bootstrap.libraries import fingerprint_of
from app.client import DocuMindClient, FileToSend
from app.core.types import EmbedderIdentity
from app.models.minilm import MiniLmEmbedder
from app.settings import Settings
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.benchmarks.bulk.growth import Figures
from evaluation.benchmarks.vectors.corpus import QUESTIONS, WINDOWS, fill_library, make_inputs
from evaluation.lib.paths import ROOT
from evaluation.lib.served import Served, pss_bytes, quantile, write
from evaluation.lib.workbench import arguments, say
from tests.fakes.postgres_server import PostgresServer, running_server
from tests.shared.engines import DoubleProcess, Working, data_of

TOP_K = 10
CLIENTS = 8
UPLOADS = 40

Item = TypeVar("Item")
Ranking = list[tuple[str, str]]
"""Document and passage of each hit, best first."""


def asked(urls: Sequence[str], questions: Sequence[str]) -> tuple[Figures, list[Ranking]]:
    """Return times of one client and of several, and the rankings of the first."""
    alone, rankings, wall_s = _spread(urls[:1], questions, 1, _search)
    figures = _times("one client", alone, wall_s)
    together, _, wall_s = _spread(urls, questions, CLIENTS, _search)
    return figures | _times(f"{CLIENTS} clients", together, wall_s), rankings


def uploaded(urls: Sequence[str], folder: Path, texts: Sequence[str]) -> Figures:
    """Send files, each until it is found; return files a second."""
    folder.mkdir()
    paths = []
    for number, text in enumerate(texts[:UPLOADS]):
        path = folder / f"upload-{number}.txt"
        path.write_text(f"File {number}.\n\n{text}\n", "utf-8")
        paths.append(path)
    times, _, wall_s = _spread(urls, paths, CLIENTS, _send)
    return {"uploads files/s": len(times) / wall_s, "upload p50 s": quantile(times, 0.5)}


def overlap(first: Sequence[Ranking], second: Sequence[Ranking]) -> float:
    """Return the mean share of the first's hits that the second has too, [0, 1]."""
    shares = [
        len(set(one) & set(two)) / max(1, len(one)) for one, two in zip(first, second, strict=True)
    ]
    return sum(shares) / len(shares)


def _search(client: DocuMindClient, text: str) -> Ranking:
    hits = client.search(text, "public", limit=TOP_K)["hits"]
    return [(str(hit["doc_id"]), str(hit["text"])) for hit in hits]


def _send(client: DocuMindClient, path: Path) -> Ranking:
    client.ingest([FileToSend(path)], "public")
    return []


def _spread(
    urls: Sequence[str],
    items: Sequence[Item],
    clients: int,
    work: Callable[[DocuMindClient, Item], Ranking],
) -> tuple[list[float], list[Ranking], float]:
    """Do the items with several clients; return seconds, replies and wall."""
    with ExitStack() as stack:
        opened = [DocuMindClient(urls[number % len(urls)]) for number in range(clients)]
        for client in opened:
            stack.callback(client.close)

        def share(number: int) -> list[tuple[int, float, Ranking]]:
            found = []
            for position in range(number, len(items), clients):
                begun = time.perf_counter()
                reply = work(opened[number], items[position])
                found.append((position, time.perf_counter() - begun, reply))
            return found

        begun = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            done = sorted(
                (one for part in pool.map(share, range(clients)) for one in part),
                key=lambda one: one[0],
            )
        wall_s = time.perf_counter() - begun
    return [seconds for _, seconds, _ in done], [reply for _, _, reply in done], wall_s


def _times(who: str, seconds: Sequence[float], wall_s: float) -> Figures:
    return {
        f"{who}, questions/s": len(seconds) / wall_s,
        f"{who}, p50 ms": 1000 * quantile(seconds, 0.5),
        f"{who}, p95 ms": 1000 * quantile(seconds, 0.95),
    }


_OPTIMISE = """
import sys
from pathlib import Path
import qdrant_edge as edge
for path in Path(sys.argv[1]).iterdir():
    shard = edge.EdgeShard.load(str(path))
    shard.optimize()
    shard.flush()
    shard.close()
"""


class Engines:
    """Both engines, started; a context by `running`."""

    def __init__(self, folder: Path, postgres: PostgresServer) -> None:
        """Take a started PostgreSQL and start the double on an empty folder."""
        self._postgres = postgres
        self._folder = folder
        self._double = DoubleProcess(folder)
        self._double.start()
        self._empty_bytes = self._size()

    @property
    def settings(self) -> dict[str, str]:
        """Variables that point a server here."""
        return {"DATABASE_URL": self._postgres.url(), "SEARCH_URL": self._double.url}

    def optimise(self) -> float:
        """Build the graphs of all collections; return seconds."""
        self._double.kill()
        begun = time.perf_counter()
        command = [sys.executable, "-c", _OPTIMISE, str(self._folder)]
        subprocess.run(command, cwd=ROOT, check=True)
        seconds = time.perf_counter() - begun
        self._double.start()
        return seconds

    def figures(self) -> Figures:
        """Return memory and disk of both, in bytes."""
        files = [path for path in self._folder.rglob("*") if path.is_file()]
        return {
            "PostgreSQL memory MB": pss_bytes(self._postgres.pid) / 1e6,
            "double memory MB": pss_bytes(self._double.pid) / 1e6,
            "PostgreSQL disk MB": self._size() / 1e6,
            "double disk MB": sum(512 * path.stat().st_blocks for path in files) / 1e6,
        }

    def bytes_each(self, chunks: int) -> Figures:
        """Return the disk that a chunk takes in each, in bytes, beyond an empty database."""
        held = self.figures()
        grown = 1e6 * held["PostgreSQL disk MB"] - self._empty_bytes
        return {
            "PostgreSQL, bytes a chunk": grown / chunks,
            "double, bytes a chunk": 1e6 * held["double disk MB"] / chunks,
        }

    def _size(self) -> int:
        self._postgres.run("VACUUM")
        return int(self._postgres.run("SELECT pg_database_size(current_database())"))

    def stop(self) -> None:
        """End the double."""
        self._double.kill()


@contextmanager
def running_engine(folder: Path) -> Iterator[Engines]:
    """Yield the engines; both end afterwards."""
    with running_server() as postgres:
        engines = Engines(folder, postgres)
        try:
            yield engines
        finally:
            engines.stop()


EMBEDDED = {"PUBLIC_VECTOR_STORE": "faiss", "VECTOR_CACHE_VECTORS": "0"}
"""So that the embedded server searches a graph's substitute too, at every size."""
WITHOUT_CODES = {"LATE_INTERACTION_MAX_CHUNKS": "0"}
"""As in a library of a million chunks; else servers would make codes while they are asked."""
WARM_UP = 20


class Side:
    """One way to keep the library: a folder and the settings of its servers."""

    def __init__(
        self, folder: Path, models: Path, settings: dict[str, str], servers: int = 1,
        workers: int = 0,
    ) -> None:  # fmt: skip
        """Take a folder, named as the side; nothing is started. With workers servers run no jobs."""
        self.name, self.folder, self.models = folder.name, folder, models
        self.settings = settings | WITHOUT_CODES
        self.servers, self.workers = servers, workers

    def options(self) -> IndexOptions:
        """Return what the index is opened with, as a server would."""
        path = data_of(self.folder, "1", self.models)
        return IndexOptions(
            path,
            path / "chroma",
            database_url=self.settings.get("DATABASE_URL", ""),
            search_url=self.settings.get("SEARCH_URL", ""),
            public_store="faiss",
            vector_cache_vectors=0,
            max_dense_vectors=100_000_000,
        )

    def fill(self, inputs: Path, chunks: int, identity: EmbedderIdentity) -> Figures:
        """Write the library by the bulk path; return chunks a second."""
        made_by = fingerprint_of(identity, Settings(_env_file=None).ingest())
        with IndexStore(self.options(), vector_store="foreground") as store:
            found = fill_library(store, inputs, chunks, made_by)
            say(f"{self.name}: {found}")
            return {
                "text, chunks/s": found["vectors"] / found["index_s"],
                "vectors, chunks/s": found["vectors"] / found["vectors_s"],
            }

    def ask(self, inputs: Path, questions: Sequence[str]) -> tuple[Figures, list[Ranking]]:
        """Start, ask, send files; return the figures and one client's rankings."""
        texts = json.loads((inputs / "sentences.json").read_text("utf-8"))
        with ExitStack() as stack:
            idle = {"JOB_LANES": "none"} if self.workers else {}
            servers = [
                stack.enter_context(
                    Served(data_of(self.folder, f"{number}", self.models), **self.settings, **idle)
                )
                for number in range(1, self.servers + 1)
            ]
            for number in range(1, self.workers + 1):
                data = data_of(self.folder, f"worker-{number}", self.models)
                worker = Working(data, **self.settings, LOG_LEVEL="INFO")
                worker.start()
                stack.callback(worker.close)
                worker.wait_said("DocuMind works")
            urls = [server.url for server in servers]
            for url in urls:
                asked([url], questions[:WARM_UP])
            figures, rankings = asked(urls, questions)
            figures["memory of a server MB"] = max(server.pss_bytes() for server in servers) / 1e6
            figures |= uploaded(urls, self.folder / "uploads", texts)
        return figures, rankings


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--chunks", type=int, default=1_000_000)
    parser.add_argument("--real", type=int, default=WINDOWS, help="vectors that are no copies")
    parser.add_argument("--servers", type=int, default=2, help="API servers of the shared mode")
    parser.add_argument("--workers", type=int, default=2, help="0: the servers run the jobs")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="at most")
    given = parser.parse_args()
    loads = [os.getloadavg()[0]]
    embedder = MiniLmEmbedder(given.cache / "graph")
    with tempfile.TemporaryDirectory(prefix="documind-load-", dir=given.cache) as name:
        folder = Path(name)
        inputs = folder / "inputs"
        inputs.mkdir()
        real = make_inputs(given.data, given.cache, embedder, given.chunks, inputs, given.real)
        questions = json.loads((inputs / "questions.json").read_text("utf-8"))[: given.questions]
        figures: Figures = {
            "chunks": given.chunks,
            "real vectors": real,
            "questions": len(questions),
        }
        models = given.cache / "graph"

        def measured(side: Side, figures: Figures) -> list[Ranking]:
            found, rankings = side.ask(inputs, questions)
            loads.append(os.getloadavg()[0])
            figures |= {f"{side.name}: {key}": value for key, value in found.items()}
            say(f"{side.name}: {found}")
            return rankings

        with running_engine(folder / "engine") as running:
            sides = [
                Side(folder / "embedded", models, EMBEDDED),
                Side(folder / "shared", models, running.settings, given.servers, given.workers),
            ]
            for side in sides:
                filled = side.fill(inputs, given.chunks, embedder.identity)
                figures |= {f"{side.name}: {key}": value for key, value in filled.items()}
            figures["shared: graph built by the engine, s"] = running.optimise()
            rankings = [measured(side, figures) for side in sides]
            figures |= {f"shared: {key}": value for key, value in running.figures().items()}
            figures |= running.bytes_each(given.chunks)
    figures["overlap@10 of both"] = overlap(rankings[0], rankings[1])
    figures |= {"load average, least": min(loads), "load average, most": max(loads)}
    return _report(figures, given.servers, given.workers)


def _report(figures: Figures, servers: int, workers: int) -> int:
    chunks, real = int(figures["chunks"]), int(figures["real vectors"])
    remarks = [
        f"{chunks:,} chunks of real sentences; {real:,} vectors are real, the others noisy copies"
        " of them. Both sides are filled by the",
        "bulk path and asked the same questions of squad over HTTP (ranked passages, no answer)."
        " Uploads are text files that are cut, embedded",
        "and stored. The embedded server keeps vectors in faiss. The shared mode has"
        f" {servers} API server{'s' if servers > 1 else ''}, {workers or 'no'} workers,"
        " PostgreSQL without fsync, and a **double** of Qdrant: its engine, one",
        "shard on one node behind HTTP of our own that does one call at a time. Replication,"
        " majorities and a network were not run. Everything shares",
        "the machine, so the shared mode pays here for processes that others would give machines"
        " of their own.",
    ]
    command = (
        f"make bench-load-shared LOAD='--chunks {chunks} --real {real} --servers {servers}"
        f" --workers {workers} --questions {int(figures['questions'])}'"
    )
    return write("load_shared", "The shared mode under load", remarks, [], figures, command)


if __name__ == "__main__":
    sys.exit(main())
