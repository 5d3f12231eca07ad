"""Define the port through which several processes accept and run the same jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from app.core.types import Job, JobFile

StopRequest = Literal["pause", "cancel"]


@dataclass(frozen=True, slots=True)
class Route:
    """A job's lane, and what it must not run together with."""

    lane: str
    mark: str
    """Jobs with an equal mark never overlap; empty for none."""


@dataclass(frozen=True, slots=True)
class JobClaim:
    """A job that a worker took; lost once another worker takes it over."""

    job: Job
    ticket: int
    attempts: int
    """How often it was queued again."""


@dataclass(frozen=True, slots=True)
class News:
    """A change of a job in any process, or that none came for a while."""

    kind: Literal["state", "progress", "quiet", "lost"]
    """`state`: something may run or should stop; `quiet`: nothing came; `lost`: the connection is
    gone, and changes go by unseen."""
    job_id: str = ""


class SharedJobs(Protocol):
    """Jobs of several processes: their rows, who runs them, requests to stop, news.

    The rows are those of the JobStore. Each call is one durable transaction.
    """

    def create(
        self,
        kind: str,
        payload: Mapping[str, object],
        route: Route,
        *,
        files: Sequence[JobFile] = (),
        total: int | None = None,
        unit: str = "items",
        same: Callable[[Job], bool] | None = None,
    ) -> Job:
        """Accept a job; or return a waiting one of this kind for which `same` holds."""
        ...

    def stop(self, job_id: str, how: StopRequest) -> Job:
        """Stop a waiting job now, or ask the process that runs it.

        Raises:
            NotFound: No such job.
            Conflict: It has ended and cannot be paused.
        """
        ...

    def resume(self, job_id: str, route_of: Callable[[Job], Route]) -> Job:
        """Queue a paused job again.

        Raises:
            NotFound: No such job.
            Conflict: It has ended, or is still stopping.
        """
        ...

    def take(self, lane: str, worker: int) -> JobClaim | None:
        """Mark the oldest job that may run now as running; None without one."""
        ...

    def save(self, claim: JobClaim, job: Job) -> bool:
        """Write progress down; return False if the claim is lost, and change nothing."""
        ...

    def settle(self, claim: JobClaim, job: Job, again_in_s: float | None = None) -> Job | None:
        """Write down how a run ended, and give the claim back; None if it was lost.

        A job that is `queued` runs again, after `again_in_s` seconds; a request to stop that came
        in between is obeyed.
        """
        ...

    def requests(self, claims: Sequence[JobClaim]) -> Mapping[int, StopRequest | Literal["lost"]]:
        """Return by ticket which claims should stop, and why."""
        ...

    def enrol(self) -> int:
        """Return the number of a new worker, which has to `beat`."""
        ...

    def beat(self, worker: int) -> int:
        """Say that a worker lives; return its number, a new one if it was given up."""
        ...

    def leave(self, worker: int) -> None:
        """End a worker; what it still runs is taken over."""
        ...

    def rescue(self, lost_after_s: float, route_of: Callable[[Job], Route | None]) -> int:
        """Queue jobs again that no living worker runs; return how many.

        Args:
            lost_after_s: Seconds without a beat after which a worker is given up.
            route_of: Where a job waits that has no place yet; None leaves it as it is.
        """
        ...

    def turn(self, name: str, every_s: float) -> bool:
        """Return whether the caller may do `name` now.

        One process may in each `every_s` seconds.
        """
        ...

    def news(self, closing: threading.Event, poll_s: float) -> Iterator[News]:
        """Yield changes until `closing`; something at least every `poll_s` seconds."""
        ...
