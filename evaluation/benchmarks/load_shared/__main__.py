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
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from app.bootstrap.libraries import fingerprint_of
from app.core.types import EmbedderIdentity
from app.models.minilm import MiniLmEmbedder
from app.settings import Settings
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.benchmarks.bulk.growth import Figures
from evaluation.benchmarks.load_shared import asking, engines
from evaluation.benchmarks.vectors.filling import fill_library
from evaluation.benchmarks.vectors.inputs import QUESTIONS, WINDOWS, make_inputs
from evaluation.lib.served import Served, write
from evaluation.lib.workbench import arguments, say
from tests.shared.engines import Working, data_of

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

    def ask(self, inputs: Path, questions: Sequence[str]) -> tuple[Figures, list[asking.Ranking]]:
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
                asking.asked([url], questions[:WARM_UP])
            figures, rankings = asking.asked(urls, questions)
            figures["memory of a server MB"] = max(server.pss_bytes() for server in servers) / 1e6
            figures |= asking.uploaded(urls, self.folder / "uploads", texts)
        return figures, rankings


def main() -> int:
    """Measure both and write the report."""
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

        def measured(side: Side, figures: Figures) -> list[asking.Ranking]:
            found, rankings = side.ask(inputs, questions)
            loads.append(os.getloadavg()[0])
            figures |= {f"{side.name}: {key}": value for key, value in found.items()}
            say(f"{side.name}: {found}")
            return rankings

        with engines.running(folder / "engine") as running:
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
    figures["overlap@10 of both"] = asking.overlap(rankings[0], rankings[1])
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
