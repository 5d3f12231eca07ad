"""Keep a library's builds of vectors: the live, the previous and the staged one."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from sqlalchemy import Connection

from app.core.errors import FingerprintMismatch
from app.core.ids import fingerprint8
from app.core.types import Fingerprint, Library
from app.index.catalog.bookkeeping import add_counts
from app.index.catalog.database import Database
from app.index.catalog.schema import BUILD_SHIFT
from app.index.catalog.since_commit import SinceCommit
from app.index.catalog.vectors import staged_key
from app.index.files.durable import utc_now

REMOVE_BATCH = 5_000
"""Vectors removed, or copied, per transaction: writers wait for a few milliseconds."""

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
        with self._database.read_raw() as cursor:
            numbers = _roles(cursor, library)
            packed = dict(cursor.execute("SELECT build, fingerprint FROM builds WHERE library = ?", (library.value,)).fetchall())
        return {
            role: HeldBuild(number, Fingerprint(**json.loads(packed[number])))
            for role, number in numbers.items()
            if number in packed
        }

    def live_number(self, library: Library) -> int | None:
        """Return the live build's number; None before the first vector."""
        live = self.of(library, "live")
        return live.number if live else None

    def pending(self, library: Library, build: int, limit: int) -> list[int]:
        """Return up to `limit` live chunks without a vector in a staged build, in order.

        Each scan begins where the last one found something, and goes over everything once more at the end, for restored documents.

        Raises:
            FingerprintMismatch: The build is not staged any more.
        """
        staged = self.of(library, "staged")
        if staged is None or staged.number != build:
            raise FingerprintMismatch(f"build {build} of library {library.value!r} is not being filled any more")
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
                "SELECT c.chunk_id FROM chunks c CROSS JOIN documents d ON d.doc = c.doc AND d.revision = c.revision"
                " AND d.state = 'live' AND d.library = ? LEFT JOIN vectors v ON v.key = ? | c.chunk_id"
                " WHERE c.chunk_id > ? AND v.key IS NULL ORDER BY c.chunk_id LIMIT ?",
                (library.value, build << BUILD_SHIFT, after, limit),
            ).fetchall()
        return [row[0] for row in rows]

    def stage(self, library: Library, fingerprint: Fingerprint) -> HeldBuild:
        """Return the build to fill: begun before, the previous one, or a new one.

        The previous one if its vectors are of that kind. Any other build that is not live is
        removed. Vectors of a build that differs in chunker or analyzer alone are copied: the model
        makes the same ones again.
        """
        staged, previous, live = self.of(library, "staged"), self.of(library, "previous"), self.of(library, "live")
        if staged is not None and staged.fingerprint != fingerprint:
            self._unset(library, staged.number)
            staged = None
        if previous is not None and (staged is not None or previous.fingerprint != fingerprint):
            self._unset(library, previous.number)
            previous = None
        if staged is None:
            with self._database.write("stage") as sql:
                add_counts(sql, library, 0, 0, 0, 0)
                number = previous.number if previous else _insert(sql, library, fingerprint)
                sql.exec_driver_sql("UPDATE libraries SET previous_build = NULL WHERE library = ?", (library.value,))
                sql.exec_driver_sql("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (staged_key(library), str(number)))
            staged = HeldBuild(number, fingerprint)
        if live is not None and _same_model(live.fingerprint, fingerprint):
            self._copy(live.number, staged.number)
        return staged

    def _unset(self, library: Library, number: int) -> None:
        """Take a build out of its role, then remove its vectors in batches.

        A later sweep finishes an interrupted removal.
        """
        with self._database.write("unstage") as sql:
            sql.exec_driver_sql("DELETE FROM meta WHERE key = ? AND value = ?", (staged_key(library), str(number)))
            sql.exec_driver_sql(
                "UPDATE libraries SET previous_build = NULL WHERE library = ? AND previous_build = ?", (library.value, number)
            )
        self.sweep(library)

    def sweep(self, library: Library) -> int:
        """Remove builds without a role, vectors first; return how many vectors went."""
        with self._database.read_raw() as cursor:
            kept = _roles(cursor, library).values()
            held = [row[0] for row in cursor.execute("SELECT build FROM builds WHERE library = ?", (library.value,))]
        removed = 0
        for number in sorted(set(held) - set(kept)):
            while batch := self._remove_batch(number):
                removed += batch
            with self._database.write("remove_build") as sql:
                sql.exec_driver_sql("DELETE FROM builds WHERE build = ?", (number,))
        return removed

    def _remove_batch(self, number: int) -> int:
        with self._database.write("remove_vectors") as sql:
            return sql.exec_driver_sql(
                "DELETE FROM vectors WHERE key IN (SELECT key FROM vectors WHERE key >= ? AND key < ? LIMIT ?)",
                (number << BUILD_SHIFT, (number + 1) << BUILD_SHIFT, REMOVE_BATCH),
            ).rowcount

    def _copy(self, source: int, target: int) -> None:
        after = 0
        shift = (target - source) << BUILD_SHIFT
        while True:
            with self._database.write("copy_vectors") as sql:
                keys = (
                    sql.exec_driver_sql(
                        "SELECT key FROM vectors WHERE key > ? AND key < ? ORDER BY key LIMIT ?",
                        (source << BUILD_SHIFT | after, (source + 1) << BUILD_SHIFT, REMOVE_BATCH),
                    )
                    .scalars()
                    .all()
                )
                if not keys:
                    return
                sql.exec_driver_sql(
                    "INSERT OR IGNORE INTO vectors (key, vector) SELECT key + ?, vector FROM vectors WHERE key BETWEEN ? AND ?",
                    (shift, keys[0], keys[-1]),
                )
            after = keys[-1] & ((1 << BUILD_SHIFT) - 1)

    def discard(self, library: Library) -> int:
        """Remove the previous and the staged build; return how many vectors went."""
        with self._database.write("unstage") as sql:
            sql.exec_driver_sql("DELETE FROM meta WHERE key = ?", (staged_key(library),))
            sql.exec_driver_sql("UPDATE libraries SET previous_build = NULL WHERE library = ?", (library.value,))
        return self.sweep(library)


def make_live(sql: Connection, library: Library, build: int) -> None:
    """Make a staged build live and the live one previous; counters follow."""
    sql.exec_driver_sql(
        "UPDATE documents SET embedded = (SELECT count(*) FROM chunks c CROSS JOIN vectors v ON v.key = ? | c.chunk_id"
        " WHERE c.doc = documents.doc AND c.revision = documents.revision) WHERE library = ?",
        (build << BUILD_SHIFT, library.value),
    )
    sql.exec_driver_sql(
        "UPDATE libraries SET previous_build = live_build, live_build = ?, embedded ="
        " (SELECT coalesce(sum(embedded), 0) FROM documents WHERE library = ? AND state = 'live') WHERE library = ?",
        (build, library.value, library.value),
    )
    sql.exec_driver_sql("DELETE FROM meta WHERE key = ?", (staged_key(library),))


def _insert(sql: Connection, library: Library, fingerprint: Fingerprint) -> int:
    return int(
        sql.exec_driver_sql(
            "INSERT INTO builds (library, fingerprint, fingerprint8, created_at) VALUES (?, ?, ?, ?) RETURNING build",
            (library.value, json.dumps(asdict(fingerprint), sort_keys=True), fingerprint8(fingerprint), utc_now()),
        ).scalar_one()
    )


def _roles(cursor: sqlite3.Cursor, library: Library) -> dict[Role, int]:
    row = cursor.execute(
        "SELECT live_build, previous_build, (SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?) FROM libraries"
        " WHERE library = ?",
        (staged_key(library), library.value),
    ).fetchone()
    names: tuple[Role, ...] = ("live", "previous", "staged")
    return {name: number for name, number in zip(names, row or (), strict=False) if number is not None}


def _same_model(one: Fingerprint, other: Fingerprint) -> bool:
    fields = ("embedding_model", "model_digest", "dimension", "query_prefix", "passage_prefix")
    return all(getattr(one, name) == getattr(other, name) for name in fields)
