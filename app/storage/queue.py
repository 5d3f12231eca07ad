"""Keep jobs in the catalog's database and hand them out, to one process or to several."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, Literal, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Row,
    and_,
    bindparam,
    case,
    cast,
    delete,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from app.core.errors import Conflict, NotFound
from app.core.ids import new_id
from app.core.types import Job, JobFile, JobState, StopRequest
from app.storage.catalog.database import Database
from app.storage.catalog.schema import jobs, meta, put_meta
from app.storage.catalog.uploads import FINISHED
from app.storage.files.durable import utc_now

AFTER: Mapping[StopRequest, JobState] = {"pause": "paused", "cancel": "cancelled"}
"""The state of a job that was asked to stop and does not run."""

_FIELDS = [field.name for field in fields(Job) if field.init]
_JOBS = select(*(jobs.c[name] for name in _FIELDS))
_FREE = {"worker": None, "heard_at": None, "stop": None}


class ClaimedJob(NamedTuple):
    """A job to run."""

    job: Job
    attempts: int
    """How often it was put back after an error."""
    recovered: bool
    """Whether an ended process left it."""


class JobQueue:
    """Jobs as rows; each call is one durable transaction. Thread-safe.

    A running job's row names its worker, by an id that is new for each run: only that run writes
    the row. No two rows of one exclusive key run at once, by a unique index.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._now: ColumnElement[float] = literal_column(database.dialect.NOW, Float)
        """Seconds since 1970 by the database's clock, which all processes share."""
        queued, running = jobs.alias("queued"), jobs.alias("running")
        same_key = running.c.exclusive_key == queued.c.exclusive_key
        blocked = exists().where(running.c.state == "running", same_key)
        self._recovered_to = 0
        """The last job that an ended process left: no client waits for it or one before it."""
        recovered = queued.c.n <= bindparam("recovered_to")
        self._due = (
            select(queued.c.n)
            .where(
                queued.c.n > bindparam("after"),
                queued.c.state == "queued",
                queued.c.kind.in_(bindparam("kinds", expanding=True)),
                or_(queued.c.not_before.is_(None), queued.c.not_before <= self._now),
                or_(queued.c.exclusive_key == "", ~blocked),
            )
            .order_by(and_(queued.c.exclusive_key == "", recovered), queued.c.n)
            .limit(1)
        )
        first = self._due.with_for_update(of=queued)
        self._take = update(jobs).where(jobs.c.n == first.scalar_subquery())

    def create(
        self,
        kind: str,
        payload: Mapping[str, object],
        *,
        exclusive_key: str = "",
        files: Sequence[JobFile] = (),
        total: int | None = None,
        unit: str = "items",
        coalesce: bool = False,
    ) -> Job:
        """Store a queued job; with `coalesce` return a waiting one of its kind and key instead."""
        now = utc_now()
        job = Job(
            new_id(), kind, "queued", 0, total, unit, None, (), tuple(files), dict(payload), None,
            now, now,
        )  # fmt: skip
        with self._database.write_apart("job") as sql:
            if coalesce:
                self._database.lock_in(sql, f"jobs of {kind}")
                alike = (jobs.c.kind == kind) & (jobs.c.exclusive_key == exclusive_key)
                waits = alike & jobs.c.state.in_(("queued", "paused"))
                waiting = sql.execute(_JOBS.where(waits).order_by(jobs.c.n)).first()
                if waiting is not None:
                    return job_of(waiting)
            sql.execute(insert(jobs), job_values(job) | {"exclusive_key": exclusive_key})
            self._tell(sql, "state", job.id)
        return job

    def get(self, job_id: str) -> Job:
        """Return a job, or raise NotFound."""
        found = self._database.rows(_JOBS.where(jobs.c.id == job_id))
        if not found:
            raise _unknown(job_id)
        return job_of(found[0])

    def list(self, limit: int = 100) -> Sequence[Job]:
        """Return jobs, newest first."""
        rows = self._database.rows(_JOBS.order_by(jobs.c.n.desc()).limit(limit))
        return [job_of(row) for row in rows]

    def unfinished(self) -> Sequence[Job]:
        """Return every queued, running or paused job, oldest first."""
        rows = self._database.rows(_JOBS.where(jobs.c.state.not_in(FINISHED)).order_by(jobs.c.n))
        return [job_of(row) for row in rows]

    def delete_finished(self, keep_finished: int) -> int:
        """Forget finished jobs beyond the newest `keep_finished`; return how many."""
        finished = select(jobs.c.n).where(jobs.c.state.in_(FINISHED)).order_by(jobs.c.n.desc())
        older = jobs.c.n.not_in(finished.limit(keep_finished))
        with self._database.write_apart("job") as sql:
            return sql.execute(delete(jobs).where(jobs.c.state.in_(FINISHED), older)).rowcount

    def _asked(self, kinds: Sequence[str], *, recovered: bool) -> Mapping[str, object]:
        to = self._recovered_to
        return {"kinds": kinds, "recovered_to": to, "after": 0 if recovered else to}

    def has_due(self, kinds: Sequence[str], *, recovered: bool = True) -> bool:
        return bool(self._database.rows(self._due, self._asked(kinds, recovered=recovered)))

    def claim(
        self, kinds: Sequence[str], worker: str, *, recovered: bool = True
    ) -> ClaimedJob | None:
        """Mark the oldest job that may run now as running; `recovered` ones last, if at all.

        One at a time over all processes: else a younger job of a key could run before an older.
        """
        if not self.has_due(kinds, recovered=recovered):
            return None
        values = {"state": "running", "worker": worker, "heard_at": self._now}
        with self._database.write_apart("job") as sql:
            self._database.lock_in(sql, "take jobs")
            take = self._take.values(values | {"updated_at": utc_now()})
            sql.execute(take, self._asked(kinds, recovered=recovered))
            mine = _JOBS.add_columns(jobs.c.attempts, jobs.c.n).where(jobs.c.worker == worker)
            taken = sql.execute(mine).first()
            if taken is None:
                return None
            self._tell(sql, "progress", taken.id)
        return ClaimedJob(job_of(taken), taken.attempts, taken.n <= self._recovered_to)

    def save(self, job: Job, worker: str) -> bool:
        """Write progress down; return False if the job is not this worker's any more."""
        with self._database.write_apart("job") as sql:
            written = self._write(sql, job, jobs.c.worker == worker)
            if written:
                self._tell(sql, "progress", job.id)
        return written

    def finish(self, job: Job, worker: str, again_in_s: float | None = None) -> Job | None:
        """Write down how a run ended; return the job as stored, None if another worker has it.

        A `queued` job runs again, after `again_in_s` seconds; a request to stop that came in
        between is obeyed.
        """
        with self._database.write_apart("job") as sql:
            held = self._held(sql, job.id)
            if held is None or held.worker != worker:
                return None
            if held.stop and (job.state == "queued" or (job.state, held.stop) == _OVERRIDDEN):
                job = replace(job, state=AFTER[held.stop])
            job = replace(job, eta_s=None)
            again: dict[str, object] = {}
            if again_in_s is not None:
                again = {"not_before": self._now + again_in_s, "attempts": jobs.c.attempts + 1}
            self._write(sql, job, more=_FREE | again)
            self._tell(sql, "state", job.id)
        return job

    def stop(self, job_id: str, how: StopRequest) -> Job:
        """Stop a waiting job now, or note for a running one's worker that it is to stop.

        Raises:
            NotFound: No such job.
            Conflict: It has ended and cannot be paused.
        """
        with self._database.write_apart("job") as sql:
            job, asked = self._hold(sql, job_id)
            if job.state in FINISHED:
                if how == "cancel":
                    return job
                raise Conflict(f"job {job_id!r} is {job.state}; it cannot be paused")
            if job.state == "running":
                # A cancel overrides a pause that has not taken effect; a pause never undoes one.
                wish = "cancel" if "cancel" in {how, asked} else "pause"
                sql.execute(update(jobs).where(jobs.c.id == job_id).values(stop=wish))
            else:
                job = replace(job, state=AFTER[how], eta_s=None)
                self._write(sql, job)
            self._tell(sql, "state", job_id)
        return job

    def resume(self, job_id: str) -> Job:
        """Queue a paused job again; a queued or running one is left alone.

        Raises:
            NotFound: No such job.
            Conflict: It has ended, or is still stopping.
        """
        with self._database.write_apart("job") as sql:
            job, asked = self._hold(sql, job_id)
            if job.state in FINISHED:
                raise Conflict(f"job {job_id!r} is {job.state}; only a paused job can be resumed")
            if job.state == "running" and asked:
                raise Conflict(f"job {job_id!r} is still stopping; try again in a moment")
            if job.state == "paused":
                job = replace(job, state="queued")
                self._write(sql, job, more={"not_before": None})
                self._tell(sql, "state", job_id)
        return job

    def requests(self, workers: Sequence[str]) -> Mapping[str, StopRequest | None]:
        """Return what each worker is asked for; a worker without a job any more is missing."""
        asked = select(jobs.c.worker, jobs.c.stop).where(jobs.c.worker.in_(workers))
        return {row.worker: row.stop for row in self._database.rows(asked)}

    def heartbeat(self, workers: Sequence[str]) -> None:
        """Record a heartbeat for each worker."""
        with self._database.write_apart("job") as sql:
            sql.execute(update(jobs).where(jobs.c.worker.in_(workers)).values(heard_at=self._now))

    def has_stale_workers(self, lost_after_s: float) -> bool:
        """Return whether a worker of a job was silent that long, in seconds."""
        return bool(self._database.rows(select(jobs.c.n).where(self._lost(lost_after_s)).limit(1)))

    def requeue_stale(self, lost_after_s: float) -> int:
        """Queue jobs again whose worker was silent that long, in seconds; return how many."""
        return self._free(self._lost(lost_after_s))

    def _lost(self, lost_after_s: float) -> ColumnElement[bool]:
        silent = or_(jobs.c.heard_at.is_(None), jobs.c.heard_at < self._now - lost_after_s)
        return and_(jobs.c.state == "running", silent)

    def release(self, workers: Sequence[str]) -> None:
        """Requeue the jobs of workers that are shutting down."""
        self._free(jobs.c.worker.in_(workers))

    def requeue_all(self) -> None:
        """Queue what an ended process left; call it where no other one works on these jobs."""
        self._free(jobs.c.state.in_(("queued", "running")), not_before=None)
        self._recovered_to = self._database.rows(select(func.max(jobs.c.n)))[0][0] or 0

    def acquire_interval(self, name: str, every_s: float) -> bool:
        """Return whether the caller may do `name` now: one may in each `every_s` seconds."""
        key = f"turn/{name}"
        last = cast(meta.c.value, Float)
        recent = select(meta.c.key).where(meta.c.key == key, last > self._now - every_s)
        if self._database.rows(recent):
            return False
        with self._database.write_apart("turn") as sql:
            self._database.lock_in(sql, key)
            if sql.execute(recent).first() is not None:
                return False
            put_meta(sql, key, str(sql.execute(select(self._now)).scalar_one()))
        return True

    def listen(self, closing: threading.Event, poll_s: float) -> Iterator[str]:
        """Yield changes by any process until `closing`; something at least every `poll_s` seconds.

        `state JOB` or `progress JOB`; `lost` when changes may have gone by unseen; else nothing: an
        empty text.
        """
        return self._database.listen(closing, poll_s)

    def _held(self, sql: Connection, job_id: str) -> Row[*tuple[Any, ...]] | None:
        """Lock a job's row; return it, with its worker and what that was asked for."""
        mine = _JOBS.add_columns(jobs.c.stop, jobs.c.worker).where(jobs.c.id == job_id)
        return sql.execute(mine.with_for_update()).first()

    def _hold(self, sql: Connection, job_id: str) -> tuple[Job, StopRequest | None]:
        found = self._held(sql, job_id)
        if found is None:
            raise _unknown(job_id)
        return job_of(found), found.stop

    def _write(
        self, sql: Connection, job: Job, *of: ColumnElement[bool], more: Mapping[str, object] = {}
    ) -> bool:
        """Replace a job's columns in its row; return whether `of` finds it."""
        values = job_values(job) | {"updated_at": utc_now(), **more}
        written = update(jobs).where(jobs.c.id == job.id, *of).values(values)
        return bool(sql.execute(written).rowcount)

    def _free(self, where: ColumnElement[bool], **more: object) -> int:
        """Take jobs away from their workers; those that were asked to stop rest."""
        state = case(AFTER, value=jobs.c.stop, else_="queued")
        values = {"state": state, "eta_s": None, "updated_at": utc_now(), **_FREE, **more}
        with self._database.write_apart("job") as sql:
            freed = sql.execute(update(jobs).where(where).values(values)).rowcount
            if freed:
                self._tell(sql, "lost")
        return freed

    def _tell(
        self, sql: Connection, what: Literal["state", "progress", "lost"], job_id: str = ""
    ) -> None:
        self._database.notify(sql, f"{what} {job_id}".strip())


_OVERRIDDEN = ("paused", "cancel")
"""A run that was paused and is asked to end for good."""


def _unknown(job_id: str) -> NotFound:
    return NotFound(f"no job {job_id!r}; finished jobs are forgotten after a while")


def job_values(job: Job) -> dict[str, object]:
    return {name: getattr(job, name) for name in _FIELDS} | {
        "errors": json.dumps(job.errors),
        "files": json.dumps([asdict(file) for file in job.files]),
        "payload": json.dumps(dict(job.payload)),
        "result": None if job.result is None else json.dumps(dict(job.result)),
    }


def job_of(row: Row[*tuple[Any, ...]]) -> Job:
    """Return the job of a row that has its columns."""
    packed = {name: getattr(row, name) for name in _FIELDS}
    return Job(
        **packed
        | {
            "errors": tuple(json.loads(row.errors)),
            "files": tuple(JobFile(**file) for file in json.loads(row.files)),
            "payload": json.loads(row.payload),
            "result": row.result and json.loads(row.result),
        }
    )
