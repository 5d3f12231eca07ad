"""Commands that look after the store: what they take the lock for, what they say, how they end."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.main import app, exit_code
from app.core.errors import DocuMindError, IndexDamaged
from app.core.types import Library
from app.index.lock import DirectoryLock
from app.index.options import IndexOptions
from app.index.store import IndexStore
from tests.unit.index.drafts import make_draft


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with one document, named by the environment as for a user."""
    path = tmp_path / "data"
    with IndexStore(IndexOptions(path, path / "chroma"), vector_store="off") as store:
        store.writer.write([make_draft("a.txt", "walruses whistle in the wind")])
    monkeypatch.setenv("DATA_DIR", str(path))
    monkeypatch.chdir(tmp_path)
    return path


def documind(*arguments: str) -> tuple[int, str]:
    """Run a command; an error comes back as the exit code the command line gives it, with its message."""
    done = CliRunner().invoke(app, arguments)
    if isinstance(done.exception, DocuMindError):
        return exit_code(done.exception), done.exception.message
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def spoil(data: Path, statement: str) -> None:
    connection = sqlite3.connect(data / "catalog.sqlite3")
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_fsck_says_sound_then_finds_then_mends(data: Path) -> None:
    assert documind("fsck")[0] == 0
    spoil(data, "UPDATE libraries SET chunks = chunks + 5")
    status, said = documind("fsck", "--json")
    assert status == 7
    assert [fault["code"] for fault in json.loads(said)["faults"]] == ["catalog_counters"]
    status, said = documind("fsck", "--repair")
    assert (status, "mended" in said) == (0, True)
    assert documind("fsck")[0] == 0


def test_fsck_of_a_spoiled_text_names_the_backup(data: Path) -> None:
    spoil(data, "UPDATE revisions SET text = zeroblob(40)")
    status, said = documind("fsck", "--repair")
    assert status == 8
    assert "restore a backup" in " ".join(said.split())


def test_rebuild_makes_a_lost_index_again(data: Path) -> None:
    for file in (data / "tantivy" / "papers").iterdir():
        file.unlink()
    assert documind("rebuild")[0] == 0
    with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off", heal=False) as store:
        assert len(store.lexical.search(Library.PAPERS, "walruses", 5)) == 1


def test_restore_brings_the_backup_back_and_keeps_what_was_there(data: Path, tmp_path: Path) -> None:
    with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off") as store:
        store.backup(tmp_path / "backup")
        store.writer.clear(Library.PAPERS)
    assert documind("restore", str(tmp_path / "backup"))[0] == 0
    with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off") as store:
        assert store.catalog.counts(Library.PAPERS).documents == 1
    assert len(list(data.glob("replaced.*"))) == 1
    (tmp_path / "backup" / "backup.json").unlink()
    status, said = documind("restore", str(tmp_path / "backup"))
    assert (status, "no complete backup" in said) == (1, True)


@pytest.mark.parametrize("command", [("rebuild",), ("restore", "anywhere"), ("fsck", "--repair"), ("fsck",)])
def test_a_directory_in_use_is_refused_with_its_owner(data: Path, command: tuple[str, ...]) -> None:
    with DirectoryLock([data]):
        status, said = documind(*command)
    assert status == 5
    assert "is in use by process" in said


def test_an_unknown_library_is_refused_before_anything_starts(data: Path) -> None:
    status, said = documind("export", "nonsense", "x")
    assert (status, "'nonsense'" in said) == (1, True)
    assert not (data / "exports").exists()


def test_a_damaged_catalog_names_backup_and_restore(data: Path) -> None:
    raw = bytearray((data / "catalog.sqlite3").read_bytes())
    raw[:4096] = b"\0" * 4096
    (data / "catalog.sqlite3").write_bytes(raw)
    status, said = documind("fsck")
    assert status == 1
    assert "documind restore" in said
    assert "documind backup" in said
    with pytest.raises(IndexDamaged):
        IndexStore(IndexOptions(data, data / "chroma"), vector_store="off")
