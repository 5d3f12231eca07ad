"""The store of a stopped server: opened, restored, recovered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.core.errors import InputError, InvalidInput
from app.core.types import Library, RawDocument
from app.generation.flags.injection import inspect
from app.ingest.embedding import CodeBackfill, CodeProgress
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.sniffing import identify
from app.ingest.pipeline import IngestPipeline
from app.ingest.sandbox import SandboxedParser
from app.models.minilm import MiniLmEmbedder
from app.settings import Settings
from app.storage.files.durable import Steps
from app.storage.maintenance.backup import restore
from app.storage.store import IndexStore


def remake_codes(settings: Settings, store: IndexStore, progress: CodeProgress) -> int:
    """Rebuild all codes, return their number; the next start goes on where this is interrupted.

    Raises:
        ModelNotInstalled: The embedded model is missing.
        DiskFull: No space.
    """
    options = settings.ingest()
    encoder = MiniLmEmbedder()
    backfill = CodeBackfill(
        store.codes, encoder, store.catalog, options.late_interaction_max_chunks
    )
    for library in Library:
        store.codes.delete_codes(library)
    return sum(backfill.run(library, progress=progress) for library in Library)


def open_stopped(settings: Settings, *, heal: bool) -> IndexStore:
    """Open a locked directory's store; `heal` finishes first what the last process left undone."""
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


RECOVERED = "recovered"
"""Flag of a document whose entry was made from its kept bytes: its name and source are not known
any more."""


def recover_originals(
    store: IndexStore, settings: Settings, library: Library, names: Sequence[str]
) -> Mapping[str, str]:
    """Parse originals again by their SHA-256 and add an entry for each, flagged `recovered`.

    Its title comes from the first page. Words are found at once; vectors follow when a server next
    runs. Returns why an original got no entry; its bytes stay.
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
