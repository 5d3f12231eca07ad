"""Check tantivy's files by the checksums in their footers.

tantivy does not check them when it opens an index. Every file of a segment ends with a footer: JSON
with the CRC-32 of what comes before it, the JSON's length and a magic number, both little-endian
32-bit.

References:
    tantivy 0.25, src/directory/footer.rs (Footer::append_footer, FOOTER_MAGIC_NUMBER).
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path

CHECKED_AT_START_BYTES = 256 << 20
"""An index up to this size is checked at every start, which takes a fraction of a second; a
larger one by `documind fsck`."""

_TAIL = struct.Struct("<II")
_MAGIC = 1337
_BLOCK = 1 << 20
_PARTS = ("fast", "fieldnorm", "idx", "pos", "store", "term")
"""The files that every segment has."""


def damaged_files(index: Path, limit_bytes: int | None = None) -> list[str]:
    """Return faults in the files of an index's live segments; empty when sound.

    Args:
        index: The index's directory. One without a `meta.json` holds nothing.
        limit_bytes: Look at nothing when the files take more than this in all.
    """
    meta = index / "meta.json"
    if not meta.exists():
        return []
    try:
        segments = [
            str(segment["segment_id"]).replace("-", "")
            for segment in json.loads(meta.read_bytes())["segments"]
        ]
    except (ValueError, KeyError, TypeError) as exc:
        return [f"meta.json cannot be read: {exc!r:.100}"]
    problems: list[str] = []
    files: list[Path] = []
    for segment in segments:
        problems += [
            f"{segment}.{part} is missing"
            for part in _PARTS
            if not (index / f"{segment}.{part}").exists()
        ]
        files += sorted(index.glob(f"{segment}.*"))
    if limit_bytes is not None and sum(path.stat().st_size for path in files) > limit_bytes:
        return problems
    return problems + [
        f"{path.name} is not what was written" for path in files if not _intact(path)
    ]


def lost_files(index: Path) -> bool:
    """Return whether a live segment's file is missing or cut.

    A merge that removes old ones at that moment is no loss.
    """
    return _lacks_files(index) and _lacks_files(
        index
    )  # the second look reads what the merge has written


def _lacks_files(index: Path) -> bool:
    try:
        segments = json.loads((index / "meta.json").read_bytes())["segments"]
        names = [str(segment["segment_id"]).replace("-", "") for segment in segments]
        return not all(_ends(index / f"{name}.{part}") for name in names for part in _PARTS)
    except (OSError, ValueError, KeyError, TypeError):
        return True


def _ends(path: Path) -> bool:
    """Return whether a file ends like tantivy's files."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL.size))
        tail = file.read()
    return len(tail) == _TAIL.size and int(_TAIL.unpack(tail)[1]) == _MAGIC


def _intact(path: Path) -> bool:
    """Return whether a file's bytes match the checksum of its footer."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size < _TAIL.size:
            return False
        file.seek(size - _TAIL.size)
        length, magic = _TAIL.unpack(file.read(_TAIL.size))
        body = size - _TAIL.size - length
        if magic != _MAGIC or body < 0:
            return False
        file.seek(body)
        try:
            wanted = int(json.loads(file.read(length))["crc"])
        except (ValueError, KeyError, TypeError):
            return False
        file.seek(0)
        found = 0
        while body > 0:
            block = file.read(min(_BLOCK, body))
            if not block:
                return False
            found = zlib.crc32(block, found)
            body -= len(block)
    return found == wanted
