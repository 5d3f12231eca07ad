"""Accept, pause, resume and cancel jobs of one process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from app.core.cancel import CancelToken
from app.core.errors import Conflict, StorageError
from app.core.ports import JobStore
from app.core.types import Job, JobFile
from app.jobs.board import is_finished
from app.jobs.live import LiveJob
from app.jobs.runner import JobRunner

logger = logging.getLogger(__name__)


class LocalQueue(JobRunner):
    """Keeps unfinished jobs in memory; the store has the others."""

    def __init__(self, store: JobStore) -> None:
        """Bind a store; the queue starts out empty."""
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
        """Queue a paused job again."""
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
