"""One runner for all long work: persistent, resumable, pausable, cancellable.

A job is a row in the JobStore. `submit` returns when the row is durable; what was queued or running when a process ended is queued
again by the next `start`, because handlers are resumable by construction. Kinds run in lanes with threads of their own, so that
an upload never waits behind a backfill.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app.core.cancel import CancelToken
from app.core.errors import Cancelled, Conflict, DocuMindError, InvalidInput, StorageError
from app.core.ports import JobStore
from app.core.spans import SILENT, Spans
from app.core.types import Job, JobFile, JobState
from app.jobs.board import JobBoard, LiveJob, is_finished
from app.jobs.context import Handler, JobContext, Lane, Update
from app.jobs.options import JobOptions

logger = logging.getLogger(__name__)

_MAX_RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class _Kind:
    """How jobs of one name are run."""

    handler: Handler
    lane: Lane
    exclusive: Callable[[Mapping[str, object]], str]

    def mark(self, job: Job) -> str:
        """Return what two jobs that must not run together have in common; empty when nothing."""
        key = self.exclusive(job.payload)
        return f"{job.kind}:{key}" if key else ""


def share_nothing(payload: Mapping[str, object]) -> str:
    """Return the exclusive key of kinds whose jobs may all run at once: none."""
    del payload
    return ""


def per_library(payload: Mapping[str, object]) -> str:
    """Return the exclusive key of kinds that work on a whole library: one job per library at a time."""
    return str(payload.get("library", "all"))


class JobRunner(JobBoard):
    """A board that also does the work; thread-safe. `start` after registering kinds, `close` at the end."""

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
        self._kinds: dict[str, _Kind] = {}
        self._queue: list[str] = []
        self._running: dict[str, str] = {}
        """Job id -> exclusive mark of its kind."""
        self._admin = threading.Lock()
        """Serialises submit, pause, resume and cancel, so that their rows are written in order. Taken before `_changed`."""
        self._threads: list[threading.Thread] = []
        self._closing = False

    # --- composition ----------------------------------------------------------------------------------------------------------

    def register(
        self,
        kind: str,
        handler: Handler,
        *,
        lane: Lane = "interactive",
        exclusive: Callable[[Mapping[str, object]], str] = share_nothing,
    ) -> None:
        """Say how jobs of a kind are run. Jobs of a kind with the same non-empty `exclusive` key never run at the same time."""
        self._kinds[kind] = _Kind(handler, lane, exclusive)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the registered kinds."""
        return tuple(self._kinds)

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
                thread = threading.Thread(target=self._work, args=(lane,), name=f"job-{lane}-{number}", daemon=True)
                thread.start()
                self._threads.append(thread)

    def close(self, timeout_s: float = 10.0) -> None:
        """Stop the workers; running jobs are queued again by the next start. Waits up to `timeout_s` seconds in all."""
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

    # --- what people do -------------------------------------------------------------------------------------------------------

    def submit(
        self,
        kind: str,
        payload: Mapping[str, object],
        *,
        files: Sequence[JobFile] = (),
        total: int | None = None,
        unit: str = "items",
        coalesce: bool = False,
    ) -> Job:
        """Accept work: on return its row is durable.

        A payload with `retry: true` is tried again after a retryable error instead of failing.

        Args:
            kind: A registered name.
            payload: JSON object, all the handler needs, also after a restart.
            files: Per-file states to begin with.
            total: Units of work when known.
            unit: What is counted.
            coalesce: Return a queued or paused job of the same kind and exclusive key instead of adding one.

        Raises:
            InvalidInput: The kind is not registered.
            DiskFull: The row could not be written; nothing was accepted.
        """
        if kind not in self._kinds:
            raise InvalidInput(f"no job of kind {kind!r}; there are {', '.join(sorted(self._kinds))}")
        with self._admin:
            if coalesce and (waiting := self._waiting(kind, payload)) is not None:
                return waiting
            job = replace(self._store.create(kind, payload, total=total, unit=unit), files=tuple(files))
            self._enqueue(LiveJob(job))
        return job

    def pause(self, job_id: str) -> Job:
        """Stop a job at its next checkpoint; `resume` continues it, also after a restart.

        Raises:
            NotFound: No such job.
            Conflict: It has already ended.
        """
        return self._stop(job_id, "pause")

    def cancel(self, job_id: str) -> Job:
        """End a job for good; what it has done stays. Cancelling an ended job changes nothing.

        Raises:
            NotFound: No such job.
        """
        return self._stop(job_id, "cancel")

    def resume(self, job_id: str) -> Job:
        """Queue a paused job again; a queued or running one is left alone.

        Raises:
            NotFound: No such job.
            Conflict: It has already ended, or is still stopping.
        """
        with self._admin:
            with self._changed:
                live = self._live.get(job_id)
            if live is None:
                raise Conflict(f"job {job_id!r} is {self._store.get(job_id).state}; only a paused job can be resumed")
            if live.job.state == "running" and live.stop is not None:
                raise Conflict(f"job {job_id!r} is still stopping; try again in a moment")
            if live.job.state != "paused":
                return live.job
            queued = replace(live.job, state="queued")
            self._store.save(queued)
            resumed = replace(live, job=queued, token=CancelToken(), stop=None)
            self._enqueue(resumed)
        self._tell(resumed)
        return queued

    # --- inside ---------------------------------------------------------------------------------------------------------------

    def _enqueue(self, live: LiveJob) -> None:
        """Show a queued job and wake a worker."""
        with self._changed:
            self._live[live.job.id] = live
            self._queue.append(live.job.id)
            self._changed.notify_all()

    def _waiting(self, kind: str, payload: Mapping[str, object]) -> Job | None:
        """Return a queued or paused job of the same kind and exclusive key."""
        key_of = self._kinds[kind].exclusive
        with self._changed:
            waiting = [live.job for live in self._live.values() if live.job.kind == kind and live.job.state in {"queued", "paused"}]
        return next((job for job in waiting if key_of(job.payload) == key_of(payload)), None)

    def _stop(self, job_id: str, how: Literal["pause", "cancel"]) -> Job:
        """Stop a waiting job at once, or ask a running one to stop."""
        with self._admin:
            with self._changed:
                live = self._live.get(job_id)
                running = live is not None and live.job.state == "running"
                if live is not None and running:
                    # A cancel overrides a pause that has not taken effect; a pause never undoes a cancel.
                    live.stop = "cancel" if "cancel" in {how, live.stop} else "pause"
                elif live is not None and job_id in self._queue:
                    self._queue.remove(job_id)
            if live is None:
                ended = self._store.get(job_id)
                if how == "cancel":
                    return ended
                raise Conflict(f"job {job_id!r} is {ended.state}; it cannot be paused")
            if running:
                live.token.cancel()
                with self._changed:
                    self._changed.notify_all()
            else:
                self._rest(live, replace(live.job, state="cancelled" if how == "cancel" else "paused"))
        self._tell(live)
        return live.job

    def _rest(self, live: LiveJob, job: Job) -> None:
        """Write down that a job stands still, then show it; one that cannot be written stays in memory."""
        job = replace(job, eta_s=None)
        written = True
        try:
            self._store.save(job)
        except StorageError:
            # The row still says what it said before: the next start repeats the job, which is safe.
            logger.exception("job %s is %s but this could not be written down", job.id, job.state)
            written = False
        with self._changed:
            live.job = job
            self._running.pop(job.id, None)
            if is_finished(job) and written:
                self._live.pop(job.id, None)
            self._changed.notify_all()

    def _work(self, lane: Lane) -> None:
        """Take jobs of one lane until the runner closes."""
        while (live := self._next(lane)) is not None:
            self._tell(live)
            span = self._spans.begin(f"job {live.job.kind}", {"documind.job": live.job.id, "documind.lane": lane})
            with self._spans.around(span):
                self._run(live, lane)
            job = live.job
            span.put({"documind.state": job.state, "documind.done": job.done, "documind.unit": job.unit})
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
        """Run one job to its end, whatever that is. An edge: no exception of a handler leaves it."""
        job = live.job

        def update(change: Update, durable: bool) -> None:
            self._update(live, change, durable)

        def give_way() -> None:
            if lane == "background":
                self._give_way(live)

        context = JobContext(job, cancel=live.token, update=update, give_way=give_way, clock=self._clock)
        try:
            result = self._kinds[job.kind].handler(context)
        except Cancelled:
            after: dict[str | None, JobState] = {"shutdown": "queued", "pause": "paused"}
            self._rest(live, replace(live.job, state=after.get(live.stop, "cancelled")))
        except DocuMindError as error:
            self._failed(live, error)
        except Exception:
            logger.exception("job %s (%s) failed unexpectedly", job.id, job.kind)
            detail = f"the {job.kind} job failed unexpectedly; the server's log has the details under job {job.id}"
            self._rest(live, _failure(live.job, "internal", detail))
        else:
            self._rest(live, replace(live.job, state="done", result=live.job.result if result is None else dict(result)))
            self._prune()

    def _failed(self, live: LiveJob, error: DocuMindError) -> None:
        """Settle a job that failed: an accepted one waits for better times when the error is retryable."""
        failed = _failure(live.job, error.code, error.message)
        if not (error.retryable and live.job.payload.get("retry") is True):
            logger.warning("job %s (%s) failed: %s: %s", failed.id, failed.kind, error.code, error.message)
            self._rest(live, failed)
            return
        delay_s = min(_MAX_RETRY_S, self._options.retry_s * 2**live.attempts)
        logger.warning("job %s (%s) will be tried again in %.0f s: %s", failed.id, failed.kind, delay_s, error.message)
        with self._admin:
            if live.stop in {"pause", "cancel"}:
                self._rest(live, replace(live.job, state="paused" if live.stop == "pause" else "cancelled"))
                return
            self._rest(live, replace(live.job, state="queued", errors=failed.errors))
            live.attempts += 1
            live.not_before_s = self._clock() + delay_s
            self._enqueue(live)

    def _update(self, live: LiveJob, change: Update, durable: bool) -> None:
        """Show a change now; write it down when it must be durable or the last time is long enough ago."""
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
                logger.warning("progress of job %s could not be written down", job.id, exc_info=True)
        self._tell(live)

    def _give_way(self, live: LiveJob) -> None:
        """Pause a background step while interactive jobs run, for at most `give_way_s`."""
        deadline_s = time.monotonic() + self._options.give_way_s
        with self._changed:
            while not self._closing and not live.token.cancelled:
                left_s = deadline_s - time.monotonic()
                busy = any(self._kinds[self._live[job_id].job.kind].lane == "interactive" for job_id in self._running)
                if left_s <= 0 or not busy:
                    return
                self._changed.wait(left_s)

    def _prune(self) -> None:
        """Forget the oldest finished jobs; not being able to must not fail the job that ended."""
        try:
            self._store.prune(self._options.keep_finished)
        except StorageError:
            logger.warning("finished jobs could not be pruned", exc_info=True)


def _failure(job: Job, code: str, detail: str) -> Job:
    """Return the job as failed, its code kept for whoever waits."""
    line = f"{code}: {detail}"
    errors = job.errors if line in job.errors else (*job.errors, line)
    return replace(job, state="failed", errors=errors, result={"error": {"code": code, "detail": detail}})
