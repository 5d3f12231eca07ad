"""One runner for all long work: persistent, resumable, pausable, cancellable.

A job is a row in the job store. `submit` returns when the row is durable; what was queued or
running when a process ended is queued again, because handlers are resumable by construction. Kinds
run in lanes, so that an upload never waits behind a backfill. `worker` runs them in the server,
`shared` in any of several processes.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, cast, get_args

from pydantic import TypeAdapter

from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, NotFound
from app.core.ports import Catalog
from app.core.types import IngestOutcome, Job, JobFile, JobState, Library
from app.ingest.pipeline import with_vectors

# The board: jobs as they are at this moment, and ways to wait for them.

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


# Give a running job its payload, a cancel token, and ways to report.

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


# Hold the rules of each kind of job: handler, lane, exclusive mark.


@dataclass(frozen=True, slots=True)
class Kind:
    """Rules for running jobs of one name."""

    handler: Handler
    lane: Lane
    exclusive: Callable[[Mapping[str, object]], str]

    def mark(self, job: Job) -> str:
        """Return the key that jobs must not share to run together; empty for none."""
        return self.mark_of(job.kind, job.payload)

    def mark_of(self, name: str, payload: Mapping[str, object]) -> str:
        key = self.exclusive(payload)
        return f"{name}:{key}" if key else ""


def share_nothing(payload: Mapping[str, object]) -> str:
    """Return the exclusive key of kinds whose jobs may all run at once: none."""
    del payload
    return ""


def per_library(payload: Mapping[str, object]) -> str:
    """Return the exclusive key of a whole library: one such job at a time."""
    return str(payload.get("library", "all"))


class JobRunner(JobBoard):
    """Accepts jobs and runs them; thread-safe. Register kinds, then `start`; `close` at the end."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}

    def register(
        self,
        kind: str,
        handler: Handler,
        *,
        lane: Lane = "interactive",
        exclusive: Callable[[Mapping[str, object]], str] = share_nothing,
    ) -> None:
        """Register a kind's handler; jobs whose `exclusive` keys are equal never overlap."""
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
        del name, every_s
        return True

    def _kind(self, name: str) -> Kind:
        """Return the rules of a kind, or raise InvalidInput."""
        if name not in self._kinds:
            raise InvalidInput(
                f"no job of kind {name!r}; there are {', '.join(sorted(self._kinds))}"
            )
        return self._kinds[name]


# A job as it runs in this process.

Stop = Literal["pause", "cancel", "shutdown", "lost"]
"""Why a token was cancelled; `lost`: another process runs the job now."""

_AFTER: dict[Stop | None, JobState] = {"shutdown": "queued", "lost": "queued", "pause": "paused"}


@dataclass(slots=True)
class LiveJob:
    """An unfinished job in this process; guarded by the runner's lock."""

    job: Job
    token: CancelToken = field(default_factory=CancelToken)
    stop: Stop | None = None
    """Why the token was cancelled."""
    saved_at_s: float = 0.0
    unsaved: bool = False
    """Whether it shows more than its row."""
    saving: threading.Lock = field(default_factory=threading.Lock)
    """Held while its row is written where two threads write it."""
    ticket: int = 0
    """Of the queue that several processes share."""
    not_before_s: float = 0.0
    attempts: int = 0
    listeners: list[Callable[[], None]] = field(default_factory=list)

    @property
    def state_after_stop(self) -> JobState:
        """Return the state of a job that stopped as it was asked to."""
        return _AFTER.get(self.stop, "cancelled")


# Options of the job runner.

LANES: tuple[Lane, ...] = get_args(Lane)


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Limits of concurrent jobs, and intervals of progress writes, in seconds."""

    workers: int = 2
    """Threads for work someone waits for (ingest, samples, delete)."""
    background_workers: int = 2
    """Threads for long work (backfill, rebuild, bulk, evaluation); they give way to the former
    between steps."""
    network_workers: int = 1
    """Threads for downloads (arXiv, model pull), which wait far more than they work."""
    lanes: tuple[Lane, ...] = LANES
    """Lanes that this process works in; jobs of others wait for another process."""
    keep_finished: int = 1000
    """Finished jobs kept for the list, newest first."""
    save_interval_s: float = 2.0
    """Progress is written to the store this often at most; the state of a job at once."""
    give_way_s: float = 5.0
    """Longest pause of a background step while interactive work runs, so that it always gets on."""
    retry_s: float = 5.0
    """First wait before an accepted job is tried again after a retryable error; doubles up to a
    minute."""
    poll_s: float = 1.0
    """Several processes: jobs, requests to stop and unsaved progress are looked at this often, for
    what no message told."""
    beat_s: float = 5.0
    """Several processes: a worker says this often that it lives, and looks for jobs of lost
    ones."""
    lost_after_s: float = 20.0
    """Several processes: a worker that was silent this long is lost, and its jobs run again."""

    @property
    def threads(self) -> Mapping[Lane, int]:
        counts: dict[Lane, int] = {
            "interactive": self.workers,
            "background": self.background_workers,
            "network": self.network_workers,
        }
        return {lane: counts[lane] for lane in self.lanes}


# Define jobs' payloads and results as JSON values, for edge and handlers.


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """One accepted file: its original is stored under its hash."""

    filename: str
    source_key: str
    sha256: str


@dataclass(frozen=True, slots=True)
class IngestPayload:
    """Files to ingest, in upload order."""

    library: Library
    files: tuple[UploadedFile, ...]
    retry: bool = False
    """True when the sender was told `accepted` and left: retryable errors are tried again
    instead of reported."""

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "library": self.library.value}

    @classmethod
    def from_json(cls, payload: Mapping[str, object]) -> IngestPayload:
        return _PAYLOAD.validate_python(payload)


_PAYLOAD = TypeAdapter(IngestPayload)
_OUTCOMES = TypeAdapter(tuple[IngestOutcome, ...])


@dataclass(frozen=True, slots=True)
class IngestReport:
    """Outcomes in upload order, and how far the work has come."""

    outcomes: tuple[IngestOutcome, ...]
    level: Literal["text", "vectors"]
    """`text`: acknowledged and found by words; `vectors`: found by meaning too."""

    def to_json(self) -> dict[str, object]:
        return {"level": self.level, "documents": [asdict(outcome) for outcome in self.outcomes]}

    @classmethod
    def from_json(cls, result: Mapping[str, object] | None) -> IngestReport | None:
        """Return a job's report; None if it is not there yet or the job failed."""
        if result is None or "documents" not in result:
            return None
        level = cast("Literal['text', 'vectors']", result["level"])
        return cls(_OUTCOMES.validate_python(result["documents"]), level)


def has_text(job: Job) -> bool:
    """Return whether a job's documents are acknowledged."""
    return IngestReport.from_json(job.result) is not None


def pending_originals(jobs: Sequence[Job]) -> frozenset[str]:
    """Return hashes of originals that unfinished jobs need; a start keeps them."""
    hashes: set[str] = set()
    for job in jobs:
        files = job.payload.get("files")
        if isinstance(files, Sequence):
            hashes.update(
                str(file["sha256"])
                for file in files
                if isinstance(file, Mapping) and "sha256" in file
            )
    return frozenset(hashes)


def counted(
    catalog: Catalog, library: Library, outcomes: Sequence[IngestOutcome]
) -> Iterator[IngestOutcome]:
    """Yield outcomes with the vectors that their documents have by now."""
    for outcome in outcomes:
        if outcome.doc_id is None or outcome.receipt is None:
            yield outcome
            continue
        try:
            embedded = catalog.document(library, outcome.doc_id).embedded
        except NotFound:  # deleted since
            embedded = 0
        yield with_vectors(outcome, embedded)
