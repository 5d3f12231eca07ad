"""What only the faiss store promises: codes, a file with a checksum, a journal, and a change of store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
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
from app.storage.vectors.faiss import FILE_NAME, FaissStore, IdSet
from evaluation.lib.vector_checks import differences
from tests.fakes.vector_stores import stamped
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows

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


def files(path: Path) -> list[str]:
    return sorted(entry.name for entry in (path / NAME).iterdir())


def test_ids_are_counted_once_and_found_far_apart() -> None:
    held = IdSet()
    held.add(np.array([3, 70_000, 3, 2**39]))
    held.add(np.array([3, 4]))
    assert (len(held), held.all()) == (4, {3, 4, 70_000, 2**39})
    held.delete(np.array([4, 5, 2**38]))
    assert sorted(held.held(np.array([2**39, 4, 3, 9])).tolist()) == [3, 2**39]
    assert len(held) == 3


def test_codes_take_a_tenth_of_the_rows_and_outlive_the_process(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).standard_normal((2000, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ids = list(range(1, 2001))
    with closing(opened(tmp_path)) as store:
        store.upsert(NAME, ids[:250], rows[:250], stamped())
        before = sum(file.stat().st_size for file in (tmp_path / NAME).iterdir())
        store.upsert(NAME, ids[250:], rows[250:], stamped())
        store.delete(NAME, [5, 6])
        store.upsert(NAME, [7], rows[5:6], stamped())
    after = sum(file.stat().st_size for file in (tmp_path / NAME).iterdir())
    assert after - before < 1750 * 384 * 4 / 10
    with closing(opened(tmp_path)) as again:
        assert again.ids(NAME) == set(ids) - {5, 6}
        assert again.search(NAME, rows[5], 1) == [7]
        assert again.search(NAME, rows[99], 1) == [100]


def test_a_new_file_begins_a_new_journal(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put(store, list(range(1, 100)))
    assert files(tmp_path) == ["journal.0"]
    put(store, list(range(100, 250)))
    assert files(tmp_path) == [FILE_NAME]
    put(store, [251])
    assert files(tmp_path) == ["journal.1", FILE_NAME]


@pytest.mark.parametrize("at", [0, 1, 10, 100, -1, -20])
@pytest.mark.parametrize("name", [FILE_NAME, "journal.1"])
def test_a_flipped_byte_is_found(tmp_path: Path, name: str, at: int) -> None:
    store = opened(tmp_path)
    put(store, list(range(1, 251)))
    put(store, list(range(251, 261)))
    store.close()
    content = bytearray((tmp_path / NAME / name).read_bytes())
    content[at] ^= 4
    (tmp_path / NAME / name).write_bytes(content)
    with pytest.raises(IndexDamaged, match="damaged"):
        opened(tmp_path).count(NAME)


@pytest.mark.parametrize("left", [1, 15, 30, 60])
def test_a_record_that_was_being_written_is_cut_off(tmp_path: Path, left: int) -> None:
    store = opened(tmp_path)
    put(store, [1, 2, 3])
    whole = (tmp_path / NAME / "journal.0").stat().st_size
    put(store, [4])
    store.close()
    with (tmp_path / NAME / "journal.0").open("r+b") as file:
        file.truncate(whole + left)
    again = opened(tmp_path)
    assert again.ids(NAME) == {1, 2, 3}
    put(again, [5])
    again.close()
    assert opened(tmp_path).ids(NAME) == {1, 2, 3, 5}


def test_a_journal_of_an_older_file_is_not_read(tmp_path: Path) -> None:
    """As after a crash between the new file and the removal of its journal."""
    store = opened(tmp_path)
    put(store, [1, 2, 3])
    kept = (tmp_path / NAME / "journal.0").read_bytes()
    put(store, list(range(1, 251)))
    store.delete(NAME, [1, 2])
    store.close()
    (tmp_path / NAME / "journal.0").write_bytes(kept)
    again = opened(tmp_path)
    assert again.ids(NAME) == set(range(3, 251))
    assert files(tmp_path) == ["journal.1", FILE_NAME]


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    put(store, [1, 2, 3])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("app.storage.vectors.faiss.os.fsync", full)
        with pytest.raises(DiskFull):
            put(store, [4, 5])
    assert store.ids(NAME) == {1, 2, 3}
    put(store, [4])
    store.close()
    assert opened(tmp_path).ids(NAME) == {1, 2, 3, 4}


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    put(store, list(range(1, 251)))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("app.storage.vectors.faiss._write", full)
        with pytest.raises(DiskFull):
            put(store, list(range(251, 500)))
    assert store.ids(NAME) == set(range(1, 500))  # the journal has them
    assert not list(tmp_path.rglob("*.tmp"))


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
    print(at + 80, flush=True)
store.drop("papers__1")
print("dropped", flush=True)
"""


def test_a_process_that_is_killed_at_any_write_step_loses_nothing(tmp_path: Path) -> None:
    """Every step of the work in turn, as `kill -9` would end it; then the store is opened."""
    root, ended, crash_at = Path(__file__).parents[4], False, 0
    while not ended:
        crash_at += 3
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
        whole = {i for i in range(1, last + 1) if i % 80 not in (1, 2)}
        held = store.ids(NAME)
        assert whole <= held <= set(range(1, last + 81)) or (last == 400 and not held)
        put(store, [9000])
        assert 9000 in store.ids(NAME)
    assert crash_at > 20


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
            assert set(store.status.lags().values()) == {0}
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
    journal = next(faiss.faiss_dir.rglob("journal.*"))
    content = bytearray(journal.read_bytes())
    content[len(content) // 2] ^= 1
    journal.write_bytes(content)
    with IndexStore(faiss, vector_store="foreground") as store:
        assert store.vectors.search(PAPERS, unit_rows(len(ids))[5], 1)[0].chunk_id == ids[5]
    assert "checksum is wrong" in caplog.text
    assert list(options.data_dir.glob("faiss.broken.*"))
