"""Accepted uploads: which originals must stay, and which a deletion keeps out or lets go."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, Select, bindparam, delete, func, literal_column, select

from app.core.types import Library
from app.storage.catalog.database import Database
from app.storage.catalog.schema import deletions, jobs, put, put_meta, revisions, rows_of, unlinks
from app.storage.files.durable import utc_now, utc_text
from app.storage.files.originals import Originals

FINISHED = ("done", "failed", "cancelled")
"""States that a job does not leave."""

_UNFINISHED = jobs.c.state.not_in(FINISHED)
_PAYLOADS = select(jobs.c.payload).where(_UNFINISHED)
_NUMBER = select(jobs.c.n).where(jobs.c.id == bindparam("of"))
_LAST_NUMBER = select(func.max(jobs.c.n))

WHOLE_LIBRARY = ""
"""Source key of the deletion of everything."""
_ANY_DELETION = select(deletions.c.upto).limit(1)
_KEPT_OUT = select(deletions.c.source_key, deletions.c.upto).where(
    deletions.c.library == bindparam("of"),
    deletions.c.source_key.in_(bindparam("keys", expanding=True)),
)


def awaited_originals(database: Database) -> set[str]:
    """Return the SHA-256 of uploads that unfinished jobs need: they must stay."""
    return {name for (payload,) in database.rows(_PAYLOADS) for name in originals_in(payload)}


def originals_in(payload: str) -> set[str]:
    """Return the SHA-256 of every upload that a job's payload (JSON) names."""
    files = json.loads(payload).get("files", ())
    names = (file.get("sha256") for file in files if isinstance(file, dict))
    return {name for name in names if name}


def keep_out(sql: Connection, library: Library, source_keys: Collection[str] | None) -> None:
    """Log deletions: no job that was accepted before writes these documents again.

    Call it in the transaction of the deletion: what is accepted later is not affected.

    Args:
        sql: The deletion's transaction.
        library: Where documents are deleted.
        source_keys: Of these; None: of all documents of the library.
    """
    first = sql.execute(select(func.min(jobs.c.n)).where(_UNFINISHED)).scalar()
    answered = delete(deletions)
    sql.execute(answered if first is None else answered.where(deletions.c.upto < first))
    if first is not None:
        keys = (WHOLE_LIBRARY,) if source_keys is None else source_keys
        of = {"library": library.value, "upto": accepted_at(sql, "")}
        put(sql, deletions, [of | {"source_key": key} for key in keys])


def unfinished_before(accepted: int) -> Select[int]:
    """Return a query for jobs that may still write what was accepted before a job's number."""
    return select(jobs.c.n).where(_UNFINISHED, jobs.c.n < accepted).limit(1)


def accepted_at(sql: Connection, job_id: str) -> int:
    """Return the number of a job, which later ones exceed; without one that of the last job."""
    number = sql.execute(_NUMBER, {"of": job_id}).scalar() if job_id else None
    return number or sql.execute(_LAST_NUMBER).scalar() or 0


def deletions_of(
    sql: Connection, library: Library, source_keys: Sequence[str]
) -> Mapping[str, int]:
    """Return the number up to which jobs are kept out by source key, where a deletion does."""
    if sql.execute(_ANY_DELETION).first() is None:
        return {}
    keys = [WHOLE_LIBRARY, *source_keys]
    return {row.source_key: row.upto for row in rows_of(sql, _KEPT_OUT, "keys", keys, of=library)}


# Record which originals may be unlinked; no other is ever removed.

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
    """Allow unlinking originals (SHA-256) without a reference, in the caller's transaction."""
    put(sql, unlinks, [{"sha256": name, "recorded_at": utc_now()} for name in names])


@dataclass(frozen=True, slots=True)
class Unlinks:
    """The records, and what they make of the directory of originals."""

    database: Database
    originals: Originals
    shared: bool = False
    """Whether other servers store originals as well: a young record may be of an upload that is
    under way."""

    def expect(self, names: Iterable[str]) -> None:
        """Record bytes before they are stored, so that those no revision takes can be unlinked."""
        with self.database.write("unlink") as sql:
            record_unlinks(sql, names)

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

    def unlink_at_start(self) -> None:
        """Unlink recorded originals only; log files that no record names.

        The catalog recorded them as deleted or never accepted.
        """
        if not self.shared:
            self.originals.delete_parts()
        self.originals.delete_stale_copies()
        self.unlink_due()
        if unknown := len(self.unknown()):
            log.warning(
                "%d uploaded files in 'originals' are in no document; they stay. To have an entry"
                " for each, stop the server and"
                " run: documind fsck --repair --library papers", unknown,
            )  # fmt: skip

    def unlink_due(self) -> int:
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
