"""Files that are on disk when the call returns: write, rename, remove, move aside."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from app.core.errors import DiskFull
from app.index.files.steps import Steps

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
    return any(
        words in message
        for words in ("No space left", "disk is full", "File too large", "disk I/O error")
    )


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
    """Move a directory's content, except `keep`, into `store.broken.<UTC>` inside it.

    For a directory that cannot be renamed itself.
    """
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
