"""Write vectors: fingerprints, rows, counters and the change, atomically."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    ScalarSelect,
    Update,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from app.core.errors import FingerprintMismatch, InvalidInput
from app.core.ids import fingerprint8
from app.core.types import Fingerprint, FloatArray, Library
from app.storage.catalog.database import Database, SinceCommit
from app.storage.catalog.rows import Build, add_change, add_counts, unpack_ids, usable, vector_key
from app.storage.catalog.schema import (
    BUILD_SHIFT,
    IS_LIVE,
    OF_REVISION,
    builds,
    changes,
    chunks,
    documents,
    key_of,
    libraries,
    meta,
    meta_value,
    pieces,
    put,
    put_meta,
    rows_of,
    vectors,
)
from app.storage.files.durable import utc_now

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
    sql.execute(_of(library).values(live_build=build.number))


def insert_build(sql: Connection, library: Library, fingerprint: Fingerprint) -> Build:
    """Add a build without a role."""
    row = {
        "library": library.value,
        "fingerprint": json.dumps(asdict(fingerprint), sort_keys=True),
        "fingerprint8": fingerprint8(fingerprint),
        "created_at": utc_now(),
    }
    number = sql.execute(insert(builds).returning(builds.c.build), row).scalar_one()
    return Build(number, library, row["fingerprint8"], fingerprint)


def fingerprint_from(packed: str) -> Fingerprint:
    return Fingerprint(**json.loads(packed))


def _difference(held: Fingerprint, wanted: Fingerprint) -> str:
    """Return how a library's fingerprint differs, and the fix up to its command."""
    if held.embedding_model != wanted.embedding_model:
        return (
            f"holds vectors of {held.embedding_model!r} (fingerprint {fingerprint8(held)}), not of"
            f" {wanted.embedding_model!r} ({fingerprint8(wanted)}): set EMBEDDING_MODEL back, or"
            " run:"
        )
    now = asdict(wanted)
    parts = [
        f"{name} {before!r}, now it is {now[name]!r}"
        for name, before in asdict(held).items()
        if before != now[name]
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
    """Insert packed float16 vectors of live chunks into a build; return the live chunks.

    Vectors of the live build are counted and queued for its projections. Those of a staged build
    count when it takes over.

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
    found = rows_of(sql, _LIVE, "ids", list(by_id), of_build=number << BUILD_SHIFT)
    live = [row for row in found if row.library == library.value]
    if not live:
        return []
    ids = [row.chunk_id for row in live]
    put(sql, vectors, [{"key": vector_key(number, i), "vector": by_id[i]} for i in ids])
    if is_live:
        new: Counter[int] = Counter()
        for row in live:
            new[row.doc] += row.key is None
        sql.execute(_EMBED, [{"of": doc, "more": n} for doc, n in new.items()])
        add_counts(sql, library, 0, 0, new.total(), 0)
    if is_live or followed:
        add_change(sql, library, "vectors", 0, 0, ids)
    return ids


def _target(sql: Connection, library: Library, build: int | None) -> tuple[int, Fingerprint, bool]:
    """Return a writable build: number, fingerprint, whether it is live."""
    serving = select(libraries.c.live_build).where(libraries.c.library == library.value)
    live = sql.execute(serving).scalar()
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


# Find vectors that are unusable: of a wrong size, or not finite.

log = logging.getLogger(__name__)

_BATCH = 4_096


def unusable_vectors(database: Database) -> list[int]:
    """Return the keys of all such vectors; reads every vector of the catalog."""
    found: list[int] = []
    with database.read() as sql:
        for build, packed in sql.execute(_BUILDS).all():
            dimension = fingerprint_from(packed).dimension
            rows = sql.execute(select(vectors).where(_keys_of(build)))
            for batch in rows.partitions(_BATCH):
                good = usable([row.vector for row in batch], dimension)
                found += [row.key for row, fit in zip(batch, good, strict=True) if not fit]
    return found


def delete_unusable(database: Database, keys: Sequence[int]) -> None:
    """Take vectors out of the catalog, its counters and every projection.

    Their chunks are embedded again.
    """
    if not keys:
        return
    log.error(
        "%d vectors of the catalog cannot be used; their chunks are embedded again", len(keys)
    )
    with database.write("delete_vectors") as sql:
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


# Keep a library's builds of vectors: the live, the previous and the staged one.

REMOVE_BATCH = 5_000
"""Vectors removed, or copied, per transaction: writers wait for a few milliseconds."""

COUNTED = 5_000
"""Documents whose vectors are counted per transaction."""

Role = Literal["live", "previous", "staged"]

_BUILDS = select(builds.c.build, builds.c.fingerprint)
_STAGED = select(meta.c.value).where(meta.c.key == bindparam("staged_key")).scalar_subquery()
_HELD = (
    select(builds, libraries.c.live_build, libraries.c.previous_build, _STAGED.label("staged"))
    .outerjoin(libraries, libraries.c.library == builds.c.library)
    .where(builds.c.library == bindparam("of"))
)


class Builds:
    """Stages, fills, swaps and removes builds; thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held = SinceCommit(database, self._read)
        self._lock = threading.Lock()
        self._reached: dict[int, int] = {}
        """Per staged build the chunk up to which a scan found nothing pending."""

    def of(self, library: Library, role: Role) -> Build | None:
        """Return a library's build in a role; None when there is none."""
        return self._held(library).get(role)

    def numbered(self, library: Library, number: int) -> Build | None:
        """Return a library's build in any role by its number; None when it is gone."""
        held = self._held(library).values()
        return next((build for build in held if build.number == number), None)

    def _read(self, library: Library) -> Mapping[Role, Build]:
        return {
            role: Build(row.build, library, row.fingerprint8, fingerprint_from(row.fingerprint))
            for row in self._rows(library)
            for role, number in _roles(row).items()
            if number == row.build
        }

    def _rows(self, library: Library) -> Sequence[Row[*tuple[Any, ...]]]:
        asked = {"of": library.value, "staged_key": staged_key(library)}
        return self._database.rows(_HELD, asked)

    def pending(self, library: Library, build: int, limit: int) -> list[int]:
        """Return up to `limit` live chunks without a vector in a staged build, in order.

        Each scan begins where the last one found something, and goes over everything once more at
        the end, for restored documents.

        Raises:
            FingerprintMismatch: The build is not staged any more.
        """
        staged = self.of(library, "staged")
        if staged is None or staged.number != build:
            raise FingerprintMismatch(
                f"build {build} of library {library.value!r} is not being filled any more"
            )
        with self._lock:
            after = self._reached.get(build, 0)
        found = self._scan(library, build, after, limit)
        if not found and after:
            found = self._scan(library, build, 0, limit)
        with self._lock:
            self._reached[build] = found[0] - 1 if found else 0
        return found

    def _scan(self, library: Library, build: int, after: int, limit: int) -> list[int]:
        query = self._database.dialect.CHUNKS_WITHOUT_VECTOR
        asked = (library.value, build << BUILD_SHIFT, after, limit)
        return [row[0] for row in self._database.raw(query, asked)]

    def stage(self, library: Library, fingerprint: Fingerprint) -> Build:
        """Return the build to fill: begun before, the previous one, or a new one.

        The previous one if its vectors are of that kind. Any other build that is not live is
        removed. Vectors of a build that differs in chunker or analyzer alone are copied: the model
        makes the same ones again.
        """
        roles: tuple[Role, ...] = ("staged", "previous", "live")
        staged, previous, live = (self.of(library, role) for role in roles)
        if staged is not None and staged.fingerprint != fingerprint:
            self._delete_build(library, staged.number)
            staged = None
        if previous is not None and (staged is not None or previous.fingerprint != fingerprint):
            self._delete_build(library, previous.number)
            previous = None
        if staged is None:
            with self._database.write("stage") as sql:
                add_counts(sql, library, 0, 0, 0, 0)
                staged = previous or insert_build(sql, library, fingerprint)
                sql.execute(_of(library).values(previous_build=None))
                put_meta(sql, staged_key(library), str(staged.number))
        if live is not None and _same_model(live.fingerprint, fingerprint):
            self._copy(live.number, staged.number)
        return staged

    def _delete_build(self, library: Library, number: int) -> None:
        """Take a build out of its role, then remove its vectors, which a later call may finish."""
        with self._database.write("unstage") as sql:
            staged = (meta.c.key == staged_key(library)) & (meta.c.value == str(number))
            sql.execute(delete(meta).where(staged))
            previous = _of(library).where(libraries.c.previous_build == number)
            sql.execute(previous.values(previous_build=None))
        self.delete_unused(library)

    def delete_unused(self, library: Library) -> int:
        """Remove builds without a role, vectors first; return how many vectors went."""
        rows, removed = self._rows(library), 0
        kept = {number for row in rows for number in _roles(row).values()}
        for number in sorted({row.build for row in rows} - kept):
            some = select(vectors.c.key).where(_keys_of(number)).limit(REMOVE_BATCH)
            batch = 1
            while batch:
                with self._database.write("remove_vectors") as sql:
                    batch = sql.execute(delete(vectors).where(vectors.c.key.in_(some))).rowcount
                removed += batch
            with self._database.write("remove_build") as sql:
                sql.execute(delete(builds).where(builds.c.build == number))
        return removed

    def differing(self, library: Library, build: int) -> set[int]:
        """Return documents with another number of vectors in a build than in the live one.

        They are read a page at a time, so that no transaction is as long as the library is large.
        """
        doc, found, after = documents.c.doc, set[int](), 0
        page = select(doc).where(documents.c.library == library.value).order_by(doc)
        while True:
            rows = self._database.rows(page.where(doc > after).limit(COUNTED))
            if not rows:
                return found
            some = doc.between(rows[0].doc, rows[-1].doc) & (documents.c.library == library.value)
            differs = select(doc).where(some, documents.c.embedded != _in_build(build))
            found.update(row.doc for row in self._database.rows(differs))
            after = rows[-1].doc

    def _copy(self, source: int, target: int) -> None:
        shift = (target - source) << BUILD_SHIFT
        moved = (vectors.c.key + shift).label("moved")
        held = vectors.alias("held")
        missing = ~exists().where(held.c.key == moved)
        after = source << BUILD_SHIFT
        while True:
            some = select(vectors.c.key).where(_keys_of(source), vectors.c.key > after)
            with self._database.write("copy_vectors") as sql:
                keys = sql.execute(some.order_by(vectors.c.key).limit(REMOVE_BATCH)).scalars().all()
                if not keys:
                    return
                batch = select(moved, vectors.c.vector).where(
                    vectors.c.key.between(keys[0], keys[-1]), missing
                )
                sql.execute(insert(vectors).from_select(["key", "vector"], batch))
            after = keys[-1]

    def delete_others(self, library: Library) -> int:
        """Delete the previous and the staged build; return how many vectors went."""
        with self._database.write("unstage") as sql:
            sql.execute(delete(meta).where(meta.c.key == staged_key(library)))
            sql.execute(_of(library).values(previous_build=None))
        return self.delete_unused(library)


def make_live(
    sql: Connection, library: Library, build: int, recounted: Collection[int], since: int
) -> None:
    """Make a staged build live and the live one previous; counters follow.

    Args:
        sql: A transaction of the catalog.
        library: Whose build.
        build: The staged one.
        recounted: Documents whose count differs, as `Builds.differing` found them.
        since: The last change that was there before they were asked for.
    """
    logged = select(changes.c.doc, changes.c.ids).where(
        changes.c.library == library.value, changes.c.seq > since
    )
    docs, ids = set(recounted), list[int]()
    for doc, packed in sql.execute(logged):
        docs.add(doc)
        ids += unpack_ids(packed)
    for some in pieces(ids):
        docs.update(sql.execute(select(chunks.c.doc).where(chunks.c.chunk_id.in_(some))).scalars())
    more = 0
    for some in pieces(sorted(docs)):
        of = documents.c.doc.in_(some)
        live = select(func.coalesce(func.sum(documents.c.embedded), 0)).where(
            of, documents.c.library == library.value, documents.c.state == "live"
        )
        more -= sql.execute(live).scalar_one()
        sql.execute(update(documents).where(of).values(embedded=_in_build(build)))
        more += sql.execute(live).scalar_one()
    now = {"previous_build": libraries.c.live_build, "live_build": build}
    sql.execute(_of(library).values(now | {"embedded": libraries.c.embedded + more}))
    sql.execute(delete(meta).where(meta.c.key == staged_key(library)))


def _in_build(build: int) -> ScalarSelect[int]:
    """Return how many chunks of a document have a vector in a build."""
    found = select(func.count()).select_from(chunks.join(vectors, vectors.c.key == key_of(build)))
    return found.where(OF_REVISION).correlate(documents).scalar_subquery()


def _of(library: Library) -> Update:
    return update(libraries).where(libraries.c.library == library.value)


def _keys_of(build: int) -> ColumnElement[bool]:
    return and_(vectors.c.key >= build << BUILD_SHIFT, vectors.c.key < (build + 1) << BUILD_SHIFT)


def _roles(row: Row[*tuple[Any, ...]]) -> dict[Role, int]:
    """Return the number of the build in each role, by any row of a library; 0 or None for none."""
    staged = int(row.staged or 0)
    return {"live": row.live_build, "previous": row.previous_build, "staged": staged}


def _same_model(one: Fingerprint, other: Fingerprint) -> bool:
    fields = ("embedding_model", "model_digest", "dimension", "query_prefix", "passage_prefix")
    return all(getattr(one, name) == getattr(other, name) for name in fields)
