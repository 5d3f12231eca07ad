"""What an acknowledgement rests on is on disk before it is given: files, directories, the database."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.core.errors import DiskFull
from app.storage.store import IndexStore
from evaluation.campaigns.traced_ingest import examine, whole_calls
from tests.unit.storage.drafts import make_draft


@pytest.mark.sqlite_file
def test_files_and_directories_are_synced_before_a_write_returns(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").resolve())
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    sha256 = store.writer.store_original(b"walruses whistle")
    originals = store.options.data_dir / "originals"
    assert [path.parent if path != originals else path for path in synced] == [
        originals,
        originals,
    ]  # the file, then its directory
    assert synced[-1] == originals
    store.writer.write([make_draft("a.txt", "walruses whistle", has_original=True, sha256=sha256)])
    assert (
        synced[-1] == store.options.data_dir / "tantivy" / "papers"
    )  # after the rename of meta.json, which tantivy leaves open


def test_files_of_one_upload_are_recorded_and_synced_together(store: IndexStore) -> None:
    before = store.steps.names
    shas = store.writer.store_originals([b"walruses", b"penguins", b"walruses"])
    assert store.originals.names() == set(shas) == store.unlinks.recorded()
    steps = {name: n - before.get(name, 0) for name, n in store.steps.names.items()}
    assert steps["originals.fsync"] == steps["originals.rename"] == 2
    assert steps["catalog.unlink"] == steps["originals.fsync_directory"] == 1


def test_files_of_a_refused_upload_leave_nothing(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.writer.store_original(b"kept before")

    def full(_: object) -> None:
        raise DiskFull("no space for the record")

    monkeypatch.setattr(store.originals, "before_keeping", full)
    with pytest.raises(DiskFull):
        store.writer.store_originals([b"walruses", b"kept before", b"penguins"])
    assert [path.read_bytes() for path in (store.options.data_dir / "originals").iterdir()] == [
        b"kept before"
    ]


@pytest.mark.sqlite_file
def test_a_commit_of_the_catalog_is_synced(store: IndexStore) -> None:
    with store.database.write("test") as sql:
        assert sql.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert (
            sql.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        )  # FULL: the log is synced by every commit


TRACE = """\
7  openat(AT_FDCWD</x>, "/d/originals/.a.part", O_RDWR|O_CREAT|O_EXCL, 0600) = 5</d/originals/.a.part>
7  write(5</d/originals/.a.part>, "w", 1) = 1
7  fsync(5</d/originals/.a.part> <unfinished ...>
8  pwrite64(9</d/catalog.sqlite3-wal>, "x", 1, 0) = 1
7  <... fsync resumed>) = 0
7  rename("/d/originals/.a.part", "/d/originals/a.bin") = 0
7  fsync(6</d/originals>) = 0
8  fdatasync(9</d/catalog.sqlite3-wal>) = 0
7  sendto(3<socket:[1]>, "HTTP/1.1 201 Created", 20, 0) = 20
"""


@pytest.mark.parametrize(
    ("left_out", "files", "directories"),
    [
        ("", set(), set()),
        ("fdatasync(9", {"/d/catalog.sqlite3-wal"}, set()),
        ("fsync(6", set(), {"/d/originals"}),
        ("fsync(5", {"/d/originals/a.bin"}, set()),
    ],
)
def test_the_reading_of_a_trace_sees_what_is_not_synced(
    left_out: str, files: set[str], directories: set[str]
) -> None:
    lines = [line for line in TRACE.splitlines() if not left_out or left_out not in line]
    found = examine(whole_calls(lines), "/d", "HTTP/1.1 201")
    assert (set(found.unsynced_files), found.unsynced_directories) == (files, directories)
    assert found.answered
    assert found.holds is not bool(left_out)


def test_without_an_answer_nothing_holds() -> None:
    assert not examine(whole_calls(TRACE.splitlines()[:-1]), "/d", "HTTP/1.1 201").holds
