"""Jobs of servers that shared a catalog under schema 0006 go on, also where the upgrade is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from app.shared.postgres import PostgresDatabase
from app.storage.catalog.schema import jobs
from app.storage.files.durable import CRASH_STATUS, Steps
from app.storage.queue import JobQueue
from tests.fakes.postgres_server import PostgresServer, running_server

NEW = ("mark", "worker", "heard_at", "stop", "not_before", "attempts")
OLD = f"""
ALTER TABLE jobs {", ".join(f"DROP COLUMN {name}" for name in NEW)};
DROP INDEX ix_jobs_state;
ALTER TABLE revisions DROP COLUMN outline, DROP COLUMN corrections;
ALTER TABLE documents DROP COLUMN other_titles, DROP COLUMN tags, DROP COLUMN metadata,
    DROP COLUMN accepted;
DROP TABLE labels, page_words, keys, shares, deletions, turn_documents;
ALTER TABLE turns DROP COLUMN parent;
ALTER TABLE conversations DROP COLUMN tip;
UPDATE alembic_version SET version_num = '0006';
CREATE TABLE job_tickets (job TEXT PRIMARY KEY, ticket BIGINT NOT NULL, stop TEXT);
CREATE TABLE job_turns (name TEXT PRIMARY KEY, at TIMESTAMPTZ NOT NULL);
CREATE TYPE procrastinate_state AS ENUM ('todo', 'doing');
CREATE TABLE procrastinate_jobs (
    id BIGSERIAL PRIMARY KEY, status procrastinate_state NOT NULL, attempts INTEGER NOT NULL,
    scheduled_at TIMESTAMPTZ, lock TEXT
);
CREATE TABLE procrastinate_events (job BIGINT REFERENCES procrastinate_jobs);
CREATE FUNCTION procrastinate_event() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO procrastinate_events VALUES (NEW.id); RETURN NEW; END $$;
CREATE TRIGGER procrastinate_event AFTER INSERT ON procrastinate_jobs
    FOR EACH ROW EXECUTE FUNCTION procrastinate_event();
"""
"""What the servers of the release before had, as far as the upgrade looks at it."""

ROWS = (
    # id, kind, state, attempts and request of its ticket; state and mark afterwards
    ("a", "ingest", "queued", 0, None, "queued", ""),
    ("b", "backfill", "running", 0, None, "queued", "backfill:papers"),
    ("c", "backfill", "queued", 3, None, "queued", "backfill:papers"),
    ("d", "ingest", "running", 0, "cancel", "cancelled", ""),
    ("e", "ingest", "running", 0, "pause", "paused", ""),
    ("f", "purge", "paused", None, None, "paused", "purge:papers"),
    ("g", "ingest", "done", None, None, "done", ""),
    ("h", "model_test", "queued", None, None, "queued", "model_test:papers"),
)
OPEN = """
import sys
from app.shared.postgres import PostgresDatabase
from app.storage.files.durable import Steps
PostgresDatabase(sys.argv[1], Steps(int(sys.argv[2]) or None))
"""


@pytest.fixture
def old() -> Iterator[PostgresServer]:
    """A server whose catalog is of schema 0006, with jobs in every state."""
    with running_server() as server:
        PostgresDatabase(server.url(), Steps()).close()
        with psycopg.connect(server.url()) as connection:
            connection.execute(OLD.encode())
            for job_id, kind, state, attempts, stop, *_ in ROWS:
                connection.execute(
                    "INSERT INTO jobs (id, kind, state, done, unit, errors, files, payload,"
                    " created_at, updated_at) VALUES (%s, %s, %s, 1, 'items', '[]', '[]',"
                    """ '{"library": "papers"}', '2026', '2026')""",
                    (job_id, kind, state),
                )
                if attempts is not None:
                    connection.execute(
                        "WITH made AS (INSERT INTO procrastinate_jobs (status, attempts,"
                        " scheduled_at) VALUES ('todo', %s, to_timestamp(%s)) RETURNING id)"
                        " INSERT INTO job_tickets SELECT %s, id, %s FROM made",
                        (attempts, time.time() + 3600 if attempts else None, job_id, stop),
                    )
        yield server


def carried(server: PostgresServer) -> None:
    """Everything that waited waits still, and nothing of the old tables is left."""
    with closing(PostgresDatabase(server.url(), Steps())) as database:
        found = {row.id: (row.state, row.mark) for row in database.rows(jobs.select())}
        assert found == {row[0]: (row[5], row[6]) for row in ROWS}
        queue, kinds = JobQueue(database), ["ingest", "backfill", "model_test"]
        taken = [queue.claim(kinds, worker) for worker in "1234"]
        assert [each and (each[0].id, each[1]) for each in taken] == [
            ("a", 0), ("b", 0), ("h", 0), None,  # c waits for its time, and for b
        ]  # fmt: skip
        queue.release(["1", "2", "3"])
    assert server.run("SELECT count(outline) FROM revisions") == "0"
    left = "SELECT count(*) FROM pg_class WHERE relname ~ '^(procrastinate|job)_'"
    assert server.run(left) == "0"
    assert server.run("SELECT count(*) FROM pg_proc WHERE proname LIKE 'procrastinate%'") == "0"
    assert server.run("SELECT count(*) FROM pg_type WHERE typname LIKE 'procrastinate%'") == "0"


@pytest.mark.parametrize("crash_at", [1, 2])
def test_an_upgrade_that_is_killed_loses_no_job(old: PostgresServer, crash_at: int) -> None:
    """Before the commit the server of before could go on; after it nothing is left to do."""
    command = [sys.executable, "-c", OPEN, old.url(), str(crash_at)]
    assert subprocess.run(command, check=False).returncode == CRASH_STATUS
    carried(old)


def test_jobs_go_on_where_two_processes_upgrade_at_once(old: PostgresServer) -> None:
    command = [sys.executable, "-c", OPEN, old.url(), "0"]
    both = [subprocess.Popen(command) for _ in "ab"]
    assert [process.wait(60) for process in both] == [0, 0]
    carried(old)
