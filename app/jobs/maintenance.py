"""Maintain stores of a running server: check, export, import, back up, purge.

Paths are on the server's machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.core.types import Library
from app.jobs.context import JobContext
from app.jobs.kinds import BACKUP, EXPORT, FSCK, IMPORT, PURGE, request_backfill
from app.jobs.registry import per_library
from app.jobs.runner import JobRunner

Progress = Callable[[int, int], None]
"""Told what is done and what there is in all."""
Record = Mapping[str, object]


class Store(Protocol):
    """The store's operations; each returns its report as JSON values."""

    def check(self) -> Record:
        """Check everything and change nothing."""
        ...

    def export(self, library: Library, target: Path, progress: Progress) -> Record:
        """Write a library into one file."""
        ...

    def load(self, source: Path, library: Library | None, progress: Progress) -> Record:
        """Add a file's documents to a library; None takes the one it came from."""
        ...

    def backup(self, target: Path, progress: Progress) -> Record:
        """Write a backup into a new or empty directory."""
        ...

    def purge(self) -> Record:
        """Make deletions physical."""
        ...


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Handlers; each may run again: files appear when they are whole, imports add up."""

    store: Store
    later: Callable[[Library], object]
    """Requests the vectors that a library lacks."""

    def fsck(self, context: JobContext) -> Record:
        """Check the store."""
        context.checkpoint()
        return self.store.check()

    def export(self, context: JobContext) -> Record:
        """Export a library into the file of the payload."""
        target = Path(str(context.payload["path"]))
        return {
            **self.store.export(Library(str(context.payload["library"])), target, _steps(context)),
            "path": str(target),
        }

    def load(self, context: JobContext) -> Record:
        """Import the file of the payload."""
        named = context.payload.get("library")
        library = None if named is None else Library(str(named))
        report = self.store.load(Path(str(context.payload["path"])), library, _steps(context))
        if report["chunks"] != report["vectors"]:
            self.later(Library(str(report["library"])))
        return report

    def backup(self, context: JobContext) -> Record:
        """Back everything up into the directory of the payload."""
        return self.store.backup(Path(str(context.payload["path"])), _steps(context))

    def purge(self, context: JobContext) -> Record:
        """Remove every byte of deleted documents."""
        context.checkpoint()
        return self.store.purge()


def register_maintenance(runner: JobRunner, store: Store) -> None:
    """Register the kinds; they run in the background and give way to interactive work."""
    work = Maintenance(store, lambda library: request_backfill(runner, library))
    runner.register(FSCK, work.fsck, lane="background", exclusive=per_library)
    runner.register(EXPORT, work.export, lane="background")
    runner.register(IMPORT, work.load, lane="background", exclusive=per_library)
    runner.register(BACKUP, work.backup, lane="background", exclusive=per_library)
    runner.register(PURGE, work.purge, lane="background", exclusive=per_library)


def _steps(context: JobContext) -> Progress:
    """Return what reports progress and stops when asked to."""

    def step(done: int, total: int) -> None:
        context.progress(done, total)
        context.checkpoint()

    return step
