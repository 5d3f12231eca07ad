"""A start removes no upload that the catalog does not record as deleted, and refuses a catalog that belongs to other data."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from app.core.errors import IndexDamaged
from app.core.types import Library
from app.storage.maintenance.start import catalog_path
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft
from tests.unit.storage.test_writer import embed_all

PAPERS = Library.PAPERS


def opened(options: IndexOptions) -> IndexStore:
    return IndexStore(options, vector_store="off")


def upload(store: IndexStore, *names: str) -> list[str]:
    """Documents with originals, embedded; return the SHA-256 of each."""
    shas = [store.writer.store_original(f"bytes of {name}".encode()) for name in names]
    store.writer.write(
        [
            make_draft(name, f"words of {name}", has_original=True, sha256=sha)
            for name, sha in zip(names, shas, strict=True)
        ]
    )
    embed_all(store)
    return shas


def state_of(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def take_catalog(options: IndexOptions, to: Path) -> None:
    to.mkdir()
    for file in options.data_dir.glob("catalog.sqlite3*"):
        shutil.move(file, to / file.name)


@pytest.mark.sqlite_file
def test_a_start_without_the_catalog_is_refused_and_changes_nothing(
    options: IndexOptions, tmp_path: Path
) -> None:
    with opened(options) as store:
        upload(store, "a.txt", "b.txt")
    take_catalog(options, tmp_path / "aside")
    before = state_of(options.data_dir)
    with pytest.raises(
        IndexDamaged, match=r"2 uploaded files.*fsck --repair --library papers"
    ) as refused:
        opened(options)
    assert "\n" not in refused.value.message
    assert state_of(options.data_dir) == before
    for file in (tmp_path / "aside").iterdir():
        shutil.move(file, options.data_dir / file.name)
    with opened(options) as store:
        assert store.fsck.run().faults == ()


@pytest.mark.sqlite_file
def test_a_start_with_an_empty_catalog_is_refused(options: IndexOptions, tmp_path: Path) -> None:
    with opened(options) as store:
        upload(store, "a.txt")
    take_catalog(options, tmp_path / "aside")
    with IndexStore(options, vector_store="off", heal=False):
        pass  # a check makes an empty catalog
    before = state_of(options.data_dir)
    with pytest.raises(IndexDamaged, match="names none of the 1 uploaded files"):
        opened(options)
    assert state_of(options.data_dir) == before


@pytest.mark.sqlite_file
def test_an_older_catalog_under_newer_indexes_is_refused_and_repaired(
    options: IndexOptions, tmp_path: Path
) -> None:
    with opened(options) as store:
        upload(store, "a.txt")
    shutil.copytree(options.data_dir, tmp_path / "older")
    with opened(options) as store:
        upload(store, "b.txt", "c.txt")
    for file in options.data_dir.glob("catalog.sqlite3*"):
        file.unlink()
    shutil.copy(tmp_path / "older" / "catalog.sqlite3", catalog_path(options.data_dir))
    with pytest.raises(
        IndexDamaged,
        match=r"older than its indexes: 'last_change' knows change \d+, the catalog ends with",
    ):
        opened(options)
    with IndexStore(options, vector_store="off", heal=False) as store:
        found = store.fsck.run(repair=True)
        assert "catalog_older" in {fault.code for fault in found.faults}
        assert [fault.code for fault in found.faults if not fault.repaired] == ["original_unknown"]
    with opened(options) as store:
        assert len(store.originals.names()) == 3
        assert [fault.code for fault in store.fsck.run().faults] == ["original_unknown"]


@pytest.mark.sqlite_file
def test_an_original_that_the_catalog_never_named_stays_and_is_counted(
    options: IndexOptions, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(options) as store:
        upload(store, "a.txt")
    stray = options.data_dir / "originals" / f"{'0' * 64}.bin"
    stray.write_bytes(b"put here by hand")
    with caplog.at_level(logging.WARNING), opened(options) as store:
        assert [fault.code for fault in store.fsck.run().faults] == ["original_unknown"]
    assert stray.exists()
    assert "1 uploaded files in 'originals' are in no document" in caplog.text
    assert "documind fsck --repair --library papers" in caplog.text


@pytest.mark.sqlite_file  # among several servers another may hold it: unlinked at rest
def test_what_was_deleted_or_never_accepted_is_unlinked_by_the_next_start(
    options: IndexOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(options) as store:
        (deleted,) = upload(store, "a.txt")
        never = store.writer.store_original(b"the process ends before the job's row")
        monkeypatch.setattr(store.originals, "delete", lambda _: False)  # and before the unlinking
        store.writer.delete(PAPERS, make_draft("a.txt", "").doc_id)
        monkeypatch.undo()
        assert store.originals.names() == {deleted, never}
    with opened(options) as store:
        assert store.originals.names() == set()
        assert store.unlinks.recorded() == set()
    (options.data_dir / "originals" / f"{'0' * 64}.bin").write_bytes(b"later")
    with opened(options) as store:  # the catalog records deletions, so it is this directory's
        assert store.originals.names() == {"0" * 64}


def test_an_upload_that_waits_keeps_its_bytes_and_its_record(options: IndexOptions) -> None:
    with opened(options) as store:
        sha256 = store.writer.store_original(b"accepted")
        store.jobs.create("ingest", {"files": [{"filename": "b.txt", "sha256": sha256}]})
    for _ in range(2):
        with opened(options) as store:
            assert store.originals.names() == store.unlinks.recorded() == {sha256}


def test_a_name_from_outside_is_no_path(store: IndexStore) -> None:
    for name in ("../../victim", "/etc/passwd", "", "a" * 63, "A" * 64, "a" * 64 + "\n"):
        with pytest.raises(IndexDamaged, match="64 hex digits"):
            store.originals.path(name)
        assert not store.originals.exists(name)
        assert not store.originals.delete(name)
        assert store.originals.damaged(name)


@pytest.mark.sqlite_file
def test_the_message_of_a_damaged_catalog_moves_no_file(options: IndexOptions) -> None:
    options.data_dir.mkdir(parents=True)
    catalog_path(options.data_dir).write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(IndexDamaged, match="documind restore BACKUP") as refused:
        opened(options)
    assert "move the file" not in refused.value.message
    assert "originals/" in refused.value.message
