"""Run the jobs of one process, in threads of their own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from app.core.cancel import CancelToken
from app.core.errors import Cancelled, Conflict, DocuMindError, StorageError, Superseded, refusal
from app.core.trace import SILENT, Spans
from app.core.types import Job, JobFile, JobState
from app.jobs.runner import (
    JobContext,
    JobOptions,
    JobRunner,
    Kind,
    Lane,
    LiveJob,
    Update,
    is_finished,
)

if TYPE_CHECKING:
    from app.storage.catalog.state import SqliteJobStore

# Accept, pause, resume and cancel jobs of one process.


class LocalQueue(JobRunner):
    """Keeps unfinished jobs in memory; the store has the others."""

    def __init__(self, store: SqliteJobStore) -> None:
        super().__init__()
        self._store = store
        self._live: dict[str, LiveJob] = {}
        self._changed = threading.Condition()
        self._queue: list[str] = []
        self._running: dict[str, str] = {}
        """Job id -> exclusive mark of its kind."""
        self._admin = threading.Lock()
        """Serialises submit, pause, resume and cancel, so that their rows are written in order.
        Taken before `_changed`."""

    def get(self, job_id: str) -> Job:
        """Return a job as it is now.

        Raises:
            NotFound: No such job, or it was pruned.
        """
        with self._changed:
            live = self._live.get(job_id)
            if live is not None:
                return live.job
        return self._store.get(job_id)

    def list(self, limit: int = 100) -> Sequence[Job]:
        """Return jobs, newest first, with the progress of this moment."""
        stored = self._store.list(limit)
        with self._changed:
            return [self._live[job.id].job if job.id in self._live else job for job in stored]

    @contextmanager
    def subscribe(self, job_id: str, changed: Callable[[], None]) -> Iterator[None]:
        """Call `changed` after every change of the job while the block runs."""
        with self._changed:
            live = self._live.get(job_id)
            if live is not None:
                live.listeners.append(changed)
        try:
            yield
        finally:
            with self._changed:
                if live is not None and changed in live.listeners:
                    live.listeners.remove(changed)

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
        """Accept work: on return its row is durable."""
        self._kind(kind)
        with self._admin:
            if coalesce and (waiting := self._waiting(kind, payload)) is not None:
                return waiting
            job = replace(
                self._store.create(kind, payload, total=total, unit=unit), files=tuple(files)
            )
            self._enqueue(LiveJob(job))
        return job

    def pause(self, job_id: str) -> Job:
        """Stop a job at its next checkpoint."""
        return self._stop(job_id, "pause")

    def cancel(self, job_id: str) -> Job:
        """End a job for good and keep its results."""
        return self._stop(job_id, "cancel")

    def resume(self, job_id: str) -> Job:
        with self._admin:
            with self._changed:
                live = self._live.get(job_id)
            if live is None:
                raise Conflict(
                    f"job {job_id!r} is {self._store.get(job_id).state}; only a paused job can be"
                    " resumed"
                )
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
            waiting = [
                live.job
                for live in self._live.values()
                if live.job.kind == kind and live.job.state in {"queued", "paused"}
            ]
        return next((job for job in waiting if key_of(job.payload) == key_of(payload)), None)

    def _stop(self, job_id: str, how: Literal["pause", "cancel"]) -> Job:
        """Stop a waiting job at once, or ask a running one to stop."""
        with self._admin:
            with self._changed:
                live = self._live.get(job_id)
                running = live is not None and live.job.state == "running"
                if live is not None and running:
                    # A cancel overrides a pause that has not taken effect; a pause never undoes a
                    # cancel.
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
                self._rest(
                    live, replace(live.job, state="cancelled" if how == "cancel" else "paused")
                )
        self._tell(live)
        return live.job

    def _tell(self, live: LiveJob) -> None:
        """Call the listeners of a job, outside the lock."""
        with self._changed:
            listeners = tuple(live.listeners)
        for listener in listeners:
            listener()

    def _rest(self, live: LiveJob, job: Job) -> None:
        """Store that a job is at rest, then show it; if storing fails, keep it in memory."""
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


# Run one job to its end: its context, its progress, and how it ended.

_MAX_RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class Ending:
    job: Job
    """As it is to be written down."""
    again_in_s: float | None = None
    """Seconds after which a `queued` job is tried again; None after no failure."""


class Performer:
    """Runs jobs for a runner, which keeps their rows; thread-safe."""

    def __init__(
        self,
        options: JobOptions,
        clock: Callable[[], float],
        spans: Spans,
        changed: threading.Condition,
        save: Callable[[LiveJob], None],
        busy: Callable[[], bool],
    ) -> None:
        """Take what the runner gives.

        Args:
            options: Intervals, in seconds.
            clock: Monotonic seconds.
            spans: Where runs are traced.
            changed: The runner's lock, notified after changes.
            save: Writes a job's progress down.
            busy: Whether interactive work runs; called under the lock.
        """
        self._options = options
        self._clock = clock
        self._spans = spans
        self._changed = changed
        self._save = save
        self._busy = busy

    def perform(self, live: LiveJob, kind: Kind, shown: Callable[[LiveJob], None]) -> Ending:
        """Run one job to any end. An edge: no handler's exception leaves it."""
        job = live.job
        span = self._spans.begin(
            f"job {job.kind}", {"documind.job": job.id, "documind.lane": kind.lane}
        )
        with self._spans.around(span):
            ending = self._run(live, kind, self._context(live, kind, shown))
        span.put(
            {
                "documind.state": ending.job.state,
                "documind.done": ending.job.done,
                "documind.unit": ending.job.unit,
            }
        )
        span.end()
        return ending

    def _context(self, live: LiveJob, kind: Kind, shown: Callable[[LiveJob], None]) -> JobContext:
        def update(change: Update, durable: bool) -> None:
            self._update(live, change, durable)
            shown(live)

        def give_way() -> None:
            if kind.lane == "background":
                self._give_way(live)

        return JobContext(
            live.job, cancel=live.token, update=update, give_way=give_way, clock=self._clock
        )

    def _run(self, live: LiveJob, kind: Kind, context: JobContext) -> Ending:
        try:
            result = kind.handler(context)
        except Superseded as error:
            line = f"{error.code}: {error.message}"
            return Ending(replace(live.job, state="cancelled", errors=(*live.job.errors, line)))
        except Cancelled:
            return Ending(replace(live.job, state=live.state_after_stop))
        except DocuMindError as error:
            return self._failed(live, error)
        except Exception as error:
            if (refused := refusal(error)) is not None:
                return self._failed(live, refused)
            job = live.job
            if live.stop == "shutdown":  # the process ends under it; the next start goes on
                logger.info("job %s (%s) ended with the process: %r", job.id, job.kind, error)
                return Ending(replace(job, state=live.state_after_stop))
            logger.exception("job %s (%s) failed unexpectedly", job.id, job.kind)
            detail = (
                f"the {job.kind} job failed unexpectedly; the server's log has the details"
                f" under job {job.id}"
            )
            return Ending(_failure(job, "internal", detail))
        kept = live.job.result if result is None else dict(result)
        return Ending(replace(live.job, state="done", result=kept))

    def _failed(self, live: LiveJob, error: DocuMindError) -> Ending:
        """Return a failed job's end; an accepted one is tried again later if retryable."""
        failed = _failure(live.job, error.code, error.message)
        if not (error.retryable and live.job.payload.get("retry") is True):
            logger.warning(
                "job %s (%s) failed: %s: %s", failed.id, failed.kind, error.code, error.message
            )
            return Ending(failed)
        delay_s = min(_MAX_RETRY_S, self._options.retry_s * 2 ** min(live.attempts, 20))
        logger.warning(
            "job %s (%s) will be tried again in %.0f s: %s",
            failed.id,
            failed.kind,
            delay_s,
            error.message,
        )
        return Ending(replace(live.job, state="queued", errors=failed.errors), delay_s)

    def flush(self, live: LiveJob) -> None:
        """Write down progress that was held back, if the last write is old enough."""
        if live.unsaved:
            self._write_down(live, durable=False)

    def _update(self, live: LiveJob, change: Update, durable: bool) -> None:
        """Show a change now; write it down if durable or if the last write is old enough."""
        with self._changed:
            live.job = change(live.job)
            live.unsaved = True
        self._write_down(live, durable)

    def _write_down(self, live: LiveJob, durable: bool) -> None:
        with self._changed:
            now_s = self._clock()
            if not durable and now_s - live.saved_at_s < self._options.save_interval_s:
                return
            live.saved_at_s, live.unsaved = now_s, False
        try:
            self._save(live)
        except StorageError:
            if durable:
                raise
            logger.warning(
                "progress of job %s could not be written down", live.job.id, exc_info=True
            )

    def _give_way(self, live: LiveJob) -> None:
        """Pause a background step while interactive jobs run, for at most `give_way_s`."""
        deadline_s = time.monotonic() + self._options.give_way_s
        with self._changed:
            while not live.token.cancelled:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not self._busy():
                    return
                self._changed.wait(left_s)


def _failure(job: Job, code: str, detail: str) -> Job:
    """Return the job as failed, with its error code for waiting callers."""
    line = f"{code}: {detail}"
    errors = job.errors if line in job.errors else (*job.errors, line)
    return replace(
        job, state="failed", errors=errors, result={"error": {"code": code, "detail": detail}}
    )


def prune(store: SqliteJobStore, options: JobOptions) -> None:
    """Delete the oldest finished jobs; failing to is only logged."""
    try:
        store.delete_finished(options.keep_finished)
    except StorageError:
        logger.warning("finished jobs could not be pruned", exc_info=True)


logger = logging.getLogger(__name__)


class LocalRunner(LocalQueue):
    """A queue of this process that also does the work; thread-safe."""

    def __init__(
        self,
        store: SqliteJobStore,
        options: JobOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
        spans: Spans = SILENT,
    ) -> None:
        super().__init__(store)
        self._options = options or JobOptions()
        self._clock = clock
        self._performer = Performer(
            self._options, clock, spans, self._changed, self._save, self._is_busy
        )
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
        for lane, count in self._options.threads.items():
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
            lives = tuple(self._live.values())
            for live in lives:
                live.stop = live.stop or "shutdown"
        for live in lives:
            live.token.cancel()
        with self._changed:
            self._changed.notify_all()
        deadline_s = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))

    def _work(self, lane: Lane) -> None:
        """Take jobs of one lane until the runner closes."""
        while (live := self._next(lane)) is not None:
            self._tell(live)
            kind = self._kinds[live.job.kind]
            self._settle(live, self._performer.perform(live, kind, self._tell))
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

    def _settle(self, live: LiveJob, ending: Ending) -> None:
        """Write down how a run ended; queue the job again where it is to be tried again."""
        if ending.again_in_s is None:
            self._rest(live, ending.job)
            if ending.job.state == "done":
                prune(self._store, self._options)
            return
        with self._admin:
            if live.stop in {"pause", "cancel"}:
                self._rest(live, replace(live.job, state=live.state_after_stop))
                return
            self._rest(live, ending.job)
            live.attempts += 1
            live.not_before_s = self._clock() + ending.again_in_s
            self._enqueue(live)

    def _save(self, live: LiveJob) -> None:
        self._store.save(live.job)

    def _is_busy(self) -> bool:
        """Return whether interactive work runs; the caller holds the lock."""
        return any(
            self._kinds[self._live[job_id].job.kind].lane == "interactive"
            for job_id in self._running
        )
