"""Measure the disk use of each store."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

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
