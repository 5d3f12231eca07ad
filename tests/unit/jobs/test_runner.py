"""The runner: what a job goes through, what survives, what waits for what."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from app.core.cancel import CancelToken
from app.core.errors import (
    Cancelled,
    Conflict,
    DatabaseAway,
    DiskFull,
    InvalidInput,
    NotFound,
    ProviderBadResponse,
    StorageError,
    Unreadable,
)
from app.core.types import Job, JobFile
from app.jobs.runner import Handler, JobContext, JobOptions, JobRunner, RateEstimate, per_library
from app.storage.queue import ClaimedJob
from tests.fakes.job_queue import OwnQueue, put_row

WAIT_S = 10.0


class Gate:
    """A handler that stands at a gate: says when it has started and goes on when opened or stopped."""

    def __init__(self) -> None:
        self.started = threading.Semaphore(0)
        self.opened = threading.Event()
        self.runs = 0

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        self.runs += 1
        context.cancel.on_cancel(self.opened.set)
        self.started.release()
        assert self.opened.wait(WAIT_S)
        if context.cancel.cancelled:
            self.opened.clear()
        context.checkpoint()
        return {"runs": self.runs}


@contextmanager
def running(store: OwnQueue, kinds: Mapping[str, Handler], **options: float) -> Iterator[JobRunner]:
    runner = JobRunner(store, JobOptions(**options))  # type: ignore[arg-type]
    for name, handler in kinds.items():
        runner.register(name, handler)
    runner.start()
    try:
        yield runner
    finally:
        runner.close(WAIT_S)


def test_a_job_runs_to_its_result_and_its_row_says_so() -> None:
    store = OwnQueue()

    def handler(context: JobContext) -> Mapping[str, object]:
        context.progress(3, 3, "files")
        return {"echo": context.payload["word"]}

    with running(store, {"echo": handler}) as runner:
        job = runner.submit("echo", {"word": "hello"})
        assert job.state == "queued"
        ended = runner.wait(job.id, WAIT_S)
    assert ended == store.get(job.id)
    assert (ended.state, ended.result, ended.done, ended.total, ended.unit) == (
        "done",
        {"echo": "hello"},
        3,
        3,
        "files",
    )


def test_a_job_sent_before_the_start_runs_once() -> None:
    ran: list[str] = []
    runner = JobRunner(OwnQueue(), JobOptions())
    runner.register("count", lambda context: ran.append(context.job_id))
    job = runner.submit("count", {})
    runner.start()
    assert runner.wait(job.id, 10).state == "done"
    last = runner.submit("count", {})
    assert runner.wait(last.id, 10).state == "done"
    runner.close()
    assert ran == [job.id, last.id]


def test_an_unknown_kind_is_refused_and_leaves_no_row() -> None:
    store = OwnQueue()
    with running(store, {}) as runner, pytest.raises(InvalidInput, match="'nope'"):
        runner.submit("nope", {})
    assert list(store.list()) == []


def test_a_full_disk_refuses_the_job_instead_of_forgetting_it() -> None:
    store = OwnQueue()
    with running(store, {"echo": lambda _: None}) as runner:
        store.fail(DiskFull("no space"))
        with pytest.raises(DiskFull):
            runner.submit("echo", {})
        store.fail(None)
        assert runner.list() == []


def test_our_errors_fail_the_job_with_their_code_and_others_stay_private() -> None:
    store = OwnQueue()

    def ours(_: JobContext) -> None:
        raise Unreadable("page 3 is torn")

    def foreign(_: JobContext) -> None:
        raise KeyError("secret detail")

    with running(store, {"ours": ours, "foreign": foreign}) as runner:
        first = runner.wait(runner.submit("ours", {}).id, WAIT_S)
        second = runner.wait(runner.submit("foreign", {}).id, WAIT_S)
    assert first.state == "failed"
    assert first.errors == ("unreadable: page 3 is torn",)
    assert first.result == {"error": {"code": "unreadable", "detail": "page 3 is torn"}}
    assert second.state == "failed"
    assert "secret detail" not in str(second)
    assert second.id in second.errors[0]


@pytest.mark.parametrize(
    "trouble", [DiskFull("no space"), DatabaseAway("read-only"), StorageError("not writable")]
)
def test_an_accepted_job_is_tried_again_after_trouble_that_may_pass(trouble: StorageError) -> None:
    store = OwnQueue()
    attempts: list[int] = []

    def handler(_: JobContext) -> Mapping[str, object]:
        attempts.append(1)
        if len(attempts) < 3:
            raise trouble
        return {"attempts": len(attempts)}

    with running(store, {"write": handler}, retry_s=0.001) as runner:
        kept = runner.wait(runner.submit("write", {"retry": True}).id, WAIT_S)
        attempts.clear()
        refused = runner.wait(runner.submit("write", {}).id, WAIT_S)
    assert (kept.state, kept.result, kept.errors) == (
        "done",
        {"attempts": 3},
        (f"{trouble.code}: {trouble.message}",),
    )
    assert refused.state == "failed"


def test_what_ran_when_the_process_ended_runs_again_and_what_was_paused_waits() -> None:
    store = OwnQueue()
    first = Gate()
    with running(store, {"work": first}, workers=1) as runner:
        job = runner.submit("work", {"n": 1})
        assert first.started.acquire(timeout=WAIT_S)
        resting = runner.submit("work", {"n": 2})
        runner.pause(resting.id)
    assert store.get(job.id).state == "queued"
    second = Gate()
    second.opened.set()
    with running(store, {"work": second}) as runner:
        assert runner.wait(job.id, WAIT_S).state == "done"
        assert runner.get(resting.id).state == "paused"


@pytest.mark.parametrize(
    "broken_by",
    [
        RuntimeError("cannot schedule new futures after interpreter shutdown"),
        StorageError("the catalog is closed"),
        ProviderBadResponse("half a reply"),
    ],
)
def test_work_that_the_end_of_the_process_breaks_is_no_failure(
    caplog: pytest.LogCaptureFixture, broken_by: Exception
) -> None:
    store, begun = OwnQueue(), threading.Event()

    def broken(context: JobContext) -> Mapping[str, object]:
        stopping = threading.Event()
        context.cancel.on_cancel(stopping.set)
        begun.set()
        assert stopping.wait(WAIT_S)
        raise broken_by

    with running(store, {"bulk": broken}) as runner:
        job = runner.submit("bulk", {})
        assert begun.wait(WAIT_S)
    assert (store.get(job.id).state, store.get(job.id).errors) == ("queued", ())
    assert "unexpectedly" not in caplog.text


def test_an_end_that_cannot_be_written_is_shown_and_written_later() -> None:
    store, gate = OwnQueue(), Gate()
    with running(store, {"work": gate}, poll_s=0.01) as runner:
        job = runner.submit("work", {})
        assert gate.started.acquire(timeout=WAIT_S)
        store.fail(DatabaseAway("read-only"))
        gate.opened.set()
        assert runner.wait(job.id, WAIT_S).state == "done"
        assert store.get(job.id).state == "running"
        store.fail(None)
        deadline = time.monotonic() + WAIT_S
        while store.get(job.id).state != "done":
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert runner.get(job.id).result == {"runs": 1}


def test_a_job_that_does_not_stop_in_time_is_queued_again_and_writes_no_more() -> None:
    store, begun, ends = OwnQueue(), threading.Event(), threading.Event()

    def deaf(_: JobContext) -> Mapping[str, object]:
        begun.set()
        assert ends.wait(WAIT_S)
        return {"late": True}

    runner = JobRunner(store, JobOptions())
    runner.register("deaf", deaf)
    runner.start()
    job = runner.submit("deaf", {})
    assert begun.wait(WAIT_S)
    runner.close(0.01)
    assert store.get(job.id).state == "queued"
    ends.set()
    for thread in threading.enumerate():
        if thread.name.startswith("job-"):
            thread.join(WAIT_S)
    assert (store.get(job.id).state, store.get(job.id).result) == ("queued", None)


def test_a_killed_process_leaves_running_rows_that_run_again() -> None:
    store = OwnQueue()
    job = store.create("work", {})
    put_row(store, replace(job, state="running", result={"half": True}))
    seen: list[object] = []

    def handler(context: JobContext) -> Mapping[str, object]:
        seen.append(context.previous)
        return {}

    with running(store, {"work": handler}) as runner:
        assert runner.wait(job.id, WAIT_S).state == "done"
    assert seen == [{"half": True}]


def test_pause_and_resume() -> None:
    store = OwnQueue()
    gate = Gate()
    with running(store, {"work": gate}) as runner:
        job = runner.submit("work", {})
        assert gate.started.acquire(timeout=WAIT_S)
        runner.pause(job.id)
        assert runner.wait(job.id, WAIT_S, until=lambda j: j.state == "paused").state == "paused"
        assert store.get(job.id).state == "paused"
        runner.resume(job.id)
        assert gate.started.acquire(timeout=WAIT_S)
        gate.opened.set()
        assert runner.wait(job.id, WAIT_S).result == {"runs": 2}
        with pytest.raises(Conflict):
            runner.resume(job.id)
        with pytest.raises(Conflict):
            runner.pause(job.id)


def test_cancel_ends_waiting_and_running_jobs_and_a_second_cancel_changes_nothing() -> None:
    store = OwnQueue()
    gate = Gate()
    with running(store, {"work": gate}, workers=1) as runner:
        job, queued = runner.submit("work", {}), runner.submit("work", {})
        assert gate.started.acquire(timeout=WAIT_S)
        assert runner.cancel(queued.id).state == "cancelled"
        runner.cancel(job.id)
        assert runner.wait(job.id, WAIT_S).state == "cancelled"
        assert runner.cancel(job.id).state == "cancelled"
        with pytest.raises(NotFound):
            runner.cancel("nope")
    assert gate.runs == 1


def test_long_work_does_not_hold_up_an_upload() -> None:
    store = OwnQueue()
    gate = Gate()
    runner = JobRunner(store, JobOptions(background_workers=1))
    runner.register("backfill", gate, lane="background")
    runner.register("ingest", lambda _: {"in": True})
    runner.start()
    try:
        runner.submit("backfill", {})
        assert gate.started.acquire(timeout=WAIT_S)
        assert runner.wait(runner.submit("ingest", {}).id, WAIT_S).state == "done"
    finally:
        runner.close(WAIT_S)


def test_a_background_step_waits_for_interactive_work_but_not_for_ever() -> None:
    upload = Gate()
    order: list[str] = []

    def backfill(context: JobContext) -> None:
        assert upload.started.acquire(timeout=WAIT_S)
        context.checkpoint()  # the upload is stuck at its gate: only the time limit lets this pass
        order.append("gave up waiting")
        upload.opened.set()

    runner = JobRunner(OwnQueue(), JobOptions(give_way_s=0.05))
    runner.register("backfill", backfill, lane="background")
    runner.register("ingest", upload)
    runner.start()
    try:
        long = runner.submit("backfill", {})
        runner.submit("ingest", {})
        assert runner.wait(long.id, WAIT_S).state == "done"
    finally:
        runner.close(WAIT_S)
    assert order == ["gave up waiting"]


def test_what_a_client_waits_for_comes_before_what_an_ended_process_left() -> None:
    store = OwnQueue()
    left = [store.create("ingest", {"left": n}).id for n in range(3)]
    waiting = threading.Event()
    order: list[str] = []

    def ingest(context: JobContext) -> None:
        if context.job_id in left:
            assert waiting.wait(WAIT_S)
        order.append(context.job_id)

    with running(store, {"ingest": ingest}) as runner:
        new = runner.submit("ingest", {}).id
        assert runner.wait(new, WAIT_S).state == "done"
        waiting.set()
        assert all(runner.wait(job_id, WAIT_S).state == "done" for job_id in left)
    assert order == [new, *left]


def test_a_single_thread_takes_a_new_job_before_a_recovered_one() -> None:
    store = OwnQueue()
    left = store.create("ingest", {})
    store.requeue_all()
    new = store.create("ingest", {})
    taken = [store.claim(["ingest"], worker) for worker in "12"]
    assert [(one.job.id, one.recovered) for one in taken if one] == [
        (new.id, False),
        (left.id, True),
    ]


def test_a_recovered_job_gives_way_between_steps_to_one_that_a_client_waits_for() -> None:
    store = OwnQueue()
    left, upload = store.create("ingest", {"left": True}).id, Gate()
    begun = threading.Event()
    order: list[str] = []

    def ingest(context: JobContext) -> None:
        if context.job_id == left:
            begun.set()
            assert upload.started.acquire(timeout=WAIT_S)
            threading.Timer(0.05, upload.opened.set).start()
            context.give_way()
            order.append("left")
        else:
            upload(context)
            order.append("new")

    with running(store, {"ingest": ingest}, give_way_s=WAIT_S) as runner:
        assert begun.wait(WAIT_S)
        new = runner.submit("ingest", {}).id
        assert {runner.wait(job_id, WAIT_S).state for job_id in (left, new)} == {"done"}
    assert order == ["new", "left"]


def test_one_library_is_never_worked_on_twice_at_once_and_waiting_requests_are_merged() -> None:
    gate = Gate()
    runner = JobRunner(OwnQueue(), JobOptions(background_workers=3))
    runner.register("backfill", gate, lane="background", exclusive=per_library)
    runner.start()
    try:
        first = runner.submit("backfill", {"library": "papers"}, coalesce=True)
        assert gate.started.acquire(timeout=WAIT_S)
        second = runner.submit("backfill", {"library": "papers"}, coalesce=True)
        third = runner.submit("backfill", {"library": "papers"}, coalesce=True)
        other = runner.submit("backfill", {"library": "public"}, coalesce=True)
        assert second.id != first.id
        assert third.id == second.id
        assert gate.started.acquire(timeout=WAIT_S)
        assert (
            runner.wait(other.id, WAIT_S, until=lambda j: j.state == "running").state == "running"
        )
        assert runner.get(second.id).state == "queued"
        gate.opened.set()
        assert runner.wait(second.id, WAIT_S).state == "done"
    finally:
        runner.close(WAIT_S)


def test_progress_and_files_are_seen_at_once_but_written_seldom() -> None:
    store = OwnQueue()
    seen: list[Job] = []

    def handler(context: JobContext) -> None:
        context.files([JobFile("a.txt", "queued", 0.0), JobFile("b.txt", "queued", 0.0)])
        for done in range(100):
            context.progress(done, 100)
        context.file(1, "done", 1.0)
        context.error("a.txt: unreadable")
        seen.append(runner.get(context.job_id))

    with running(store, {"work": handler}, save_interval_s=3600) as runner:
        runner.wait(runner.submit("work", {}).id, WAIT_S)
    assert seen[0].files[1] == JobFile("b.txt", "done", 1.0)
    assert seen[0].errors == ("a.txt: unreadable",)
    assert seen[0].done == 99
    assert store.saves == 0
    assert store.get(seen[0].id).done == 99


def test_an_interim_result_wakes_those_who_wait_for_it_and_is_durable() -> None:
    store = OwnQueue()
    gate = threading.Event()

    def handler(context: JobContext) -> None:
        context.publish({"text": True})
        assert gate.wait(WAIT_S)

    with running(store, {"work": handler}) as runner:
        job = runner.submit("work", {})
        assert runner.wait(job.id, WAIT_S, until=lambda j: j.result is not None).state == "running"
        deadline = time.monotonic() + WAIT_S
        while store.get(job.id).result != {"text": True}:
            assert time.monotonic() < deadline
        gate.set()
        assert runner.wait(job.id, WAIT_S).result == {"text": True}


def test_watching_ends_with_the_job_and_stops_when_the_reader_leaves() -> None:
    gate = Gate()
    with running(OwnQueue(), {"work": gate}) as runner:
        job = runner.submit("work", {})
        assert gate.started.acquire(timeout=WAIT_S)
        reader = CancelToken()
        watched = runner.watch(job.id, reader)
        assert next(watched).state == "running"
        reader.cancel()
        with pytest.raises(Cancelled):
            next(watched)
        gate.opened.set()
        assert [j.state for j in runner.watch(job.id, CancelToken())][-1] == "done"
        with pytest.raises(NotFound):
            next(runner.watch("nope", CancelToken()))


def test_finished_jobs_are_pruned_and_waiting_ones_never() -> None:
    store = OwnQueue()
    gate = Gate()
    with running(store, {"work": lambda _: None, "gate": gate}, keep_finished=2) as runner:
        old = runner.submit("gate", {})
        assert gate.started.acquire(timeout=WAIT_S)
        for _ in range(5):
            runner.wait(runner.submit("work", {}).id, WAIT_S)
        # The prune follows the end of the job it belongs to; the last one may still be under way.
        assert len([job for job in runner.list() if job.state == "done"]) <= 3
        assert runner.get(old.id).state == "running"


def test_the_rate_is_smoothed_and_needs_two_looks() -> None:
    rate = RateEstimate(tau_s=10.0)
    rate.observe(0, 0.0)
    assert rate.eta_s(100) is None
    rate.observe(10, 1.0)
    assert rate.eta_s(100) == 9.0
    rate.observe(
        11, 2.0
    )  # one slow second changes the estimate only a little: keep 0.905 of 10/s, take 0.095 of 1/s
    assert rate.eta_s(100) == pytest.approx(89 / (10 * 0.9048 + 0.0952), abs=0.1)
    assert rate.eta_s(None) is None
    rate.observe(100, 3.0)
    assert rate.eta_s(100) == 0.0


class _Refusing(OwnQueue):
    """Hands out no job while it is told so, as a database that can only be read."""

    refuses = True
    asked = 0

    def claim(
        self, kinds: Sequence[str], worker: str, *, recovered: bool = True
    ) -> ClaimedJob | None:
        self.asked += 1
        if self.refuses:
            raise DatabaseAway("read-only")
        return super().claim(kinds, worker, recovered=recovered)


def test_a_lane_that_is_refused_jobs_says_so_once_and_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = _Refusing()
    with running(store, {"echo": lambda _: None}, workers=1, poll_s=0.001) as runner:
        job = runner.submit("echo", {})
        while store.asked < 25:
            threading.Event().wait(0.001)
        store.refuses = False
        assert runner.wait(job.id, WAIT_S).state == "done"
    said = [record for record in caplog.records if "cannot ask for jobs" in record.message]
    assert 1 <= len(said) <= 4  # threads
    assert all(record.exc_info is None for record in said)
