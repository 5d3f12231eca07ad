"""Give a running job its payload, a cancel token, and ways to report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app.core.cancel import CancelToken
from app.core.types import Job, JobFile

Lane = Literal["interactive", "background", "network"]
Update = Callable[[Job], Job]


@dataclass(slots=True)
class RateEstimate:
    """A smoothed rate of progress, in units per second; recent steps count more."""

    tau_s: float = 20.0
    """Time constant of the exponential average: what lies this far back counts 1/e."""
    _rate: float | None = None
    _done: int = 0
    _at_s: float | None = None

    def observe(self, done: int, now_s: float) -> None:
        """Take note that `done` units were ready at `now_s` (monotonic seconds)."""
        if self._at_s is None or done < self._done:
            self._done, self._at_s = done, now_s
            return
        elapsed_s = now_s - self._at_s
        if elapsed_s <= 0 or done == self._done:
            return
        latest = (done - self._done) / elapsed_s
        keep = 2.718281828459045 ** (-elapsed_s / self.tau_s)
        self._rate = latest if self._rate is None else keep * self._rate + (1 - keep) * latest
        self._done, self._at_s = done, now_s

    def eta_s(self, total: int | None) -> float | None:
        """Return the seconds left for `total` units, or None when nothing is known yet."""
        if total is None or not self._rate:
            return None
        return round(max(0, total - self._done) / self._rate, 1)


class JobContext:
    """A handler's view of its job; reports show at once and are stored at times."""

    def __init__(
        self,
        job: Job,
        *,
        cancel: CancelToken,
        update: Callable[[Update, bool], None],
        give_way: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        """Bind a job to the runner's callbacks; only the runner constructs contexts."""
        self.job_id = job.id
        self.kind = job.kind
        self.payload: Mapping[str, object] = job.payload
        self.previous: Mapping[str, object] | None = job.result
        """What an interrupted run had published, None on a first run."""
        self.cancel = cancel
        self._update = update
        self._give_way = give_way
        self._clock = clock
        self._rate = RateEstimate()

    def checkpoint(self) -> None:
        """Stop here if asked to; background work also yields to interactive work.

        Call it between steps.

        Raises:
            Cancelled: Someone paused or cancelled the job, or the process is ending.
        """
        self.cancel.raise_if_cancelled()
        self._give_way()
        self.cancel.raise_if_cancelled()

    def progress(self, done: int, total: int | None = None, unit: str | None = None) -> None:
        """Report that `done` of `total` units are ready; None keeps the former value."""
        self._rate.observe(done, self._clock())

        def change(job: Job) -> Job:
            whole = job.total if total is None else total
            return replace(
                job, done=done, total=whole, unit=unit or job.unit, eta_s=self._rate.eta_s(whole)
            )

        self._update(change, False)

    def files(self, files: Iterable[JobFile]) -> None:
        """Replace the list of per-file states."""
        listed = tuple(files)
        self._update(lambda job: replace(job, files=listed), False)

    def file(
        self, index: int, state: Literal["queued", "running", "done", "failed"], progress: float
    ) -> None:
        """Report the state of one file; `progress` in [0, 1]."""

        def change(job: Job) -> Job:
            listed: Sequence[JobFile] = job.files
            changed = replace(listed[index], state=state, progress=progress)
            return replace(job, files=(*listed[:index], changed, *listed[index + 1 :]))

        self._update(change, False)

    def error(self, message: str) -> None:
        """Keep a message for the user; the job goes on."""
        self._update(lambda job: replace(job, errors=(*job.errors, message)), False)

    def publish(self, result: Mapping[str, object]) -> None:
        """Store and show an interim result, for callers who need only that much."""
        self._update(lambda job: replace(job, result=dict(result)), True)


Handler = Callable[[JobContext], Mapping[str, object] | None]
"""The work of one kind: returns the job's result, a JSON object, or None to keep what it published.

It must be resumable: after a crash, a pause or a retryable error it runs again with the same
payload. It may raise Cancelled (pause, cancel and shutdown all cancel the context's token) and any
DocuMindError, whose code and message are kept.
"""
