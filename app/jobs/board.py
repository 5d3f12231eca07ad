"""The board: jobs as they are at this moment, and ways to wait for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from app.core.cancel import CancelToken
from app.core.ports import JobStore
from app.core.types import Job, JobState

FINISHED: frozenset[JobState] = frozenset({"done", "failed", "cancelled"})
Stop = Literal["pause", "cancel", "shutdown"]


@dataclass(slots=True)
class LiveJob:
    """An unfinished job in this process; guarded by the board's lock."""

    job: Job
    token: CancelToken = field(default_factory=CancelToken)
    stop: Stop | None = None
    """Why the token was cancelled."""
    saved_at_s: float = 0.0
    not_before_s: float = 0.0
    attempts: int = 0
    listeners: list[Callable[[], None]] = field(default_factory=list)


def is_finished(job: Job) -> bool:
    """Return whether the job has ended for good."""
    return job.state in FINISHED


class JobBoard:
    """Unfinished jobs from memory, finished ones from the store; thread-safe."""

    def __init__(self, store: JobStore) -> None:
        """Bind a store; the board starts out empty."""
        self._store = store
        self._live: dict[str, LiveJob] = {}
        self._changed = threading.Condition()

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
        """Call `changed` after every change of the job while the block runs.

        Read the state with `get`. The callback runs in whichever thread made the change and must
        return quickly.
        """
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

    def wait(
        self,
        job_id: str,
        timeout_s: float | None = None,
        until: Callable[[Job], bool] = is_finished,
    ) -> Job:
        """Return the job once `until` holds or it ended; after `timeout_s` as it is.

        None: no limit.

        Raises:
            NotFound: No such job.
        """
        woken = threading.Event()
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        with self.subscribe(job_id, woken.set):
            while True:
                woken.clear()
                job = self.get(job_id)
                left_s = None if deadline_s is None else deadline_s - time.monotonic()
                if until(job) or is_finished(job) or (left_s is not None and left_s <= 0):
                    return job
                woken.wait(left_s)

    def watch(self, job_id: str, cancel: CancelToken) -> Iterator[Job]:
        """Yield the job now and after each change until it ends.

        Changes faster than the reader are merged.

        Raises:
            NotFound: No such job.
            Cancelled: The reader's token was cancelled.
        """
        woken = threading.Event()
        cancel.on_cancel(woken.set)
        seen: Job | None = None
        with self.subscribe(job_id, woken.set):
            while True:
                woken.clear()
                cancel.raise_if_cancelled()
                job = self.get(job_id)
                if job != seen:
                    seen = job
                    yield job
                if is_finished(job):
                    return
                woken.wait()

    def _tell(self, live: LiveJob) -> None:
        """Call the listeners of a job, outside the lock."""
        with self._changed:
            listeners = tuple(live.listeners)
        for listener in listeners:
            listener()
