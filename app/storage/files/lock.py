"""Lock a data directory for one process; the lock file names the owner. Imports nothing heavy."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from app.core.errors import Locked, not_permitted

LOCK_NAME = ".lock"
KEY_NAME = ".key"
"""The key of commands on this machine, for those who may read it."""

_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a data directory; `url` is empty for a command without a server.

    `lasting` is False for a command that serves only until it has done its work. `key` opens its
    server as an admin key does; empty for another user of the machine.
    """

    pid: int
    url: str
    lasting: bool = True
    key: str = field(default="", repr=False, compare=False)


class DirectoryLock:
    """Holds data directories until closed or until the process dies, however it dies."""

    def __init__(self, directories: list[Path], url: str = "") -> None:
        """Take every directory, creating those that are not there.

        Args:
            directories: DATA_DIR, and CHROMA_PERSIST_DIR when it is not inside.
            url: Where this process answers, for the message of the next one.

        Raises:
            Locked: Another process holds one; the message names its pid and address.
            StorageError: One cannot be written; the message says what to do.
        """
        self._handles: list[int] = []
        self.key = secrets.token_urlsafe(32)
        """Of this process; readable by this user alone."""
        self._url = url
        self._lasting = True
        try:
            for directory in outermost(directories):
                self._take(directory)
        except BaseException:
            self.close()
            raise

    def _take(self, directory: Path) -> None:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            handle = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as exc:
            raise not_permitted(exc) from exc
        try:
            _lock_patiently(handle)
        except OSError as exc:
            held_by = _read(handle)
            os.close(handle)
            who = f"process {held_by.pid}" if held_by else "another process"
            where = f" at {held_by.url}" if held_by and held_by.url else ""
            raise Locked(
                f"the data directory {str(directory)!r} is in use by {who}{where}: use that server,"
                " stop it, or choose another DATA_DIR"
            ) from exc
        self._handles.append(handle)
        try:
            self._write(handle)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            with os.fdopen(os.open(directory / KEY_NAME, flags, 0o600), "w") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(self.key)
        except OSError as exc:
            raise not_permitted(exc) from exc

    def announce(self, url: str, *, lasting: bool = True) -> None:
        """Publish this process's address once known, and whether it stays."""
        self._url, self._lasting = url, lasting
        for handle in self._handles:
            self._write(handle)

    def _write(self, handle: int) -> None:
        content = {"pid": os.getpid(), "url": self._url, "lasting": self._lasting}
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(content).encode(), 0)

    def close(self) -> None:
        """Let go; the file stays, an unlocked one means nothing."""
        for handle in self._handles:
            os.close(handle)
        self._handles = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lock_patiently(handle: int) -> None:
    # A process that only asks for the owner holds a shared lock for microseconds.
    for _ in range(_ATTEMPTS - 1):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def owner(data_dir: Path) -> Owner | None:
    """Return a data directory's owner; None if it has none.

    Raises:
        StorageError: Its lock cannot be read.
    """
    try:
        handle = os.open(data_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise not_permitted(exc) from exc
    try:
        try:
            # A shared lock, so that two who ask at once do not take each other for an owner.
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            found, key = _read(handle) or Owner(0, ""), ""
            with suppress(OSError):
                key = (data_dir / KEY_NAME).read_text("ascii")
            return replace(found, key=key)
        return None
    finally:
        os.close(handle)


def outermost(directories: list[Path]) -> list[Path]:
    """Return the directories that lie in no other of the list, resolved."""
    resolved = list(dict.fromkeys(path.resolve() for path in directories))
    return [path for path in resolved if not any(other in path.parents for other in resolved)]


def _read(handle: int) -> Owner | None:
    try:
        found = json.loads(os.pread(handle, 4096, 0))
        return Owner(int(found["pid"]), str(found["url"]), bool(found.get("lasting", True)))
    except (ValueError, KeyError, TypeError):
        return None
