"""Exact neighbours over the catalog's own vectors, with and without a filter."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.core.types import FloatArray
from app.storage.catalog.schema import BUILD_SHIFT
from evaluation.benchmarks.vectors.corpus import HalfArray

IdArray = npt.NDArray[np.int64]

FILTERED_YEARS = ((0.1, 2010), (0.01, 2011), (0.001, 2012))
"""Shares of the documents, and the years that they have."""

YEARS = (
    "CASE WHEN doc % 10 = 1 THEN 2010 WHEN doc % 100 = 2 THEN 2011 WHEN doc % 1000 = 3 THEN"
    " 2012 ELSE 1990 END"
)
"""A document's year, as SQL."""

_BLOCK = 50_000


def rows_of(path: Path) -> tuple[HalfArray, IdArray, IdArray]:
    """Return all vectors of a catalog, float16, their chunk ids and their years."""
    with closing(sqlite3.connect(path / "catalog.sqlite3")) as catalog:
        found = catalog.execute(
            "SELECT c.chunk_id, v.vector, d.year FROM vectors v"
            f" JOIN chunks c ON c.chunk_id = v.key & {(1 << BUILD_SHIFT) - 1}"
            " JOIN documents d ON d.doc = c.doc ORDER BY v.key"
        )
        ids, years, frames = [], [], []
        for chunk_id, frame, year in found:
            ids.append(chunk_id)
            years.append(year)
            frames.append(frame)
    rows = np.frombuffer(b"".join(frames), np.float16).reshape(len(ids), -1)
    return rows, np.array(ids, np.int64), np.array(years, np.int64)


def exact(
    queries: FloatArray,
    rows: HalfArray,
    ids: IdArray,
    mask: npt.NDArray[np.bool_] | None,
    k: int,
) -> list[list[int]]:
    """Return the ids of each question's k nearest rows among those of the mask."""
    where = np.arange(len(rows)) if mask is None else np.flatnonzero(mask)
    best = np.full((len(queries), k), -2.0, np.float32)
    which = np.zeros((len(queries), k), np.int64)
    for at in range(0, len(where), _BLOCK):
        some = where[at : at + _BLOCK]
        block = rows[some].astype(np.float32)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        cosines = np.hstack([best, queries @ block.T])
        found = np.hstack([which, np.broadcast_to(ids[some], (len(queries), len(some)))])
        top = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        best, which = np.take_along_axis(cosines, top, 1), np.take_along_axis(found, top, 1)
    return [list(map(int, row)) for row in which]
