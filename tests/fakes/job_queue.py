"""The job queue of a catalog of its own, in a temporary folder; and rows as a test wants them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, update

from app.core.errors import StorageError
from app.core.types import Job
from app.storage.catalog.schema import jobs
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps
from app.storage.queue import JobQueue, job_values
from tests.stores import OPENED, catalog_file


class FailingDatabase(SqliteDatabase):
    """A catalog whose writes fail while it is told to."""

    fail: StorageError | None = None

    @contextmanager
    def write(self, name: str, *, wait: bool = True) -> Iterator[Connection]:
        if self.fail is not None:
            raise self.fail
        with super().write(name, wait=wait) as sql:
            yield sql


class OwnQueue(JobQueue):
    """Outlives the runner that used it; counts what is saved, and fails when told to."""

    def __init__(self) -> None:
        OPENED.append(own := FailingDatabase(catalog_file(), Steps()))
        self._own = own
        super().__init__(self._own)
        self.saves = 0

    def fail(self, error: StorageError | None) -> None:
        """Let every write fail with this, for example DiskFull; None: no more."""
        self._own.fail = error

    def save(self, job: Job, worker: str) -> bool:
        self.saves += 1
        return super().save(job, worker)


def put_row(queue: JobQueue, job: Job) -> None:
    """Write a job's columns over its row, whoever runs it."""
    with queue._database.write("job") as sql:
        sql.execute(update(jobs).where(jobs.c.id == job.id).values(job_values(job)))
