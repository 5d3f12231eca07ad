"""A second process on the same data: refused at once with the owner's name, served by the owner, or let in once that is dead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("sqlalchemy", "tantivy", "chromadb", "onnxruntime", "fastapi", "uvicorn")
"""numpy is not one: the types that settings are made of name its arrays, and it takes a tenth of
a second."""

_OWNER = """
import sys
from pathlib import Path
from app.storage.files.lock import DirectoryLock
lock = DirectoryLock([Path(sys.argv[1])], "http://127.0.0.1:8123")
print("held", flush=True)
sys.stdin.read()
"""


def second(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command on the data, with a list of what it imports on standard error."""
    environment = {**os.environ, "DATA_DIR": str(data), "SAMPLES": "0"}
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "app", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments", [("serve", "--port", "8124"), ("rebuild",), ("fsck", "--repair")], ids=" ".join
)
def test_refused_with_the_owner_s_name_before_anything_heavy(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        done = second(tmp_path, *arguments)
        owner.kill()
    said = " ".join(
        line
        for line in (done.stdout + done.stderr).splitlines()
        if not line.startswith("import time:")
    )
    assert done.returncode == 5
    assert f"process {owner.pid} at http://127.0.0.1:8123" in " ".join(said.split())
    imported = {
        line.rpartition("|")[2].strip()
        for line in done.stderr.splitlines()
        if line.startswith("import time:")
    }
    assert "app.storage.files.lock" in imported
    assert imported & set(HEAVY) == set()


def test_let_in_when_the_owner_was_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        owner.kill()
    done = second(tmp_path, "rebuild")
    assert done.returncode == 0
    assert "was rebuilt from the catalog" in done.stdout
