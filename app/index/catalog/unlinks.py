"""Record which originals may be unlinked; no other is ever removed.

By a start, a deletion or a repair.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, literal_column, select

from app.index.catalog.database import Database
from app.index.catalog.jobs import awaited_originals
from app.index.catalog.schema import revisions
from app.index.catalog.statements import put, put_meta
from app.index.catalog.work_schema import unlinks
from app.index.files.durable import utc_now, utc_text
from app.index.files.originals import Originals

log = logging.getLogger(__name__)

AT_REST_S = 3600.0
"""How old a record is that is settled where other servers store uploads, in seconds."""

UNLINKED_KEY = "originals_unlinked_at"
"""Key of `meta`: when originals were last unlinked. It stays when the records are settled and
removed."""

ORIGINALS = (
    select(revisions.c.sha256).where(revisions.c.has_original == literal_column("1")).distinct()
)
"""The SHA-256 of every original that a revision refers to. A literal, because SQLite takes the
partial index for no bound value."""
_ANSWERED = delete(unlinks).where(unlinks.c.sha256 == bindparam("name"))


def record_unlinks(sql: Connection, names: Iterable[str]) -> None:
    """Allow unlinking originals without a reference, in the caller's transaction.

    Args:
        sql: A transaction of the catalog.
        names: SHA-256 of each, 64 hex digits.
    """
    put(sql, unlinks, [{"sha256": name, "recorded_at": utc_now()} for name in names])


@dataclass(frozen=True, slots=True)
class Unlinks:
    """The records, and what they make of the directory of originals."""

    database: Database
    originals: Originals
    shared: bool = False
    """Whether other servers store originals as well: a young record may be of an upload that is
    under way."""

    def expect(self, sha256: str) -> None:
        """Record bytes before they are stored, so that unaccepted ones can be unlinked.

        A revision refers to accepted ones.
        """
        with self.database.write("unlink") as sql:
            record_unlinks(sql, [sha256])

    def named(self) -> set[str]:
        """Return every original that a revision or an unfinished upload refers to."""
        return {row.sha256 for row in self.database.rows(ORIGINALS)} | awaited_originals(
            self.database
        )

    def recorded(self) -> set[str]:
        """Return every original with a record."""
        return {row.sha256 for row in self.database.rows(select(unlinks.c.sha256))}

    def _at_rest(self) -> set[str]:
        """Return the recorded originals that no other server is just storing."""
        latest = utc_text(datetime.now(UTC) - timedelta(seconds=AT_REST_S if self.shared else 0))
        asked = select(unlinks.c.sha256).where(unlinks.c.recorded_at <= latest)
        return {row.sha256 for row in self.database.rows(asked)}

    def due(self) -> set[str]:
        """Return the originals on disk that are recorded and that nothing refers to."""
        return (self._at_rest() & self.originals.names()) - self.named()

    def unknown(self) -> list[str]:
        """Return originals on disk that the catalog does not know, sorted."""
        return sorted(self.originals.names() - self.named() - self.recorded())

    def settle_at_start(self) -> None:
        """Unlink recorded originals only; log files that no record names.

        The catalog recorded them as deleted or never accepted.
        """
        if not self.shared:
            self.originals.delete_parts()
        self.originals.delete_stale_copies()
        self.settle()
        if unknown := len(self.unknown()):
            log.warning(
                "%d uploaded files in 'originals' are in no document; they stay. To have an entry"
                " for each, stop the server and"
                " run: documind fsck --repair --library papers", unknown,
            )  # fmt: skip

    def settle(self) -> int:
        """Unlink what is due and remove settled records; return how many files went.

        Records of uploads that an unfinished job still waits for stay: the job may fail.
        """
        recorded = self._at_rest()
        removed = sum(self.originals.delete(sha256) for sha256 in sorted(self.due()))
        answered = recorded - awaited_originals(self.database)
        if answered:
            with self.database.write("unlink") as sql:
                sql.execute(_ANSWERED, [{"name": sha256} for sha256 in answered])
                if removed:
                    put_meta(sql, UNLINKED_KEY, utc_now())
        return removed
