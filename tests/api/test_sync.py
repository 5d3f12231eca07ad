"""`documind sync` against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.main import app
from app.index.lock import DirectoryLock
from tests.api.conftest import Site, listening, site


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server, and an environment whose data directory it holds."""
    with (
        site(tmp_path / "server") as opened,
        listening(opened.app, lifespan="off") as url,
        DirectoryLock([tmp_path / "lock"], url),
    ):
        monkeypatch.setenv("DATA_DIR", str(tmp_path / "lock"))
        yield opened


def sync(folder: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    result = CliRunner().invoke(app, ["sync", str(folder), "--library", "papers", "--json", *arguments])
    return result.exit_code, json.loads(result.stdout)


def test_a_library_follows_a_folder(served: Site, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "copper.txt").write_text("Copper is a soft red metal. Its melting point is 1085 degrees Celsius.")
    (folder / "deep" / "tides.md").write_text("# Tides\n\nTides are caused by the Moon.")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    assert served.upload(("mine.txt", b"An upload that no folder knows of."))[0] == 201

    code, first = sync(folder)
    assert (code, first["added"], first["unchanged"]) == (3, ["copper.txt", "deep/tides.md"], 0)
    failed = first["failed"]
    assert isinstance(failed, list)
    assert [key for key, _ in failed] == ["broken.pdf"]

    (folder / "broken.pdf").unlink()
    code, second = sync(folder)
    assert (code, second["added"], second["replaced"], second["removed"], second["unchanged"]) == (0, [], [], [], 2)

    (folder / "copper.txt").write_text("Copper melts at 1085 degrees and boils at 2562 degrees Celsius.")
    (folder / "deep" / "tides.md").unlink()
    code, third = sync(folder)
    assert (code, third["replaced"], third["removed"], third["unchanged"]) == (0, ["copper.txt"], ["deep/tides.md"], 0)
    documents = served.client.get("/api/v1/papers", params={"library": "papers"}).json()["documents"]
    assert sorted(row["filename"] for row in documents) == ["copper.txt", "mine.txt"]
    found = served.client.get("/api/v1/search", params={"q": "copper boils", "library": "papers"}).json()["hits"]
    assert "2562" in found[0]["text"]
    shown = CliRunner().invoke(app, ["sync", str(folder)])
    assert "0 added, 0 replaced, 0 removed, 1 unchanged, 0 failed" in shown.stdout


def test_what_an_older_release_has_read_is_read_anew_when_asked(
    served: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del served
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "copper.txt").write_text("Copper is a soft red metal. Its melting point is 1085 degrees Celsius.")
    with monkeypatch.context() as older:
        older.setattr("app.ingest.pipeline._READ_AS", "reader 0")
        assert sync(folder)[1]["added"] == ["copper.txt"]
    code, plain = sync(folder)
    assert (code, plain["replaced"], plain["unchanged"]) == (0, [], 1)
    code, again = sync(folder, "--again")
    assert (code, again["replaced"], again["unchanged"]) == (0, ["copper.txt"], 0)
    assert sync(folder, "--again")[1]["unchanged"] == 1
