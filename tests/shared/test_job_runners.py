"""Jobs while PostgreSQL is away, or a standby, or of an earlier release."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest

from app.core.errors import DatabaseAway
from app.storage.queue import JobQueue
from tests.contract.job_processes import QUICK, WAIT_S, lines, open_free, shared_runner, until
from tests.fakes.postgres_server import PostgresServer, running_server


def test_work_goes_on_after_postgresql_was_killed(tmp_path: Path) -> None:
    with running_server() as server, ExitStack() as stack:
        url = server.url()
        edge = stack.enter_context(shared_runner(url, tmp_path, lanes=()))
        stack.enter_context(shared_runner(url, tmp_path))
        job = edge.submit("hold", {"name": "a"})
        until(lambda: lines(tmp_path))
        _restart(server)
        (tmp_path / "open").touch()
        until(lambda: edge.get(job.id).state == "done")
        after = edge.submit("hold", {"name": "b"})
        assert edge.wait(after.id, WAIT_S).state == "done"


def test_no_job_is_taken_over_because_postgresql_was_away(tmp_path: Path) -> None:
    with running_server() as server, ExitStack() as stack:
        url = server.url()
        for beat_s in (0.4, 1.0):
            stack.enter_context(shared_runner(url, tmp_path, workers=1, beat_s=beat_s))
        edge = stack.enter_context(shared_runner(url, tmp_path, lanes=()))
        jobs = [edge.submit("hold", {"name": name}) for name in "ab"]
        until(lambda: len(lines(tmp_path)) == 2)
        _restart(server, QUICK["lost_after_s"] + 0.5)
        until(lambda: _are_heard_of(server))
        (tmp_path / "open").touch()
        for job in jobs:
            until(lambda job=job: edge.get(job.id).state == "done")  # type: ignore[misc]
        assert sorted(lines(tmp_path)) == ["begin a", "begin b", "end a", "end b"]


def test_work_goes_on_after_postgresql_was_read_only(tmp_path: Path) -> None:
    with running_server() as server, ExitStack() as stack:
        url = server.url()
        watcher = stack.enter_context(closing(open_free(url, tmp_path)))
        edge = stack.enter_context(shared_runner(url, tmp_path, lanes=()))
        stack.enter_context(shared_runner(url, tmp_path))
        running, waiting = (edge.submit("alone", {"name": name}) for name in "ab")
        until(lambda: lines(tmp_path))
        server.run("ALTER DATABASE postgres SET default_transaction_read_only = on")
        server.run(_CUT)  # as a failover does
        until(lambda: watcher.missing() == ())  # questions are answered
        until(watcher.degraded)
        with pytest.raises(DatabaseAway, match="can only be read"):
            edge.submit("hold", {})
        (tmp_path / "open").touch()
        until(lambda: "end a" in lines(tmp_path))
        assert edge.get(running.id).state == "running"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute("ALTER DATABASE postgres SET default_transaction_read_only = off")
        for job in (running, waiting):
            assert edge.wait(job.id, WAIT_S).state == "done"
        assert watcher.degraded() == ()
        assert lines(tmp_path) == ["begin a", "end a", "begin b", "end b"]


def test_the_oldest_of_a_mark_is_taken_first_though_its_row_is_held(tmp_path: Path) -> None:
    with (
        running_server() as server,
        closing(open_free(server.url(), tmp_path)) as database,
        ThreadPoolExecutor() as threads,
    ):
        queue = JobQueue(database)
        oldest, _ = (queue.create("ingest", {}, exclusive_key="papers") for _ in range(2))
        with psycopg.connect(
            server.url()
        ) as other:  # as a process that looks whether it may stop it
            other.execute("SELECT * FROM jobs WHERE id = %s FOR UPDATE", [oldest.id])
            taken = threads.submit(queue.claim, ["ingest"], "worker")
            until(lambda: taken.done() or server.run(_WAITS) != "0")
        found = taken.result(WAIT_S)
        assert found is not None
        assert found[0].id == oldest.id


_WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
_CUT = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE application_name = 'documind'"
)


def _are_heard_of(server: PostgresServer) -> bool:
    """Return whether both workers have beaten for a while since the restart."""
    with psycopg.connect(server.url()) as connection:
        late = connection.execute(
            "SELECT count(*) FROM jobs WHERE state = 'running' AND to_timestamp(heard_at)"
            " < pg_postmaster_start_time() + interval '1 second'"
        ).fetchone()
    assert late is not None
    return int(late[0]) == 0


def _restart(server: PostgresServer, away_s: float = 0.5) -> None:
    server.stop(kill=True)
    time.sleep(away_s)
    server.start()
