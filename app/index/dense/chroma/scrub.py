"""Zero what chromadb writes of memory it never used.

A new local segment is written at its full capacity, 100 elements and more, before it has one. The rest is memory as the process
left it, not zeros: in one of three trials of `evaluation/gone` it held the vector of a document that had just been purged.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from pathlib import Path

from app.index.dense.chroma.hnsw_files import HEADER
from app.index.files.durable import disk_errors
from app.index.files.steps import Steps

_BLOCK_BYTES = 1 << 20


def scrub_collection(chroma: Path, collection: str, steps: Steps) -> int:
    """Overwrite the unused part of a collection's segment files; return how many bytes were not zero blocks.

    Nobody may write to the collection meanwhile. Elements that are only in memory yet are written over the zeros later.

    Raises:
        DiskFull: The system refused to write.
    """
    return sum(_scrub_tail(path, used, steps) for segment in _segments(chroma, collection) for path, used in _used(segment))


def _segments(chroma: Path, collection: str) -> list[Path]:
    connection = sqlite3.connect(f"file:{chroma / 'chroma.sqlite3'}?mode=ro", uri=True)
    try:
        rows = connection.execute(
            "SELECT s.id FROM segments s JOIN collections c ON c.id = s.collection WHERE s.scope = 'VECTOR' AND c.name = ?",
            (collection,),
        ).fetchall()
    except sqlite3.DatabaseError:  # not there, or of another release: the probe says what is wrong with it
        return []
    finally:
        connection.close()
    return [chroma / str(row[0]) for row in rows]


def _used(segment: Path) -> list[tuple[Path, int]]:
    """Return each file of fixed-size records with the bytes that elements take."""
    header = segment / "header.bin"
    try:
        version, _, capacity, elements, size, *_ = HEADER.unpack_from(header.read_bytes())
    except (OSError, struct.error):
        return []
    if version != 1 or elements > capacity or not 0 < size < _BLOCK_BYTES:
        return []
    return [(segment / "data_level0.bin", elements * size), (segment / "length.bin", elements * 4)]


def _scrub_tail(path: Path, used: int, steps: Steps) -> int:
    if not path.exists() or path.stat().st_size <= used:
        return 0
    overwritten = 0
    with disk_errors(path), path.open("r+b") as file:
        file.seek(used)
        while block := file.read(_BLOCK_BYTES):
            if any(block):
                file.seek(-len(block), os.SEEK_CUR)
                file.write(bytes(len(block)))
                overwritten += len(block)
        if overwritten:
            file.flush()
            with steps.at("chroma.scrub"):
                os.fsync(file.fileno())
    return overwritten
