"""Append what changed since the last file: durable, and read back in order.

A record is a header (what, how many, bytes a row, checksum of the rest), a checksum of the header,
the ids and, for added vectors, their codes. A record that ends too early was being written when the
process was killed: it was never acknowledged and is cut off. Any other that does not fit its
checksum is damage.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np

from app.core.errors import IndexDamaged
from app.index.catalog.rows import IdArray
from app.index.dense.faiss.lists import CodeArray
from app.index.files.durable import disk_errors, sync_directory
from app.index.files.steps import Steps

Kind = Literal["add", "delete"]
_KINDS: tuple[Kind, ...] = ("add", "delete")
_HEADER = struct.Struct("<BxxxIII")
_CHECK = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """One change."""

    kind: Kind
    ids: IdArray
    codes: CodeArray
    """uint8 `[n, width]`; `[n, 0]` of a deletion."""


class Journal:
    """A file of records, open for appending. Not thread-safe: its owner writes in turn."""

    def __init__(self, path: Path, steps: Steps) -> None:
        """Use `path`; it is made by the first record."""
        self.path = path
        self._steps = steps
        self._file: BinaryIO | None = None
        self._end = 0
        self.rows = 0
        """How many ids the records have."""

    def replay(self) -> Iterator[JournalRecord]:
        """Yield every whole record, then cut off one that is not.

        Raises:
            IndexDamaged: A record does not fit its checksum.
        """
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            while (record := _read(file, self.path)) is not None:
                self._end = file.tell()
                self.rows += len(record.ids)
                yield record
        if self.path.stat().st_size > self._end:
            with self._steps.at("faiss.truncate"):
                os.truncate(self.path, self._end)

    def append(self, record: JournalRecord) -> None:
        """Write a record; it is on disk when this returns.

        Raises:
            DiskFull: No space; the records before are whole.
        """
        content = record.ids.tobytes() + record.codes.tobytes()
        header = _HEADER.pack(
            _KINDS.index(record.kind),
            len(record.ids),
            record.codes.shape[1],
            zlib.crc32(content),
        )
        content = header + _CHECK.pack(zlib.crc32(header)) + content
        try:
            with disk_errors(self.path), self._steps.at("faiss.append"):
                file = self._opened()
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except Exception:
            self.close()
            with suppress(OSError), self._steps.at("faiss.truncate"):
                os.truncate(self.path, self._end)
            raise
        self._end += len(content)
        self.rows += len(record.ids)

    def _opened(self) -> BinaryIO:
        if self._file is None:
            new = not self.path.exists()
            self._file = self.path.open("ab")
            if new:
                sync_directory(self.path.parent, self._steps, "faiss.fsync_directory")
        return self._file

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            file, self._file = self._file, None
            with suppress(OSError):
                file.close()


def _read(file: BinaryIO, path: Path) -> JournalRecord | None:
    """Return the next record; None at the end and where it ends too early."""
    head = file.read(_HEADER.size + _CHECK.size)
    if len(head) < _HEADER.size + _CHECK.size:
        return None
    header, (check,) = head[: _HEADER.size], _CHECK.unpack(head[_HEADER.size :])
    if zlib.crc32(header) != check:
        raise IndexDamaged(f"{path.name!r} of the vector store is damaged: its checksum is wrong")
    kind, n, width, content_check = _HEADER.unpack(header)
    content = file.read(n * (8 + width))
    if len(content) < n * (8 + width):
        return None
    if zlib.crc32(content) != content_check:
        raise IndexDamaged(f"{path.name!r} of the vector store is damaged: its checksum is wrong")
    ids = np.frombuffer(content, np.int64, n)
    codes = np.frombuffer(content, np.uint8, offset=8 * n).reshape(n, width)
    return JournalRecord(_KINDS[kind], ids, codes)
