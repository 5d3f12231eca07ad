"""Run the jobs of one process, in threads of their own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from app.core.ports import JobStore
from app.core.spans import SILENT, Spans
from app.core.types import JobState
from app.jobs.context import Lane
from app.jobs.live import LiveJob
from app.jobs.local_queue import LocalQueue
from app.jobs.options import JobOptions
from app.jobs.performing import Ending, Performer, prune

logger = logging.getLogger(__name__)


class LocalRunner(LocalQueue):
    """A queue of this process that also does the work; thread-safe."""

    def __init__(
        self,
        store: JobStore,
        options: JobOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
        spans: Spans = SILENT,
    ) -> None:
        """Bind a store; nothing runs until `start`."""
        super().__init__(store)
        self._options = options or JobOptions()
        self._clock = clock
        self._performer = Performer(
            self._options, clock, spans, self._changed, self._save, self._is_busy
        )
        self._threads: list[threading.Thread] = []
        self._closing = False

    def start(self) -> None:
        """Queue again what an earlier process left unfinished, and start the workers."""
        for job in self._store.unfinished():
            if job.kind not in self._kinds:
                logger.warning("job %s of unknown kind %r stays as it is", job.id, job.kind)
                continue
            state: JobState = "paused" if job.state == "paused" else "queued"
            with self._changed:
                if job.id in self._live:  # submitted before the start, and queued then
                    continue
                self._live[job.id] = LiveJob(replace(job, state=state, eta_s=None))
                if state == "queued":
                    self._queue.append(job.id)
        for lane, count in self._options.threads.items():
            for number in range(count):
                thread = threading.Thread(
                    target=self._work, args=(lane,), name=f"job-{lane}-{number}", daemon=True
                )
                thread.start()
                self._threads.append(thread)

    def close(self, timeout_s: float = 5.0) -> None:
        """Stop the workers within `timeout_s` seconds; the next start queues jobs again."""
        with self._changed:
            self._closing = True
            lives = tuple(self._live.values())
            for live in lives:
                live.stop = live.stop or "shutdown"
        for live in lives:
            live.token.cancel()
        with self._changed:
            self._changed.notify_all()
        deadline_s = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))

    def _work(self, lane: Lane) -> None:
        """Take jobs of one lane until the runner closes."""
        while (live := self._next(lane)) is not None:
            self._tell(live)
            kind = self._kinds[live.job.kind]
            self._settle(live, self._performer.perform(live, kind, self._tell))
            self._tell(live)

    def _next(self, lane: Lane) -> LiveJob | None:
        """Wait for a job this lane may run now, and mark it running; None when closing."""
        with self._changed:
            while not self._closing:
                now_s = self._clock()
                waits_s: list[float] = []
                for job_id in self._queue:
                    live = self._live[job_id]
                    kind = self._kinds[live.job.kind]
                    mark = kind.mark(live.job)
                    if kind.lane != lane or (mark and mark in self._running.values()):
                        continue
                    if live.not_before_s > now_s:
                        waits_s.append(live.not_before_s - now_s)
                        continue
                    self._queue.remove(job_id)
                    self._running[job_id] = mark
                    live.job = replace(live.job, state="running")
                    live.saved_at_s = now_s
                    return live
                self._changed.wait(min(waits_s, default=None))
        return None

    def _settle(self, live: LiveJob, ending: Ending) -> None:
        """Write down how a run ended; queue the job again where it is to be tried again."""
        if ending.again_in_s is None:
            self._rest(live, ending.job)
            if ending.job.state == "done":
                prune(self._store, self._options)
            return
        with self._admin:
            if live.stop in {"pause", "cancel"}:
                self._rest(live, replace(live.job, state=live.state_after_stop))
                return
            self._rest(live, ending.job)
            live.attempts += 1
            live.not_before_s = self._clock() + ending.again_in_s
            self._enqueue(live)

    def _save(self, live: LiveJob) -> None:
        self._store.save(live.job)

    def _is_busy(self) -> bool:
        """Return whether interactive work runs; the caller holds the lock."""
        return any(
            self._kinds[self._live[job_id].job.kind].lane == "interactive"
            for job_id in self._running
        )
