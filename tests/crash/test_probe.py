"""The process that opens a vector store to see whether it is sound does not outlive the one that asked."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psutil

_ASKER = """
import sys
from pathlib import Path
from app.index.probe import probe
probe(Path(sys.argv[1]), Path(sys.argv[2]), [])
"""


def test_the_probe_ends_with_its_asker(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    chroma = tmp_path / "chroma"
    chroma.mkdir()
    held = sqlite3.connect(chroma / "chroma.sqlite3", isolation_level=None)
    held.execute("CREATE TABLE t (x)")
    held.execute("BEGIN EXCLUSIVE")  # the child waits for it longer than this test does
    asker = subprocess.Popen([sys.executable, "-c", _ASKER, str(chroma), str(tmp_path / "none")], cwd=root)
    try:
        children: list[psutil.Process] = []
        while not (children := psutil.Process(asker.pid).children()) or not _waits(children[0], chroma):
            assert asker.poll() is None
            time.sleep(0.01)
    finally:
        os.kill(asker.pid, signal.SIGKILL)
        asker.wait()
    _, alive = psutil.wait_procs(children, timeout=3)
    assert alive == []
    held.close()


def _waits(child: psutil.Process, chroma: Path) -> bool:
    """Whether the child has come as far as the store's files."""
    return any(file.path == str(chroma / "chroma.sqlite3") for file in child.open_files())
