"""Procrastinate's tickets: a job's place in a queue, until it has ended.

Its statements run in our transactions, so that a job's row and its ticket never disagree
(docs/decisions/0243).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from procrastinate import sql as procrastinate_sql
from procrastinate.jobs import Job as Ticket
from procrastinate.manager import JobManager
from procrastinate.sync_psycopg_connector import SyncPsycopgConnector
from sqlalchemy import Connection, Row, delete, insert, text

from app.core.ports.shared_jobs import Route
from app.index.queue.schema import tickets

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
    sql.execute(insert(tickets).values(job=job_id, ticket=number))


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
