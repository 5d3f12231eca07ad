"""Keep the catalog in a SQLite file: the default.

WAL with `synchronous=FULL`: a committed transaction survives a power cut. The writer takes SQLite's
lock as it begins.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from app.core.errors import DatabaseAway, IndexDamaged, StorageError
from app.storage.catalog.database import Cursor, Database
from app.storage.catalog.statements import SqliteDialect
from app.storage.files.durable import Steps, disk_full

BUSY_TIMEOUT_MS = 30_000
"""A backup or an outside reader may hold the file for a moment; our own writers queue on a lock
before it."""

READ_CACHE_KIB = 8_192
"""Page cache of one read connection: the upper b-tree levels of a million chunks and the rows of
a few hundred."""

_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
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
        # We say BEGIN ourselves: the driver's implicit one comes too late for SELECTs.
        connection.isolation_level = None
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
            " is gone, not writable for this user, or too many files are open (`ulimit -n`)"
        )
    return StorageError(f"the catalog {path.name!r} refused the operation: {cause}")


def damaged(name: str, detail: str) -> IndexDamaged:
    """Return the error for a damaged catalog, with the cure."""
    return IndexDamaged(
        f"the catalog {name!r} is damaged ({detail}): stop the server and run `documind restore"
        " BACKUP` with a directory that `documind backup` wrote; without one, leave this directory"
        " as it is, copy its originals/ into a new DATA_DIR and run there: documind fsck --repair"
        " --library papers"
    )


class SqliteDatabase(Database):
    """The catalog's file, open."""

    def __init__(self, path: Path, steps: Steps) -> None:
        """Open or create the file and bring its schema to this release's.

        Raises:
            IndexDamaged: Not a database, or damaged pages.
            StorageError: The schema is of a newer release.
            DiskFull: No space to create it.
        """
        self.path = path
        writer, readers = open_engine(path, immediate=True), open_engine(path, immediate=False)
        super().__init__(path.name, SqliteDialect(), steps, writer, readers)
        self._opened = path.stat()

    @contextmanager
    def read_raw(self) -> Iterator[Cursor]:
        with self.translated():
            pooled = self._readers.raw_connection()
        try:
            with self.translated():
                cursor = pooled.cursor()
                cursor.execute("BEGIN")
                try:
                    yield cursor
                finally:
                    cursor.execute("ROLLBACK")
                    cursor.close()
        finally:
            pooled.close()

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except DatabaseError as exc:
            raise translate(self.path, exc.orig) from exc
        except sqlite3.DatabaseError as exc:
            raise translate(self.path, exc) from exc

    def check(self) -> list[str]:
        """Return faults of pages and of references between rows, a line each."""
        lines = self.check_pages()
        if lines:
            return lines  # asking damaged pages for more would end in an error
        orphans = self.rows(text("PRAGMA foreign_key_check"))
        return [f"row of {row[0]} without its {row[2]}" for row in orphans[:20]]

    def check_pages(self) -> list[str]:
        """Return what `PRAGMA quick_check` finds wrong, one line each; empty when sound."""
        try:
            lines = [str(row[0]) for row in self.rows(text("PRAGMA quick_check(20)"))]
        except IndexDamaged as exc:  # some damage ends the check itself
            return [f"the check ended with: {exc.__cause__}"]
        return [line for line in lines if line != "ok"]

    def missing(self) -> Sequence[str]:
        """Return `catalog` where a new connection would not open our file.

        It was deleted, renamed or replaced; SQLite itself notices one that was cut.
        """
        return () if self._is_there() else ("catalog",)

    def _is_there(self) -> bool:
        try:
            found = self.path.stat()
            if (found.st_dev, found.st_ino) != (self._opened.st_dev, self._opened.st_ino):
                return False
            # Never opened without SQLite: closing a file drops this process's locks on it (POSIX).
            address = f"file:{quote(str(self.path.absolute()))}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=1)) as connection:
                connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except OSError:
            return False
        except sqlite3.DatabaseError as exc:
            return (getattr(exc, "sqlite_errorname", "") or "").startswith(_BUSY)
        return True

    def size_bytes(self) -> int:
        return self.path.stat().st_size

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database file and cut it to zero bytes."""
        self._run_alone("catalog.checkpoint", "PRAGMA wal_checkpoint(TRUNCATE)")

    def vacuum(self) -> None:
        """Rewrite the file without free pages; needs as much space again while it runs."""
        self._run_alone("catalog.vacuum", "VACUUM")
        self.checkpoint()

    def _run_alone(self, step: str, statement: str) -> None:
        """Run a statement outside of a transaction, while nothing else writes."""
        with self.lock, self.translated(), self._writer.connect() as sql, self.steps.at(step):
            sql.connection.cursor().execute(statement).fetchall()


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
