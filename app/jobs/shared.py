"""Accept jobs that any of several processes may run."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from app.core.errors import DocuMindError, StorageError
from app.core.trace import SILENT, Spans
from app.core.types import Job, JobClaim, JobFile, News, Route
from app.jobs.runner import JobOptions, JobRunner, Kind, Lane, LiveJob, Stop
from app.jobs.worker import Performer, prune

if TYPE_CHECKING:
    from app.storage.catalog.state import SqliteJobStore
    from app.storage.queue import PostgresJobs

# Run jobs of the shared queue in threads of this process.

SAVE_EVERY_S = 0.5
"""Progress is written down this often at most."""


REPORT_EVERY_S = 30.0
"""The log says this often which jobs run."""


class Workers:
    """Threads that take jobs from the queue, and their keeper; thread-safe.

    The keeper says that this process lives, passes on requests to stop, writes down progress that
    was held back, and takes over the jobs of lost processes. A process that was given up while it
    still ran cannot write over the job's next run: its claim is lost.
    """

    def __init__(
        self,
        shared: PostgresJobs,
        store: SqliteJobStore,
        options: JobOptions,
        clock: Callable[[], float],
        spans: Spans,
        kinds: Mapping[str, Kind],
    ) -> None:
        self._shared = shared
        self._store = store
        # Watchers of other processes see only the row.
        self._options = options = replace(
            options, save_interval_s=min(options.save_interval_s, SAVE_EVERY_S)
        )
        self._kinds = kinds
        self._clock = clock
        self._changed = threading.Condition()
        self._performer = Performer(options, clock, spans, self._changed, self._save, self._is_busy)
        self._running: dict[int, tuple[JobClaim, LiveJob]] = {}
        """By ticket: a job that was taken over may run here again before its first run stops."""
        self._wakes = 0
        """Counts calls of `wake`, so that none is missed between a look and a wait."""
        self._closing = False
        self._worker = 0
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads of the lanes, and the keeper of lost jobs."""
        if not self._options.lanes:
            return
        self._worker = self._shared.enrol()
        for lane, count in self._options.threads.items():
            for number in range(count):
                self._begin(f"job-{lane}-{number}", self._work, lane)
        self._begin("job-keeper", self._keep)

    def wake(self) -> None:
        """Look for jobs and for requests to stop now."""
        with self._changed:
            self._wakes += 1
            self._changed.notify_all()

    def close(self, timeout_s: float) -> None:
        """Stop the threads within `timeout_s` seconds; jobs that ran are queued again."""
        with self._changed:
            self._closing = True
            lives = [live for _, live in self._running.values()]
        for live in lives:
            self._stop(live, "shutdown")
        self.wake()
        deadline_s = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        if self._worker:
            try:
                self._shared.leave(self._worker)
            except StorageError:
                logger.warning("the end of this process's work could not be written down")

    def _begin(self, name: str, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _work(self, lane: Lane) -> None:
        """Take jobs of one lane until the process closes."""
        while not self._closing:
            seen = self._wakes
            try:
                claim = self._shared.take(lane, self._worker)
            except StorageError:
                logger.warning("lane %s cannot ask for jobs; trying again", lane, exc_info=True)
                claim = None
            if claim is None:
                self._wait(seen)
            else:
                self._run(claim)

    def _wait(self, seen: int) -> None:
        """Wait for a wake since `seen`, for `poll_s` seconds at most."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closing or self._wakes != seen, self._options.poll_s
            )

    def _run(self, claim: JobClaim) -> None:
        """Run a job that was taken, and write down how it ended."""
        kind = self._kinds.get(claim.job.kind)
        logger.info("job %s (%s) begins", claim.job.id, claim.job.kind)
        live = LiveJob(claim.job, ticket=claim.ticket, attempts=claim.attempts)
        if kind is None:  # of another release: it waits for a process that knows it
            logger.warning("job %s of unknown kind %r waits", claim.job.id, claim.job.kind)
            queued = replace(claim.job, state="queued")
            self._settle(claim, queued, self._options.lost_after_s)
            return
        with self._changed:
            self._running[claim.ticket] = (claim, live)
            closing = self._closing
        if closing:  # taken while the process closed
            self._stop(live, "shutdown")
        ending = self._performer.perform(live, kind, lambda _: None)
        with self._changed:
            del self._running[claim.ticket]
            self._changed.notify_all()
        logger.info("job %s (%s): %s", claim.job.id, claim.job.kind, ending.job.state)
        with live.saving:  # the keeper may be writing progress
            self._settle(claim, ending.job, ending.again_in_s)
        if ending.job.state == "done":
            prune(self._store, self._options)

    def _settle(self, claim: JobClaim, job: Job, again_in_s: float | None) -> None:
        """Write down how a run ended, also where the database is away for a while."""
        while True:
            try:
                if self._shared.settle(claim, job, again_in_s) is None:
                    logger.warning("job %s was taken over by another process", job.id)
            except StorageError:
                # Nothing is lost if this process ends first: the job then runs again.
                logger.warning("the end of job %s is not written down yet", job.id, exc_info=True)
                if not self._closing:
                    self._wait(self._wakes)
                    continue
            return

    def _save(self, live: LiveJob) -> None:
        """Write progress down; a job that another process took over stops."""
        with live.saving:
            held = self._running.get(live.ticket)
            if held is not None and not self._shared.save(held[0], live.job):
                self._stop(live, "lost")

    def _stop(self, live: LiveJob, why: Stop) -> None:
        """Ask a job of this process to stop; a cancel overrides a pause."""
        with self._changed:
            if live.stop is None or why == "lost" or (live.stop, why) == ("pause", "cancel"):
                live.stop = why
        live.token.cancel()
        self.wake()

    def _is_busy(self) -> bool:
        """Return whether interactive work runs here; the caller holds the lock."""
        return any(
            self._kinds[claim.job.kind].lane == "interactive" for claim, _ in self._running.values()
        )

    def _keep(self) -> None:
        """Keep the workers in touch until the process closes."""
        beaten_s = told_s = time.monotonic()
        while not self._closing:
            seen = self._wakes
            try:
                self._pass_on()
                silent_s = time.monotonic() - beaten_s
                if silent_s >= self._options.beat_s:
                    self._worker = self._shared.beat(self._worker)
                    beaten_s = time.monotonic()
                    if silent_s < self._options.lost_after_s:  # else the others were not heard too
                        self._rescue()
                if time.monotonic() - told_s >= REPORT_EVERY_S:
                    told_s = time.monotonic()
                    self._report()
            except DocuMindError:
                logger.warning("jobs cannot be looked after; trying again", exc_info=True)
            self._wait(seen)

    def _pass_on(self) -> None:
        """Stop jobs that are asked to, and write down progress that was held back."""
        with self._changed:
            held = dict(self._running)
        if not held:
            return
        for ticket, wish in self._shared.requests([claim for claim, _ in held.values()]).items():
            live = held[ticket][1]
            if live.stop != wish:
                self._stop(live, wish)
        for _, live in held.values():
            self._performer.flush(live)

    def _report(self) -> None:
        """Log that the workers live, and how far their jobs are."""
        with self._changed:
            jobs = [live.job for _, live in self._running.values()]
        for job in jobs:
            logger.info("job %s (%s): %s of %s %s", job.id, job.kind, job.done, job.total, job.unit)
        logger.info(
            "worker %d lives: %d jobs run in %s",
            self._worker,
            len(jobs),
            ", ".join(self._options.lanes),
        )

    def _rescue(self) -> None:
        rescued = self._shared.rescue(self._options.lost_after_s, self._route)
        if rescued:
            logger.warning("%d jobs of lost processes were queued again", rescued)

    def _route(self, job: Job) -> Route | None:
        kind = self._kinds.get(job.kind)
        return None if kind is None else Route(kind.lane, kind.mark(job))


logger = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
"""Watchers read their job again this often, for a change that no message told."""


class SharedRunner(JobRunner):
    """A runner whose jobs are rows that every process sees; thread-safe."""

    def __init__(
        self,
        shared: PostgresJobs,
        store: SqliteJobStore,
        options: JobOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
        spans: Spans = SILENT,
    ) -> None:
        super().__init__()
        self._shared = shared
        self._store = store
        self._options = options or JobOptions()
        self._workers = Workers(shared, store, self._options, clock, spans, self._kinds)
        self._lock = threading.Lock()
        self._listeners: defaultdict[str, list[Callable[[], None]]] = defaultdict(list)
        self._closing = threading.Event()
        self._hearing = threading.Thread(target=self._hear, name="job-news", daemon=True)

    def get(self, job_id: str) -> Job:
        """Return a job as its row says, which the running process writes often."""
        return self._store.get(job_id)

    def list(self, limit: int = 100) -> Sequence[Job]:
        return self._store.list(limit)

    @contextmanager
    def subscribe(self, job_id: str, changed: Callable[[], None]) -> Iterator[None]:
        """Call `changed` after changes of the job in any process while the block runs."""
        with self._lock:
            self._listeners[job_id].append(changed)
        try:
            yield
        finally:
            with self._lock:
                self._listeners[job_id].remove(changed)
                if not self._listeners[job_id]:
                    del self._listeners[job_id]

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
        """Accept work: on return its row is durable, and so is its place in a queue."""
        rules = self._kind(kind)

        def same(job: Job) -> bool:
            return rules.exclusive(job.payload) == rules.exclusive(payload)

        return self._shared.create(
            kind,
            payload,
            Route(rules.lane, rules.mark_of(kind, payload)),
            files=files,
            total=total,
            unit=unit,
            same=same if coalesce else None,
        )

    def pause(self, job_id: str) -> Job:
        """Stop a job at its next checkpoint, in whichever process it runs."""
        return self._shared.stop(job_id, "pause")

    def cancel(self, job_id: str) -> Job:
        """End a job for good and keep its results."""
        return self._shared.stop(job_id, "cancel")

    def resume(self, job_id: str) -> Job:
        return self._shared.resume(job_id, self._route)

    def turn(self, name: str, every_s: float) -> bool:
        """Return whether `name` is this process's to do now: once in `every_s` over all."""
        return self._shared.turn(name, every_s)

    def start(self) -> None:
        """Hear of changes, and start the workers of this process's lanes."""
        self._hearing.start()
        self._workers.start()

    def close(self, timeout_s: float = 5.0) -> None:
        """Stop the workers within `timeout_s` seconds; another process runs their jobs on."""
        self._workers.close(timeout_s)
        self._closing.set()
        if self._hearing.is_alive():
            self._hearing.join(timeout_s)

    def _route(self, job: Job) -> Route:
        rules = self._kind(job.kind)
        return Route(rules.lane, rules.mark(job))

    def _hear(self) -> None:
        """Tell watchers and workers of changes until the runner closes."""
        looked_s = 0.0
        for news in self._shared.news(self._closing, self._options.poll_s):
            if news.kind in {"state", "lost"}:
                self._workers.wake()
            if news.kind != "quiet":
                self._tell(news)
            elif time.monotonic() - looked_s > LOOK_EVERY_S:
                looked_s = time.monotonic()
                self._tell(News("lost"))

    def _tell(self, news: News) -> None:
        """Call the listeners of a job; those of all jobs where changes may be unseen."""
        with self._lock:
            heard = [news.job_id] if news.job_id else list(self._listeners)
            listeners = [call for job_id in heard for call in self._listeners.get(job_id, ())]
        for listener in listeners:
            try:
                listener()
            except (DocuMindError, RuntimeError):  # it is asked again, or its loop has ended
                logger.debug("a watcher of jobs could not look", exc_info=True)
