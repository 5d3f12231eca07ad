"""One process owns a data directory."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.errors import Locked, StorageError
from app.storage.files.lock import DirectoryLock, Owner, outermost, owner

ROOT = Path(__file__).resolve().parents[4]

HOLD = """
import sys
from pathlib import Path
from app.storage.files.lock import DirectoryLock
lock = DirectoryLock([Path(sys.argv[1])], "http://127.0.0.1:8001")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Locked, match=rf"process {holder.pid} at http://127.0.0.1:8001"):
            DirectoryLock([tmp_path])
        assert owner(tmp_path) == Owner(holder.pid, "http://127.0.0.1:8001")
        holder.kill()
    assert owner(tmp_path) is None
    with DirectoryLock([tmp_path]) as lock:
        lock.announce("http://127.0.0.1:9000")
        assert owner(tmp_path) == Owner(os.getpid(), "http://127.0.0.1:9000")
    assert owner(tmp_path) is None


def test_a_directory_that_was_never_used_has_no_owner(tmp_path: Path) -> None:
    assert owner(tmp_path / "nowhere") is None


def test_a_directory_outside_is_locked_too(tmp_path: Path) -> None:
    data, chroma = tmp_path / "data", tmp_path / "chroma"
    with DirectoryLock([data, chroma]), pytest.raises(Locked):
        DirectoryLock([tmp_path / "other", chroma])
    with DirectoryLock([tmp_path / "other"]):
        pass  # the refused one let go of what it had taken


def test_directories_inside_are_covered_by_the_outer(tmp_path: Path) -> None:
    assert outermost([tmp_path, tmp_path / "chroma", tmp_path]) == [tmp_path.resolve()]


def test_the_lock_imports_nothing_heavy() -> None:
    program = (
        "import sys, app.storage.files.lock; print([m for m in ('numpy', 'sqlalchemy',"
        " 'tantivy', 'chromadb') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_an_owner_says_whether_it_goes_on_serving(tmp_path: Path) -> None:
    with DirectoryLock([tmp_path]) as lock:
        lock.announce("http://127.0.0.1:1", lasting=False)
        assert owner(tmp_path) == Owner(os.getpid(), "http://127.0.0.1:1", lasting=False)
        lock.announce("http://127.0.0.1:2")
        assert owner(tmp_path) == Owner(os.getpid(), "http://127.0.0.1:2", lasting=True)
        (tmp_path / ".lock").write_text(
            '{"pid": 7, "url": "http://127.0.0.1:3"}'
        )  # as an earlier release wrote it
        assert owner(tmp_path) == Owner(7, "http://127.0.0.1:3", lasting=True)


def test_a_directory_that_cannot_be_written_is_said_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="choose another DATA_DIR"):
        DirectoryLock([tmp_path / "file" / "data"])

    def read_only(path: Path, *_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(os, "open", read_only)
    for use in (lambda: DirectoryLock([tmp_path]), lambda: owner(tmp_path)):
        with pytest.raises(StorageError, match=r"Read-only file system.*writable"):
            use()
