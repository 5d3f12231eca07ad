"""A JobStore in memory: what a catalog keeps, without one."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.core.errors import NotFound, StorageError
from app.core.types import Job

_FINISHED = frozenset({"done", "failed", "cancelled"})


class MemoryJobStore:
    """Keeps rows like a database: JSON in, JSON out; outlives the runner that used it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, Job] = {}
        self.saves = 0
        self.fail: StorageError | None = None
        """Raised by create and save while set, for example DiskFull."""

    def create(
        self,
        kind: str,
        payload: Mapping[str, object],
        *,
        total: int | None = None,
        unit: str = "items",
    ) -> Job:
        with self._lock:
            if self.fail is not None:
                raise self.fail
            number = len(self._rows) + 1
            at = f"2026-01-01T00:00:{number:02d}Z"
            job = Job(
                f"job{number}",
                kind,
                "queued",
                0,
                total,
                unit,
                None,
                (),
                (),
                dict(payload),
                None,
                at,
                at,
            )
            self._rows[job.id] = job
            return job

    def get(self, job_id: str) -> Job:
        with self._lock:
            if job_id not in self._rows:
                raise NotFound(f"no job {job_id!r}")
            return self._rows[job_id]

    def list(self, limit: int = 100) -> Sequence[Job]:
        with self._lock:
            return tuple(reversed(self._rows.values()))[:limit]

    def unfinished(self) -> Sequence[Job]:
        with self._lock:
            return tuple(job for job in self._rows.values() if job.state not in _FINISHED)

    def delete_finished(self, keep_finished: int) -> int:
        with self._lock:
            finished = [job.id for job in self._rows.values() if job.state in _FINISHED]
            gone = finished[: max(0, len(finished) - keep_finished)]
            for job_id in gone:
                del self._rows[job_id]
            return len(gone)

    def save(self, job: Job) -> None:
        with self._lock:
            if self.fail is not None:
                raise self.fail
            self.saves += 1
            self._rows[job.id] = replace(job)
