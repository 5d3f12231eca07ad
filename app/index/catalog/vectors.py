"""Write vectors: fingerprints, rows, counters and the change, atomically."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection

from app.core.errors import FingerprintMismatch
from app.core.ids import fingerprint8
from app.core.types import Fingerprint, Library
from app.index.catalog.bookkeeping import add_change, add_counts
from app.index.catalog.rows import id_list, vector_key
from app.index.catalog.schema import BUILD_SHIFT
from app.index.files.durable import utc_now


def staged_key(library: Library) -> str:
    """Return under which key of `meta` the number of a library's staged build is kept."""
    return f"staged_build/{library.value}"


def claim_fingerprint(sql: Connection, library: Library, fingerprint: Fingerprint) -> None:
    """Make `fingerprint` the library's, unless it holds vectors of another.

    Raises:
        FingerprintMismatch: It does; the message names the cure.
    """
    row = sql.exec_driver_sql(
        "SELECT b.build, b.fingerprint, l.embedded FROM libraries l JOIN builds b ON b.build = l.live_build WHERE l.library = ?",
        (library.value,),
    ).first()
    if row is not None:
        held = Fingerprint(**json.loads(row[1]))
        if held == fingerprint:
            return
        if row[2]:
            raise FingerprintMismatch(
                f"library {library.value!r} {_difference(held, fingerprint)} documind reembed --library {library.value}"
            )
    add_counts(sql, library, 0, 0, 0, 0)
    build = sql.exec_driver_sql(
        "INSERT INTO builds (library, fingerprint, fingerprint8, created_at) VALUES (?, ?, ?, ?) RETURNING build",
        (library.value, json.dumps(asdict(fingerprint), sort_keys=True), fingerprint8(fingerprint), utc_now()),
    ).scalar_one()
    sql.exec_driver_sql("UPDATE libraries SET live_build = ? WHERE library = ?", (build, library.value))


def _difference(held: Fingerprint, wanted: Fingerprint) -> str:
    """Return how a library's fingerprint differs, and the fix up to its command."""
    if held.embedding_model != wanted.embedding_model:
        return (
            f"holds vectors of {held.embedding_model!r} (fingerprint {fingerprint8(held)}), not of"
            f" {wanted.embedding_model!r} ({fingerprint8(wanted)}): set EMBEDDING_MODEL back, or run:"
        )
    before, now = asdict(held), asdict(wanted)
    parts = [f"{name} {before[name]!r}, now it is {now[name]!r}" for name in before if before[name] != now[name]]
    return f"was made with {'; '.join(parts)}: what it has serves on, new documents are found by words until you run:"


@dataclass(frozen=True, slots=True)
class _Target:
    """A build that may be written to."""

    number: int
    dimension: int
    embedding_model: str
    live: bool


def store_vectors(
    sql: Connection, library: Library, by_id: Mapping[int, bytes], build: int | None = None, *, followed: bool = True
) -> list[int]:
    """Insert packed float16 vectors of live chunks; return the live chunks.

    Into a build. Vectors of the live build are counted and queued for its projections. Those of a
    staged build count when it takes over.

    Args:
        sql: A transaction of the catalog.
        library: Whose chunks.
        by_id: Rows by chunk id.
        build: Which build they were made for; None is the live one.
        followed: Queue a change for a staged build too, because its projections are there already.

    Raises:
        FingerprintMismatch: No fingerprint yet, another dimension, or a build that takes no vectors any more.
    """
    target = _target(sql, library, build)
    dimension = len(next(iter(by_id.values()))) // 2
    if dimension != target.dimension:
        raise FingerprintMismatch(
            f"library {library.value!r} holds vectors of {target.embedding_model!r} with {target.dimension} dimensions, not"
            f" {dimension}: use that model, or run: documind reembed --library {library.value}"
        )
    live = sql.exec_driver_sql(
        "SELECT c.chunk_id, c.doc, v.key IS NULL FROM json_each(?) k CROSS JOIN chunks c ON c.chunk_id = k.value"
        " CROSS JOIN documents d ON d.doc = c.doc AND d.revision = c.revision AND d.state = 'live' AND d.library = ?"
        " LEFT JOIN vectors v ON v.key = ? | c.chunk_id",
        (id_list(list(by_id)), library.value, target.number << BUILD_SHIFT),
    ).all()
    if not live:
        return []
    sql.exec_driver_sql(
        "INSERT INTO vectors (key, vector) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET vector = excluded.vector",
        [(vector_key(target.number, chunk_id), by_id[chunk_id]) for chunk_id, _, _ in live],
    )
    ids = [chunk_id for chunk_id, _, _ in live]
    if target.live:
        new: dict[int, int] = {}
        for _, doc, is_new in live:
            new[doc] = new.get(doc, 0) + is_new
        sql.exec_driver_sql("UPDATE documents SET embedded = embedded + ? WHERE doc = ?", [(n, doc) for doc, n in new.items()])
        add_counts(sql, library, 0, 0, sum(new.values()), 0)
    if target.live or followed:
        add_change(sql, library, "vectors", 0, 0, ids)
    return ids


def drop_vectors(sql: Connection, keys: Sequence[int]) -> None:
    """Remove unusable vectors everywhere, so that they are made again.

    Args:
        sql: A transaction of the catalog.
        keys: Of `vectors`.
    """
    for key in keys:
        build, chunk_id = key >> BUILD_SHIFT, key & ((1 << BUILD_SHIFT) - 1)
        gone = sql.exec_driver_sql("DELETE FROM vectors WHERE key = ?", (key,)).rowcount
        row = sql.exec_driver_sql(
            "SELECT b.library, c.doc, b.build = l.live_build AND d.state = 'live' FROM builds b"
            " JOIN libraries l ON l.library = b.library JOIN chunks c ON c.chunk_id = ?"
            " JOIN documents d ON d.doc = c.doc AND d.revision = c.revision WHERE b.build = ?",
            (chunk_id, build),
        ).first()
        if row is None or not gone:
            continue
        library = Library(row[0])
        if row[2]:
            sql.exec_driver_sql("UPDATE documents SET embedded = embedded - 1 WHERE doc = ?", (row[1],))
            add_counts(sql, library, 0, 0, -1, 0)
        add_change(sql, library, "vectors", 0, 0, [chunk_id])


def _target(sql: Connection, library: Library, build: int | None) -> _Target:
    rows = sql.exec_driver_sql(
        "SELECT b.build, b.fingerprint ->> 'dimension', b.fingerprint ->> 'embedding_model', b.build = l.live_build"
        " FROM libraries l JOIN builds b ON b.build = l.live_build"
        " OR b.build = (SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?) WHERE l.library = ?",
        (staged_key(library), library.value),
    ).all()
    for row in rows:
        if row[3] if build is None else row[0] == build:
            return _Target(row[0], row[1], row[2], bool(row[3]))
    if build is None:
        raise FingerprintMismatch(f"library {library.value!r} has no fingerprint yet: claim it before writing vectors")
    raise FingerprintMismatch(f"library {library.value!r} was re-embedded while these vectors were made: they are not kept")
