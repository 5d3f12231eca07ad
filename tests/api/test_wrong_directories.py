"""A server whose settings name a directory that it cannot use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("setting", "files", "said"),
    [
        (
            "PROMPTS_DIR",
            {"rewrite.yml": "max_tokens: 5\nparts: {instruction: x, mood: y}"},
            ("rewrite.yml", "mood"),
        )
    ],
)
def test_a_wrong_directory_ends_the_start_with_2(
    tmp_path: Path, setting: str, files: dict[str, str], said: tuple[str, ...]
) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    (tmp_path / "work").mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
        "DATA_DIR": str(tmp_path / "data"),
        setting: str(folder),
        "CHUNK_SIZ": "3",
    }
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    ended = subprocess.run(
        [sys.executable, "-m", "app", "serve", "--port", "18953"],
        cwd=tmp_path / "work", env=environment, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ended.returncode == 2, ended.stderr
    last = ended.stderr.strip().splitlines()[-1]
    assert all(part in last for part in (setting, *said)), last
    assert ended.stderr.count("CHUNK_SIZ ") == 1
