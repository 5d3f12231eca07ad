"""The processes that the suites run on: search engines, the double or one that SEARCH_TEST_URL names, and workers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from app.shared.qdrant import SearchEngine
from evaluation.lib.served import Served
from tests.fakes.qdrant_double import QdrantDouble

ROOT = Path(__file__).resolve().parents[2]
START_S = 60.0

IMPATIENT = (
    sys.executable, "-c",
    "import app.settings; app.settings.START_PATIENCE_S = 1.0; from app.cli.main import main; main()",
    "serve",
)  # fmt: skip
"""`python -m app serve` that waits for an engine for a second at its start."""

ENGINES = ["double", *(["real"] if os.environ.get("SEARCH_TEST_URL") else [])]
"""A real engine loses every collection whose name begins with `documind_`."""


@contextmanager
def url_of(kind: str, folder: Path) -> Iterator[str]:
    """Yield the address of an engine without collections of ours."""
    if kind == "real":
        engine = SearchEngine(os.environ["SEARCH_TEST_URL"])
        for name in engine.collections():
            engine.drop(name)
        engine.close()
        yield os.environ["SEARCH_TEST_URL"]
        return
    with QdrantDouble(folder) as double:
        yield double.url


class DoubleProcess:
    """The double in a process of its own, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        """Choose a free port; nothing is started yet."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", "tests.fakes.qdrant_double", str(self._folder)]
        self._process = subprocess.Popen([*command, str(self.port)], cwd=ROOT)
        deadline = time.monotonic() + START_S
        with closing(SearchEngine(self.url)) as engine:
            while engine.away():
                assert self._process.poll() is None, "the double ended"
                assert time.monotonic() < deadline, "the double does not answer"
                time.sleep(0.05)

    @property
    def pid(self) -> int:
        """Its process; it runs."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def data_of(folder: Path, name: str) -> Path:
    """Make the data directory of a process; all in a folder have the same originals, as they must."""
    data, originals = folder / name, folder / "originals"
    for path in (data, originals):
        path.mkdir(parents=True, exist_ok=True)
    if not (data / "originals").exists():
        (data / "originals").symlink_to(originals)
    return data


class Working(Served):
    """`python -m app work`."""

    command = (sys.executable, "-m", "app", "work")

    def wait_said(self, words: str) -> None:
        """Wait until its log has the words."""
        deadline_s = time.monotonic() + 60
        while words not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline_s, self.log.read_text()
            time.sleep(0.05)


@contextmanager
def several(
    folder: Path, servers: int, workers: int, **settings: str
) -> Iterator[tuple[list[Served], list[Working]]]:
    """Start servers and workers on one library and wait until all work.

    With workers the servers run no jobs.
    """
    lanes = {"JOB_LANES": "none"} if workers else {}
    serving = [
        Served(data_of(folder, f"{number}"), **settings, **lanes)
        for number in range(1, servers + 1)
    ]
    working = [
        Working(data_of(folder, f"worker-{number}"), **settings, LOG_LEVEL="INFO")
        for number in range(1, workers + 1)
    ]
    with ExitStack() as stack:
        for process in (*working, *serving):
            process.start()
            stack.callback(process.close)
        for server in serving:
            server.wait_ready()
        for worker in working:
            worker.wait_said("DocuMind works")
        yield serving, working
