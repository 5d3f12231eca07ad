"""What the shared mode stands on here: a real PostgreSQL and the double of Qdrant."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluation.benchmarks.bulk.growth import Figures
from evaluation.lib.paths import ROOT
from evaluation.lib.served import pss_bytes
from tests.fakes.postgres_server import PostgresServer, running_server
from tests.shared.engines import DoubleProcess

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
def running(folder: Path) -> Iterator[Engines]:
    """Yield the engines; both end afterwards."""
    with running_server() as postgres:
        engines = Engines(folder, postgres)
        try:
            yield engines
        finally:
            engines.stop()
