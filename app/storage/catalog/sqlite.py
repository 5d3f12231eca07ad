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

from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from app.core.errors import IndexDamaged
from app.storage.catalog.database import Cursor, Database
from app.storage.catalog.engine import open_engine, translate
from app.storage.catalog.statements import SqliteDialect
from app.storage.files.durable import Steps

_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")


class SqliteDatabase(Database):
    """The catalog's file, open."""

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
        writer, readers = open_engine(path, immediate=True), open_engine(path, immediate=False)
        super().__init__(path.name, SqliteDialect(), steps, writer, readers)
        self._opened = path.stat()

    @contextmanager
    def read_raw(self) -> Iterator[Cursor]:
        """Yield a plain cursor for reads that a person waits for; rows are tuples."""
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
        """Turn SQLite's errors into ours."""
        try:
            yield
        except DatabaseError as exc:
            raise translate(self.path, exc.orig) from exc
        except sqlite3.DatabaseError as exc:
            raise translate(self.path, exc) from exc

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
        """Return the size of the file, in bytes."""
        return self.path.stat().st_size

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
