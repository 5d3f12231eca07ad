"""Open connections to the catalog's SQLite file; turn its errors into ours."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from app.core.errors import DatabaseAway, IndexDamaged, StorageError
from app.storage.catalog.schema import SCHEMA_VERSION
from app.storage.files.durable import disk_full

BUSY_TIMEOUT_MS = 30_000
"""A backup or an outside reader may hold the file for a moment; our own writers queue on a lock
before it."""

READ_CACHE_KIB = 8_192
"""Page cache of one read connection: the upper b-tree levels of a million chunks and the rows of
a few hundred."""

_FULL = (
    "SQLITE_FULL",
    "SQLITE_IOERR_WRITE",
    "SQLITE_IOERR_FSYNC",
    "SQLITE_IOERR_TRUNCATE",
    "SQLITE_IOERR_SHMSIZE",
)
_UNUSABLE = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ")


def open_engine(path: Path, *, immediate: bool) -> Engine:
    """Return connections to a file; `immediate` ones take the write lock as they begin."""
    engine = create_engine(
        f"sqlite:///{path}",
        poolclass=QueuePool,
        pool_size=1 if immediate else 16,
        max_overflow=0 if immediate else 128,
        connect_args={
            "check_same_thread": False,
            "timeout": BUSY_TIMEOUT_MS / 1000,
            "cached_statements": 256,
        },
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = (
            None  # we say BEGIN ourselves: the driver's implicit one comes too late for SELECTs
        )
        cursor = connection.cursor()
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "secure_delete=ON",
            f"busy_timeout={BUSY_TIMEOUT_MS}",
            "wal_autocheckpoint=4000",
            f"cache_size=-{READ_CACHE_KIB * (4 if immediate else 1)}",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def translate(path: Path, cause: BaseException | None) -> Exception:
    """Return our error for one of SQLite on the catalog at `path`."""
    name = getattr(cause, "sqlite_errorname", "") or ""
    if name.startswith(_FULL):
        return disk_full(path)
    if name.startswith(_DAMAGED) or "malformed" in str(cause):
        return damaged(path.name, str(cause))
    if name.startswith(_UNUSABLE):
        return DatabaseAway(
            f"the catalog {str(path)!r} cannot be opened or written ({cause}): it or its directory"
            " is gone, not writable"
            " for this user, or too many files are open (`ulimit -n`)"
        )
    return StorageError(f"the catalog {path.name!r} refused the operation: {cause}")


def damaged(name: str, detail: str) -> IndexDamaged:
    """Return the error for a damaged catalog, with the cure."""
    return IndexDamaged(
        f"the catalog {name!r} is damaged ({detail}): stop the server and run `documind restore"
        " BACKUP`"
        " with a directory that `documind backup` wrote; without one, leave this directory as it"
        " is, copy its originals/ into a new"
        " DATA_DIR and run there: documind fsck --repair --library papers"
    )


# Bring a catalog to the schema of this release; refuse a newer one.

MIGRATIONS = Path(__file__).parent / "migrations"
FIRST = "0001"
"""The migration that creates a new store."""


def upgrade(connection: Connection, version: str | None) -> None:
    """Bring the schema to this release's; the caller commits.

    Args:
        connection: In a transaction.
        version: Where it stands; None for a new store.
    """
    # Imported here: only the first start of a release migrates, every other start would pay 100 ms
    # for nothing.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    if version is None:  # the first migration makes the tables of this release
        command.upgrade(config, FIRST)
        command.stamp(config, "head")
    else:
        command.upgrade(config, "head")


def refuse_newer(name: str, version: str | None) -> None:
    """Refuse a catalog whose schema this release does not know.

    Args:
        name: Of its database, for the message.
        version: What it says of itself; None for a new one.

    Raises:
        StorageError: A newer release wrote it.
    """
    # takes 100 ms, and only an upgrade or a restore asks
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    known = {script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()}
    if version is not None and version not in known:
        raise StorageError(
            f"the catalog {name!r} has schema {version!r}, this release knows up to"
            f" {SCHEMA_VERSION!r}:"
            " start the newer release again, or restore a backup made by this one"
        )


def schema_of(path: Path) -> str | None:
    """Return the schema version of a closed catalog; None without a version.

    Raises:
        IndexDamaged: It cannot be read.
    """
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
        ) as connection:
            if not connection.execute(
                "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"
            ).fetchone()[0]:
                return None
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.DatabaseError as exc:
        raise damaged(path.name, str(exc)) from exc
    return str(row[0]) if row else None
