"""Hand out jobs that any of several processes may run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Literal

import psycopg
from sqlalchemy import Connection, bindparam, func, select, text, update
from sqlalchemy import insert as insert_into
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.core.errors import Conflict, NotFound
from app.core.ports.shared_jobs import JobClaim, News, Route, StopRequest
from app.core.types import Job, JobFile
from app.index.catalog.jobs import FINISHED, JOBS, job_of, job_values, new_job
from app.index.catalog.postgres_database import (
    CONNECTING,
    error_of,
    open_engine,
    parsed,
    shown,
)
from app.index.catalog.work_schema import jobs
from app.index.files.durable import utc_now
from app.index.queue import tickets as queue
from app.index.queue import transitions as rows
from app.index.queue.news import listen, tell
from app.index.queue.schema import LOCK, prepare, tickets, turns

_CONNECTIONS, _MORE_CONNECTIONS = 2, 6
"""Of this process, besides the catalog's and the one that listens."""

_MINE = select(tickets.c.job).where(tickets.c.ticket == bindparam("mine"))
_ALONE = select(func.pg_advisory_xact_lock(func.hashtext(LOCK), func.hashtext(bindparam("what"))))
_WAITING = JOBS.where(
    jobs.c.kind == bindparam("of_kind"), jobs.c.state.in_(("queued", "paused"))
).order_by(jobs.c.n)
_PLACELESS = (
    JOBS.where(jobs.c.state.in_(("queued", "running")), jobs.c.id.not_in(select(tickets.c.job)))
    .order_by(jobs.c.n)
    .with_for_update(skip_locked=True)
)
_LIVES = text("SELECT id FROM procrastinate_workers WHERE id = :worker")
_SINCE = text("now() - make_interval(secs => :every_s)")
_MOMENTARY = (psycopg.errors.LockNotAvailable, psycopg.errors.UniqueViolation)
"""Another worker takes the job, or one with its mark, at this moment."""


class PostgresJobs:
    """The SharedJobs port on the catalog's database; close it when done.

    Locks are taken in one order: a job's row, then its ticket. `take` goes the other way and does
    not wait.
    """

    def __init__(self, url: str) -> None:
        """Connect, and create the queue's tables where they are missing.

        Raises:
            DatabaseAway: The database does not answer.
        """
        address = parsed(url)
        self._name = shown(address)
        plain = address.set(drivername="postgresql")
        self._address = plain.render_as_string(hide_password=False)
        self._engine = open_engine(
            address, size=_CONNECTIONS, more=_MORE_CONNECTIONS, isolation="READ COMMITTED"
        )
        try:
            with self._writing() as sql:
                prepare(sql)
        except BaseException:
            self.close()
            raise

    def create(
        self,
        kind: str,
        payload: Mapping[str, object],
        route: Route,
        *,
        files: Sequence[JobFile] = (),
        total: int | None = None,
        unit: str = "items",
        same: Callable[[Job], bool] | None = None,
    ) -> Job:
        """Accept a job; or return a waiting one of this kind for which `same` holds."""
        job = new_job(kind, payload, files=files, total=total, unit=unit)
        with self._writing() as sql:
            if same is not None:
                sql.execute(_ALONE, {"what": kind})
                waiting = map(job_of, sql.execute(_WAITING, {"of_kind": kind}))
                if (found := next(filter(same, waiting), None)) is not None:
                    return found
            sql.execute(insert_into(jobs), job_values(job))
            queue.issue(sql, job.id, route)
            tell(sql, "state", job.id)
        return job

    def stop(self, job_id: str, how: StopRequest) -> Job:
        """Stop a waiting job now, or ask the process that runs it."""
        with self._writing() as sql:
            job, ticket = rows.held(sql, job_id)
            if job.state in FINISHED:
                if how == "cancel":
                    return job
                raise Conflict(f"job {job_id!r} is {job.state}; it cannot be paused")
            if job.state == "running" and ticket is not None:
                # A cancel overrides a pause that has not taken effect; a pause never undoes one.
                wish = "cancel" if "cancel" in {how, ticket.stop} else "pause"
                sql.execute(update(tickets).where(tickets.c.job == job_id).values(stop=wish))
                tell(sql, "state", job_id)
                return job
            return rows.rest(sql, replace(job, state=rows.AFTER[how]))

    def resume(self, job_id: str, route_of: Callable[[Job], Route]) -> Job:
        """Queue a paused job again."""
        with self._writing() as sql:
            job, ticket = rows.held(sql, job_id)
            if job.state in FINISHED:
                raise Conflict(f"job {job_id!r} is {job.state}; only a paused job can be resumed")
            if job.state == "running" and ticket is not None and ticket.stop:
                raise Conflict(f"job {job_id!r} is still stopping; try again in a moment")
            if job.state != "paused":
                return job
            return rows.queued(sql, job, route_of(job))

    def take(self, lane: str, worker: int) -> JobClaim | None:
        """Mark the oldest job that may run now as running; None without one."""
        with suppress(_Busy), self._writing() as sql:
            found = queue.fetch(sql, lane, worker)
            if found is None:
                return None
            job = rows.free(sql, str(found.args["job"]))
            held = job and sql.execute(rows.TICKET, {"of": job.id}).first()
            if job is None or not held or held.ticket != found.id or job.state in FINISHED:
                queue.delete_ticket(sql, found.id)
                return None
            if held.stop:  # asked of a worker that did not live to hear it
                rows.rest(sql, replace(job, state=rows.AFTER[held.stop]))
                return None
            job = replace(job, state="running")
            rows.write(sql, job)
            tell(sql, "progress", job.id)
            return JobClaim(job, found.id, found.attempts)
        return None

    def save(self, claim: JobClaim, job: Job) -> bool:
        """Write progress down; return False if the claim is lost, and change nothing."""
        with self._writing() as sql:
            written = sql.execute(
                rows.SAVE.where(jobs.c.id.in_(_MINE)),
                job_values(job) | {"of": job.id, "mine": claim.ticket, "updated_at": utc_now()},
            ).rowcount
            if written:
                tell(sql, "progress", job.id)
        return bool(written)

    def settle(self, claim: JobClaim, job: Job, again_in_s: float | None = None) -> Job | None:
        """Write down how a run ended, and give the claim back; None if it was lost."""
        with self._writing() as sql, suppress(NotFound):
            _, ticket = rows.held(sql, job.id)
            if ticket is not None and ticket.ticket == claim.ticket:
                return rows.ended(sql, job, ticket, again_in_s)
        return None

    def requests(self, claims: Sequence[JobClaim]) -> Mapping[int, StopRequest | Literal["lost"]]:
        """Return by ticket which claims should stop, and why."""
        asked = select(tickets).where(tickets.c.job.in_([claim.job.id for claim in claims]))
        with self._writing() as sql:
            found = {row.job: row for row in sql.execute(asked)}
        wishes: dict[int, StopRequest | Literal["lost"]] = {}
        for claim in claims:
            row = found.get(claim.job.id)
            if row is None or row.ticket != claim.ticket:
                wishes[claim.ticket] = "lost"
            elif row.stop:
                wishes[claim.ticket] = row.stop
        return wishes

    def enrol(self) -> int:
        """Return the number of a new worker, which has to `beat`."""
        with self._writing() as sql:
            return int(queue.run(sql, "register_worker")[0].worker_id)

    def beat(self, worker: int) -> int:
        """Say that a worker lives; return its number, a new one if it was given up."""
        with self._writing() as sql:
            queue.run(sql, "update_heartbeat", worker_id=worker)
            lives = sql.execute(_LIVES, {"worker": worker}).first() is not None
        return worker if lives else self.enrol()

    def leave(self, worker: int) -> None:
        """End a worker; what it still runs is taken over."""
        with self._writing() as sql:
            queue.run(sql, "unregister_worker", worker_id=worker)

    def rescue(self, lost_after_s: float, route_of: Callable[[Job], Route | None]) -> int:
        """Queue jobs again that no living worker runs; return how many."""
        with self._writing() as sql:
            sql.execute(_ALONE, {"what": "rescue"})
            rescued = sum([rows.taken_over(sql, row) for row in rows.stalled(sql, lost_after_s)])
            for job in map(job_of, sql.execute(_PLACELESS).all()):
                route = route_of(job)
                if route is not None:
                    rows.queued(sql, job, route)
                    rescued += 1
            queue.run(sql, "prune_stalled_workers", seconds_since_heartbeat=lost_after_s)
        return rescued

    def turn(self, name: str, every_s: float) -> bool:
        """Return whether the caller may do `name` now."""
        begun = insert(turns).values(name=name, at=func.now())
        begun = begun.on_conflict_do_update(
            index_elements=[turns.c.name],
            set_={"at": func.now()},
            where=turns.c.at <= _SINCE.bindparams(every_s=every_s),
        )
        with self._writing() as sql:
            return sql.execute(begun.returning(turns.c.name)).first() is not None

    def news(self, closing: threading.Event, poll_s: float) -> Iterator[News]:
        """Yield changes until `closing`; something at least every `poll_s` seconds."""
        return listen(self._address, CONNECTING, closing, poll_s)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Yield a transaction: durable at the end, undone on error."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except DBAPIError as exc:
            if isinstance(exc.orig, _MOMENTARY):
                raise _Busy from exc
            raise error_of(self._name, exc.orig) from exc
        except (psycopg.Error, PoolTimeout) as exc:
            raise error_of(self._name, exc) from exc


class _Busy(Exception):
    """Another process changes the job at this moment."""
