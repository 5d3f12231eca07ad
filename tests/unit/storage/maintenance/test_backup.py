"""A backup made while the store works brings everything back; a damaged one is refused."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import Conflict, IndexDamaged, InvalidInput
from app.core.types import Library
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps
from app.storage.maintenance.backup import backup, restore
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft, unit_rows
from tests.unit.storage.test_writer import embed_all, found

pytestmark = pytest.mark.sqlite_file

PAPERS = Library.PAPERS


def filled(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="off") as store:
        sha256 = store.writer.store_original(b"original bytes")
        store.writer.write(
            [make_draft("a.txt", "walruses whistle in wind", has_original=True, sha256=sha256)]
        )
        embed_all(store)
        store.jobs.create("ingest", {})


def test_restored_is_what_was_backed_up(options: IndexOptions, tmp_path: Path) -> None:
    filled(options)
    with IndexStore(options, vector_store="off") as store:
        report = store.backup(tmp_path / "backup")
        before = store.vectors.search(PAPERS, unit_rows(2)[0], 5)
        assert report.originals == 1
        store.writer.write([make_draft("later.txt", "penguins parade past")])
    restore(tmp_path / "backup", options.data_dir, Steps())
    with IndexStore(options, vector_store="off") as store:
        assert [document.source_key for document in store.catalog.documents(PAPERS)[0]] == ["a.txt"]
        assert found(store, "walruses") == {make_draft("a.txt", "").doc_id}
        assert found(store, "penguins") == set()
        assert store.vectors.search(PAPERS, unit_rows(2)[0], 5) == before
        assert (
            store.catalog.original(PAPERS, make_draft("a.txt", "").doc_id).read_bytes()
            == b"original bytes"
        )
        assert len(store.jobs.list()) == 1
        assert store.fsck.run().faults == ()
    assert len(list(options.data_dir.glob("replaced.*"))) == 1


class Killed(BaseException):
    """Ends everything from a step on, the clearing up too."""


class Dying(Steps):
    def _reach(self) -> None:
        self._reached += 1
        if self._crash_at is not None and self._reached >= self._crash_at:
            raise Killed


def test_a_backup_that_was_killed_is_made_again_in_its_place(
    options: IndexOptions, tmp_path: Path
) -> None:
    filled(options)
    steps, killed = 0, True
    while killed:
        steps += 1
        target = tmp_path / f"killed at {steps}"
        with IndexStore(options, vector_store="off") as store:
            assert isinstance(store.database, SqliteDatabase)
            try:
                backup(store.database, store.originals, target, Dying(steps))
                killed = False
            except Killed:
                if not (target / "backup.json").exists() or (target / "backup.unfinished").exists():
                    assert store.backup(target).originals == 1
            with pytest.raises(Conflict, match="not empty"):
                store.backup(target)
        assert sorted(each.name for each in target.iterdir()) == [
            "backup.json",
            "catalog.sqlite3",
            "originals",
        ]
    assert steps > 10
    restore(target, options.data_dir, Steps())


def test_writes_go_on_during_a_backup(options: IndexOptions, tmp_path: Path) -> None:
    filled(options)
    with IndexStore(options, vector_store="off") as store:
        started = threading.Event()

        def write() -> None:
            for i in range(10):
                store.writer.write([make_draft(f"{i}.txt", f"penguin {i} parades past", chunks=1)])
                started.set()

        writer = threading.Thread(target=write)
        writer.start()
        started.wait()
        store.backup(tmp_path / "backup")
        writer.join()
        assert store.catalog.counts(PAPERS).documents == 11
    elsewhere = replace(options, data_dir=tmp_path / "new", chroma_dir=tmp_path / "new" / "chroma")
    elsewhere.data_dir.mkdir()
    restore(tmp_path / "backup", elsewhere.data_dir, Steps())
    with IndexStore(elsewhere, vector_store="off") as store:
        assert store.catalog.counts(PAPERS).documents >= 2
        assert store.fsck.run().faults == ()


def test_what_is_no_backup_is_refused_and_nothing_moves(
    options: IndexOptions, tmp_path: Path
) -> None:
    filled(options)
    with pytest.raises(InvalidInput, match=r"backup\.json"):
        restore(tmp_path, options.data_dir, Steps())
    with IndexStore(options, vector_store="off") as store:
        with pytest.raises(Conflict, match="not empty"):
            store.backup(options.data_dir)
        store.backup(tmp_path / "backup")
        assert found(store, "walruses") != set()


@pytest.mark.parametrize("name", ["catalog.sqlite3", "originals"])
def test_a_flipped_byte_is_refused(options: IndexOptions, tmp_path: Path, name: str) -> None:
    filled(options)
    with IndexStore(options, vector_store="off") as store:
        store.backup(tmp_path / "backup")
    path = tmp_path / "backup" / name
    path = next(path.iterdir()) if path.is_dir() else path
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(IndexDamaged, match="another backup"):
        restore(tmp_path / "backup", options.data_dir, Steps())
