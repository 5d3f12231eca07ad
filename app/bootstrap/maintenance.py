"""The store, open or at rest, as maintenance sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.core.errors import InvalidInput, NotFound
from app.core.types import Library
from app.evaluation.archive import ReportArchive
from app.generation.injection import inspect
from app.index.files.steps import Steps
from app.index.maintenance.backup import restore
from app.index.store import IndexStore
from app.ingest.codes import CodeBackfill, CodeProgress
from app.jobs.maintenance import Progress
from app.providers.minilm import MiniLmEmbedder
from app.settings import Settings

PURGE_AFTER_S = 60.0
"""Seconds after the last deletion until a library's files are rewritten; deleting 20 papers
costs one purge."""

PURGE_SMALL_CHUNKS = 20_000
"""Up to here a purge takes seconds. A larger library waits PURGE_LARGE_AFTER_S, or for `documind
purge`."""

PURGE_LARGE_AFTER_S = 3_600.0
"""Seconds without a further deletion until a large library is purged: all of its text is indexed
again."""


def remake_codes(settings: Settings, store: IndexStore, progress: CodeProgress) -> int:
    """Rebuild the codes of both libraries; return their number.

    The server's next start continues an interrupted run.

    Raises:
        ModelNotInstalled: The embedded model is missing.
        DiskFull: No space.
    """
    options = settings.ingest()
    encoder = MiniLmEmbedder(settings.providers().model_cache_dir).late_encoder()
    backfill = CodeBackfill(
        store.codes, encoder, store.catalog, options.late_interaction_max_chunks
    )
    for library in Library:
        store.codes.delete_codes(library)
    return sum(backfill.run(library, progress=progress) for library in Library)


@dataclass(frozen=True, slots=True)
class StoreMaintenance:
    """Adapts an open store: reports as JSON values."""

    store: IndexStore
    reports: ReportArchive
    """Of evaluations; they quote passages."""

    def check(self) -> Mapping[str, object]:
        """Check everything and change nothing."""
        return self.store.fsck.run().record()

    def export(self, library: Library, target: Path, progress: Progress) -> Mapping[str, object]:
        """Write a library into one file."""
        return asdict(self.store.bundler.export(library, target, progress))

    def load(
        self, source: Path, library: Library | None, progress: Progress
    ) -> Mapping[str, object]:
        """Add a file's documents to a library."""
        return asdict(self.store.bundler.load(source, library, progress, inspect))

    def backup(self, target: Path, progress: Progress) -> Mapping[str, object]:
        """Write a backup into a new or empty directory."""
        return asdict(self.store.backup(target, progress))

    def purge(self) -> Mapping[str, object]:
        """Make deletions physical."""
        purged = asdict(self.store.purger.run())
        return {**purged, "report_passages": self.reports.forget(self._alive)}

    def _alive(self, doc_id: str) -> bool:
        """Return whether a document is still in a library."""
        for library in Library:
            try:
                self.store.catalog.document(library, doc_id)
            except NotFound:
                continue
            return True
        return False

    def end_grace(self) -> int:
        """Remove deleted documents and conversations whose grace is over; return how many."""
        return self.store.remover.purge_due() + self.store.conversations.forget_due()

    def purge_is_due(self) -> bool:
        """Return whether deleted bytes are old enough: a minute, or an hour if large.

        Large is the size of the library.
        """
        now = datetime.now(UTC)
        for library in Library:
            at = self.store.remover.deleted_at(library)
            if at is None:
                continue
            small = self.store.catalog.counts(library).chunks <= PURGE_SMALL_CHUNKS
            if (now - datetime.fromisoformat(at)).total_seconds() >= (
                PURGE_AFTER_S if small else PURGE_LARGE_AFTER_S
            ):
                return True
        return False


def open_stopped(settings: Settings, *, heal: bool) -> IndexStore:
    """Open the store of a data directory that no server uses.

    The caller holds its lock and closes the store.

    Args:
        settings: The configuration.
        heal: Finish first what the last process left undone.
    """
    return IndexStore(settings.index(), vector_store="off", heal=heal)


def restore_backup(source: Path, settings: Settings) -> None:
    """Replace the data with the backup `source`; the caller holds the lock.

    Raises:
        InvalidInput: `source` is no complete backup, or the catalog is in PostgreSQL.
        IndexDamaged: A file of the backup is damaged.
        DiskFull: No space; what was there stays.
    """
    if settings.database_url:
        raise InvalidInput(
            "the catalog is in PostgreSQL (DATABASE_URL): restore its dump with psql or pg_restore,"
            " and copy the originals back"
        )
    restore(source, settings.data_dir, Steps(settings.documind_crash_at or None))
