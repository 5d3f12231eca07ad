"""One runner for all long work: persistent, resumable, pausable, cancellable.

A job is a row in the JobStore. `submit` returns when the row is durable; what was queued or running
when a process ended is queued again by the next `start`, because handlers are resumable by
construction. Kinds run in lanes with threads of their own, so that an upload never waits behind a
backfill.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from app.core.errors import Cancelled, DocuMindError, StorageError
from app.core.ports import JobStore
from app.core.spans import SILENT, Spans
from app.core.system_errors import refusal
from app.core.types import Job, JobState
from app.jobs.board import LiveJob
from app.jobs.context import JobContext, Lane, Update
from app.jobs.options import JobOptions
from app.jobs.queue import JobQueue

logger = logging.getLogger(__name__)

_MAX_RETRY_S = 60.0


class JobRunner(JobQueue):
    """A queue that also does the work; thread-safe.

    Register kinds, then `start`; `close` at the end.
    """

    def __init__(
        self,
        store: JobStore,
        options: JobOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
        spans: Spans = SILENT,
    ) -> None:
        """Bind a store; nothing runs until `start`."""
        super().__init__(store)
        self._options = options or JobOptions()
        self._clock = clock
        self._spans = spans
        self._threads: list[threading.Thread] = []
        self._closing = False

    def start(self) -> None:
        """Queue again what an earlier process left unfinished, and start the workers."""
        for job in self._store.unfinished():
            if job.kind not in self._kinds:
                logger.warning("job %s of unknown kind %r stays as it is", job.id, job.kind)
                continue
            state: JobState = "paused" if job.state == "paused" else "queued"
            with self._changed:
                if job.id in self._live:  # submitted before the start, and queued then
                    continue
                self._live[job.id] = LiveJob(replace(job, state=state, eta_s=None))
                if state == "queued":
                    self._queue.append(job.id)
        lanes: dict[Lane, int] = {
            "interactive": self._options.workers,
            "background": self._options.background_workers,
            "network": self._options.network_workers,
        }
        for lane, count in lanes.items():
            for number in range(count):
                thread = threading.Thread(
                    target=self._work, args=(lane,), name=f"job-{lane}-{number}", daemon=True
                )
                thread.start()
                self._threads.append(thread)

    def close(self, timeout_s: float = 5.0) -> None:
        """Stop the workers within `timeout_s` seconds; the next start queues jobs again."""
        with self._changed:
            self._closing = True
            tokens = []
            for live in self._live.values():
                live.stop = live.stop or "shutdown"
                tokens.append(live.token)
            self._changed.notify_all()
        for token in tokens:
            token.cancel()
        deadline_s = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))

    def _work(self, lane: Lane) -> None:
        """Take jobs of one lane until the runner closes."""
        while (live := self._next(lane)) is not None:
            self._tell(live)
            span = self._spans.begin(
                f"job {live.job.kind}", {"documind.job": live.job.id, "documind.lane": lane}
            )
            with self._spans.around(span):
                self._run(live, lane)
            job = live.job
            span.put(
                {"documind.state": job.state, "documind.done": job.done, "documind.unit": job.unit}
            )
            span.end()
            self._tell(live)

    def _next(self, lane: Lane) -> LiveJob | None:
        """Wait for a job this lane may run now, and mark it running; None when closing."""
        with self._changed:
            while not self._closing:
                now_s = self._clock()
                waits_s: list[float] = []
                for job_id in self._queue:
                    live = self._live[job_id]
                    kind = self._kinds[live.job.kind]
                    mark = kind.mark(live.job)
                    if kind.lane != lane or (mark and mark in self._running.values()):
                        continue
                    if live.not_before_s > now_s:
                        waits_s.append(live.not_before_s - now_s)
                        continue
                    self._queue.remove(job_id)
                    self._running[job_id] = mark
                    live.job = replace(live.job, state="running")
                    live.saved_at_s = now_s
                    return live
                self._changed.wait(min(waits_s, default=None))
        return None

    def _run(self, live: LiveJob, lane: Lane) -> None:
        """Run one job to any end. An edge: no handler's exception leaves it."""
        job = live.job

        def update(change: Update, durable: bool) -> None:
            self._update(live, change, durable)

        def give_way() -> None:
            if lane == "background":
                self._give_way(live)

        context = JobContext(
            job, cancel=live.token, update=update, give_way=give_way, clock=self._clock
        )
        try:
            result = self._kinds[job.kind].handler(context)
        except Cancelled:
            after: dict[str | None, JobState] = {"shutdown": "queued", "pause": "paused"}
            self._rest(live, replace(live.job, state=after.get(live.stop, "cancelled")))
        except DocuMindError as error:
            self._failed(live, error)
        except Exception as error:
            if (refused := refusal(error)) is not None:
                self._failed(live, refused)
                return
            logger.exception("job %s (%s) failed unexpectedly", job.id, job.kind)
            detail = (
                f"the {job.kind} job failed unexpectedly; the server's log has the details"
                f" under job {job.id}"
            )
            self._rest(live, _failure(live.job, "internal", detail))
        else:
            self._rest(
                live,
                replace(
                    live.job,
                    state="done",
                    result=live.job.result if result is None else dict(result),
                ),
            )
            self._prune()

    def _failed(self, live: LiveJob, error: DocuMindError) -> None:
        """Settle a failed job; an accepted one is retried later if retryable."""
        failed = _failure(live.job, error.code, error.message)
        if not (error.retryable and live.job.payload.get("retry") is True):
            logger.warning(
                "job %s (%s) failed: %s: %s", failed.id, failed.kind, error.code, error.message
            )
            self._rest(live, failed)
            return
        delay_s = min(_MAX_RETRY_S, self._options.retry_s * 2**live.attempts)
        logger.warning(
            "job %s (%s) will be tried again in %.0f s: %s",
            failed.id,
            failed.kind,
            delay_s,
            error.message,
        )
        with self._admin:
            if live.stop in {"pause", "cancel"}:
                self._rest(
                    live, replace(live.job, state="paused" if live.stop == "pause" else "cancelled")
                )
                return
            self._rest(live, replace(live.job, state="queued", errors=failed.errors))
            live.attempts += 1
            live.not_before_s = self._clock() + delay_s
            self._enqueue(live)

    def _update(self, live: LiveJob, change: Update, durable: bool) -> None:
        """Show a change now; store it if durable or if the last write is old enough."""
        with self._changed:
            live.job = job = change(live.job)
            now_s = self._clock()
            due = durable or now_s - live.saved_at_s >= self._options.save_interval_s
            if due:
                live.saved_at_s = now_s
        if due:
            try:
                self._store.save(job)
            except StorageError:
                if durable:
                    raise
                logger.warning(
                    "progress of job %s could not be written down", job.id, exc_info=True
                )
        self._tell(live)

    def _give_way(self, live: LiveJob) -> None:
        """Pause a background step while interactive jobs run, for at most `give_way_s`."""
        deadline_s = time.monotonic() + self._options.give_way_s
        with self._changed:
            while not self._closing and not live.token.cancelled:
                left_s = deadline_s - time.monotonic()
                busy = any(
                    self._kinds[self._live[job_id].job.kind].lane == "interactive"
                    for job_id in self._running
                )
                if left_s <= 0 or not busy:
                    return
                self._changed.wait(left_s)

    def _prune(self) -> None:
        """Delete the oldest finished jobs; a failure here must not fail the ended job."""
        try:
            self._store.delete_finished(self._options.keep_finished)
        except StorageError:
            logger.warning("finished jobs could not be pruned", exc_info=True)


def _failure(job: Job, code: str, detail: str) -> Job:
    """Return the job as failed, with its error code for waiting callers."""
    line = f"{code}: {detail}"
    errors = job.errors if line in job.errors else (*job.errors, line)
    return replace(
        job, state="failed", errors=errors, result={"error": {"code": code, "detail": detail}}
    )
