"""Hand out jobs that any of several processes may run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, cast

import psycopg
from procrastinate import sql as procrastinate_sql
from procrastinate.jobs import Job as Ticket
from procrastinate.manager import JobManager
from procrastinate.schema import SchemaManager
from procrastinate.sync_psycopg_connector import SyncPsycopgConnector
from sqlalchemy import (
    Column,
    Connection,
    DateTime,
    MetaData,
    Row,
    Table,
    bindparam,
    delete,
    func,
    select,
    text,
    update,
)
from sqlalchemy import insert as insert_into
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.core.errors import Conflict, NotFound
from app.core.types import Job, JobClaim, JobFile, JobState, News, Route, StopRequest
from app.storage.catalog.postgres import CONNECTING, error_of, open_engine, parsed, shown
from app.storage.catalog.schema import Big, Text, jobs
from app.storage.catalog.state import FINISHED, JOBS, job_of, job_values, new_job
from app.storage.files.durable import utc_now

# Declare the tables of the queue, which PostgreSQL alone has, and create them.

_metadata = MetaData()
"""Apart from the catalog's: a catalog in SQLite has no such tables."""

tickets = Table(
    "job_tickets",
    _metadata,
    # An unfinished, unpaused job: its ticket in Procrastinate's table. Who holds the ticket may
    # write the job's row.
    Column("job", Text, primary_key=True),
    Column("ticket", Big, nullable=False),
    Column("stop", Text),
)
turns = Table(
    "job_turns",
    _metadata,
    # When work that one process does for all was last begun.
    Column("name", Text, primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False),
)

LOCK = "documind jobs"
_LOCKED = select(func.pg_advisory_xact_lock(func.hashtext(LOCK), func.hashtext("schema")))
_HAS = text("SELECT to_regclass(format('%I.procrastinate_jobs', current_schema())) IS NOT NULL")


def prepare(sql: Connection) -> None:
    """Create what is missing, in the caller's transaction.

    Of processes that start at once, one creates it and the others wait.
    """
    sql.execute(_LOCKED)
    if not sql.execute(_HAS).scalar():
        driver = sql.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)  # noqa: S101  # the engine's driver
        driver.execute(SchemaManager.get_schema())
    _metadata.create_all(sql)


# Procrastinate's tickets: a job's place in a queue, until it has ended.

TASK = "documind"
_MANAGER = JobManager(SyncPsycopgConnector())
"""It opens no connection: it writes on those it is given."""
_FORGET = text("DELETE FROM procrastinate_jobs WHERE id = :ticket")


def run(sql: Connection, name: str, **values: object) -> list[Row[*tuple[Any, ...]]]:
    """Run one of Procrastinate's statements; return its rows."""
    return list(sql.exec_driver_sql(procrastinate_sql.queries[name], values).all())


def issue(sql: Connection, job_id: str, route: Route) -> None:
    """Give a job a ticket, in place of the one it had."""
    withdraw(sql, job_id)
    ticket = Ticket(
        queue=route.lane,
        lock=route.mark or None,
        queueing_lock=None,
        task_name=TASK,
        task_kwargs={"job": job_id},
    )
    number = _MANAGER.defer_job(ticket, connection=sql.connection.driver_connection).id
    sql.execute(insert_into(tickets).values(job=job_id, ticket=number))


def withdraw(sql: Connection, job_id: str) -> None:
    """Take a job's ticket away, if it has one."""
    held = delete(tickets).where(tickets.c.job == job_id).returning(tickets.c.ticket)
    for (ticket,) in sql.execute(held):
        delete_ticket(sql, ticket)


def delete_ticket(sql: Connection, ticket: int) -> None:
    """Remove a ticket, also one that a worker holds."""
    sql.execute(_FORGET, {"ticket": ticket})


def fetch(sql: Connection, lane: str, worker: int) -> Row[*tuple[Any, ...]] | None:
    """Take the oldest ticket that may run now; None without one."""
    found = run(sql, "fetch_job", queues=[lane], worker_id=worker)
    return found[0] if found and found[0].id is not None else None


def put_back(sql: Connection, ticket: int, in_s: float) -> None:
    """Let a ticket be taken again, after some seconds."""
    at = datetime.now(UTC) + timedelta(seconds=in_s) if in_s else None
    run(
        sql,
        "retry_job",
        job_id=ticket,
        retry_at=at,
        new_priority=None,
        new_queue_name=None,
        new_lock=None,
    )


# Hear of changes in other processes: LISTEN and NOTIFY of PostgreSQL.

logger = logging.getLogger(__name__)

CHANNEL = "documind_jobs"
"""Channels belong to the database: two catalogs in it hear of each other's jobs, which they do not
have."""
_TELL = text("SELECT pg_notify(:channel, :what)")


def tell(sql: Connection, kind: Literal["state", "progress"], job_id: str) -> None:
    """Tell every process of a change, when the transaction is committed."""
    sql.execute(_TELL, {"channel": CHANNEL, "what": f"{kind} {job_id}"})


def listen(
    address: str, connecting: Mapping[str, Any], closing: threading.Event, poll_s: float
) -> Iterator[News]:
    """Yield changes until `closing`, and something at least every `poll_s` seconds.

    A lost connection is made again; what went by in between is said by `lost`.
    """
    while not closing.is_set():
        try:
            with psycopg.connect(address, autocommit=True, **connecting) as connection:
                connection.execute(f"LISTEN {CHANNEL}")
                yield News("lost")  # of what happened before, nothing was heard
                while not closing.is_set():
                    for note in connection.notifies(timeout=poll_s):
                        yield _news(note.payload)
                    yield News("quiet")
        except psycopg.Error as exc:
            logger.warning("changes of jobs are polled until PostgreSQL answers again: %s", exc)
            yield News("lost")
            closing.wait(poll_s)


def _news(payload: str) -> News:
    kind, _, job_id = payload.partition(" ")
    return News(cast("Literal['state', 'progress']", kind), job_id)


# Move a job from state to state: its row, its ticket and the news of it.

Found = Row[*tuple[Any, ...]]

AFTER: dict[StopRequest, JobState] = {"pause": "paused", "cancel": "cancelled"}
"""The state of a job that was asked to stop and does not run."""
TICKET = select(tickets.c.ticket, tickets.c.stop).where(tickets.c.job == bindparam("of"))
SAVE = update(jobs).where(jobs.c.id == bindparam("of"))
_JOB = JOBS.where(jobs.c.id == bindparam("of"))
_HELD = _JOB.with_for_update()
_FREE = _JOB.with_for_update(nowait=True)


def held(sql: Connection, job_id: str) -> tuple[Job, Found | None]:
    """Lock a job's row; return it with its ticket.

    Raises:
        NotFound: No such job.
    """
    found = sql.execute(_HELD, {"of": job_id}).first()
    if found is None:
        raise NotFound(f"no job {job_id!r}; finished jobs are forgotten after a while")
    return job_of(found), sql.execute(TICKET, {"of": job_id}).first()


def free(sql: Connection, job_id: str) -> Job | None:
    """Lock a job's row if no other does; None without the row."""
    found = sql.execute(_FREE, {"of": job_id}).first()
    return None if found is None else job_of(found)


def write(sql: Connection, job: Job) -> None:
    """Replace a job's row."""
    sql.execute(SAVE, job_values(job) | {"of": job.id, "updated_at": utc_now()})


def queued(sql: Connection, job: Job, route: Route) -> Job:
    """Queue a job whose row is locked."""
    job = replace(job, state="queued", eta_s=None)
    write(sql, job)
    issue(sql, job.id, route)
    tell(sql, "state", job.id)
    return job


def rest(sql: Connection, job: Job) -> Job:
    """Write down that a job whose row is locked waits for nothing any more."""
    job = replace(job, eta_s=None)
    withdraw(sql, job.id)
    write(sql, job)
    tell(sql, "state", job.id)
    return job


def ended(sql: Connection, job: Job, ticket: Found, again_in_s: float | None) -> Job:
    """Write down how the run of a locked job ended."""
    wish = cast("StopRequest | None", ticket.stop)
    if wish is not None and (job.state == "queued" or (job.state, wish) == ("paused", "cancel")):
        job = replace(job, state=AFTER[wish])
    if job.state != "queued":
        return rest(sql, job)
    job = replace(job, eta_s=None)
    write(sql, job)
    put_back(sql, ticket.ticket, again_in_s or 0.0)
    tell(sql, "state", job.id)
    return job


def stalled(sql: Connection, lost_after_s: float) -> Sequence[Found]:
    """Return tickets that no living worker holds."""
    return run(
        sql,
        "select_stalled_jobs_by_heartbeat",
        queue=None,
        task_name=None,
        seconds_since_heartbeat=lost_after_s,
    )


def taken_over(sql: Connection, stalled: Found) -> bool:
    """Queue the job of a lost worker again; return whether it had one.

    Its ticket is a new one: a worker that still holds the old one writes no more.
    """
    try:
        job, ticket = held(sql, str(stalled.args["job"]))
    except NotFound:
        job, ticket = None, None
    if job is None or ticket is None or ticket.ticket != stalled.id or job.state in FINISHED:
        delete_ticket(sql, stalled.id)
        return False
    if ticket.stop:
        rest(sql, replace(job, state=AFTER[ticket.stop]))
    else:
        queued(sql, job, Route(stalled.queue_name, stalled.lock or ""))
    return True


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
    """Jobs of several processes in the catalog's database; close it when done.

    The rows are those of the job store; tickets say who runs a job and who asks it to stop. Each
    call is one durable transaction. Locks are taken in one order: a job's row, then its ticket.
    `take` goes the other way and does not wait.
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
            issue(sql, job.id, route)
            tell(sql, "state", job.id)
        return job

    def stop(self, job_id: str, how: StopRequest) -> Job:
        """Stop a waiting job now, or ask the process that runs it.

        Raises:
            NotFound: No such job.
            Conflict: It has ended and cannot be paused.
        """
        with self._writing() as sql:
            job, ticket = held(sql, job_id)
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
            return rest(sql, replace(job, state=AFTER[how]))

    def resume(self, job_id: str, route_of: Callable[[Job], Route]) -> Job:
        """Queue a paused job again.

        Raises:
            NotFound: No such job.
            Conflict: It has ended, or is still stopping.
        """
        with self._writing() as sql:
            job, ticket = held(sql, job_id)
            if job.state in FINISHED:
                raise Conflict(f"job {job_id!r} is {job.state}; only a paused job can be resumed")
            if job.state == "running" and ticket is not None and ticket.stop:
                raise Conflict(f"job {job_id!r} is still stopping; try again in a moment")
            if job.state != "paused":
                return job
            return queued(sql, job, route_of(job))

    def take(self, lane: str, worker: int) -> JobClaim | None:
        """Mark the oldest job that may run now as running; None without one."""
        with suppress(_Busy), self._writing() as sql:
            found = fetch(sql, lane, worker)
            if found is None:
                return None
            job = free(sql, str(found.args["job"]))
            held = job and sql.execute(TICKET, {"of": job.id}).first()
            if job is None or not held or held.ticket != found.id or job.state in FINISHED:
                delete_ticket(sql, found.id)
                return None
            if held.stop:  # asked of a worker that did not live to hear it
                rest(sql, replace(job, state=AFTER[held.stop]))
                return None
            job = replace(job, state="running")
            write(sql, job)
            tell(sql, "progress", job.id)
            return JobClaim(job, found.id, found.attempts)
        return None

    def save(self, claim: JobClaim, job: Job) -> bool:
        """Write progress down; return False if the claim is lost, and change nothing."""
        with self._writing() as sql:
            written = sql.execute(
                SAVE.where(jobs.c.id.in_(_MINE)),
                job_values(job) | {"of": job.id, "mine": claim.ticket, "updated_at": utc_now()},
            ).rowcount
            if written:
                tell(sql, "progress", job.id)
        return bool(written)

    def settle(self, claim: JobClaim, job: Job, again_in_s: float | None = None) -> Job | None:
        """Write down how a run ended, and give the claim back; None if it was lost.

        A job that is `queued` runs again, after `again_in_s` seconds; a request to stop that came
        in between is obeyed.
        """
        with self._writing() as sql, suppress(NotFound):
            _, ticket = held(sql, job.id)
            if ticket is not None and ticket.ticket == claim.ticket:
                return ended(sql, job, ticket, again_in_s)
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
            return int(run(sql, "register_worker")[0].worker_id)

    def beat(self, worker: int) -> int:
        """Say that a worker lives; return its number, a new one if it was given up."""
        with self._writing() as sql:
            run(sql, "update_heartbeat", worker_id=worker)
            lives = sql.execute(_LIVES, {"worker": worker}).first() is not None
        return worker if lives else self.enrol()

    def leave(self, worker: int) -> None:
        """End a worker; what it still runs is taken over."""
        with self._writing() as sql:
            run(sql, "unregister_worker", worker_id=worker)

    def rescue(self, lost_after_s: float, route_of: Callable[[Job], Route | None]) -> int:
        """Queue jobs again that no living worker runs; return how many.

        Args:
            lost_after_s: Seconds without a beat after which a worker is given up.
            route_of: Where a job waits that has no place yet; None leaves it as it is.
        """
        with self._writing() as sql:
            sql.execute(_ALONE, {"what": "rescue"})
            rescued = sum([taken_over(sql, row) for row in stalled(sql, lost_after_s)])
            for job in map(job_of, sql.execute(_PLACELESS).all()):
                route = route_of(job)
                if route is not None:
                    queued(sql, job, route)
                    rescued += 1
            run(sql, "prune_stalled_workers", seconds_since_heartbeat=lost_after_s)
        return rescued

    def turn(self, name: str, every_s: float) -> bool:
        """Return whether the caller may do `name` now.

        One process may in each `every_s` seconds.
        """
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
