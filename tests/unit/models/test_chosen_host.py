"""The file of the host that was chosen on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.models.chosen_host import ChosenHost
from app.models.options import HostedOptions

HOST = HostedOptions("https://api.example.com/v1", "sk-secret", "chat-1")


def test_a_host_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "hosted.json"
    path.with_suffix(".new").write_text("left by a crash")
    kept = ChosenHost(path)
    assert kept.options is None
    kept.keep(HOST)
    assert (ChosenHost(path).options, path.stat().st_mode & 0o777) == (HOST, 0o600)
    assert [one.name for one in tmp_path.iterdir()] == ["hosted.json"]
    kept.keep(None)
    assert (ChosenHost(path).options, list(tmp_path.iterdir())) == (None, [])


@pytest.mark.parametrize("content", [b"{", b'{"api_key": "sk-secret", "other": 1}', b"[]"])
def test_a_file_that_cannot_be_read_is_none_and_its_words_are_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    path = tmp_path / "hosted.json"
    path.write_bytes(content)
    assert ChosenHost(path).options is None
    assert "cannot be read" in caplog.text
    assert "sk-secret" not in caplog.text
