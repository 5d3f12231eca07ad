"""Back up a data directory while the server works, and restore it.

A backup holds the truth: the catalog, copied page by page by SQLite on one snapshot, and the
originals. Projections are made again from the catalog when a restored directory is first opened.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from app.core.errors import Conflict, IndexDamaged, InvalidInput
from app.core.ids import content_sha256
from app.storage.catalog.database import refuse_newer
from app.storage.catalog.sqlite import SqliteDatabase, schema_of
from app.storage.catalog.statements import prepare_restored
from app.storage.files.durable import (
    Steps,
    delete_file,
    delete_tree,
    disk_errors,
    replace_file,
    sync_directory,
    sync_file,
    utc_now,
)
from app.storage.files.originals import Originals
from app.storage.maintenance.start import CATALOG_NAME, SEEN_NAME

MANIFEST = "backup.json"
_UNFINISHED = "backup.unfinished"
"""Stands in a directory from before the first file of a backup until after its manifest."""

PAGES_PER_STEP = 2_000
"""SQLite pages copied before writers get a turn: 8 MB."""

NO_BACKUP = (
    "the catalog is in PostgreSQL (DATABASE_URL): back it up with pg_dump, and copy"
    " DATA_DIR/originals after it"
)
"""What to use where the catalog is no file."""


@dataclass(frozen=True, slots=True)
class BackupReport:
    """Counts of a backup."""

    path: str
    created_at: str
    catalog_bytes: int
    originals: int
    original_bytes: int


def backup(
    database: SqliteDatabase,
    originals: Originals,
    target: Path,
    steps: Steps,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> BackupReport:
    """Write a backup into the empty directory `target`; the manifest comes last.

    It counts once its manifest exists. One that was killed in this directory is made again.

    Writes may continue. `progress` is called with files done and files in all.

    Raises:
        Conflict: `target` holds something.
        DiskFull: No space there; what was written is removed again.
    """
    if (target / _UNFINISHED).exists():
        _delete_unfinished(target, steps)
    if target.exists() and any(target.iterdir()):
        raise Conflict(f"{str(target)!r} is not empty: name a new directory for the backup")
    try:
        with disk_errors(target):
            target.mkdir(parents=True, exist_ok=True)
            with steps.at("backup.begin"):
                (target / _UNFINISHED).touch()
            sync_directory(target, steps, "backup.fsync_directory")
            (target / "originals").mkdir()
            names = _copy_catalog(database, target / CATALOG_NAME, steps)
            size = 0
            for done, name in enumerate(names, 1):
                if originals.exists(name):
                    source = originals.path(name)
                    copy = target / "originals" / source.name
                    with steps.at("backup.copy"):
                        shutil.copyfile(source, copy)
                    sync_file(copy, steps, "backup.fsync")
                    size += copy.stat().st_size
                if progress is not None:
                    progress(done, len(names))
            sync_directory(target / "originals", steps, "backup.fsync_directory")
            catalog_bytes, at = (target / CATALOG_NAME).stat().st_size, utc_now()
            manifest = {
                "kind": "documind backup",
                "created_at": at,
                "catalog_sha256": content_sha256(target / CATALOG_NAME),
                "originals": names,
            }
            replace_file(target / MANIFEST, json.dumps(manifest).encode(), steps, "backup")
            delete_file(target / _UNFINISHED, steps, "backup.finish")
    except BaseException:
        _delete_unfinished(target, steps)
        raise
    return BackupReport(str(target), at, catalog_bytes, len(names), size)


def _delete_unfinished(target: Path, steps: Steps) -> None:
    """Remove an unfinished backup, what says so last: a kill in between leaves it unfinished."""
    kept = target / _UNFINISHED
    for entry in target.iterdir() if target.exists() else ():
        if entry != kept:
            remove = delete_tree if entry.is_dir() else delete_file
            remove(entry, steps, "backup.discard")
    delete_tree(target, steps, "backup.discard")


def _copy_catalog(database: SqliteDatabase, target: Path, steps: Steps) -> list[str]:
    """Copy the catalog durably; return the SHA-256 of the originals that it names."""
    with (
        database.translated(),
        closing(sqlite3.connect(f"file:{database.path}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(target)) as copy,
    ):
        with steps.at("backup.catalog"):
            source.backup(copy, pages=PAGES_PER_STEP)
        copy.execute("PRAGMA journal_mode=DELETE").fetchall()
        names = copy.execute(
            "SELECT DISTINCT sha256 FROM revisions WHERE has_original = 1 ORDER BY 1"
        ).fetchall()
    sync_file(target, steps, "backup.fsync")
    return [name for (name,) in names]


def restore(source: Path, data_dir: Path, steps: Steps) -> None:
    """Replace a data directory's content with a backup; keep the old content.

    It is moved to `DATA_DIR/replaced.<UTC>`. The server is stopped and the caller holds the
    directory's lock. The new state counts from the last rename on.

    Raises:
        InvalidInput: `source` is no complete backup.
        IndexDamaged: Its catalog or an original is not what the manifest says.
        DiskFull: No space; the old content stays in place.
    """
    names = verify(source)
    staging = data_dir / "restore.part"
    if staging.exists():
        delete_tree(staging, steps, "restore.discard")
    (staging / "originals").mkdir(parents=True)
    with disk_errors(data_dir):
        for relative in [CATALOG_NAME, *(f"originals/{name}.bin" for name in names)]:
            with steps.at("restore.copy"):
                shutil.copyfile(source / relative, staging / relative)
                if relative == CATALOG_NAME:
                    prepare_restored(staging / relative)
            sync_file(staging / relative, steps, "restore.fsync")
        sync_directory(staging / "originals", steps, "restore.fsync_directory")
        replaced = data_dir / f"replaced.{utc_now().replace(':', '').replace('-', '')[:15]}Z"
        replaced.mkdir()
        # The catalog is moved last in both directions: a catalog never lies next to another's data.
        catalog = [f"{CATALOG_NAME}-shm", f"{CATALOG_NAME}-wal", CATALOG_NAME]
        for name in ("chroma", "faiss", "tantivy", "originals", SEEN_NAME, *catalog):
            if (data_dir / name).exists():
                with steps.at("restore.move_out"):
                    (data_dir / name).rename(replaced / name)
        for name in ("originals", CATALOG_NAME):
            with steps.at("restore.move_in"):
                (staging / name).replace(data_dir / name)
        sync_directory(data_dir, steps, "restore.fsync_directory")
        delete_tree(staging, steps, "restore.discard")


def verify(source: Path) -> list[str]:
    """Check a backup against its manifest; return the names of its originals.

    Raises:
        InvalidInput: No complete backup.
        IndexDamaged: A file is not what the manifest says.
        StorageError: A newer release wrote it.
    """
    try:
        manifest = json.loads((source / MANIFEST).read_bytes())
        wanted = str(manifest["catalog_sha256"])
        names = [str(name) for name in manifest["originals"]]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise InvalidInput(
            f"{str(source)!r} is no complete backup: it has no readable {MANIFEST}"
        ) from exc
    catalog = source / CATALOG_NAME
    if not catalog.exists() or content_sha256(catalog) != wanted:
        raise IndexDamaged(
            f"the catalog of the backup {str(source)!r} is damaged; use another backup"
        )
    refuse_newer(CATALOG_NAME, schema_of(catalog))
    for name in names:
        path = source / "originals" / f"{name}.bin"
        if not path.exists() or content_sha256(path) != name:
            raise IndexDamaged(
                f"original {name[:12]} of the backup {str(source)!r} is damaged; use another backup"
            )
    return names
