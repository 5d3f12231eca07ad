"""Write an index with a checksum, by rename, and refuse one that does not fit it.

faiss loads a file with a flipped byte without a word. So the whole file is summed before faiss
reads any of it.
"""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path
from typing import BinaryIO

from app.core.errors import IndexDamaged
from app.index.dense.faiss.lists import VectorLists
from app.index.files.durable import delete_file, disk_errors, sync_directory
from app.index.files.steps import Steps

_MAGIC = b"documind vectors 1\n"
_GENERATION = struct.Struct("<Q")
_DIGEST_BYTES = 16
_PIECE = 1 << 20


def write_lists(path: Path, lists: VectorLists, generation: int, steps: Steps) -> None:
    """Write `lists` and a number to `path`: readers see the old file or the new one.

    Raises:
        DiskFull: No space; the old file stays.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        with disk_errors(path):
            with temporary.open("wb") as file:
                _write(file, lists, generation)
                with steps.at("faiss.fsync"):
                    os.fsync(file.fileno())
            with steps.at("faiss.rename"):
                temporary.replace(path)
            sync_directory(path.parent, steps, "faiss.fsync_directory")
    except Exception:
        delete_file(temporary, steps, "faiss.discard")
        raise


def _write(file: BinaryIO, lists: VectorLists, generation: int) -> None:
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    failed: list[OSError] = []

    def put(content: bytes) -> int:
        digest.update(content)
        try:
            return file.write(content)
        except OSError as exc:
            failed.append(exc)
            raise

    put(_MAGIC + _GENERATION.pack(generation))
    try:
        lists.write(put)
    except RuntimeError:  # faiss does not say what its writer raised
        if failed:
            raise failed[0] from None
        raise
    file.write(digest.digest())
    file.flush()


def read_lists(path: Path) -> tuple[VectorLists, int]:
    """Return the lists of a file and its number.

    Raises:
        IndexDamaged: A byte of it is not what was written.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size - _DIGEST_BYTES
        if size < len(_MAGIC) + _GENERATION.size or not _fits(file, size):
            raise IndexDamaged(
                f"{path.name!r} of the vector store is damaged: its checksum is wrong"
            )
        file.seek(len(_MAGIC))
        (generation,) = _GENERATION.unpack(file.read(_GENERATION.size))
        return VectorLists.read(file.read), int(generation)


def _fits(file: BinaryIO, size: int) -> bool:
    """Return whether the first `size` bytes are ours and have the digest behind them."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    first, left = b"", size
    while left and (piece := file.read(min(_PIECE, left))):
        first = first or piece
        digest.update(piece)
        left -= len(piece)
    return first.startswith(_MAGIC) and file.read() == digest.digest()
