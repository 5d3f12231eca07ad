"""Record which originals may be unlinked; no other is ever removed.

By a start, a deletion or a repair.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection

from app.index.catalog.database import Database
from app.index.catalog.jobs import awaited_originals
from app.index.files.durable import utc_now
from app.index.files.originals import Originals

UNLINKED_KEY = "originals_unlinked_at"
"""Key of `meta`: when originals were last unlinked. It stays when the records are settled and removed."""


def record_unlinks(sql: Connection, names: Iterable[str]) -> None:
    """Allow unlinking originals without a reference, in the caller's transaction.

    Args:
        sql: A transaction of the catalog.
        names: SHA-256 of each, 64 hex digits.
    """
    rows = [(name, utc_now()) for name in names]
    if rows:
        sql.exec_driver_sql("INSERT OR REPLACE INTO unlinks (sha256, recorded_at) VALUES (?, ?)", rows)


@dataclass(frozen=True, slots=True)
class Unlinks:
    """The records, and what they make of the directory of originals."""

    database: Database
    originals: Originals

    def expect(self, sha256: str) -> None:
        """Record bytes before they are stored, so that unaccepted ones can be unlinked.

        A revision refers to accepted ones.
        """
        with self.database.write("unlink") as sql:
            record_unlinks(sql, [sha256])

    def named(self) -> set[str]:
        """Return every original that a revision or an unfinished upload refers to."""
        with self.database.read_raw() as cursor:
            rows = cursor.execute("SELECT DISTINCT sha256 FROM revisions WHERE has_original = 1").fetchall()
        return {row[0] for row in rows} | awaited_originals(self.database)

    def recorded(self) -> set[str]:
        """Return every original with a record."""
        with self.database.read_raw() as cursor:
            return {row[0] for row in cursor.execute("SELECT sha256 FROM unlinks")}

    def due(self) -> set[str]:
        """Return the originals on disk that are recorded and that nothing refers to."""
        return (self.recorded() & self.originals.names()) - self.named()

    def unknown(self) -> list[str]:
        """Return originals on disk that the catalog does not know, sorted."""
        return sorted(self.originals.names() - self.named() - self.recorded())

    def settle(self) -> int:
        """Unlink what is due and remove settled records; return how many files went.

        Records of uploads that an unfinished job still waits for stay: the job may fail.
        """
        recorded = self.recorded()
        removed = sum(self.originals.remove(sha256) for sha256 in sorted(self.due()))
        answered = recorded - awaited_originals(self.database)
        if answered:
            with self.database.write("unlink") as sql:
                sql.exec_driver_sql("DELETE FROM unlinks WHERE sha256 = ?", [(sha256,) for sha256 in answered])
                if removed:
                    sql.exec_driver_sql("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (UNLINKED_KEY, utc_now()))
        return removed
