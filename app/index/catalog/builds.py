"""Keep a library's builds of vectors: the live, the previous and the staged one."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Update,
    and_,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from app.core.errors import FingerprintMismatch
from app.core.types import Fingerprint, Library
from app.index.catalog.bookkeeping import add_counts
from app.index.catalog.database import Database
from app.index.catalog.schema import (
    BUILD_SHIFT,
    builds,
    chunks,
    documents,
    libraries,
    meta,
    vectors,
)
from app.index.catalog.since_commit import SinceCommit
from app.index.catalog.statements import key_of, meta_value, put_meta
from app.index.catalog.vectors import fingerprint_from, insert_build, staged_key

REMOVE_BATCH = 5_000
"""Vectors removed, or copied, per transaction: writers wait for a few milliseconds."""

_BUILDS = select(builds.c.build, builds.c.fingerprint)

Role = Literal["live", "previous", "staged"]


@dataclass(frozen=True, slots=True)
class HeldBuild:
    """A build with what its vectors were made with."""

    number: int
    fingerprint: Fingerprint


class Builds:
    """Stages, fills, swaps and removes builds; thread-safe."""

    def __init__(self, database: Database) -> None:
        """Work on `database`."""
        self._database = database
        self._held = SinceCommit(database, self._read)
        self._lock = threading.Lock()
        self._reached: dict[int, int] = {}
        """Per staged build the chunk up to which a scan found nothing pending."""

    def of(self, library: Library, role: Role) -> HeldBuild | None:
        """Return a library's build in a role; None when there is none."""
        return self._held(library).get(role)

    def _read(self, library: Library) -> Mapping[Role, HeldBuild]:
        with self._database.read() as sql:
            numbers = _roles(sql, library)
            packed = dict(sql.execute(_BUILDS.where(builds.c.library == library.value)).all())
        return {
            role: HeldBuild(number, fingerprint_from(packed[number]))
            for role, number in numbers.items()
            if number in packed
        }

    def remark(self, build: int, text: str) -> None:
        """Keep what must be said of a build while it serves."""
        with self._database.write("meta") as sql:
            put_meta(sql, f"build_remark/{build}", text)

    def remark_of(self, build: int) -> str:
        """Return what must be said of a build; empty for nothing."""
        with self._database.read() as sql:
            return meta_value(sql, f"build_remark/{build}") or ""

    def live_number(self, library: Library) -> int | None:
        """Return the live build's number; None before the first vector."""
        live = self.of(library, "live")
        return live.number if live else None

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
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                self._database.dialect.CHUNKS_WITHOUT_VECTOR,
                (library.value, build << BUILD_SHIFT, after, limit),
            ).fetchall()
        return [row[0] for row in rows]

    def stage(self, library: Library, fingerprint: Fingerprint) -> HeldBuild:
        """Return the build to fill: begun before, the previous one, or a new one.

        The previous one if its vectors are of that kind. Any other build that is not live is
        removed. Vectors of a build that differs in chunker or analyzer alone are copied: the model
        makes the same ones again.
        """
        staged, previous, live = (
            self.of(library, "staged"),
            self.of(library, "previous"),
            self.of(library, "live"),
        )
        if staged is not None and staged.fingerprint != fingerprint:
            self._delete_build(library, staged.number)
            staged = None
        if previous is not None and (staged is not None or previous.fingerprint != fingerprint):
            self._delete_build(library, previous.number)
            previous = None
        if staged is None:
            with self._database.write("stage") as sql:
                add_counts(sql, library, 0, 0, 0, 0)
                number = previous.number if previous else insert_build(sql, library, fingerprint)
                sql.execute(_of(library).values(previous_build=None))
                put_meta(sql, staged_key(library), str(number))
            staged = HeldBuild(number, fingerprint)
        if live is not None and _same_model(live.fingerprint, fingerprint):
            self._copy(live.number, staged.number)
        return staged

    def _delete_build(self, library: Library, number: int) -> None:
        """Take a build out of its role, then remove its vectors in batches.

        A later call finishes an interrupted removal.
        """
        with self._database.write("unstage") as sql:
            sql.execute(
                delete(meta).where(meta.c.key == staged_key(library), meta.c.value == str(number))
            )
            sql.execute(
                _of(library).where(libraries.c.previous_build == number).values(previous_build=None)
            )
        self.delete_unused(library)

    def delete_unused(self, library: Library) -> int:
        """Remove builds without a role, vectors first; return how many vectors went."""
        with self._database.read() as sql:
            kept = _roles(sql, library).values()
            held = (
                sql.execute(select(builds.c.build).where(builds.c.library == library.value))
                .scalars()
                .all()
            )
        removed = 0
        for number in sorted(set(held) - set(kept)):
            while batch := self._delete_batch(number):
                removed += batch
            with self._database.write("remove_build") as sql:
                sql.execute(delete(builds).where(builds.c.build == number))
        return removed

    def _delete_batch(self, number: int) -> int:
        some = select(vectors.c.key).where(_keys_of(number)).limit(REMOVE_BATCH)
        with self._database.write("remove_vectors") as sql:
            return sql.execute(delete(vectors).where(vectors.c.key.in_(some))).rowcount

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


def make_live(sql: Connection, library: Library, build: int) -> None:
    """Make a staged build live and the live one previous; counters follow."""
    has_vector = vectors.c.key == key_of(build)
    found = (
        select(func.count())
        .select_from(chunks.join(vectors, has_vector))
        .where(chunks.c.doc == documents.c.doc, chunks.c.revision == documents.c.revision)
    )
    sql.execute(
        update(documents)
        .where(documents.c.library == library.value)
        .values(embedded=found.scalar_subquery())
    )
    live = (documents.c.library == library.value) & (documents.c.state == "live")
    embedded = (
        select(func.coalesce(func.sum(documents.c.embedded), 0)).where(live).scalar_subquery()
    )
    now = {"previous_build": libraries.c.live_build, "live_build": build, "embedded": embedded}
    sql.execute(_of(library).values(now))
    sql.execute(delete(meta).where(meta.c.key == staged_key(library)))


def _of(library: Library) -> Update:
    return update(libraries).where(libraries.c.library == library.value)


def _keys_of(build: int) -> ColumnElement[bool]:
    return and_(vectors.c.key >= build << BUILD_SHIFT, vectors.c.key < (build + 1) << BUILD_SHIFT)


def _roles(sql: Connection, library: Library) -> dict[Role, int]:
    held = select(libraries.c.live_build, libraries.c.previous_build).where(
        libraries.c.library == library.value
    )
    row = sql.execute(held).first()
    if row is None:
        return {}
    staged = meta_value(sql, staged_key(library))
    found: dict[Role, int | None] = {
        "live": row[0],
        "previous": row[1],
        "staged": int(staged) if staged else None,
    }
    return {role: number for role, number in found.items() if number is not None}


def _same_model(one: Fingerprint, other: Fingerprint) -> bool:
    fields = ("embedding_model", "model_digest", "dimension", "query_prefix", "passage_prefix")
    return all(getattr(one, name) == getattr(other, name) for name in fields)
