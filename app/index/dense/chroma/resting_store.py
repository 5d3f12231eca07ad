"""A Chroma store at rest against the catalog: its database, its segments' files and the vectors in them, without opening it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.core.types import FloatArray
from app.index.catalog.rows import unpack_vectors, usable
from app.index.catalog.schema import BUILD_SHIFT
from app.index.dense.chroma.hnsw_files import Segment, SegmentDamage, read_segment
from app.index.dense.chroma.self_query import TOLERANCE
from app.index.files.durable import says_full

COMPARED = 20_000
"""Vectors per collection compared with the catalog's at start-up, spread over the chunks; fsck compares all."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a collection should hold: the vectors of a build, give or take those whose change is not known to be applied."""

    collection: str
    build: int
    dimension: int
    count: int
    uncertain: tuple[int, ...] = ()
    capped: bool = False
    """Whether there are more vectors than the collection may hold (MAX_DENSE_VECTORS); which ones it holds is not known then."""
    sample: tuple[int, ...] = ()
    """Chunks to ask for. Chosen before `count` and `uncertain` were read: what is written meanwhile must not be missed."""


def check_files(chroma: Path, *, alone: bool) -> tuple[list[str], dict[str, Segment]]:
    """Check the store's database and segments without opening it.

    Args:
        chroma: The store's directory.
        alone: Whether nobody has the store open. SQLite then takes back what a killed process had half written, which reading
            only would not let it, and which is no damage.

    Returns:
        What is wrong, and the sound segments by collection name.
    """
    database = chroma / "chroma.sqlite3"
    if not database.exists():
        return ["chroma.sqlite3 is missing"], {}
    problems: list[str] = []
    segments: dict[str, Segment] = {}
    try:
        connection = sqlite3.connect(f"file:{database}?mode={'rw' if alone else 'ro'}", uri=True)
        try:
            lines = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
            problems += [f"chroma.sqlite3: {line}" for line in lines if line != "ok"]
            rows = connection.execute(
                "SELECT s.id, c.name, m.seq_id FROM segments s JOIN collections c ON c.id = s.collection"
                " LEFT JOIN max_seq_id m ON m.segment_id = s.id WHERE s.scope = 'VECTOR'"
            ).fetchall()
        finally:
            connection.close()
    except sqlite3.DatabaseError as exc:
        if says_full(str(exc)):
            raise
        return [*problems, f"chroma.sqlite3: {exc}"], {}
    for segment_id, name, persisted in rows:
        try:
            segment = read_segment(chroma / segment_id)
        except SegmentDamage as exc:
            problems.append(str(exc))
            continue
        if segment is not None:
            segments[name] = segment
        elif persisted is not None:
            problems.append(f"{segment_id}: persisted up to {persisted}, but its index_metadata.pickle is missing")
    return problems, segments


def compare_vectors(segment: Segment, catalog: Path, expected: Expected, limit: int | None) -> list[str]:
    """Compare a segment's vectors with the catalog's; `limit` compares about so many, None all."""
    uncertain = set(expected.uncertain)
    step = 1 if limit is None or len(segment.ids) <= limit else len(segment.ids) // limit
    connection = sqlite3.connect(f"file:{catalog}?mode=ro", uri=True)
    try:
        for start in range(0, len(segment.ids), 10_000):
            stop = min(start + 10_000, len(segment.ids))
            held = {int(name): at for at, name in enumerate(segment.ids[start:stop]) if name and at % step == 0}
            rows = segment.vectors(start, stop)
            for chunk_id, row in catalog_rows(connection, expected, sorted(held.keys() - uncertain)):
                if float(np.abs(rows[held[chunk_id]] - row).max()) > TOLERANCE:
                    return [f"{expected.collection}: the vector of chunk {chunk_id} is not the catalog's"]
    finally:
        connection.close()
    return []


def catalog_rows(connection: sqlite3.Connection, expected: Expected, chunk_ids: list[int]) -> Iterator[tuple[int, FloatArray]]:
    """Yield the catalog's vectors of those chunks that are live: one in its grace is in the catalog, and not in the store."""
    rows = connection.execute(
        "SELECT v.key, v.vector FROM json_each(?) k CROSS JOIN vectors v ON v.key = ? | k.value"
        " CROSS JOIN chunks c ON c.chunk_id = k.value"
        " CROSS JOIN documents d ON d.doc = c.doc AND d.revision = c.revision AND d.state = 'live'",
        (json.dumps(chunk_ids), expected.build << BUILD_SHIFT),
    ).fetchall()
    fit = usable([row[1] for row in rows], expected.dimension)
    rows = [row for row, good in zip(rows, fit, strict=True) if good]
    vectors = unpack_vectors([row[1] for row in rows], expected.dimension)
    for (key, _), row in zip(rows, vectors, strict=True):
        yield key & ((1 << BUILD_SHIFT) - 1), row
