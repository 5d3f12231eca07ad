"""The process that opens a vector store to see whether it is sound does not outlive the one that asked."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from app.core.errors import DiskFull, StorageError
from app.index.dense.chroma.probe import ProbeFinding, probe
from app.index.dense.chroma.resting_store import Expected
from app.index.maintenance.start_checks import catalog_path
from app.index.options import IndexOptions
from app.index.store import IndexStore
from tests.crash.forks import Forks
from tests.unit.index.drafts import make_draft
from tests.unit.index.test_writer import embed_all

_ASKER = """
import sys
from pathlib import Path
from app.index.dense.chroma.probe import probe
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


@contextmanager
def waiting_probe(chroma: Path, stop: threading.Event) -> Iterator[tuple[Future[ProbeFinding], psutil.Process]]:
    """A probe, and its child, which waits for a lock that is held as long as the block runs."""
    chroma.mkdir()
    held = sqlite3.connect(chroma / "chroma.sqlite3", isolation_level=None)
    held.execute("CREATE TABLE t (x)")
    held.execute("BEGIN EXCLUSIVE")
    with closing(held), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(probe, chroma, chroma / "none", [], stop=stop)
        while (child := next((child for child in psutil.Process().children() if _waits(child, chroma)), None)) is None:
            assert not asked.done()
            time.sleep(0.01)
        yield asked, child


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_child_that_was_told_to_end_found_nothing(tmp_path: Path, number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # whoever runs the tests may ignore it (nohup), and a child inherits that
    try:
        with waiting_probe(tmp_path / "chroma", threading.Event()) as (asked, child):
            child.send_signal(number)
            with pytest.raises(StorageError, match="ended with signal"):
                asked.result(30)
    finally:
        signal.signal(number, before)


def test_a_server_that_stops_does_not_wait_for_its_probe(tmp_path: Path) -> None:
    stop = threading.Event()
    with waiting_probe(tmp_path / "chroma", stop) as (asked, _):
        stop.set()
        with pytest.raises(StorageError, match="stopped"):
            asked.result(30)


def look_on_a_full_disk(options: IndexOptions, expected: list[Expected]) -> str:
    """Return what a probe says whose child may write nothing."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    try:
        return repr(probe(options.chroma_dir, catalog_path(options.data_dir), expected).problems)
    except DiskFull:
        return "full"


def test_a_full_disk_is_no_damage(options: IndexOptions, forks: Forks) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        store.writer.write([make_draft("ann", "walruses whistle")])
        embed_all(store)
        expected = store.keeper.expected()
    status, said = forks.run(partial(look_on_a_full_disk, options, expected))
    assert (status, said) in {(0, "'()'"), (0, "'full'")}


def _waits(child: psutil.Process, chroma: Path) -> bool:
    """Whether the child has come as far as the store's files."""
    with suppress(psutil.NoSuchProcess):
        return any(file.path == str(chroma / "chroma.sqlite3") for file in child.open_files())
    return False
