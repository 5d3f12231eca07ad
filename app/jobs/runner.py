"""Accept long work and run it: persistent, resumable, pausable, cancellable.

A job is a row of the queue. `submit` returns when the row is durable; what ran when its process
ended runs again, here or in another process, because handlers are resumable by construction. Kinds
run in lanes, so that an upload never waits behind a backfill.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from app.core.cancel import CancelToken
from app.core.errors import (
    Cancelled,
    DocuMindError,
    InvalidInput,
    StorageError,
    Superseded,
    refusal,
)
from app.core.ids import new_id
from app.core.trace import SILENT, Spans
from app.core.types import Job, JobFile, JobState, Library, StopRequest

if TYPE_CHECKING:
    from app.storage.queue import ClaimedJob, JobQueue


logger = logging.getLogger(__name__)

FINISHED: frozenset[JobState] = frozenset({"done", "failed", "cancelled"})


def is_finished(job: Job) -> bool:
    return job.state in FINISHED


# What a handler sees of its job.

Lane = Literal["interactive", "background", "network"]
Stop = Literal["pause", "cancel", "shutdown", "lost"]
"""Why a run is to stop; `lost`: another process runs the job now."""

_STATE_AFTER_RUN: Mapping[Stop | None, JobState] = {
    "shutdown": "queued", "lost": "queued", "pause": "paused"
}  # fmt: skip
"""State of a job that stopped as it was asked to; otherwise it is cancelled."""


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
    """One run of a job: the handler's view of it; reports show at once, are stored at times."""

    def __init__(self, runner: JobRunner, taken: ClaimedJob, worker: str) -> None:
        job = taken.job
        self.job_id = job.id
        self.kind = job.kind
        self.payload: Mapping[str, object] = job.payload
        self.previous: Mapping[str, object] | None = job.result
        """What an interrupted run had published, None on a first run."""
        self.cancel = CancelToken()
        self.job = job
        """As it is now; guarded by the runner's lock, as what follows."""
        self.worker = worker
        self.attempts = taken.attempts
        self.recovered = taken.recovered
        self.stop: Stop | None = None
        self.saved_at_s = 0.0
        self.unsaved = False
        """Whether `job` shows more than its row."""
        self.saving = threading.Lock()
        """Held while its row is written: a handler and the keeper write it."""
        self._runner = runner
        self._rate = RateEstimate()

    def checkpoint(self) -> None:
        """Stop here if asked to, and give way to interactive work unless a client waits for this.

        Raises:
            Cancelled: Someone paused or cancelled the job, or the process is ending.
        """
        self.cancel.raise_if_cancelled()
        self.give_way()
        self.cancel.raise_if_cancelled()

    def give_way(self) -> None:
        """Wait a while for interactive work if no client waits for this."""
        self._runner.give_way(self)

    def progress(self, done: int, total: int | None = None, unit: str | None = None) -> None:
        """Report that `done` of `total` units are ready; None keeps the former value."""
        self._rate.observe(done, time.monotonic())

        def change(job: Job) -> Job:
            whole = job.total if total is None else total
            return replace(
                job, done=done, total=whole, unit=unit or job.unit, eta_s=self._rate.eta_s(whole)
            )

        self._runner.show(self, change)

    def step(self, done: int, total: int | None = None, unit: str | None = None) -> None:
        """Report progress, then stop or give way as `checkpoint`."""
        self.progress(done, total, unit)
        self.checkpoint()

    def files(self, files: Iterable[JobFile]) -> None:
        listed = tuple(files)
        self._runner.show(self, lambda job: replace(job, files=listed))

    def file(
        self, index: int, state: Literal["queued", "running", "done", "failed"], progress: float
    ) -> None:
        """Report the state of one file; `progress` in [0, 1]."""

        def change(job: Job) -> Job:
            listed: Sequence[JobFile] = job.files
            changed = replace(listed[index], state=state, progress=progress)
            return replace(job, files=(*listed[:index], changed, *listed[index + 1 :]))

        self._runner.show(self, change)

    def error(self, message: str) -> None:
        """Keep a message for the user; the job goes on."""
        self._runner.show(self, lambda job: replace(job, errors=(*job.errors, message)))

    def publish(self, result: Mapping[str, object]) -> None:
        """Store and show an interim result, for callers who need only that much."""
        self._runner.show(self, lambda job: replace(job, result=dict(result)), durable=True)


Handler = Callable[[JobContext], Mapping[str, object] | None]
"""The work of one kind: returns the job's result, a JSON object, or None to keep what it published.

It must be resumable: after a crash, a pause or a retryable error it runs again with the same
payload. It may raise Cancelled (pause, cancel and shutdown all cancel the context's token) and any
DocuMindError, whose code and message are kept.
"""


# The rules of each kind of job.


@dataclass(frozen=True, slots=True)
class Kind:
    """Rules for running jobs of one name."""

    handler: Handler
    lane: Lane
    exclusive: Callable[[Mapping[str, object]], str]
    """Jobs of the kind with an equal key never overlap; empty: all may."""


def per_library(payload: Mapping[str, object]) -> str:
    """Return the exclusive key of a whole library: one such job at a time."""
    return str(payload.get("library", "all"))


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
        counts = (self.workers, self.background_workers, self.network_workers)
        return {lane: n for lane, n in zip(LANES, counts, strict=True) if lane in self.lanes}


# Accept jobs and run them.

SHARED_SAVE_S = 0.5
"""Several processes: progress is written down this often, since others see only the row."""

LOOK_EVERY_S = 5.0
"""Several processes: watchers read their job again this often, as a message may be lost."""

REPORT_EVERY_S = 30.0
"""Several processes: the log says this often which jobs run here."""

CLOSE_S, CLOSE_ALONE_S = 50.0, 5.0
"""How long a stop waits for jobs to reach a step where they can end. Kubernetes kills after 60 s,
of which the rest of the stop needs some; alone a person waits, and the next start goes on."""

_MAX_RETRY_S = 60.0


class JobRunner:
    """Accepts jobs and runs them; thread-safe. Register kinds, then `start`; `close` at the end.

    Threads take jobs of their lane from the queue; a keeper wakes them, passes requests to stop on,
    and writes held back progress down. Where several processes share the queue, it also says that
    this one lives and hands on the jobs of lost ones.
    """

    def __init__(
        self,
        queue: JobQueue,
        options: JobOptions | None = None,
        spans: Spans = SILENT,
        *,
        alone: bool = True,
    ) -> None:
        """Take a queue; `alone`: no other process works on its jobs."""
        self._queue = queue
        self._options = options or JobOptions()
        self._spans = spans
        self._alone = alone
        self._kinds: dict[str, Kind] = {}
        self._changed = threading.Condition()
        self._running: dict[str, JobContext] = {}
        """Runs of this process by worker; of a job that was taken over there may be two."""
        self._wakes = 0
        """Counts calls of `_wake`, so that none is missed between a look and a wait."""
        self._listeners: defaultdict[str, list[Callable[[], None]]] = defaultdict(list)
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._beaten_s = self._reported_s = time.monotonic()
        self._trusts_s = 0.0
        """From when on the silence of other processes says that they are lost."""

    def register(
        self,
        kind: str,
        handler: Handler,
        *,
        lane: Lane = "interactive",
        exclusive: Callable[[Mapping[str, object]], str] = lambda _: "",
    ) -> None:
        """Register a kind's handler; jobs whose `exclusive` keys are equal never overlap."""
        self._kinds[kind] = Kind(handler, lane, exclusive)

    def lane_of(self, kind: str) -> Lane | None:
        found = self._kinds.get(kind)
        return None if found is None else found.lane

    def get(self, job_id: str) -> Job:
        """Return a job as it is now.

        Raises:
            NotFound: No such job, or it was pruned.
        """
        return self._shown().get(job_id) or self._queue.get(job_id)

    def list(self, limit: int = 100) -> Sequence[Job]:
        """Return jobs, newest first, with the progress of this moment."""
        stored, shown = self._queue.list(limit), self._shown()
        return [shown.get(job.id, job) for job in stored]

    def unfinished(self, kind: str, library: Library | None = None) -> Iterator[Job]:
        """Yield jobs of a kind, and of a library, that have not ended; newest first."""
        for job in self.list(1000):
            ours = library is None or job.payload.get("library") == library.value
            if job.kind == kind and ours and not is_finished(job):
                yield job

    def _shown(self) -> Mapping[str, Job]:
        """Return the jobs that run here; their rows may be older."""
        with self._changed:
            runs = [run for run in self._running.values() if run.stop != "lost"]
            return {run.job_id: run.job for run in runs}

    @contextmanager
    def subscribe(self, job_id: str, changed: Callable[[], None]) -> Iterator[None]:
        """Call `changed` after changes of the job, in any process, while the block runs.

        Read the state with `get`. The callback runs in the thread that made or heard of the change
        and must return quickly.
        """
        with self._changed:
            self._listeners[job_id].append(changed)
        try:
            yield
        finally:
            with self._changed:
                self._listeners[job_id].remove(changed)
                if not self._listeners[job_id]:
                    del self._listeners[job_id]

    def wait(
        self,
        job_id: str,
        timeout_s: float | None = None,
        until: Callable[[Job], bool] = is_finished,
    ) -> Job:
        """Return the job once `until` holds or it ended; after `timeout_s` (None: never) as it is.

        Raises:
            NotFound: No such job.
        """
        for job in self.watch(job_id, CancelToken(), timeout_s):
            if until(job):
                break
        return job

    def watch(
        self, job_id: str, cancel: CancelToken, timeout_s: float | None = None
    ) -> Iterator[Job]:
        """Yield the job now and after changes, merged for a slow reader, for at most `timeout_s`.

        Raises:
            NotFound: No such job.
            Cancelled: The reader's token was cancelled.
        """
        woken = threading.Event()
        cancel.on_cancel(woken.set)
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        left_s: float | None = None
        seen: Job | None = None
        with self.subscribe(job_id, woken.set):
            while left_s is None or left_s > 0:
                woken.clear()
                cancel.raise_if_cancelled()
                job = self.get(job_id)
                if job != seen:
                    seen = job
                    yield job
                if is_finished(job):
                    return
                left_s = None if deadline_s is None else deadline_s - time.monotonic()
                woken.wait(left_s)

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

        A payload holds all that the handler needs, also after a restart; with `retry: true` it is
        tried again after a retryable error instead of failing. `coalesce` returns a queued or
        paused job of the same kind and exclusive key instead of adding one.

        Raises:
            InvalidInput: The kind is not registered.
            DiskFull: The row could not be written; nothing was accepted.
        """
        if kind not in self._kinds:
            raise InvalidInput(
                f"no job of kind {kind!r}; there are {', '.join(sorted(self._kinds))}"
            )
        key = self._kinds[kind].exclusive(payload)
        job = self._queue.create(
            kind,
            payload,
            exclusive_key=f"{kind}:{key}" if key else "",
            files=files,
            total=total,
            unit=unit,
            coalesce=coalesce,
        )
        self._wake()
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

    def _stop(self, job_id: str, how: StopRequest) -> Job:
        job = self._queue.stop(job_id, how)
        with self._changed:
            runs = [run for run in self._running.values() if run.job_id == job_id]
        for run in runs if job.state == "running" else ():
            self._request_stop(run, how)
        self._notify_listeners(job_id)
        return self._shown().get(job_id, job)

    def resume(self, job_id: str) -> Job:
        """Queue a paused job again; a queued or running one is left alone.

        Raises:
            NotFound: No such job.
            Conflict: It has already ended, or is still stopping.
        """
        job = self._queue.resume(job_id)
        self._wake()
        self._notify_listeners(job_id)
        return job

    def acquire_interval(self, name: str, every_s: float) -> bool:
        """Return whether `name` is this process's to do now: once in `every_s` over all."""
        return self._alone or self._queue.acquire_interval(name, every_s)

    def start(self) -> None:
        """Queue again what an ended process left unfinished, and start the threads."""
        if self._alone:
            self._queue.requeue_all()
        for kind in sorted({job.kind for job in self._queue.unfinished()} - self._kinds.keys()):
            logger.warning("jobs of unknown kind %r wait for a release that knows it", kind)
        for lane, count in self._options.threads.items():
            for number in range(count):
                # Recovered jobs leave a thread to what clients wait for.
                recovered = lane != "interactive" or number > 0 or count == 1
                self._begin(f"job-{lane}-{number}", self._work, lane, recovered)
        self._begin("job-keeper", self._keep)

    def _begin(self, name: str, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def close(self, timeout_s: float | None = None) -> None:
        """Stop the threads within `timeout_s` seconds; jobs that ran are queued again.

        None is CLOSE_S, and CLOSE_ALONE_S where no other process takes the jobs up.
        """
        if timeout_s is None:
            timeout_s = CLOSE_ALONE_S if self._alone else CLOSE_S
        with self._changed:
            self._closing.set()
            runs = list(self._running.values())
        for run in runs:
            self._request_stop(run, "shutdown")
        self._wake()
        deadline_s = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        with self._changed:
            left = list(self._running)
        if left:
            try:
                self._queue.release(left)
            except StorageError:
                logger.warning("jobs that ran are queued again when this process is missed")

    # A lane's thread: take a job, run it, write down how it ended.

    def _work(self, lane: Lane, recovered: bool) -> None:
        again_in_s: float | None = None
        refused = 0
        while not self._closing.is_set():
            seen = self._wakes
            try:
                run = self._take(lane, recovered)
            except StorageError as error:
                if not refused:
                    logger.warning("lane %s cannot ask for jobs: %s", lane, error.message)
                self._closing.wait(min(_MAX_RETRY_S, self._options.poll_s * 2**refused))
                refused = min(refused + 1, 10)
                continue
            refused = 0
            if run is not None:
                again_in_s = self._run(run)
                continue
            with self._changed:
                if self._wakes == seen and not self._closing.is_set():
                    self._changed.wait(again_in_s)
            again_in_s = None

    def _take(self, lane: Lane, recovered: bool) -> JobContext | None:
        kinds = [name for name, kind in self._kinds.items() if kind.lane == lane]
        worker = new_id()
        taken = self._queue.claim(kinds, worker, recovered=recovered)
        if taken is None:
            return None
        run = JobContext(self, taken, worker)
        run.saved_at_s = time.monotonic()
        with self._changed:
            if not self._closing.is_set():
                self._running[worker] = run
                return run
        self._queue.release([worker])  # taken while the process closed
        return None

    def _run(self, run: JobContext) -> float | None:
        """Run a job to any end; return the seconds after which it is tried again."""
        kind = self._kinds[run.kind]
        log = logger.debug if self._alone else logger.info
        log("job %s (%s) begins", run.job_id, run.kind)
        self._notify_listeners(run.job_id)
        span = self._spans.begin(
            f"job {run.kind}", {"documind.job": run.job_id, "documind.lane": kind.lane}
        )
        with self._spans.around(span):
            ended, again_in_s = self._perform(run, kind.handler)
        span.put({f"documind.{name}": getattr(ended, name) for name in ("state", "done", "unit")})
        span.end()
        log("job %s (%s): %s", run.job_id, run.kind, ended.state)
        self._settle(run, ended, again_in_s)
        return again_in_s

    def _perform(self, run: JobContext, handler: Handler) -> tuple[Job, float | None]:
        """Call the handler. An edge: none of its exceptions leaves this.

        Returns:
            The job as it ended; seconds until it is tried again, None after no failure.
        """
        try:
            result = handler(run)
        except Superseded as error:
            line = f"{error.code}: {error.message}"
            return replace(run.job, state="cancelled", errors=(*run.job.errors, line)), None
        except Exception as error:
            if run.stop is not None or isinstance(error, Cancelled):
                if not isinstance(error, Cancelled):  # what it works with ends with the process
                    logger.info("job %s (%s) was stopped: %r", run.job_id, run.kind, error)
                return replace(run.job, state=_STATE_AFTER_RUN.get(run.stop, "cancelled")), None
            ours = error if isinstance(error, DocuMindError) else refusal(error)
            if ours is None:
                logger.exception("job %s (%s) failed unexpectedly", run.job_id, run.kind)
                ours = DocuMindError(
                    f"the {run.kind} job failed unexpectedly; the server's log has the details"
                    f" under job {run.job_id}"
                )
            return self._failed(run, ours)
        kept = run.job.result if result is None else dict(result)
        return replace(run.job, state="done", result=kept), None

    def _failed(self, run: JobContext, error: DocuMindError) -> tuple[Job, float | None]:
        """Return a failed job's end; an accepted one is tried again later if that may help.

        Trouble with storage is no verdict on what was accepted.
        """
        job, line = run.job, f"{error.code}: {error.message}"
        errors = job.errors if line in job.errors else (*job.errors, line)
        if job.payload.get("retry") is True and (
            error.retryable or isinstance(error, StorageError)
        ):
            delay_s = min(_MAX_RETRY_S, self._options.retry_s * 2 ** min(run.attempts, 20))
            logger.warning(
                "job %s (%s) will be tried again in %.0f s: %s",
                job.id, job.kind, delay_s, error.message,
            )  # fmt: skip
            return replace(job, state="queued", errors=errors), delay_s
        logger.warning("job %s (%s) failed: %s", job.id, job.kind, line)
        result = {"error": {"code": error.code, "detail": error.message}}
        return replace(job, state="failed", errors=errors, result=result), None

    def _settle(self, run: JobContext, ended: Job, again_in_s: float | None) -> None:
        """Write down how a run ended, also where the database is away or full for a while.

        Until then it is shown from memory. If the process ends first, the job runs again.
        """
        while True:
            try:
                with run.saving:
                    written = self._queue.finish(ended, run.worker, again_in_s)
            except StorageError as error:
                if run.job is not ended:
                    logger.warning(
                        "job %s is %s, which is not written down yet: %s",
                        ended.id, ended.state, error.message,
                    )  # fmt: skip
                    run.job = ended
                    self._notify_listeners(ended.id)
                if not self._closing.wait(self._options.poll_s):
                    continue
            else:
                if written is None:
                    logger.warning("job %s was taken over by another process", ended.id)
            break
        with self._changed:
            del self._running[run.worker]
        self._wake()
        self._notify_listeners(ended.id)
        if ended.state == "done":
            try:
                self._queue.delete_finished(self._options.keep_finished)
            except StorageError:
                logger.warning("finished jobs could not be pruned", exc_info=True)

    # What a run says and asks.

    def show(self, run: JobContext, change: Callable[[Job], Job], *, durable: bool = False) -> None:
        """Show a change now; write it down if durable or if the last write is old enough."""
        with self._changed:
            run.job = change(run.job)
            run.unsaved = True
        self._save(run, durable=durable)
        self._notify_listeners(run.job_id)

    def _save(self, run: JobContext, *, durable: bool = False) -> None:
        every_s = self._options.save_interval_s
        with self._changed:
            now_s = time.monotonic()
            since_s = now_s - run.saved_at_s
            if not durable and since_s < (every_s if self._alone else min(every_s, SHARED_SAVE_S)):
                return
            run.saved_at_s, run.unsaved = now_s, False
        try:
            with run.saving:
                held = self._queue.save(run.job, run.worker)
        except StorageError as error:
            if durable:
                raise
            logger.warning(
                "progress of job %s could not be written down: %s", run.job_id, error.message
            )
            return
        if not held:
            self._request_stop(run, "lost")

    def give_way(self, run: JobContext) -> None:
        """Pause a step that no client waits for while others are, for at most `give_way_s`."""

        def waited_for(one: JobContext) -> bool:
            return self.lane_of(one.kind) == "interactive" and not one.recovered

        if waited_for(run) or self.lane_of(run.kind) == "network":
            return
        with self._changed:
            self._changed.wait_for(
                lambda: run.cancel.cancelled or not any(map(waited_for, self._running.values())),
                self._options.give_way_s,
            )

    def _request_stop(self, run: JobContext, why: Stop) -> None:
        """Ask a run to stop; a cancel overrides a pause."""
        with self._changed:
            if run.stop is None or why == "lost" or (run.stop, why) == ("pause", "cancel"):
                run.stop = why
        run.cancel.cancel()
        self._wake()

    def _wake(self) -> None:
        """Let threads look for jobs, and waiting steps look whether they may go on."""
        with self._changed:
            self._wakes += 1
            self._changed.notify_all()

    def _notify_listeners(self, job_id: str = "") -> None:
        """Call the listeners of a job, outside the lock; of all jobs without an id."""
        with self._changed:
            heard = [job_id] if job_id else list(self._listeners)
            listeners = [call for one in heard for call in self._listeners.get(one, ())]
        for listener in listeners:
            try:
                listener()
            except (DocuMindError, RuntimeError):  # it is asked again, or its loop has ended
                logger.debug("a watcher of jobs could not look", exc_info=True)

    # The keeper's thread.

    def _keep(self) -> None:
        """Hear of changes and look after the runs of this process until it closes."""
        looked_s = due_s = 0.0
        away = False
        for news in self._queue.listen(self._closing, self._options.poll_s):
            what, _, job_id = news.partition(" ")
            now_s = time.monotonic()
            if job_id:
                self._notify_listeners(job_id)
            elif not self._alone and (what == "lost" or now_s - looked_s > LOOK_EVERY_S):
                looked_s = now_s
                self._notify_listeners()
            if what == "progress":
                continue
            try:
                due = bool(what) or now_s - due_s > LOOK_EVERY_S
                due_s = now_s if due else due_s
                self._sync_with_queue(due=due)
                if not self._alone:
                    self._heartbeat(now_s)
                away = False
            except StorageError as error:
                if not away:
                    logger.warning("job maintenance failed: %s", error.message)
                away = True

    def _sync_with_queue(self, *, due: bool) -> None:
        """Pass on requests to stop, write progress held back, wake for jobs that are due."""
        with self._changed:
            runs = dict(self._running)
        if runs:
            asked = self._queue.requests(list(runs))
            for worker, run in runs.items():
                why: Stop | None = asked.get(worker, "lost")
                if why is not None and run.stop != why:
                    self._request_stop(run, why)
                if run.unsaved:
                    self._save(run)
        lanes = self._options.threads
        kinds = [name for name, kind in self._kinds.items() if kind.lane in lanes]
        if due and kinds and self._queue.has_due(kinds):
            self._wake()

    def _heartbeat(self, now_s: float) -> None:
        """Say that the runs of this process live, and hand on those of lost processes."""
        silent_s = now_s - self._beaten_s
        with self._changed:
            runs = dict(self._running)
        if silent_s < (self._options.beat_s if runs else 2 * self._options.beat_s):
            return
        if runs:
            self._queue.heartbeat(list(runs))
        is_lost = self._queue.has_stale_workers(self._options.lost_after_s)
        self._beaten_s = now_s
        if silent_s >= self._options.lost_after_s:  # the others were not heard either
            self._trusts_s = now_s + self._options.lost_after_s
        if is_lost and now_s >= self._trusts_s:
            lost = self._queue.requeue_stale(self._options.lost_after_s)
            logger.warning("%d jobs of lost processes were queued again", lost)
            self._wake()
        if now_s - self._reported_s >= REPORT_EVERY_S and self._options.lanes:
            self._reported_s = now_s
            for job in (run.job for run in runs.values()):
                logger.info(
                    "job %s (%s): %s of %s %s", job.id, job.kind, job.done, job.total, job.unit
                )
            lanes = ", ".join(self._options.lanes)
            logger.info("worker lives: %d jobs run in %s", len(runs), lanes)
