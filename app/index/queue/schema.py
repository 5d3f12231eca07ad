"""Declare the tables of the queue, which PostgreSQL alone has, and create them."""

from __future__ import annotations

import psycopg
from procrastinate.schema import SchemaManager
from sqlalchemy import Column, Connection, DateTime, MetaData, Table, func, select, text

from app.index.catalog.columns import Big, Text

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
