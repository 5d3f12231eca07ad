"""What only the faiss store promises: codes, a file with a checksum, and a change of store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.core.errors import DiskFull, IndexDamaged
from app.core.ids import fingerprint8
from app.core.types import EmbeddedStore, Library
from app.storage.files.durable import Steps
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.vectors.faiss import FaissStore
from evaluation.lib.vector_checks import differences
from tests.unit.storage.drafts import FINGERPRINT, make_draft, stamped, unit_rows

NAME = "papers__1"
PAPERS = Library.PAPERS
N = 600


STORES: list[FaissStore] = []


def opened(path: Path, crash_at: int | None = None) -> FaissStore:
    STORES.append(FaissStore(path, Steps(crash_at), learn_from=200, least_kept=100))
    return STORES[-1]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while STORES:
        STORES.pop().close()


def put(store: FaissStore, ids: list[int], seed: int = 0) -> None:
    rows = unit_rows(max(ids), seed=seed)[np.array(ids) - 1]
    store.upsert(NAME, ids, rows, stamped())


def flush(store: FaissStore) -> None:
    assert store.flush(NAME, at_once=True)


def files(path: Path) -> list[Path]:
    return sorted(path.iterdir())


def test_codes_take_a_tenth_of_the_rows_and_outlive_the_process(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).standard_normal((2000, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ids = list(range(1, 2001))
    store = opened(tmp_path)
    store.upsert(NAME, ids[:250], rows[:250], stamped())
    flush(store)
    (before,) = [file.stat().st_size for file in files(tmp_path)]
    store.upsert(NAME, ids[250:], rows[250:], stamped())
    store.delete(NAME, [5, 6])
    store.upsert(NAME, [7], rows[5:6], stamped())
    flush(store)
    (after,) = [file.stat().st_size for file in files(tmp_path)]
    assert after - before < 1750 * 384 * 4 / 10
    again = opened(tmp_path)
    assert again.ids(NAME) == set(ids) - {5, 6}
    assert again.search(NAME, rows[5], 1) == [7]
    assert again.search(NAME, rows[99], 1) == [100]


def test_a_file_is_written_when_much_has_changed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put(store, list(range(1, 100)))
    assert not store.flush(NAME, at_once=False)
    assert not tmp_path.exists() or not files(tmp_path)
    put(store, [100, 101])
    assert store.flush(NAME, at_once=False)
    written = files(tmp_path)
    store.delete(NAME, [1])
    assert not store.flush(NAME, at_once=False)
    assert files(tmp_path) == written
    flush(store)
    assert files(tmp_path) != written
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("at", [0, 1, 10, 100, -1, -20])
def test_a_flipped_byte_is_found(tmp_path: Path, at: int) -> None:
    store = opened(tmp_path)
    put(store, list(range(1, 251)))
    flush(store)
    (file,) = files(tmp_path)
    content = bytearray(file.read_bytes())
    content[at] ^= 4
    file.write_bytes(content)
    with pytest.raises(IndexDamaged, match="damaged"):
        opened(tmp_path).count(NAME)


def test_two_files_of_a_crash_are_one_collection(tmp_path: Path) -> None:
    """As after a crash between the new file and the removal of the one before it."""
    store = opened(tmp_path)
    put(store, [1, 2, 3])
    flush(store)
    (first,) = files(tmp_path)
    content = first.read_bytes()
    put(store, [4])
    flush(store)
    first.write_bytes(content)
    (tmp_path / f"{NAME}.tmp").write_bytes(b"half")
    again = opened(tmp_path)
    assert again.collections() == [NAME]
    assert again.ids(NAME) in ({1, 2, 3}, {1, 2, 3, 4})
    put(again, [4, 5])
    flush(again)
    assert len(files(tmp_path)) == 1
    assert opened(tmp_path).ids(NAME) == {1, 2, 3, 4, 5}
    again.drop(NAME)
    assert files(tmp_path) == []


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    put(store, [1, 2, 3])
    flush(store)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("app.storage.vectors.faiss.os.fsync", full)
        put(store, [4, 5])
        with pytest.raises(DiskFull):
            flush(store)
    assert not list(tmp_path.rglob("*.tmp"))
    assert store.ids(NAME) == {1, 2, 3, 4, 5}
    assert opened(tmp_path).ids(NAME) == {1, 2, 3}
    flush(store)
    assert opened(tmp_path).ids(NAME) == {1, 2, 3, 4, 5}


WORK = """
import sys
from pathlib import Path
import numpy as np
from app.storage.vectors.faiss import FaissStore
from evaluation.lib.vector_checks import UNSTAMPED
from app.storage.files.durable import Steps
store = FaissStore(Path(sys.argv[1]), Steps(int(sys.argv[2])), learn_from=200, least_kept=100)
rows = np.random.default_rng(1).standard_normal((400, 16)).astype(np.float32)
for at in range(0, 400, 80):
    store.upsert("papers__1", list(range(at + 1, at + 81)), rows[at:at + 80], UNSTAMPED)
    store.delete("papers__1", [at + 1, at + 2])
    if store.flush("papers__1", at_once=False):
        print(at + 80, flush=True)
store.drop("papers__1")
print("dropped", flush=True)
"""


def test_a_process_that_is_killed_at_any_write_step_keeps_what_was_flushed(tmp_path: Path) -> None:
    """Every step of the work in turn, as `kill -9` would end it; then the store is opened."""
    root, ended, crash_at, flushes = Path(__file__).parents[4], False, 0, 0
    while not ended:
        crash_at += 1
        path = tmp_path / str(crash_at)
        worker = [sys.executable, "-c", WORK, str(path), str(crash_at)]
        told = subprocess.run(worker, cwd=root, capture_output=True, text=True, check=False)
        assert told.returncode in (0, 137), told.stderr
        ended = told.returncode == 0
        acknowledged = told.stdout.split()
        store = opened(path)
        if "dropped" in acknowledged:
            assert store.collections() == []
            continue
        last = int(acknowledged[-1]) if acknowledged else 0
        flushes = max(flushes, len(acknowledged))
        held = store.ids(NAME)
        assert held in [
            {i for i in range(1, end + 1) if i % 80 not in (1, 2)} for end in range(last, 401, 80)
        ] or (not held and last == 320)  # it was dropped
        put(store, [9000])
        flush(store)
        assert 9000 in opened(path).ids(NAME)
    assert crash_at > 12
    assert flushes > 1


def fill(store: IndexStore) -> list[int]:
    store.writer.write([make_draft(f"{i}.txt", f"text {i} " * 5, chunks=4) for i in range(30)])
    store.writer.claim(PAPERS, FINGERPRINT)
    ids = [chunk.chunk_id for chunk in store.writer.pending_vectors(PAPERS, 200)]
    store.writer.write_vectors(PAPERS, ids, unit_rows(len(ids)))
    store.writer.apply(PAPERS)
    return ids


def test_another_store_is_filled_from_the_catalog_and_the_old_one_goes(
    options: IndexOptions,
) -> None:
    """There and back, by the setting alone; nothing is embedded."""
    uncached = replace(options, vector_cache_vectors=0)
    with IndexStore(uncached, vector_store="foreground") as store:
        ids = fill(store)
    collection = f"papers__{fingerprint8(FINGERPRINT)}"
    kinds: tuple[EmbeddedStore, ...] = ("faiss", "chroma", "faiss")
    for kind in kinds:
        changed = replace(uncached, papers_store=kind, public_store=kind)
        with IndexStore(changed, vector_store="foreground") as store:
            assert store.vector_stores[PAPERS].ids(collection) == set(ids)
            assert store.vectors.search(PAPERS, unit_rows(len(ids))[11], 1)[0].chunk_id == ids[11]
            assert set(store.projector.log.lags().values()) == {0}
            assert differences(store, PAPERS) == []
            assert store.fsck.run().faults == ()
        assert [path.name for path in changed.store_dirs.values() if path.exists()] == [kind]


def test_one_library_may_change_its_store_alone(options: IndexOptions) -> None:
    uncached = replace(options, vector_cache_vectors=0)
    with IndexStore(uncached, vector_store="foreground") as store:
        ids = fill(store)
    with IndexStore(replace(uncached, papers_store="faiss"), vector_store="foreground") as store:
        assert store.vector_stores[Library.PUBLIC].collections() == []
        assert store.vectors.search(PAPERS, unit_rows(len(ids))[3], 1)[0].chunk_id == ids[3]


def test_a_damaged_file_is_made_again_from_the_catalog(
    options: IndexOptions, caplog: pytest.LogCaptureFixture
) -> None:
    faiss = replace(options, vector_cache_vectors=0, papers_store="faiss", public_store="faiss")
    with IndexStore(faiss, vector_store="foreground") as store:
        ids = fill(store)
    (file,) = faiss.faiss_dir.iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with IndexStore(faiss, vector_store="foreground") as store:
        assert store.vectors.search(PAPERS, unit_rows(len(ids))[5], 1)[0].chunk_id == ids[5]
    assert "checksum is wrong" in caplog.text
    assert list(options.data_dir.glob("faiss.broken.*"))


LIVE = """
import os, sys
from pathlib import Path
from app.core.types import Library
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft, unit_rows
data = Path(sys.argv[1])
faiss = IndexOptions(data, data / "chroma", vector_cache_vectors=0, papers_store="faiss")
store = IndexStore(faiss, vector_store="foreground")
store.writer.write([make_draft(f"more{i}.txt", f"more {i} " * 5, chunks=4) for i in range(3)])
ids = [chunk.chunk_id for chunk in store.writer.pending_vectors(Library.PAPERS, 200)]
store.writer.write_vectors(Library.PAPERS, ids, unit_rows(len(ids), seed=7))
store.writer.apply(Library.PAPERS)
assert store.projector.log.lags()["papers/faiss"] == 0
print(len(ids), flush=True)
os._exit(137)
"""


def test_what_was_not_flushed_is_applied_again_from_the_log(
    options: IndexOptions, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that is killed before the file was written loses no vector and rebuilds nothing."""
    faiss = replace(options, vector_cache_vectors=0, papers_store="faiss", database_url="")
    with IndexStore(faiss, vector_store="foreground") as store:
        ids = fill(store)
    worker = [sys.executable, "-c", LIVE, str(options.data_dir)]
    root = Path(__file__).parents[4]
    told = subprocess.run(worker, cwd=root, capture_output=True, text=True, check=False)
    assert told.returncode == 137, told.stderr
    with IndexStore(faiss, vector_store="off") as store:
        assert store.projector.log.lags()["papers/faiss"] > 0
    with IndexStore(faiss, vector_store="foreground") as store:
        (name,) = store.vector_stores[PAPERS].collections()
        assert store.vector_stores[PAPERS].count(name) == len(ids) + int(told.stdout)
        assert differences(store, PAPERS) == []
        assert store.projector.log.lags()["papers/faiss"] == 0
    assert not list(options.data_dir.glob("faiss.broken.*"))
    assert "filled again" not in caplog.text


def test_a_process_that_asks_nothing_of_the_store_reads_no_file(
    options: IndexOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    faiss = replace(options, vector_cache_vectors=0, papers_store="faiss")
    with IndexStore(faiss, vector_store="foreground") as store:
        fill(store)
    read: list[Path] = []
    monkeypatch.setattr("app.storage.vectors.faiss._read", read.append)
    with IndexStore(faiss, vector_store="off") as store:
        assert store.catalog.counts(PAPERS).embedded
    assert read == []
