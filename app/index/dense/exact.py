"""Exact nearest neighbours: float32 rows in a memory-mapped file, with their codes and what filters ask of them in memory.

A directory holds `rows.f32` and `ids.i64`, both append-only, and `header.json`, which says how many rows count, their
checksums, which are dead and up to which change they are applied. The header is written after the rows are on disk: what is
beyond it after a crash is overwritten and replayed. Any other difference between the three means damage, and the rows are made
again from the catalog.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.core.types import Filters, FloatArray, Scored
from app.core.vectors import nearest
from app.index.catalog.facts import DocumentFacts, RowFacts
from app.index.catalog.rows import IdArray
from app.index.dense.codes import Codes
from app.index.dense.columns import Columns, Mask
from app.index.files.durable import disk_errors, remove_file, replace_file
from app.index.files.steps import Steps

GATHER_BELOW = 0.08
"""Share of rows under which copying the selected ones out is cheaper than scanning all (evaluation/benchmarks, 50,000 x 384)."""

MASKS_KEPT = 16
"""Filters whose masks are remembered until the rows change: a person asks several questions under one filter."""

COMPACT_ABOVE = 0.25
"""Share of dead rows at which the file is written anew."""


@dataclass(frozen=True, slots=True)
class _View:
    """One consistent state for readers."""

    rows: FloatArray
    codes: Codes
    ids: IdArray
    alive: Mask
    dead: int


class ExactIndex:
    """One build's rows; reads are concurrent, writes are the projector's."""

    def __init__(self, path: Path, dimension: int, steps: Steps) -> None:
        """Open the directory, or start empty when there is none or it is damaged (`seq` is 0 then)."""
        self.path = path
        self.dimension = dimension
        self._steps = steps
        self._lock = threading.RLock()
        path.mkdir(parents=True, exist_ok=True)
        self._columns = Columns()
        self._masks: dict[Filters, Mask] = {}
        self._reset()
        self._load()

    def _reset(self) -> None:
        self.seq = 0
        self._rows_crc = self._ids_crc = 0
        self._positions: dict[int, int] = {}
        self._view = _View(
            np.empty((0, self.dimension), np.float32), Codes.empty(self.dimension), np.empty(0, np.int64), np.empty(0, np.bool_), 0
        )
        self._columns = Columns()
        self._masks = {}

    @property
    def _row_bytes(self) -> int:
        return 4 * self.dimension

    def _load(self) -> None:
        try:
            header = json.loads((self.path / "header.json").read_bytes())
            n = int(header["rows"])
            if header["dimension"] != self.dimension:
                return
            ids_bytes = (self.path / "ids.i64").read_bytes()[: 8 * n]
            rows = self._map(n)
            rows_crc, ids_crc = zlib.crc32(rows.data) if n else 0, zlib.crc32(ids_bytes)
            if (rows_crc, ids_crc) != (header["rows_crc"], header["ids_crc"]):
                return
            if not np.isfinite(rows).all():
                return
            dead = [int(at) for at in header["dead"]]
            seq = int(header["seq"])
        except (OSError, ValueError, KeyError, TypeError):
            return  # absent, torn or of another shape: empty, hence rebuilt
        alive = np.ones(n, dtype=np.bool_)
        alive[dead] = False
        ids = np.frombuffer(ids_bytes, dtype="<i8").astype(np.int64)
        self._view = _View(rows, Codes.of(rows), ids, alive, len(dead))
        self._positions = {int(ids[at]): int(at) for at in np.flatnonzero(alive)}
        self._rows_crc, self._ids_crc, self.seq = rows_crc, ids_crc, seq

    def _map(self, n: int) -> FloatArray:
        if n == 0:
            return np.empty((0, self.dimension), np.float32)
        # A plain array on the same file: every piece taken of a memmap is a memmap, which costs several microseconds each.
        return np.asarray(np.memmap(self.path / "rows.f32", dtype="<f4", mode="r", shape=(n, self.dimension)))

    # --- read

    @property
    def count(self) -> int:
        """How many rows can be found."""
        return len(self._positions)

    def ids(self) -> list[int]:
        """Return the chunk ids of all rows that can be found."""
        with self._lock:
            return list(self._positions)

    def search(self, query: FloatArray, k: int, filters: Filters | None = None) -> list[Scored]:
        """Return up to k rows by cosine distance, ascending; exact, ties by chunk id."""
        with self._lock:
            view = self._view
            mask = self._mask(filters) if filters else None
        if mask is None:
            mask = view.alive if view.dead else None
        selected = len(view.ids) if mask is None else int(np.count_nonzero(mask))
        if selected == 0 or k < 1:
            return []
        if mask is not None and selected < GATHER_BELOW * len(view.ids):
            positions = np.flatnonzero(mask)
            best, distances = nearest(query, view.rows[positions], view.ids[positions], k)
            chosen = positions[best]
        else:
            about, slack = view.codes.distances(query)
            if mask is not None:
                about = np.where(mask, about, np.float32(np.inf))
            chosen, distances = nearest(query, view.rows, view.ids, min(k, selected), about, slack)
        return list(map(Scored, view.ids[chosen].tolist(), distances.tolist()))

    def _mask(self, filters: Filters) -> Mask:
        mask = self._masks.get(filters)
        if mask is None:
            mask = self._columns.mask(filters) & self._view.alive
            if len(self._masks) >= MASKS_KEPT:
                self._masks.pop(next(iter(self._masks)))
            self._masks[filters] = mask
        return mask

    def fetch(self, chunk_ids: Sequence[int]) -> dict[int, FloatArray]:
        """Return the rows `[dimension]` that are here."""
        with self._lock:
            view = self._view
            at = {chunk_id: self._positions[chunk_id] for chunk_id in chunk_ids if chunk_id in self._positions}
        return dict(zip(at, view.rows[list(at.values())], strict=True))

    # --- write

    def describe(self, documents: Sequence[DocumentFacts], rows: Sequence[RowFacts] | None = None) -> None:
        """Set what filters ask: of documents, and after opening of every row in file order."""
        with self._lock:
            self._columns.set_documents(documents)
            if rows is not None:
                self._columns.append(rows)
            self._masks = {}

    def file_ids(self) -> list[int]:
        """Return the chunk ids of all rows in file order, dead ones included."""
        with self._lock:
            return [int(chunk_id) for chunk_id in self._view.ids]

    def put(self, chunk_ids: Sequence[int], rows: FloatArray, facts: Sequence[RowFacts]) -> None:
        """Append rows; a chunk that was here is replaced. Findable at once, durable after `save`.

        Raises:
            DiskFull: No space; nothing was added.
        """
        block = np.ascontiguousarray(rows, dtype="<f4")
        packed_ids = np.asarray(chunk_ids, dtype="<i8")
        with self._lock:
            self.drop(chunk_ids)
            n = len(self._view.ids)
            self._append("rows.f32", n * self._row_bytes, block.tobytes())
            self._append("ids.i64", n * 8, packed_ids.tobytes())
            self._rows_crc = zlib.crc32(block.tobytes(), self._rows_crc)
            self._ids_crc = zlib.crc32(packed_ids.tobytes(), self._ids_crc)
            self._columns.append(facts)
            total = n + len(packed_ids)
            self._positions.update((int(chunk_id), n + i) for i, chunk_id in enumerate(packed_ids))
            self._view = _View(
                self._map(total),
                self._view.codes.plus(block),
                np.concatenate([self._view.ids, packed_ids.astype(np.int64)]),
                np.concatenate([self._view.alive, np.ones(len(packed_ids), np.bool_)]),
                self._view.dead,
            )
            self._masks = {}

    def _append(self, name: str, offset: int, data: bytes) -> None:
        path = self.path / name
        with disk_errors(path), path.open("r+b" if path.exists() else "w+b") as file:
            file.seek(offset)
            with self._steps.at("exact.append"):
                file.write(data)
                file.flush()

    def drop(self, chunk_ids: Sequence[int]) -> None:
        """Hide rows; unknown ids are fine."""
        with self._lock:
            gone = [self._positions.pop(chunk_id) for chunk_id in chunk_ids if chunk_id in self._positions]
            if gone:
                alive = self._view.alive.copy()
                alive[gone] = False
                self._view = _View(self._view.rows, self._view.codes, self._view.ids, alive, self._view.dead + len(gone))
                self._masks = {}

    def save(self, seq: int) -> None:
        """Make the present state durable, as applied up to change `seq`."""
        with self._lock:
            if self._view.dead > COMPACT_ABOVE * len(self._view.ids):
                self.compact()
            for name in ("rows.f32", "ids.i64"):
                path = self.path / name
                if path.exists():
                    with path.open("r+b") as file, disk_errors(path), self._steps.at("exact.fsync"):
                        os.fsync(file.fileno())
            self.seq = seq
            header = {
                "dimension": self.dimension,
                "rows": len(self._view.ids),
                "rows_crc": self._rows_crc,
                "ids_crc": self._ids_crc,
                "dead": np.flatnonzero(~self._view.alive).tolist(),
                "seq": seq,
            }
            replace_file(self.path / "header.json", json.dumps(header).encode(), self._steps, "exact")

    def compact(self) -> None:
        """Write the living rows anew, so that dead ones leave the disk; durable after the next `save`."""
        with self._lock:
            keep = np.flatnonzero(self._view.alive)
            rows, ids = np.array(self._view.rows[keep]), self._view.ids[keep]
            for name, data in (("rows.f32", rows.tobytes()), ("ids.i64", ids.astype("<i8").tobytes())):
                replace_file(self.path / name, data, self._steps, "exact")
            self._rows_crc, self._ids_crc = zlib.crc32(rows.tobytes()), zlib.crc32(ids.astype("<i8").tobytes())
            self._columns.take(keep)
            self._positions = {int(chunk_id): at for at, chunk_id in enumerate(ids)}
            self._view = _View(self._map(len(ids)), Codes.of(rows), ids, np.ones(len(ids), np.bool_), 0)
            self._masks = {}

    def clear(self) -> None:
        """Forget every row; durable after the next `save`."""
        with self._lock:
            self._reset()
            for name in ("rows.f32", "ids.i64"):  # new files, so that readers of the old mapping keep it
                remove_file(self.path / name, self._steps, "exact.unlink")
