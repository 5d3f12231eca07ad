"""The store, open or at rest, as maintenance sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.core.errors import InputError, InvalidInput, NotFound
from app.core.types import Library, RawDocument
from app.evaluation.report import ReportArchive
from app.generation.injection import inspect
from app.ingest.embedding import CodeBackfill, CodeProgress
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.sniffing import identify
from app.ingest.pipeline import IngestPipeline
from app.ingest.sandbox import SandboxedParser
from app.jobs.maintenance import Progress
from app.models.minilm import MiniLmEmbedder
from app.settings import Settings
from app.storage.files.durable import Steps
from app.storage.maintenance.backup import restore
from app.storage.store import IndexStore

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
        return self.store.fsck.run().record()

    def export(self, library: Library, target: Path, progress: Progress) -> Mapping[str, object]:
        return asdict(self.store.bundler.export(library, target, progress))

    def load(
        self, source: Path, library: Library | None, progress: Progress
    ) -> Mapping[str, object]:
        return asdict(self.store.bundler.load(source, library, progress, inspect))

    def backup(self, target: Path, progress: Progress) -> Mapping[str, object]:
        return asdict(self.store.backup(target, progress))

    def purge(self) -> Mapping[str, object]:
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
        return self.store.remover.purge_due() + self.store.conversations.delete_due()

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


# Restore catalog entries of orphan uploads by the normal upload path.

RECOVERED = "recovered"
"""Flag of a document whose entry was made from its kept bytes: its name and source are not known
any more."""


def recover_originals(
    store: IndexStore, settings: Settings, library: Library, names: Sequence[str]
) -> Mapping[str, str]:
    """Parse originals again and add an entry for each, flagged `recovered`.

    Its title comes from the first page. Words are found at once; vectors follow when a server next
    runs.

    Args:
        store: Open, and used by no one else.
        settings: Limits of reading.
        library: Where the entries go.
        names: SHA-256 of the originals.

    Returns:
        Why an original got no entry, by SHA-256. Its bytes stay.
    """
    refused: dict[str, str] = {}
    with SandboxedParser(settings.ingest()) as parser:
        pipeline = IngestPipeline(
            parser,
            store.writer,
            None,
            settings.ingest(),
            inspect=lambda text: (*inspect(text), RECOVERED),
            rereads=lambda: False,
        )
        for sha256 in names:
            path = store.originals.path(sha256)
            try:
                kind = FORMATS[identify(path.read_bytes(), sha256)]
                name = f"recovered-{sha256[:12]}{kind.suffixes[0]}"
            except InputError as error:
                refused[sha256] = error.message
                continue
            (outcome,) = pipeline.ingest(library, [RawDocument(name, name, path)])
            if outcome.status == "failed":
                refused[sha256] = outcome.reason or "it cannot be read"
    return refused
