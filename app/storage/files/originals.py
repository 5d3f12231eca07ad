"""Uploaded bytes, kept as `<sha256>.bin`; storing the same bytes twice is once."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from app.core.errors import IndexDamaged
from app.core.ids import content_sha256
from app.storage.files.durable import Steps, delete_file, disk_errors, sync_directory

SHA256 = re.compile(r"[0-9a-f]{64}")
SUFFIX = ".bin"
_PART = ".*.part"
"""What `store` calls a file that is not whole yet."""


def names_in(path: Path) -> set[str]:
    """Return the SHA-256 of every original in a directory, which need not be there."""
    if not path.is_dir():
        return set()
    return {
        file.stem
        for file in path.iterdir()
        if file.suffix == SUFFIX and SHA256.fullmatch(file.stem)
    }


class Originals:
    """The directory of original bytes; thread-safe."""

    def __init__(self, path: Path, steps: Steps) -> None:
        self._path = path
        self._steps = steps
        self.before_keeping: Callable[[Sequence[str]], None] | None = None
        """Told the SHA-256 of new files before they get their names, so that no crash leaves a
        file that no record names."""
        path.mkdir(parents=True, exist_ok=True)

    def away(self) -> tuple[str, ...]:
        """Return what is missing now: nothing of a directory."""
        return ()

    def path(self, sha256: str) -> Path:
        """Return where the bytes are or would be.

        Raises:
            IndexDamaged: Not 64 hex digits: a name from outside is never a path.
        """
        if not SHA256.fullmatch(sha256):
            raise IndexDamaged(
                f"an original is named by 64 hex digits, not {sha256!r:.100}: run documind fsck"
            )
        return self._path / f"{sha256}{SUFFIX}"

    def store(self, content: bytes | Path) -> str:
        """Keep the bytes durably and return their SHA-256 (64 hex digits); see `store_all`."""
        return self.store_all([content])[0]

    def store_all(self, contents: Sequence[bytes | Path]) -> list[str]:
        """Keep the bytes of several files durably and return the SHA-256 of each, in order.

        Raises:
            DiskFull: No space; nothing new stays.
        """
        names = [content_sha256(content) for content in contents]
        new = {
            sha256: content
            for sha256, content in zip(names, contents, strict=True)
            if self._size(sha256)
            != (len(content) if isinstance(content, bytes) else content.stat().st_size)
        }
        if new:
            self._keep(new)
        return names

    def _size(self, sha256: str) -> int | None:
        """Return how many bytes are kept under a name; None when none are."""
        target = self.path(sha256)
        return target.stat().st_size if target.exists() else None

    def _keep(self, new: Mapping[str, bytes | Path]) -> None:
        parts: dict[Path, Path] = {}
        try:
            for sha256, content in new.items():
                self._write(content, self.path(sha256), parts)
            if self.before_keeping is not None:
                self.before_keeping(list(new))
            for target, part in parts.items():
                with self._steps.at("originals.rename"):
                    part.replace(target)
            sync_directory(self._path, self._steps, "originals.fsync_directory")
        except BaseException:  # too many open files, for one: the caller is told that nothing stays
            for target, part in parts.items():
                if not delete_file(part, self._steps, "originals.discard"):
                    delete_file(target, self._steps, "originals.discard")
            raise

    def _write(self, content: bytes | Path, target: Path, parts: dict[Path, Path]) -> None:
        """Write a part durably, and say in `parts` which file it is to become."""
        with (
            disk_errors(target),
            tempfile.NamedTemporaryFile(
                dir=self._path, prefix=".", suffix=".part", delete=False
            ) as file,
        ):
            parts[target] = Path(file.name)
            if isinstance(content, bytes):
                file.write(content)
            else:
                with content.open("rb") as source:
                    shutil.copyfileobj(source, file, 1 << 20)
            file.flush()
            with self._steps.at("originals.fsync"):
                os.fsync(file.fileno())

    def delete(self, sha256: str) -> bool:
        """Remove bytes durably; return whether they were here."""
        if not SHA256.fullmatch(sha256):
            return False
        removed = delete_file(self.path(sha256), self._steps, "originals.unlink")
        if removed:
            sync_directory(self._path, self._steps, "originals.fsync_directory")
        return removed

    def names(self) -> set[str]:
        """Return the SHA-256 of every original that is kept."""
        return names_in(self._path)

    def delete_parts(self) -> int:
        """Remove parts of an interrupted `store`, while nothing else stores; return how many."""
        return sum(
            delete_file(path, self._steps, "originals.discard") for path in self._path.glob(_PART)
        )

    def delete_stale_copies(self) -> int:
        """Remove cached files that were deleted elsewhere; a directory is no cache: return 0."""
        return 0

    def exists(self, sha256: str) -> bool:
        """Return whether the bytes exist; False unless the name is 64 hex digits."""
        return bool(SHA256.fullmatch(sha256)) and self.path(sha256).exists()

    def damaged(self, sha256: str) -> bool:
        """Return whether the bytes are missing or differ from their name."""
        return not self.exists(sha256) or content_sha256(self.path(sha256)) != sha256
