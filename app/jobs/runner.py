"""One runner for all long work: persistent, resumable, pausable, cancellable.

A job is a row in the JobStore. `submit` returns when the row is durable; what was queued or running
when a process ended is queued again, because handlers are resumable by construction. Kinds run in
lanes, so that an upload never waits behind a backfill. `local_runner` runs them in the server,
`shared_runner` in any of several processes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

from app.core.errors import InvalidInput
from app.core.types import Job, JobFile
from app.jobs.board import JobBoard
from app.jobs.context import Handler, Lane
from app.jobs.registry import Kind, share_nothing


class JobRunner(JobBoard):
    """Accepts jobs and runs them; thread-safe.

    Register kinds, then `start`; `close` at the end.
    """

    def __init__(self) -> None:
        """Start out without kinds."""
        self._kinds: dict[str, Kind] = {}

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

    @abstractmethod
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

    @abstractmethod
    def pause(self, job_id: str) -> Job:
        """Stop a job at its next checkpoint; `resume` continues it, also after a restart.

        Raises:
            NotFound: No such job.
            Conflict: It has already ended.
        """

    @abstractmethod
    def cancel(self, job_id: str) -> Job:
        """End a job for good and keep its results; an ended job stays as it is.

        Raises:
            NotFound: No such job.
        """

    @abstractmethod
    def resume(self, job_id: str) -> Job:
        """Queue a paused job again; a queued or running one is left alone.

        Raises:
            NotFound: No such job.
            Conflict: It has already ended, or is still stopping.
        """

    @abstractmethod
    def start(self) -> None:
        """Queue again what an ended process left unfinished, and start the workers."""

    @abstractmethod
    def close(self, timeout_s: float = 5.0) -> None:
        """Stop the workers within `timeout_s` seconds; jobs that ran are queued again."""

    def turn(self, name: str, every_s: float) -> bool:
        """Return whether `name` is this process's to do now: once in `every_s` seconds."""
        del name, every_s
        return True

    def _kind(self, name: str) -> Kind:
        """Return the rules of a kind, or raise InvalidInput."""
        if name not in self._kinds:
            raise InvalidInput(
                f"no job of kind {name!r}; there are {', '.join(sorted(self._kinds))}"
            )
        return self._kinds[name]
