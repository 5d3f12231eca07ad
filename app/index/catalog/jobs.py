"""Jobs in the catalog: they survive a restart."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import cast

from app.core.errors import NotFound
from app.core.ids import new_id
from app.core.types import Job, JobFile, JobState
from app.index.catalog.database import Database
from app.index.files.durable import utc_now

_COLUMNS = "id, kind, state, done, total, unit, eta_s, errors, files, payload, result, created_at, updated_at"
_FINISHED = "('done', 'failed', 'cancelled')"
AWAITED_ORIGINALS = (
    "SELECT f.value ->> 'sha256' FROM jobs j, json_each(j.payload, '$.files') f"  # noqa: S608
    f" WHERE j.state NOT IN {_FINISHED} AND f.type = 'object' AND f.value ->> 'sha256' IS NOT NULL"
)
"""The SHA-256 of every upload that an unfinished job still has to take in."""


class SqliteJobStore:
    """The JobStore port on the catalog."""

    def __init__(self, database: Database) -> None:
        """Keep jobs in `database`."""
        self._database = database

    def create(self, kind: str, payload: Mapping[str, object], *, total: int | None = None, unit: str = "items") -> Job:
        """Store a queued job durably and return it."""
        now = utc_now()
        job = Job(new_id(), kind, "queued", 0, total, unit, None, (), (), dict(payload), None, now, now)
        with self._database.write("job") as sql:
            sql.exec_driver_sql(f"INSERT INTO jobs ({_COLUMNS}) VALUES ({','.join('?' * 13)})", _row(job))  # noqa: S608
        return job

    def get(self, job_id: str) -> Job:
        """Return a job.

        Raises:
            NotFound: No such job.
        """
        found = _select(self._database, "WHERE id = ?", (job_id,))
        if not found:
            raise NotFound(f"no job {job_id!r}; finished jobs are forgotten after a while")
        return found[0]

    def list(self, limit: int = 100) -> Sequence[Job]:
        """Return jobs, newest first."""
        return _select(self._database, "ORDER BY n DESC LIMIT ?", (limit,))

    def unfinished(self) -> Sequence[Job]:
        """Return every queued, running or paused job, oldest first."""
        return _select(self._database, f"WHERE state NOT IN {_FINISHED} ORDER BY n", ())

    def prune(self, keep_finished: int) -> int:
        """Forget finished jobs beyond the newest `keep_finished`; return how many."""
        with self._database.write("job") as sql:
            return sql.exec_driver_sql(
                f"DELETE FROM jobs WHERE n IN (SELECT n FROM jobs WHERE state IN {_FINISHED} ORDER BY n DESC LIMIT -1 OFFSET ?)",  # noqa: S608
                (keep_finished,),
            ).rowcount

    def save(self, job: Job) -> None:
        """Replace a job's state durably.

        Raises:
            NotFound: The job was forgotten.
        """
        values = _row(job)
        with self._database.write("job") as sql:
            changed = sql.exec_driver_sql(
                "UPDATE jobs SET kind = ?, state = ?, done = ?, total = ?, unit = ?, eta_s = ?, errors = ?, files = ?, payload = ?,"
                " result = ?, created_at = ?, updated_at = ? WHERE id = ?",
                (*values[1:12], utc_now(), job.id),
            ).rowcount
        if not changed:
            raise NotFound(f"no job {job.id!r} to save")


def awaited_originals(database: Database) -> set[str]:
    """Return the SHA-256 of uploads that unfinished jobs need: they must stay."""
    with database.read_raw() as cursor:
        return {row[0] for row in cursor.execute(AWAITED_ORIGINALS)}


def end_backups(catalog: Path) -> None:
    """End backup jobs that a copied, closed catalog shows as running.

    One of them made the copy.

    Args:
        catalog: The SQLite file of the copy.
    """
    with closing(sqlite3.connect(catalog)) as connection, connection:
        connection.execute(
            f"UPDATE jobs SET state = 'cancelled', updated_at = ? WHERE kind = 'backup' AND state NOT IN {_FINISHED}",  # noqa: S608
            (utc_now(),),
        )


def _select(database: Database, where: str, values: tuple[object, ...]) -> list[Job]:
    with database.read_raw() as cursor:
        rows = cursor.execute(f"SELECT {_COLUMNS} FROM jobs {where}", values).fetchall()  # noqa: S608
    return [_job_from(row) for row in rows]


def _row(job: Job) -> tuple[object, ...]:
    return (
        job.id,
        job.kind,
        job.state,
        job.done,
        job.total,
        job.unit,
        job.eta_s,
        json.dumps(job.errors),
        json.dumps([asdict(file) for file in job.files]),
        json.dumps(dict(job.payload)),
        None if job.result is None else json.dumps(dict(job.result)),
        job.created_at,
        job.updated_at,
    )


def _job_from(row: tuple[object, ...]) -> Job:
    texts = cast("tuple[str, ...]", row)
    return Job(
        id=texts[0],
        kind=texts[1],
        state=cast("JobState", texts[2]),
        done=cast("int", row[3]),
        total=cast("int | None", row[4]),
        unit=texts[5],
        eta_s=cast("float | None", row[6]),
        errors=tuple(json.loads(texts[7])),
        files=tuple(JobFile(**file) for file in json.loads(texts[8])),
        payload=json.loads(texts[9]),
        result=None if row[10] is None else json.loads(texts[10]),
        created_at=texts[11],
        updated_at=texts[12],
    )
