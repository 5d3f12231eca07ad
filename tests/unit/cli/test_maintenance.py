"""Commands that look after the store: what they take the lock for, what they say, how they end."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.main import app, exit_code
from app.core.errors import DocuMindError, IndexDamaged
from app.core.types import Library
from app.ingest.sources.folders import bundled
from app.storage.files.lock import DirectoryLock
from app.storage.maintenance.backup import verify
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft


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
    assert (status, "repaired" in said) == (0, True)
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


def test_rebuild_makes_the_codes_of_passages_again(data: Path) -> None:
    status, said = documind("rebuild", "--passages")
    assert status == 0
    with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off", heal=False) as store:
        chunks = store.catalog.counts(Library.PAPERS).chunks
        assert store.codes.pending_codes(Library.PAPERS, 9) == []
    assert f"{chunks} passages were coded" in " ".join(said.split())


def test_restore_brings_the_backup_back_and_keeps_what_was_there(
    data: Path, tmp_path: Path
) -> None:
    with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off") as store:
        store.backup(tmp_path / "backup")
        store.writer.delete_all(Library.PAPERS)
    assert documind("restore", str(tmp_path / "backup"))[0] == 0
    with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off") as store:
        assert store.catalog.counts(Library.PAPERS).documents == 1
    assert len(list(data.glob("replaced.*"))) == 1
    (tmp_path / "backup" / "backup.json").unlink()
    status, said = documind("restore", str(tmp_path / "backup"))
    assert (status, "no complete backup" in said) == (2, True)


def test_a_restored_catalog_does_not_run_the_backup_that_it_remembers(
    data: Path, tmp_path: Path
) -> None:
    with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off") as store:
        backup = store.jobs.create("backup", {"path": str(tmp_path / "backup")})
        export = store.jobs.create(
            "export", {"path": str(tmp_path / "export"), "library": "papers"}
        )
        store.backup(tmp_path / "backup")
    assert documind("restore", str(tmp_path / "backup"))[0] == 0
    with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off") as store:
        assert store.jobs.get(backup.id).state == "cancelled"
        assert [job.id for job in store.jobs.unfinished()] == [export.id]
    verify(tmp_path / "backup")  # the backup itself is as it was


@pytest.mark.parametrize(
    "command", [("serve", "--port", "0"), ("list",), ("status",), ("rebuild",)]
)
def test_data_without_its_catalog_is_refused_in_one_line(
    data: Path, command: tuple[str, ...]
) -> None:
    (data / "originals" / f"{'a' * 64}.bin").write_bytes(b"kept")
    (data / "catalog.sqlite3").unlink()
    status, said = documind(*command)
    assert (status, len(said.strip().splitlines())) == (1, 1)
    assert "documind fsck --repair --library papers" in said
    assert not (data / "catalog.sqlite3").exists()
    assert (data / "originals" / f"{'a' * 64}.bin").exists()


def test_uploads_that_lost_their_catalog_get_entries(data: Path) -> None:
    samples = bundled() / "papers"
    kept = {}
    with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off") as store:
        for name in ("citation-checking.pdf", "chunk-size-study.docx"):
            kept[name] = store.originals.store(samples / name)
        refused = store.originals.store(bytes(range(256)))
    (data / "catalog.sqlite3").unlink()
    assert documind("fsck", "--repair", "--library", "nonsense")[0] == 2
    status, said = documind("fsck")
    assert (status, "original_unknown" in said, "--repair" in said) == (7, True, True)
    status, said = documind("fsck", "--repair", "--library", "papers", "--json")
    assert status == 7, "one of them is no document"
    unknown = [fault for fault in json.loads(said)["faults"] if fault["code"] == "original_unknown"]
    assert [(fault["count"], fault["repaired"]) for fault in unknown] == [(2, True), (1, False)]
    assert unknown[1]["detail"].startswith(f"{refused}.bin stays without an entry: ")
    with IndexStore(IndexOptions(data, data / "chroma"), vector_store="off") as store:
        documents = {
            document.title: document for document in store.catalog.documents(Library.PAPERS)[0]
        }
        assert set(documents) == {
            "Checking Citations by Alignment",
            "How Large Should a Passage Be? A Study on Technical Manuals",
        }
        for document in documents.values():
            assert "recovered" in document.flags
            assert document.sha256 in kept.values()
            assert store.catalog.original(Library.PAPERS, document.doc_id).exists()
        assert store.originals.names() == {*kept.values(), refused}
        assert len(store.lexical.search(Library.PAPERS, "alignment citations", 5)) > 0


@pytest.mark.parametrize(
    "command", [("rebuild",), ("restore", "anywhere"), ("fsck", "--repair"), ("fsck",)]
)
def test_a_directory_in_use_is_refused_with_its_owner(data: Path, command: tuple[str, ...]) -> None:
    with DirectoryLock([data]):
        status, said = documind(*command)
    assert status == 5
    assert "is in use by process" in said


def test_an_unknown_library_is_refused_before_anything_starts(data: Path) -> None:
    status, said = documind("export", "nonsense", "x")
    assert (status, "'nonsense'" in said) == (2, True)
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


def test_a_vector_store_whose_extra_is_missing_is_named_with_the_command(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUBLIC_VECTOR_STORE", "faiss")
    without = (
        "import sys; sys.modules['faiss'] = None; from app.cli.main import main; main(['fsck'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", without],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "pip install 'faiss-cpu" in done.stderr
    assert data.exists()
