"""Run one job to its end: its context, its progress, and how it ended."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from app.core.errors import Cancelled, DocuMindError, StorageError, Superseded
from app.core.ports import JobStore
from app.core.spans import Spans
from app.core.system_errors import refusal
from app.core.types import Job
from app.jobs.context import JobContext, Update
from app.jobs.live import LiveJob
from app.jobs.options import JobOptions
from app.jobs.registry import Kind

logger = logging.getLogger(__name__)

_MAX_RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a run."""

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
        """Run one job to any end. An edge: no handler's exception leaves it.

        Args:
            live: Marked as running.
            kind: Its rules.
            shown: Told of every change.
        """
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


def prune(store: JobStore, options: JobOptions) -> None:
    """Delete the oldest finished jobs; failing to is only logged."""
    try:
        store.delete_finished(options.keep_finished)
    except StorageError:
        logger.warning("finished jobs could not be pruned", exc_info=True)
