"""The board: jobs as they are at this moment, and ways to wait for them."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from app.core.cancel import CancelToken
from app.core.types import Job, JobState

FINISHED: frozenset[JobState] = frozenset({"done", "failed", "cancelled"})


def is_finished(job: Job) -> bool:
    """Return whether the job has ended for good."""
    return job.state in FINISHED


class JobBoard(ABC):
    """Jobs, wherever they run; thread-safe."""

    @abstractmethod
    def get(self, job_id: str) -> Job:
        """Return a job as it is now.

        Raises:
            NotFound: No such job, or it was pruned.
        """

    @abstractmethod
    def list(self, limit: int = 100) -> Sequence[Job]:
        """Return jobs, newest first, with the progress of this moment."""

    @abstractmethod
    def subscribe(self, job_id: str, changed: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `changed` after every change of the job while the block runs.

        Read the state with `get`. The callback runs in whichever thread made the change and must
        return quickly.
        """

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
