"""Jobs are handed out by their rows alone, to one process or to several.

Until 0006 a server that was alone kept its queue in memory; several servers had tickets in tables
of a library beside the rows. What waits, pauses or was interrupted goes on.
"""

from __future__ import annotations

import json

from alembic import op
from sqlalchemy import Connection, text

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_COLUMNS = (
    "mark TEXT DEFAULT '' NOT NULL",
    "worker TEXT",
    "heard_at {float}",
    "stop TEXT",
    "not_before {float}",
    "attempts {integer} DEFAULT '0' NOT NULL",
)
_IN_A_LIBRARY = "backfill bulk samples import reembed calibrate fsck backup purge".split()
_ALONE = {
    **dict.fromkeys(_IN_A_LIBRARY, "all"), "model_test": "model_test", "evaluation": "evaluation"
}  # fmt: skip
"""Kinds of which no two run at once in one library; the key of jobs that name none."""
_TICKETS = """
    UPDATE jobs SET attempts = ticket.attempts,
        not_before = CAST(extract(epoch FROM ticket.scheduled_at) AS double precision),
        state = CASE held.stop WHEN 'pause' THEN 'paused' WHEN 'cancel' THEN 'cancelled'
            ELSE jobs.state END
    FROM job_tickets AS held JOIN procrastinate_jobs AS ticket ON ticket.id = held.ticket
    WHERE jobs.id = held.job AND jobs.state IN ('queued', 'running')
"""
_DROP = """
    DO $$ DECLARE one record; BEGIN
        DROP TABLE IF EXISTS job_tickets, job_turns;
        FOR one IN SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace
            AND relkind = 'r' AND relname LIKE 'procrastinate\\_%'
        LOOP EXECUTE format('DROP TABLE IF EXISTS %I CASCADE', one.relname); END LOOP;
        FOR one IN SELECT oid::regprocedure AS name FROM pg_proc
            WHERE pronamespace = current_schema()::regnamespace AND proname LIKE 'procrastinate\\_%'
        LOOP EXECUTE format('DROP FUNCTION IF EXISTS %s CASCADE', one.name); END LOOP;
        FOR one IN SELECT typname FROM pg_type WHERE typnamespace = current_schema()::regnamespace
            AND typtype IN ('e', 'c') AND typname LIKE 'procrastinate\\_%'
        LOOP EXECUTE format('DROP TYPE IF EXISTS %I CASCADE', one.typname); END LOOP;
    END $$
"""


def upgrade() -> None:
    """Add the columns, take over what tickets say, and queue what ran."""
    sql = op.get_bind()
    postgresql = sql.dialect.name == "postgresql"
    float_, integer = ("DOUBLE PRECISION", "BIGINT") if postgresql else ("FLOAT", "INTEGER")
    text_ = 'TEXT COLLATE "C"' if postgresql else "TEXT"
    for column in _COLUMNS:
        of_type = column.format(float=float_, integer=integer).replace("TEXT", text_)
        op.execute(f"ALTER TABLE jobs ADD COLUMN {of_type}")
    if postgresql and sql.execute(text("SELECT to_regclass('job_tickets')")).scalar():
        op.execute(_TICKETS)
        op.execute(_DROP)
    op.execute("UPDATE jobs SET state = 'queued', eta_s = NULL WHERE state = 'running'")
    _mark(sql)
    op.execute("CREATE INDEX ix_jobs_state ON jobs (state, n)")
    op.execute("CREATE INDEX ix_jobs_worker ON jobs (worker)")
    op.execute(
        "CREATE UNIQUE INDEX ux_jobs_mark ON jobs (mark) WHERE state = 'running' AND mark <> ''"
    )


def _mark(sql: Connection) -> None:
    waiting = sql.execute(
        text("SELECT n, kind, payload FROM jobs WHERE state IN ('queued', 'paused')")
    ).all()
    for n, kind, payload in waiting:
        if kind in _ALONE:
            mark = f"{kind}:{json.loads(payload).get('library', _ALONE[kind])}"
            sql.execute(text("UPDATE jobs SET mark = :mark WHERE n = :n"), {"mark": mark, "n": n})
