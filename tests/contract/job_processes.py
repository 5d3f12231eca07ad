"""Runners on one database, in this process or in one that a test kills.

    python -m tests.contract.job_processes URL FOLDER

The kinds are those of `register`: what a handler does is seen in FOLDER.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from app.core.errors import DiskFull
from app.jobs.runner import JobContext, JobOptions, JobRunner, per_library
from app.storage.catalog.database import Database
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps
from app.storage.queue import JobQueue

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 30.0
QUICK = {"beat_s": 0.2, "lost_after_s": 1.5, "poll_s": 0.2, "save_interval_s": 0.05}


def open_free(url: str, folder: Path) -> Database:
    """Open a catalog that other processes write to: of an address, else a file in the folder."""
    if not url:
        return SqliteDatabase(folder / "jobs.sqlite3", Steps())
    from app.shared.postgres import PostgresDatabase  # noqa: PLC0415  # the extra `shared`

    return PostgresDatabase(url, Steps())


@contextmanager
def shared_runner(url: str, folder: Path, **options: object) -> Iterator[JobRunner]:
    """Yield a started runner with connections of its own."""
    database = open_free(url, folder)
    runner = JobRunner(
        JobQueue(database),
        JobOptions(**{**QUICK, **options}),  # type: ignore[arg-type]
        alone=False,
    )
    register(runner, folder)
    runner.start()
    try:
        yield runner
    finally:
        runner.close(WAIT_S)
        database.close()


def register(runner: JobRunner, folder: Path) -> None:
    """Register the kinds of these tests; `folder` has a log of what happened."""

    def hold(context: JobContext) -> Mapping[str, object]:
        """Say in a file that it runs, and run until `open` is there or it is stopped."""
        name = str(context.payload.get("name", context.job_id))
        with (folder / "log").open("a") as log:
            log.write(f"begin {name}\n")
        number = 0
        while not (folder / "open").exists():
            context.progress(number := number + 1, 1000)
            context.checkpoint()
            time.sleep(0.01)
        with (folder / "log").open("a") as log:
            log.write(f"end {name}\n")
        return {"name": name, "previous": context.previous}

    def fail_twice(context: JobContext) -> Mapping[str, object]:
        tried = folder / context.job_id
        tries = len(tried.read_text()) if tried.exists() else 0
        tried.write_text("." * (tries + 1))
        if tries < 2:
            raise DiskFull("no space")
        return {"tries": tries + 1}

    def publish(context: JobContext) -> Mapping[str, object]:
        context.publish({"text": True})
        return hold(context)

    runner.register("hold", hold)
    runner.register("alone", hold, lane="background", exclusive=per_library)
    runner.register("flaky", fail_twice)
    runner.register("publish", publish, lane="network")


def lines(folder: Path) -> list[str]:
    """Return what happened so far, in order."""
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


def until(holds: Callable[[], object]) -> None:
    """Wait until it holds."""
    deadline_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline_s, "it does not come to hold"
        time.sleep(0.02)


def worker_process(url: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start a process that works in every lane."""
    command = [sys.executable, "-m", "tests.contract.job_processes", url, str(folder)]
    return subprocess.Popen(command, cwd=ROOT)


def main() -> None:
    """Work until killed."""
    with shared_runner(sys.argv[1], Path(sys.argv[2])):
        while True:
            time.sleep(60)


if __name__ == "__main__":
    main()
