"""The job store of a catalog of its own, in a temporary folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from app.core.errors import StorageError
from app.core.types import Job
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.catalog.state import SqliteJobStore
from app.storage.files.durable import Steps


class OwnJobStore(SqliteJobStore):
    """Outlives the runner that used it; counts what is saved, and fails when told to."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp())
        super().__init__(SqliteDatabase(self._folder / "catalog.sqlite3", Steps()))
        self.saves = 0
        self.fail: StorageError | None = None
        """Raised by create and save while set, for example DiskFull."""

    def __del__(self) -> None:
        self._database.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def create(
        self,
        kind: str,
        payload: Mapping[str, object],
        *,
        total: int | None = None,
        unit: str = "items",
    ) -> Job:
        if self.fail is not None:
            raise self.fail
        return super().create(kind, payload, total=total, unit=unit)

    def save(self, job: Job) -> None:
        if self.fail is not None:
            raise self.fail
        self.saves += 1
        super().save(job)
