"""Move a job from state to state: its row, its ticket and the news of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from sqlalchemy import Connection, Row, bindparam, select, update

from app.core.errors import NotFound
from app.core.ports.shared_jobs import Route, StopRequest
from app.core.types import Job, JobState
from app.index.catalog.jobs import FINISHED, JOBS, job_of, job_values
from app.index.catalog.work_schema import jobs
from app.index.files.durable import utc_now
from app.index.queue import tickets as queue
from app.index.queue.news import tell
from app.index.queue.schema import tickets

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
    queue.issue(sql, job.id, route)
    tell(sql, "state", job.id)
    return job


def rest(sql: Connection, job: Job) -> Job:
    """Write down that a job whose row is locked waits for nothing any more."""
    job = replace(job, eta_s=None)
    queue.withdraw(sql, job.id)
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
    queue.put_back(sql, ticket.ticket, again_in_s or 0.0)
    tell(sql, "state", job.id)
    return job


def stalled(sql: Connection, lost_after_s: float) -> Sequence[Found]:
    """Return tickets that no living worker holds."""
    return queue.run(
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
        queue.delete_ticket(sql, stalled.id)
        return False
    if ticket.stop:
        rest(sql, replace(job, state=AFTER[ticket.stop]))
    else:
        queued(sql, job, Route(stalled.queue_name, stalled.lock or ""))
    return True
