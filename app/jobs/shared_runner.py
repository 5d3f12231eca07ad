"""Accept jobs that any of several processes may run."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from app.core.errors import DocuMindError
from app.core.ports import JobStore
from app.core.ports.shared_jobs import News, Route, SharedJobs
from app.core.spans import SILENT, Spans
from app.core.types import Job, JobFile
from app.jobs.options import JobOptions
from app.jobs.runner import JobRunner
from app.jobs.workers import Workers

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
"""Watchers read their job again this often, for a change that no message told."""


class SharedRunner(JobRunner):
    """A runner whose jobs are rows that every process sees; thread-safe."""

    def __init__(
        self,
        shared: SharedJobs,
        store: JobStore,
        options: JobOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
        spans: Spans = SILENT,
    ) -> None:
        """Bind the database; nothing is heard and nothing runs until `start`."""
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
        """Return jobs, newest first."""
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
        """Queue a paused job again."""
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
