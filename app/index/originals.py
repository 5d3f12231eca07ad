"""Uploaded bytes, kept as `<sha256>.bin`; storing the same bytes twice is once."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from app.core.ids import content_sha256
from app.index.durable import disk_errors, remove_file, sync_directory
from app.index.steps import Steps

_NAME = re.compile(r"[0-9a-f]{64}\.bin")


class Originals:
    """The directory of original bytes; thread-safe."""

    def __init__(self, path: Path, steps: Steps) -> None:
        """Keep files in directory `path`."""
        self._path = path
        self._steps = steps
        path.mkdir(parents=True, exist_ok=True)

    def path(self, sha256: str) -> Path:
        """Return where the bytes are or would be."""
        return self._path / f"{sha256}.bin"

    def store(self, content: bytes | Path) -> str:
        """Keep the bytes durably and return their SHA-256 (64 hex digits).

        Raises:
            DiskFull: No space; nothing half-written stays.
        """
        sha256 = content_sha256(content)
        target = self.path(sha256)
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        if target.exists() and target.stat().st_size == size:
            return sha256
        with disk_errors(target), tempfile.NamedTemporaryFile(dir=self._path, prefix=".", suffix=".part", delete=False) as file:
            temporary = Path(file.name)
            try:
                if isinstance(content, bytes):
                    file.write(content)
                else:
                    with content.open("rb") as source:
                        shutil.copyfileobj(source, file, 1 << 20)
                file.flush()
                with self._steps.at("originals.fsync"):
                    os.fsync(file.fileno())
                with self._steps.at("originals.rename"):
                    temporary.replace(target)
            except BaseException:
                remove_file(temporary, self._steps, "originals.discard")
                raise
        try:
            sync_directory(self._path, self._steps, "originals.fsync_directory")
        except OSError:  # too many open files, for one: the caller is told that nothing was kept
            remove_file(target, self._steps, "originals.discard")
            raise
        return sha256

    def remove(self, sha256: str) -> bool:
        """Remove bytes durably; return whether they were here."""
        removed = remove_file(self.path(sha256), self._steps, "originals.unlink")
        if removed:
            sync_directory(self._path, self._steps, "originals.fsync_directory")
        return removed

    def orphans(self, referenced: Collection[str]) -> list[Path]:
        """Return half-written files and bytes that nothing refers to."""
        files = [path for path in self._path.iterdir() if path.is_file()]
        return [path for path in files if _NAME.fullmatch(path.name) is None or path.stem not in referenced]

    def remove_orphans(self, referenced: Collection[str]) -> int:
        """Remove half-written files and bytes that nothing refers to; return how many."""
        return sum(remove_file(path, self._steps, "originals.unlink_orphan") for path in self.orphans(referenced))

    def damaged(self, sha256: str) -> bool:
        """Whether the bytes are missing or are not what their name says."""
        path = self.path(sha256)
        if not path.exists():
            return True
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() != sha256
