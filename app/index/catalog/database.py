"""Open the catalog's SQLite file: connections, transactions, schema, errors.

WAL with `synchronous=FULL`: a committed transaction survives a power cut. One writer at a time
(`write` holds a process-wide lock and takes SQLite's at once), any number of readers, each on a
consistent snapshot.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, Executable, Row, create_engine, event, text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from app.core.errors import IndexDamaged, StorageError
from app.index.catalog.schema import SCHEMA_VERSION
from app.index.files.durable import disk_full
from app.index.files.steps import Steps

MIGRATIONS = Path(__file__).parent / "migrations"
FIRST = "0001"
"""The migration that creates a new store."""

BUSY_TIMEOUT_MS = 30_000
"""A backup or an outside reader may hold the file for a moment; our own writers queue on a lock before it."""

READ_CACHE_KIB = 8_192
"""Page cache of one read connection: the upper b-tree levels of a million chunks and the rows of a few hundred."""

_FULL = (
    "SQLITE_FULL",
    "SQLITE_IOERR_WRITE",
    "SQLITE_IOERR_FSYNC",
    "SQLITE_IOERR_TRUNCATE",
    "SQLITE_IOERR_SHMSIZE",
)
_UNUSABLE = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ")


class Database:
    """The catalog's file, open. Close it when done."""

    def __init__(self, path: Path, steps: Steps) -> None:
        """Open or create the file and bring its schema to this release's.

        Args:
            path: The SQLite file.
            steps: Where write steps are counted.

        Raises:
            IndexDamaged: Not a database, or damaged pages.
            StorageError: The schema is of a newer release.
            DiskFull: No space to create it.
        """
        self.path = path
        self.steps = steps
        self.lock = threading.RLock()
        self.version = 0
        """Another number once something may have been committed: what was read under the same number still holds."""
        self._writer = _engine(path, immediate=True)
        self._readers = _engine(path, immediate=False)
        try:
            with self.translated():
                self._migrate()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection on one consistent snapshot."""
        with self.translated(), self._readers.connect() as connection:
            yield connection
            connection.rollback()

    def rows(
        self, statement: Executable, values: Mapping[str, object] | None = None
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        """Return every row of a query, read on a snapshot of its own."""
        with self.read() as connection:
            return connection.execute(statement, values).all()

    @contextmanager
    def read_raw(self) -> Iterator[sqlite3.Cursor]:
        """Yield a plain cursor for reads that a person waits for; rows are tuples."""
        with self.translated():
            pooled = self._readers.raw_connection()
        try:
            with self.translated():
                cursor = pooled.cursor()
                cursor.execute("BEGIN")
                try:
                    yield cursor  # type: ignore[misc]  # SQLAlchemy types it as a generic DBAPI cursor
                finally:
                    cursor.execute("ROLLBACK")
                    cursor.close()
        finally:
            pooled.close()

    @contextmanager
    def write(self, name: str) -> Iterator[Connection]:
        """Yield a connection in a transaction: durable at the end, undone on error.

        Args:
            name: What the commit is for; the step is `catalog.NAME`.

        Raises:
            DiskFull: No space; nothing of the block is kept.
            IndexDamaged: SQLite found damaged pages.
        """
        with self.lock, self.translated(), self._writer.connect() as connection:
            transaction = connection.begin()
            try:
                yield connection
                self.version += 1  # from now on a reader may see either state ...
                try:
                    with self.steps.at(f"catalog.{name}"):
                        transaction.commit()
                finally:
                    self.version += 1  # ... and from now on the new one only
            finally:
                if transaction.is_active:
                    transaction.rollback()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn SQLite's errors into ours."""
        try:
            yield
        except DatabaseError as exc:
            raise self._translate(exc.orig) from exc
        except sqlite3.DatabaseError as exc:
            raise self._translate(exc) from exc

    def _translate(self, cause: BaseException | None) -> Exception:
        name = getattr(cause, "sqlite_errorname", "") or ""
        if name.startswith(_FULL):
            return disk_full(self.path)
        if name.startswith(_DAMAGED) or "malformed" in str(cause):
            return damaged(self.path, str(cause))
        if name.startswith(_UNUSABLE):
            return StorageError(
                f"the catalog {str(self.path)!r} cannot be opened or written ({cause}): it or its directory is gone, not writable"
                " for this user, or too many files are open (`ulimit -n`)"
            )
        return StorageError(f"the catalog {self.path.name!r} refused the operation: {cause}")

    def _migrate(self) -> None:
        with self.read() as connection:
            tables = connection.execute(
                text("SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'")
            ).scalar_one()
            version = (
                connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
                if tables
                else None
            )
        if version != SCHEMA_VERSION:
            self._upgrade(version)

    def _upgrade(self, version: str | None) -> None:
        # Imported here: only the first start of a release migrates, every other start would pay 100
        # ms for nothing.
        from alembic import command  # noqa: PLC0415
        from alembic.config import Config  # noqa: PLC0415

        refuse_newer(self.path, version)
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        with self.write("migrate") as connection:
            config.attributes["connection"] = connection
            if (
                version is None
            ):  # the first migration makes the tables of this release: the others have nothing to add
                command.upgrade(config, FIRST)
                command.stamp(config, "head")
            else:
                command.upgrade(config, "head")

    def check(self) -> list[str]:
        """Return faults that `PRAGMA quick_check` and foreign keys find, a line each.

        Empty when sound.
        """
        lines = self.check_pages()
        if lines:
            return lines  # asking damaged pages for more would end in an error
        with self.read() as connection:
            orphans = [
                f"row of {row[0]} without its {row[2]}"
                for row in connection.execute(text("PRAGMA foreign_key_check"))
            ]
        return orphans[:20]

    def check_pages(self) -> list[str]:
        """Return what `PRAGMA quick_check` finds wrong, one line each; empty when sound."""
        try:
            with self.read() as connection:
                lines = [str(row[0]) for row in connection.execute(text("PRAGMA quick_check(20)"))]
        except IndexDamaged as exc:  # some damage ends the check itself
            return [f"the check ended with: {exc.__cause__}"]
        return [line for line in lines if line != "ok"]

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database file and cut it to zero bytes."""
        with (
            self.lock,
            self.translated(),
            self._writer.connect() as connection,
            self.steps.at("catalog.checkpoint"),
        ):
            connection.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def vacuum(self) -> None:
        """Rewrite the file without free pages; needs as much space again while it runs."""
        with (
            self.lock,
            self.translated(),
            self._writer.connect() as connection,
            self.steps.at("catalog.vacuum"),
        ):
            connection.connection.cursor().execute("VACUUM")
        self.checkpoint()

    def close(self) -> None:
        """Close every connection; the last one folds the log into the file."""
        self._readers.dispose()
        self._writer.dispose()


def refuse_newer(path: Path, version: str | None) -> None:
    """Refuse a catalog whose schema this release does not know.

    Args:
        path: Its file, for the message.
        version: What it says of itself; None for a new one.

    Raises:
        StorageError: A newer release wrote it.
    """
    from alembic.script import ScriptDirectory  # noqa: PLC0415  # takes 100 ms, and only an upgrade or a restore asks

    known = {script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()}
    if version is not None and version not in known:
        raise StorageError(
            f"the catalog {path.name!r} has schema {version!r}, this release knows up to {SCHEMA_VERSION!r}:"
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
        raise damaged(path, str(exc)) from exc
    return str(row[0]) if row else None


def damaged(path: Path, detail: str) -> IndexDamaged:
    """Return the error for a damaged catalog, with the cure."""
    return IndexDamaged(
        f"the catalog {path.name!r} is damaged ({detail}): stop the server and run `documind restore BACKUP`"
        " with a directory that `documind backup` wrote; without one, leave this directory as it is, copy its originals/ into a new"
        " DATA_DIR and run there: documind fsck --repair --library papers"
    )


def _engine(path: Path, *, immediate: bool) -> Engine:
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
