"""Files that are on disk when the call returns: write, rename, remove, move aside."""

from __future__ import annotations

import errno
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from app.core.errors import DiskFull

# Name every write step, so that a test can end the process at each.

CRASH_STATUS = 137
"""Exit status of a process killed by SIGKILL as a shell reports it (128 + 9)."""


class Steps:
    """Counts write steps of one process; thread-safe."""

    def __init__(self, crash_at: int | None = None) -> None:
        """Start counting at 0; end the process at step `crash_at`, from 1, if it is given."""
        self._crash_at = crash_at
        self._lock = threading.Lock()
        self._reached = 0
        self._names: dict[str, int] = {}

    @property
    def reached(self) -> int:
        return self._reached

    @property
    def names(self) -> dict[str, int]:
        """Return how often each named step was entered."""
        with self._lock:
            return dict(self._names)

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Surround one write named `store.action`; count a step before it and after a success."""
        with self._lock:
            self._names[name] = self._names.get(name, 0) + 1
        self._reach()
        yield
        self._reach()

    def _reach(self) -> None:
        with self._lock:
            self._reached += 1
            due = self._crash_at is not None and self._reached >= self._crash_at
        if due:
            os._exit(CRASH_STATUS)


BROKEN_MARK = ".broken."
"""Part of the name of everything that was moved aside."""

_FULL = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})


def utc_now() -> str:
    """Return the time as UTC ISO 8601 in milliseconds: `2026-01-02T03:04:05.678Z`."""
    return utc_text(datetime.now(UTC))


def utc_text(time: datetime) -> str:
    """Return a time of UTC as `utc_now` writes it."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Translate a full disk while writing `path`.

    Raises:
        DiskFull: The system said no space, file too large or over quota; other errors pass
            unchanged.
    """
    try:
        yield
    except OSError as exc:
        if exc.errno in _FULL:
            raise disk_full(path) from exc
        raise


def disk_full(path: Path) -> DiskFull:
    """Return the error for a full disk at `path`."""
    return DiskFull(
        f"no space to write {path.name!r} in the data directory: nothing acknowledged is lost;"
        " free some space and try again"
    )


def says_full(message: str) -> bool:
    """Return whether a message of SQLite, Chroma or the system means: disk full."""
    said = ("No space left", "disk is full", "File too large", "disk I/O error")
    return any(words in message for words in said)


def sync_file(path: Path, steps: Steps, step: str) -> None:
    """Force the content of a file to disk."""
    with path.open("rb") as file, steps.at(step):
        os.fsync(file.fileno())


def sync_directory(path: Path, steps: Steps, step: str) -> None:
    """Fsync a directory, so that a rename or a new file survives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with steps.at(step):
            os.fsync(handle)
    finally:
        os.close(handle)


def replace_file(path: Path, content: bytes, steps: Steps, store: str) -> None:
    """Write `content` to `path`: readers see the old bytes or the new, never a mix.

    Raises:
        DiskFull: No space; the old content stays.
    """
    temporary = path.with_name(path.name + ".tmp")
    with disk_errors(path):
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            with steps.at(f"{store}.fsync"):
                os.fsync(file.fileno())
        with steps.at(f"{store}.rename"):
            temporary.replace(path)
        sync_directory(path.parent, steps, f"{store}.fsync_directory")


def delete_file(path: Path, steps: Steps, step: str) -> bool:
    """Remove a file when it is there; return whether it was."""
    with steps.at(step):
        try:
            path.unlink()
        except FileNotFoundError:
            return False
    return True


def delete_tree(path: Path, steps: Steps, step: str) -> None:
    """Remove a directory with all it holds; one that is not there is fine."""
    with steps.at(step):
        shutil.rmtree(path, ignore_errors=True)


def move_aside(path: Path, steps: Steps, step: str) -> Path:
    """Rename a damaged path to `NAME.broken.<UTC>`; return the new path."""
    target = _broken_name(path)
    with steps.at(step):
        path.rename(target)
    return target


def move_contents_aside(path: Path, keep: str, steps: Steps, step: str) -> Path:
    """Move what a directory that cannot be renamed has, but `keep`, into `store.broken.<UTC>`."""
    target = _broken_name(path / "store")
    target.mkdir()
    for entry in list(path.iterdir()):
        if entry.name != keep and BROKEN_MARK not in entry.name:
            with steps.at(step):
                entry.rename(target / entry.name)
    return target


def _broken_name(path: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    target = path.with_name(f"{path.name}{BROKEN_MARK}{stamp}")
    n = 1
    while target.exists():
        n += 1
        target = path.with_name(f"{path.name}{BROKEN_MARK}{stamp}-{n}")
    return target


# Measure the disk use of each store.

CATALOG = "catalog.sqlite3"


def bytes_by_store(data_dir: Path, chroma_dir: Path) -> dict[str, int]:
    """Return bytes on disk by store: `catalog`, `chroma`, folders, and `other`.

    Folders are those of the data directory; `other` counts its files. Files that come or go while
    it counts may be missed.
    """
    found: dict[str, int] = {}
    for entry in data_dir.iterdir() if data_dir.is_dir() else ():
        if entry == chroma_dir:
            continue
        catalog = entry.name.startswith(CATALOG)  # with the journal and shared memory of SQLite
        name = "catalog" if catalog else entry.name if entry.is_dir() else "other"
        found[name] = found.get(name, 0) + _bytes(entry)
    found["chroma"] = _bytes(chroma_dir)
    return dict(sorted(found.items()))


def _bytes(path: Path) -> int:
    total = 0
    with suppress(FileNotFoundError):
        if not path.is_dir():
            return path.stat().st_size
        for folder, _, names in os.walk(path):
            for name in names:
                with suppress(FileNotFoundError):
                    total += (Path(folder) / name).stat().st_size
    return total


# Files of earlier releases that nothing reads any more.

_ROWS = re.compile(r"(papers|public)-\d+")
_ROW_FILES = frozenset(
    {"rows.f32", "ids.i64", "header.json", "rows.f32.tmp", "ids.i64.tmp", "header.json.tmp"}
)


def delete_retired(data_dir: Path, steps: Steps) -> None:
    """Remove vectors that earlier releases kept in `exact/`, and nothing else.

    A directory that holds anything else stays.
    """
    folder = data_dir / "exact"
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in folder.iterdir():
        if _ROWS.fullmatch(path.name) and _only_rows(path):
            delete_tree(path, steps, "retired.remove")
    with suppress(OSError), steps.at("retired.remove"):
        folder.rmdir()  # fails when something else is in it


def _only_rows(path: Path) -> bool:
    plain = path.is_dir() and not path.is_symlink()
    return plain and {entry.name for entry in path.iterdir()} <= _ROW_FILES
