"""Accept, pause, resume and cancel jobs; track which wait and which run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app.core.cancel import CancelToken
from app.core.errors import Conflict, InvalidInput, StorageError
from app.core.ports import JobStore
from app.core.types import Job, JobFile
from app.jobs.board import JobBoard, LiveJob, is_finished
from app.jobs.context import Handler, Lane

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kind:
    """Rules for running jobs of one name."""

    handler: Handler
    lane: Lane
    exclusive: Callable[[Mapping[str, object]], str]

    def mark(self, job: Job) -> str:
        """Return the key that jobs must not share to run together; empty for none."""
        key = self.exclusive(job.payload)
        return f"{job.kind}:{key}" if key else ""


def share_nothing(payload: Mapping[str, object]) -> str:
    """Return the exclusive key of kinds whose jobs may all run at once: none."""
    del payload
    return ""


def per_library(payload: Mapping[str, object]) -> str:
    """Return the exclusive key of a whole library: one such job at a time."""
    return str(payload.get("library", "all"))


class JobQueue(JobBoard):
    """A board that accepts work; thread-safe. The runner takes jobs from it."""

    def __init__(self, store: JobStore) -> None:
        """Bind a store; the queue starts out empty."""
        super().__init__(store)
        self._kinds: dict[str, Kind] = {}
        self._queue: list[str] = []
        self._running: dict[str, str] = {}
        """Job id -> exclusive mark of its kind."""
        self._admin = threading.Lock()
        """Serialises submit, pause, resume and cancel, so that their rows are written in order.
        Taken before `_changed`."""

    def register(
        self,
        kind: str,
        handler: Handler,
        *,
        lane: Lane = "interactive",
        exclusive: Callable[[Mapping[str, object]], str] = share_nothing,
    ) -> None:
        """Register a kind's handler; jobs with an equal non-empty key never overlap.

        The key is the result of `exclusive`.
        """
        self._kinds[kind] = Kind(handler, lane, exclusive)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the registered kinds."""
        return tuple(self._kinds)

    def lane_of(self, kind: str) -> Lane | None:
        """Return the lane that a kind's jobs run in; None for an unknown kind."""
        found = self._kinds.get(kind)
        return None if found is None else found.lane

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
            coalesce: Return a queued or paused job of the same kind and exclusive key instead of
                adding one.

        Raises:
            InvalidInput: The kind is not registered.
            DiskFull: The row could not be written; nothing was accepted.
        """
        if kind not in self._kinds:
            raise InvalidInput(
                f"no job of kind {kind!r}; there are {', '.join(sorted(self._kinds))}"
            )
        with self._admin:
            if coalesce and (waiting := self._waiting(kind, payload)) is not None:
                return waiting
            job = replace(
                self._store.create(kind, payload, total=total, unit=unit), files=tuple(files)
            )
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
        """End a job for good and keep its results; an ended job stays as it is.

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
