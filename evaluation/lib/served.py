"""Run a real server in its own process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from app.client import DocuMindClient
from app.core.errors import ProviderUnreachable
from evaluation.lib.reports import ROOT


class Served:
    """`python -m app serve` on a data directory; waits until ready; a context."""

    command: Sequence[str] = (sys.executable, "-m", "app", "serve")
    """What is started."""

    def __init__(self, data_dir: Path, **settings: str) -> None:
        """Choose a free port; nothing is started yet."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.log = self.log_of(data_dir)
        self.settings = {
            "DATA_DIR": str(data_dir), "API_PORT": str(port), "SAMPLES": "0", "OLLAMA_BASE_URL": "http://127.0.0.1:9",
            "LOG_LEVEL": "WARNING", "PYTHONFAULTHANDLER": "1", **settings,
        }  # fmt: skip
        """What its environment says; a command on the same data gets it too."""
        self.start_s = 0.0
        """Seconds from the start of the process until it was ready."""

    @staticmethod
    def log_of(data_dir: Path) -> Path:
        """Return where servers on a data directory write their logs, one after the other."""
        return data_dir.with_suffix(".log")

    def __enter__(self) -> Self:
        self.start()
        self.wait_ready()
        return self

    def start(self) -> None:
        """Start the process and return at once."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._begun = time.perf_counter()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=ROOT, env={**os.environ, **self.settings}, stdout=log, stderr=log
            )
        self.client = DocuMindClient(self.url)

    def wait_ready(self) -> None:
        """Wait until the server is ready.

        Raises:
            SystemExit: It ended instead; the message has the end of its log.
        """
        while True:
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended: {self.log.read_text(errors='replace')[-800:]}")
            with suppress(ProviderUnreachable):  # it does not listen yet
                if self.client.ready()["status"] == "ready":
                    break
            time.sleep(0.02)
        self.start_s = time.perf_counter() - self._begun

    def wait_followed(self, library: str) -> float:
        """Wait until Chroma has a library's writes; return the seconds."""
        begun = time.perf_counter()
        while self.client.diagnostics()["lags"].get(f"{library}/chroma", 1):
            time.sleep(0.1)
        return time.perf_counter() - begun

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.client.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.client.close()
        self.process.terminate()
        self.process.wait(60)

    def pss_bytes(self) -> int:
        """Return the proportional memory of the server and all its children."""
        return pss_bytes(self.process.pid)

    def cpu_s(self) -> float:
        """Return the processor seconds of the server and its children so far."""
        root = psutil.Process(self.process.pid)
        times = [process.cpu_times() for process in [root, *root.children(recursive=True)]]
        return sum(t.user + t.system for t in times)


def pss_bytes(pid: int) -> int:
    """Return the proportional memory of a process and all its children that have not ended."""
    total = 0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.Error):
                total += process.memory_full_info().pss
    return total
