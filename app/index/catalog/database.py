"""Open the catalog's SQLite file: connections, transactions, schema, errors.

WAL with `synchronous=FULL`: a committed transaction survives a power cut. One writer at a time
(`write` holds a process-wide lock and takes SQLite's at once), any number of readers, each on a
consistent snapshot.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Executable, Row, text
from sqlalchemy.exc import DatabaseError

from app.core.errors import IndexDamaged
from app.index.catalog.engine import open_engine, translate
from app.index.catalog.schema import SCHEMA_VERSION
from app.index.catalog.versions import refuse_newer, upgrade, version_of
from app.index.files.steps import Steps


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
        self._writer = open_engine(path, immediate=True)
        self._readers = open_engine(path, immediate=False)
        try:
            with self.translated():
                self._upgrade()
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
            raise translate(self.path, exc.orig) from exc
        except sqlite3.DatabaseError as exc:
            raise translate(self.path, exc) from exc

    def _upgrade(self) -> None:
        with self.read() as connection:
            version = version_of(connection)
        if version != SCHEMA_VERSION:
            refuse_newer(self.path, version)
            with self.write("migrate") as connection:
                upgrade(connection, version)

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
