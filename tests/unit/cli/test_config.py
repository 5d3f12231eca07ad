"""`documind config` says what is set and where, and shows no secret; `open` and `--version` answer at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cli import main as entry
from app.core.ids import package_version
from app.storage.files.lock import DirectoryLock


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))


def said(capsys: pytest.CaptureFixture[str], *words: str, ends: int = 0) -> str:
    with pytest.raises(SystemExit) as end:
        entry.main(list(words))
    assert end.value.code == ends
    printed = capsys.readouterr()
    return printed.out + printed.err


def test_config_names_the_source_of_each_setting_and_hides_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".env").write_text("LLM_MODEL=phi\nAPI_PORT=9000\nOPENAI_API_KEY=s3cret-key\n")
    monkeypatch.setenv("API_PORT", "9100")
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://me:s3cret@host:1,http://other:2")
    text = said(capsys, "config", "--json")
    found = {row["setting"]: (row["value"], row["from"]) for row in json.loads(text)}
    assert found["LLM_MODEL"] == ("phi", ".env")
    assert found["API_PORT"] == ("9100", "environment")
    assert found["HOSTED_KEY"] == ("(hidden)", ".env")  # by its other name
    assert found["OLLAMA_BASE_URL"] == ("http://host:1,http://other:2", "environment")
    assert found["DATA_DIR"] == (str(tmp_path / "data"), "environment")
    assert "CHUNK_SIZE" not in found
    assert "s3cret" not in text
    everything = said(capsys, "config", "--all")
    assert "CHUNK_SIZE" in everything
    assert "s3cret" not in everything


def test_the_version_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--version") == f"documind {package_version()}\n"
    assert "--install-completion" in said(capsys, "--help")


def test_open_needs_a_running_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "documind up" in said(capsys, "open", ends=4)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    (tmp_path / "data").mkdir()
    with DirectoryLock([tmp_path / "data"], "http://127.0.0.1:8123"):
        assert "the page is at http://127.0.0.1:8123" in said(capsys, "open")
