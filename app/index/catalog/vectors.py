"""Write vectors: fingerprints, rows, counters and the change, atomically."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
from sqlalchemy import BigInteger, Connection, bindparam, delete, insert, select, update

from app.core.errors import FingerprintMismatch, InvalidInput
from app.core.ids import fingerprint8
from app.core.types import Fingerprint, FloatArray, Library
from app.index.catalog.bookkeeping import add_change, add_counts
from app.index.catalog.rows import vector_key
from app.index.catalog.schema import BUILD_SHIFT, builds, chunks, documents, libraries, vectors
from app.index.catalog.statements import IS_LIVE, OF_REVISION, meta_value, pieces, put
from app.index.files.durable import utc_now

_LIVE = (
    # The library is not asked for: with it SQLite would begin at all documents of the library.
    select(chunks.c.chunk_id, chunks.c.doc, documents.c.library, vectors.c.key)
    .join(documents, IS_LIVE)
    .outerjoin(
        vectors, vectors.c.key == bindparam("of_build", type_=BigInteger) + chunks.c.chunk_id
    )
    .where(chunks.c.chunk_id.in_(bindparam("ids", expanding=True)))
)
_OWNER = (
    select(builds.c.library, libraries.c.live_build, documents.c.doc, documents.c.state)
    .join(libraries, libraries.c.library == builds.c.library)
    .join(chunks, chunks.c.chunk_id == bindparam("of_chunk"))
    .join(documents, OF_REVISION)
    .where(builds.c.build == bindparam("of_build"))
)
_EMBED = (
    update(documents)
    .where(documents.c.doc == bindparam("of"))
    .values(embedded=documents.c.embedded + bindparam("more"))
)


def staged_key(library: Library) -> str:
    """Return under which key of `meta` the number of a library's staged build is kept."""
    return f"staged_build/{library.value}"


def claim_fingerprint(sql: Connection, library: Library, fingerprint: Fingerprint) -> None:
    """Make `fingerprint` the library's, unless it holds vectors of another.

    Raises:
        FingerprintMismatch: It does; the message names the cure.
    """
    held = (
        select(builds.c.fingerprint, libraries.c.embedded)
        .join(libraries, libraries.c.live_build == builds.c.build)
        .where(libraries.c.library == library.value)
    )
    row = sql.execute(held).first()
    if row is not None:
        before = fingerprint_from(row.fingerprint)
        if before == fingerprint:
            return
        if row.embedded:
            raise FingerprintMismatch(
                f"library {library.value!r} {_difference(before, fingerprint)} documind reembed"
                f" --library {library.value}"
            )
    add_counts(sql, library, 0, 0, 0, 0)
    build = insert_build(sql, library, fingerprint)
    sql.execute(
        update(libraries).where(libraries.c.library == library.value).values(live_build=build)
    )


def insert_build(sql: Connection, library: Library, fingerprint: Fingerprint) -> int:
    """Add a build without a role and return its number."""
    row = {
        "library": library.value,
        "fingerprint": json.dumps(asdict(fingerprint), sort_keys=True),
        "fingerprint8": fingerprint8(fingerprint),
        "created_at": utc_now(),
    }
    return int(sql.execute(insert(builds).returning(builds.c.build), row).scalar_one())


def fingerprint_from(packed: str) -> Fingerprint:
    """Return the fingerprint that a build keeps as JSON."""
    return Fingerprint(**json.loads(packed))


def _difference(held: Fingerprint, wanted: Fingerprint) -> str:
    """Return how a library's fingerprint differs, and the fix up to its command."""
    if held.embedding_model != wanted.embedding_model:
        return (
            f"holds vectors of {held.embedding_model!r} (fingerprint {fingerprint8(held)}), not of"
            f" {wanted.embedding_model!r} ({fingerprint8(wanted)}): set EMBEDDING_MODEL back, or"
            " run:"
        )
    before, now = asdict(held), asdict(wanted)
    parts = [
        f"{name} {before[name]!r}, now it is {now[name]!r}"
        for name in before
        if before[name] != now[name]
    ]
    return (
        f"was made with {'; '.join(parts)}: what it has serves on, new documents are found by"
        " words until you run:"
    )


def store_vectors(
    sql: Connection,
    library: Library,
    by_id: Mapping[int, bytes],
    build: int | None = None,
    *,
    followed: bool = True,
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
        FingerprintMismatch: No fingerprint yet, another dimension, or a build that takes no vectors
            any more.
    """
    number, made_with, is_live = _target(sql, library, build)
    dimension = len(next(iter(by_id.values()))) // 2
    if dimension != made_with.dimension:
        raise FingerprintMismatch(
            f"library {library.value!r} holds vectors of {made_with.embedding_model!r} with"
            f" {made_with.dimension} dimensions,"
            f" not {dimension}: use that model, or run: documind reembed --library {library.value}"
        )
    asked = {"of_build": number << BUILD_SHIFT}
    found = (
        row for ids in pieces(list(by_id)) for row in sql.execute(_LIVE, {"ids": ids, **asked})
    )
    live = [row for row in found if row.library == library.value]
    if not live:
        return []
    rows = [
        {"key": vector_key(number, row.chunk_id), "vector": by_id[row.chunk_id]} for row in live
    ]
    put(sql, vectors, rows)
    ids = [row.chunk_id for row in live]
    if is_live:
        new: Counter[int] = Counter()
        for row in live:
            new[row.doc] += row.key is None
        sql.execute(_EMBED, [{"of": doc, "more": n} for doc, n in new.items()])
        add_counts(sql, library, 0, 0, new.total(), 0)
    if is_live or followed:
        add_change(sql, library, "vectors", 0, 0, ids)
    return ids


def delete_vectors(sql: Connection, keys: Sequence[int]) -> None:
    """Remove unusable vectors everywhere, so that their chunks are embedded again.

    Args:
        sql: A transaction of the catalog.
        keys: Of `vectors`.
    """
    for key in keys:
        build, chunk_id = key >> BUILD_SHIFT, key & ((1 << BUILD_SHIFT) - 1)
        gone = sql.execute(delete(vectors).where(vectors.c.key == key)).rowcount
        row = sql.execute(_OWNER, {"of_chunk": chunk_id, "of_build": build}).first()
        if row is None or not gone:
            continue
        library = Library(row.library)
        if build == row.live_build and row.state == "live":
            sql.execute(_EMBED, {"of": row.doc, "more": -1})
            add_counts(sql, library, 0, 0, -1, 0)
        add_change(sql, library, "vectors", 0, 0, [chunk_id])


def _target(sql: Connection, library: Library, build: int | None) -> tuple[int, Fingerprint, bool]:
    """Return a writable build: number, fingerprint, whether it is live."""
    live = sql.execute(
        select(libraries.c.live_build).where(libraries.c.library == library.value)
    ).scalar()
    if live is None:
        raise FingerprintMismatch(
            f"library {library.value!r} has no fingerprint yet: claim it before writing vectors"
        )
    number = live if build is None else build
    if number == live or str(number) == meta_value(sql, staged_key(library)):
        packed = sql.execute(select(builds.c.fingerprint).where(builds.c.build == number)).scalar()
        if packed is not None:
            return number, fingerprint_from(packed), number == live
    raise FingerprintMismatch(
        f"library {library.value!r} was re-embedded while these vectors were made: they are not"
        " kept"
    )


def checked_rows(vectors: FloatArray, n: int) -> FloatArray:
    """Return rows `[n, dim]` of finite vectors of L2 norm 1.

    Raises:
        InvalidInput: Not one row per chunk, not finite, or not of norm 1.
    """
    rows = np.asarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or len(rows) != n:
        raise InvalidInput(f"{n} chunks need as many rows; got an array of shape {rows.shape}")
    if n and not np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-2):  # NaN fails too
        raise InvalidInput(
            "vectors must be finite and of L2 norm 1; normalise them with"
            " app.core.vectors.l2_normalise"
        )
    return rows
