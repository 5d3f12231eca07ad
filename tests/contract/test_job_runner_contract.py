"""What a runner does, alone and with others; then what several processes do, on each database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest
from sqlalchemy import update

from app.core.cancel import CancelToken
from app.core.errors import Conflict, InvalidInput, NotFound
from app.jobs.maintenance import Housekeeper, Maintenance
from app.jobs.runner import JobContext, JobOptions, JobRunner
from app.storage.catalog.schema import jobs
from app.storage.queue import JobQueue
from tests.contract.job_processes import (
    QUICK,
    WAIT_S,
    lines,
    open_free,
    register,
    shared_runner,
    until,
    worker_process,
)


@pytest.fixture(params=["alone", "shared"])
def runner(
    request: pytest.FixtureRequest, tmp_path: Path, database_url: str
) -> Iterator[JobRunner]:
    if request.param == "shared":
        with shared_runner(database_url, tmp_path, retry_s=0.01) as shared:
            yield shared
        return
    database = open_free(database_url, tmp_path)
    alone = JobRunner(JobQueue(database), JobOptions(retry_s=0.01))
    register(alone, tmp_path)
    alone.start()
    yield alone
    alone.close(WAIT_S)
    database.close()


@pytest.fixture
def joined(tmp_path: Path, database_url: str) -> Iterator[Callable[..., JobRunner]]:
    """Starts runners on one database, as many as a test wants."""
    with ExitStack() as stack:

        def join(**options: object) -> JobRunner:
            return stack.enter_context(shared_runner(database_url, tmp_path, **options))

        yield join


def is_running(runner: JobRunner, job_id: str) -> bool:
    return runner.get(job_id).state == "running"


def test_a_job_runs_to_its_result(runner: JobRunner, tmp_path: Path) -> None:
    job = runner.submit("hold", {"name": "a"}, unit="steps")
    assert job.state == "queued"
    until(lambda: lines(tmp_path))
    (tmp_path / "open").touch()
    ended = runner.wait(job.id, WAIT_S)
    assert (ended.state, ended.result) == ("done", {"name": "a", "previous": None})
    assert [each.id for each in runner.list()] == [job.id]
    with pytest.raises(InvalidInput, match="'nope'"):
        runner.submit("nope", {})
    with pytest.raises(NotFound):
        runner.get("nope")


def test_equal_waiting_requests_are_one_and_running_ones_are_not_joined(
    runner: JobRunner, tmp_path: Path
) -> None:
    first = runner.submit("alone", {"library": "papers"}, coalesce=True)
    until(lambda: is_running(runner, first.id))
    second = runner.submit("alone", {"library": "papers"}, coalesce=True)
    assert runner.submit("alone", {"library": "papers"}, coalesce=True).id == second.id != first.id
    other = runner.submit("alone", {"library": "public"}, coalesce=True)
    assert other.id != second.id
    until(lambda: is_running(runner, other.id))
    assert runner.get(second.id).state == "queued"
    runner.pause(second.id)
    assert runner.submit("alone", {"library": "papers"}, coalesce=True).id == second.id
    runner.resume(second.id)
    (tmp_path / "open").touch()
    assert runner.wait(second.id, WAIT_S).state == "done"


def test_a_running_job_pauses_goes_on_and_is_cancelled(runner: JobRunner) -> None:
    job = runner.submit("hold", {})
    until(lambda: is_running(runner, job.id))
    runner.pause(job.id)
    assert runner.wait(job.id, WAIT_S, until=lambda now: now.state == "paused").state == "paused"
    assert runner.resume(job.id).state == "queued"
    until(lambda: is_running(runner, job.id))
    runner.cancel(job.id)
    assert runner.wait(job.id, WAIT_S).state == "cancelled"
    assert runner.cancel(job.id).state == "cancelled"
    for refused in (runner.pause, runner.resume):
        with pytest.raises(Conflict):
            refused(job.id)


def test_a_waiting_job_pauses_and_ends_at_once(runner: JobRunner, tmp_path: Path) -> None:
    running = runner.submit("alone", {})
    until(lambda: is_running(runner, running.id))
    waiting = runner.submit("alone", {})
    assert runner.pause(waiting.id).state == "paused"
    assert runner.resume(waiting.id).state == "queued"
    assert runner.cancel(waiting.id).state == "cancelled"
    (tmp_path / "open").touch()
    assert runner.wait(running.id, WAIT_S).state == "done"
    assert len(lines(tmp_path)) == 2


def test_a_retryable_error_is_tried_again_only_where_it_was_promised(runner: JobRunner) -> None:
    kept, refused = runner.submit("flaky", {"retry": True}), runner.submit("flaky", {})
    ended = runner.wait(kept.id, WAIT_S)
    assert (ended.state, ended.result, ended.errors) == (
        "done",
        {"tries": 3},
        ("disk_full: no space",),
    )
    failed = runner.wait(refused.id, WAIT_S)
    assert failed.result == {"error": {"code": "disk_full", "detail": "no space"}}


def test_watchers_see_progress_and_interim_results(runner: JobRunner, tmp_path: Path) -> None:
    job = runner.submit("publish", {})
    seen = runner.wait(job.id, WAIT_S, until=lambda now: now.result is not None)
    assert (seen.state, seen.result) == ("running", {"text": True})
    done: list[int] = []
    for now in runner.watch(job.id, CancelToken()):
        done.append(now.done)
        if len(set(done)) == 4:
            (tmp_path / "open").touch()
    assert done == sorted(done)
    assert runner.get(job.id).state == "done"


def test_jobs_with_one_mark_never_overlap_over_two_processes(
    joined: Callable[..., JobRunner], tmp_path: Path, database_url: str
) -> None:
    (tmp_path / "open").touch()
    server = joined(lanes=())
    marks = ("papers", "public")
    sent = [
        server.submit("alone", {"name": f"{mark}{n}", "library": mark})
        for n in range(10)
        for mark in marks
    ]
    workers = [worker_process(database_url, tmp_path) for _ in "ab"]
    try:
        for job in sent:
            assert server.wait(job.id, WAIT_S).state == "done"
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    for mark in marks:
        log = [line for line in lines(tmp_path) if mark in line]
        assert len(log) == 20
        for begun, ended in zip(log[::2], log[1::2], strict=True):
            assert begun.replace("begin", "end") == ended


def test_a_server_without_lanes_leaves_work_to_others_and_sees_it(
    joined: Callable[..., JobRunner], tmp_path: Path
) -> None:
    server = joined(lanes=())
    job = server.submit("hold", {})
    network = joined(lanes=("network",))
    done = server.submit("publish", {})
    assert server.wait(done.id, WAIT_S, until=lambda now: bool(now.result)).state == "running"
    assert server.get(job.id).state == "queued"
    worker = joined(lanes=("interactive",))
    watched = server.watch(job.id, CancelToken())
    steps: set[int] = set()
    while len(steps) < 4:
        steps.add(next(watched).done)
    server.pause(job.id)
    assert network.wait(job.id, WAIT_S, until=lambda now: now.state == "paused").state == "paused"
    network.resume(job.id)
    until(lambda: is_running(server, job.id))
    server.cancel(job.id)
    assert worker.wait(job.id, WAIT_S).state == "cancelled"


def test_equal_requests_through_two_servers_at_once_are_one(
    joined: Callable[..., JobRunner],
) -> None:
    servers = [joined(lanes=()), joined(lanes=())]
    made: list[str] = []

    def ask(server: JobRunner) -> None:
        for _ in range(10):
            made.append(server.submit("alone", {"library": "papers"}, coalesce=True).id)

    threads = [threading.Thread(target=ask, args=(server,)) for server in servers for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 40
    assert len(set(made)) == 1


def test_a_stop_queues_its_jobs_again_for_another_process(
    joined: Callable[..., JobRunner], tmp_path: Path, database_url: str
) -> None:
    server = joined(lanes=())
    job = server.submit("hold", {"name": "a"})
    with shared_runner(database_url, tmp_path):
        until(lambda: lines(tmp_path))
    assert server.get(job.id).state == "queued"
    (tmp_path / "open").touch()
    joined()
    assert server.wait(job.id, WAIT_S).state == "done"
    assert lines(tmp_path) == ["begin a", "begin a", "end a"]


def test_jobs_of_a_killed_worker_run_again_and_free_their_mark(
    joined: Callable[..., JobRunner], tmp_path: Path, database_url: str
) -> None:
    server = joined(lanes=())
    killed, kept = server.submit("alone", {"name": "killed"}), server.submit("hold", {"name": "b"})
    behind = server.submit("alone", {"name": "behind"})
    process = worker_process(database_url, tmp_path)
    try:
        until(lambda: len(lines(tmp_path)) == 2)
    finally:
        process.kill()
        process.wait()
    assert is_running(server, killed.id)
    server.cancel(kept.id)
    (tmp_path / "open").touch()
    joined()
    assert server.wait(killed.id, WAIT_S).state == "done"
    assert server.wait(behind.id, WAIT_S).state == "done"
    assert server.wait(kept.id, WAIT_S).state == "cancelled"
    assert lines(tmp_path).count("begin killed") == 2


def test_a_worker_that_was_given_up_cannot_write_over_the_next_run(
    joined: Callable[..., JobRunner], tmp_path: Path, database_url: str
) -> None:
    server = joined(lanes=())
    job = server.submit("hold", {"name": "a"})
    # It never beats: to the others it looks dead while it works.
    with shared_runner(database_url, tmp_path, beat_s=3600.0, workers=1):
        until(lambda: lines(tmp_path))
        joined()
        until(lambda: lines(tmp_path) == ["begin a"] * 2)
        until(lambda: server.get(job.id).done > 3)
    until(lambda: is_running(server, job.id))  # the first process may have taken it once more
    (tmp_path / "open").touch()
    assert server.wait(job.id, WAIT_S).state == "done"
    assert lines(tmp_path)[:2] == ["begin a"] * 2
    assert lines(tmp_path).count("end a") == 1


def test_a_job_that_comes_back_to_the_worker_that_was_given_up_hears_of_a_cancel(
    joined: Callable[..., JobRunner],
    tmp_path: Path,
    database_url: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    runner, first_ends, begun = joined(), threading.Event(), list[str]()

    def deaf_at_first(context: JobContext) -> None:
        begun.append(context.job_id)
        if len(begun) == 1:
            first_ends.wait(WAIT_S)
            return
        while True:
            context.checkpoint()
            time.sleep(0.01)

    runner.register("deaf", deaf_at_first)
    job = runner.submit("deaf", {})
    until(lambda: begun)
    database = open_free(database_url, tmp_path)

    def given_up() -> int:
        with database.write("job") as sql:
            sql.execute(update(jobs).values(heard_at=0.0))
        return JobQueue(database).requeue_stale(QUICK["lost_after_s"])

    until(given_up)
    until(lambda: len(begun) == 2)
    first_ends.set()
    until(lambda: "taken over by another process" in caplog.text)
    runner.cancel(job.id)
    assert runner.wait(job.id, WAIT_S).state == "cancelled"
    database.close()


def test_a_kind_of_another_release_waits_for_a_process_that_knows_it(
    joined: Callable[..., JobRunner], tmp_path: Path, database_url: str
) -> None:
    database = open_free(database_url, tmp_path)
    known, unknown = (
        JobQueue(database).create(kind, {}) for kind in ("hold", "of another release")
    )
    (tmp_path / "open").touch()
    server = joined()
    assert server.wait(known.id, WAIT_S).state == "done"
    assert server.get(unknown.id).state == "queued"
    assert server.cancel(unknown.id).state == "cancelled"
    database.close()


class Counted:
    """Deletions that count the looks."""

    def __init__(self) -> None:
        self.looks = 0

    def end_grace(self) -> int:
        self.looks += 1
        return 0

    def purge_is_due(self) -> bool:
        return False


def test_housekeeping_is_done_once_a_period_over_all_processes(
    joined: Callable[..., JobRunner],
) -> None:
    counted = Counted()
    keepers = [
        Housekeeper(cast("Maintenance", counted), joined(lanes=()), look_every_s=3600.0)
        for _ in range(3)
    ]
    for keeper in keepers:
        keeper.look()
    assert counted.looks == 1


def test_the_quick_options_are_quicker_than_the_usual_ones() -> None:
    usual = JobOptions()
    assert all(value <= getattr(usual, name) for name, value in QUICK.items())
    assert usual.lost_after_s + 2 * usual.beat_s < 60  # rescued within a minute
