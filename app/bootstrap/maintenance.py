"""The open store, as maintenance jobs see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from app.core.types import Library
from app.index.store import IndexStore
from app.jobs.maintenance import Progress


@dataclass(frozen=True, slots=True)
class StoreMaintenance:
    """Adapts an open store: reports as JSON values."""

    store: IndexStore

    def check(self) -> Mapping[str, object]:
        """Check everything and change nothing."""
        return self.store.fsck.run().record()

    def export(self, library: Library, target: Path, progress: Progress) -> Mapping[str, object]:
        """Write a library into one file."""
        return asdict(self.store.bundler.export(library, target, progress))

    def load(self, source: Path, library: Library | None, progress: Progress) -> Mapping[str, object]:
        """Add a file's documents to a library."""
        return asdict(self.store.bundler.load(source, library, progress))

    def backup(self, target: Path, progress: Progress) -> Mapping[str, object]:
        """Write a backup into a new or empty directory."""
        return asdict(self.store.backup(target, progress))
