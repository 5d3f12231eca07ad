"""Keep the catalog in PostgreSQL (DATABASE_URL); needs the extra `shared`.

A server that is alone writes on one connection, which holds an advisory lock of the catalog's
schema for as long as it lives: a second server, or one that lost its connection, cannot write.
Several servers share a catalog by `several`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    ExceptionContext,
    create_engine,
    event,
    make_url,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from app.core.errors import (
    DatabaseAway,
    DiskFull,
    DocuMindError,
    IndexDamaged,
    InvalidInput,
    Locked,
    StorageError,
)
from app.core.trace import Calls
from app.storage.catalog.database import Cursor, Database
from app.storage.catalog.schema import metadata
from app.storage.catalog.statements import PostgresDialect
from app.storage.files.durable import Steps

logger = logging.getLogger(__name__)

RETRY_AFTER_S = 5.0
"""When to come back while the database is away."""

CONNECTING = {
    "connect_timeout": 10,
    "application_name": "documind",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""A host that vanished is noticed within half a minute (libpq, section 34.1.2)."""

_OWNER_WAIT = "5s"
"""How long a start waits for the lock of a server that was killed a moment ago."""

CHANNEL = "documind_jobs"
"""Channels belong to the database: two catalogs in it hear of each other's jobs, which they do not
have."""
_NOTIFY = text("SELECT pg_notify(:channel, :news)")
_LOCK_IN = text("SELECT pg_advisory_xact_lock(hashtext(current_schema()), hashtext(:name))")

_APART, _MORE_APART = 2, 6
"""Connections for jobs."""
_READERS, _MORE_READERS = 8, 24
"""Connections kept and added; with the writer a third of PostgreSQL's default of 100."""


class PostgresDatabase(Database):
    """A catalog in a database of a server, open."""

    _OWN = "SELECT pg_advisory_lock(hashtext('documind'), hashtext(current_schema()))"

    def __init__(self, url: str, steps: Steps) -> None:
        """Connect, and bring the schema to this release's.

        Args:
            url: `postgresql://user:password@host:port/database`.
            steps: Where write steps are counted.

        Raises:
            InvalidInput: No such address, or it does not answer, or refuses us.
            Locked: Another server writes to it.
            StorageError: The schema is of a newer release.
        """
        address = parsed(url)
        self._name = shown(address)
        self.calls = Calls("database")
        readers = open_engine(
            address, size=_READERS, more=_MORE_READERS, isolation="REPEATABLE READ"
        )
        writer = open_engine(address, size=1, more=0, isolation="READ COMMITTED")
        event.listen(writer, "connect", self._own)
        self._address = address
        self._apart = self._engine_of(url, size=_APART, more=_MORE_APART)
        try:
            super().__init__(self._name, PostgresDialect(), steps, writer, readers)
            self._take_lock()
        except DatabaseAway as exc:
            raise InvalidInput(f"DATABASE_URL: {exc.message}") from exc

    def _take_lock(self) -> None:
        """Connect the writer, so that a second server is refused at its start."""
        try:
            with self.translated(), self._writer.connect():
                pass
        except BaseException:
            self.close()
            raise

    def _own(self, connection: psycopg.Connection, _: ConnectionPoolEntry) -> None:
        """Take the catalog's lock for the life of a writing connection."""
        try:
            connection.execute(f"SET lock_timeout = '{_OWNER_WAIT}'")
            connection.execute(self._OWN)
            connection.execute("SET lock_timeout = 0")
            connection.commit()
        except psycopg.errors.LockNotAvailable as exc:
            connection.close()
            raise Locked(
                f"another DocuMind server writes to {self._name}: stop that one, or name another"
                " database in DATABASE_URL; several servers share one with SEARCH_URL, set for each"
            ) from exc
        except BaseException:
            connection.close()
            raise

    @staticmethod
    def _engine_of(url: str, *, size: int, more: int) -> Engine:
        """Return connections besides those that read and write."""
        return open_engine(parsed(url), size=size, more=more, isolation="READ COMMITTED")

    @contextmanager
    def _writing_connection(self) -> Iterator[Connection]:
        with super()._writing_connection() as connection:
            try:
                yield connection
            except psycopg.errors.ReadOnlySqlTransaction:  # of a driver's own cursor
                connection.invalidate()
                raise

    @contextmanager
    def write_apart(self, name: str) -> Iterator[Connection]:
        """Yield a connection in a transaction that waits for no writer of documents."""
        with self.translated(), self._apart.connect() as sql, sql.begin() as transaction:
            yield sql
            with self.steps.at(f"catalog.{name}"):
                transaction.commit()

    def lock_in(self, sql: Connection, name: str) -> None:
        sql.execute(_LOCK_IN, {"name": name})

    def notify(self, sql: Connection, news: str) -> None:
        sql.execute(_NOTIFY, {"channel": CHANNEL, "news": news})

    def news(self, closing: threading.Event, poll_s: float) -> Iterator[str]:
        """Yield what `notify` was given; a lost connection is made again."""
        address = self._address.set(drivername="postgresql").render_as_string(hide_password=False)
        while not closing.is_set():
            try:
                with psycopg.connect(address, autocommit=True, **CONNECTING) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    yield "lost"  # of what happened before, nothing was heard
                    while not closing.is_set():
                        for note in connection.notifies(timeout=poll_s):
                            yield note.payload
                        yield ""
            except psycopg.Error as exc:
                logger.warning("jobs are polled until PostgreSQL answers again: %s", exc)
                yield "lost"
                closing.wait(poll_s)

    @contextmanager
    def read_raw(self) -> Iterator[Cursor]:
        """Yield a plain cursor for reads that a person waits for; rows are tuples."""
        with self.translated():
            pooled = self._readers.raw_connection()
            try:
                yield pooled.cursor()
            finally:
                pooled.close()  # the pool ends the transaction

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn PostgreSQL's errors into ours, and count them."""
        with self.calls.timed():
            try:
                yield
            except DBAPIError as exc:
                raise self.calls.failed(error_of(self._name, exc.orig)) from exc
            except (psycopg.Error, PoolTimeout) as exc:
                raise self.calls.failed(error_of(self._name, exc)) from exc

    def close(self) -> None:
        """Close every connection."""
        super().close()
        self._apart.dispose()

    def check(self) -> list[str]:
        """Return no fault: PostgreSQL holds references itself and reads pages by checksum."""
        return self.check_pages()

    def check_pages(self) -> list[str]:
        """Return no fault: a page is checked when it is read, if the cluster has checksums."""
        return []

    def missing(self) -> Sequence[str]:
        """Return the database's address where it does not answer now, or cannot be written."""
        try:
            with self.read() as sql:
                read_only = sql.execute(text("SHOW transaction_read_only")).scalar() == "on"
                if read_only:
                    sql.invalidate()  # another may find the primary
        except DatabaseAway:
            read_only = True
        return (f"database {self._name}",) if read_only else ()

    def size_bytes(self) -> int:
        """Return the size of the catalog's tables, in bytes."""
        sizes = " + ".join(f"pg_total_relation_size('{name}')" for name in metadata.tables)
        return int(self.rows(text(f"SELECT {sizes}"))[0][0])

    def checkpoint(self) -> None:
        """Do nothing: PostgreSQL writes its files by itself."""

    def vacuum(self) -> None:
        """Rewrite every table without deleted rows; a table cannot be read while it is written.

        Deleted bytes stay in PostgreSQL's write-ahead log until it is recycled.
        """
        with self.lock, self.translated(), self._writer.connect() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)  # noqa: S101  # the engine's driver
            driver.rollback()
            driver.autocommit = True  # VACUUM runs outside of a transaction
            try:
                with self.steps.at("catalog.vacuum"):
                    for table in metadata.sorted_tables:
                        driver.execute(f"VACUUM FULL {table.name}".encode())
            finally:
                driver.autocommit = False


def parsed(url: str) -> URL:
    """Return the address that DATABASE_URL names, for our driver.

    Raises:
        InvalidInput: It is none.
    """
    try:
        address = make_url(url)
    except (ArgumentError, ValueError) as exc:
        raise InvalidInput("DATABASE_URL is no address: postgresql://USER@HOST/DATABASE") from exc
    if address.drivername != "postgresql" or not address.database:
        raise InvalidInput(
            f"DATABASE_URL {address.render_as_string(hide_password=True)!r} must be"
            " postgresql://USER@HOST:PORT/DATABASE"
        )
    return address.set(drivername="postgresql+psycopg")


def open_engine(address: URL, *, size: int, more: int, isolation: str) -> Engine:
    """Return a pool of `size` connections, and `more` while those are busy."""
    engine = create_engine(
        address,
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=more,
        pool_pre_ping=True,
        isolation_level=isolation,
        connect_args=CONNECTING,
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: psycopg.Connection, _: ConnectionPoolEntry) -> None:
        connection.execute("SET synchronous_commit = on")  # acknowledged is durable
        connection.execute("SET client_encoding = 'UTF8'")
        connection.commit()

    @event.listens_for(engine, "handle_error")
    def _leave_standby(context: ExceptionContext) -> None:
        if isinstance(context.original_exception, psycopg.errors.ReadOnlySqlTransaction):
            context.is_disconnect = True  # a new connection may find the primary

    return engine


def shown(address: URL) -> str:
    """Return an address without its password."""
    return address.set(drivername="postgresql", query={}).render_as_string(hide_password=True)


def ask(url: str) -> str:
    """Return a database's address and version; nothing is created or locked.

    Raises:
        InvalidInput: The address is wrong, or it does not answer.
    """
    address = parsed(url)
    engine = open_engine(address, size=1, more=0, isolation="READ COMMITTED")
    try:
        with engine.connect() as connection:
            version = connection.execute(text("SHOW server_version")).scalar_one()
    except DBAPIError as exc:
        raise InvalidInput(f"DATABASE_URL: {error_of(shown(address), exc.orig)}") from exc
    finally:
        engine.dispose()
    return f"{shown(address)}, PostgreSQL {version}"


def error_of(name: str, cause: BaseException | None) -> DocuMindError:
    """Return what an error of the driver means to us.

    Args:
        name: Of the database, for the message.
        cause: What the driver raised.
    """
    detail = " ".join(str(cause).split())
    match cause:
        case psycopg.errors.DiskFull():
            return DiskFull(f"the database {name} has no space left: free some")
        case psycopg.errors.DataCorrupted() | psycopg.errors.IndexCorrupted():
            return IndexDamaged(f"the database {name} is damaged ({detail}): restore a dump of it")
        case psycopg.errors.ReadOnlySqlTransaction():
            return DatabaseAway(
                f"the database {name} can only be read at present ({detail}); what was acknowledged"
                " is kept",
                retry_after_s=RETRY_AFTER_S,
            )
        case psycopg.DataError():
            return InvalidInput(f"PostgreSQL cannot keep a value: {detail}")
        case psycopg.OperationalError() | psycopg.InterfaceError() | PoolTimeout():
            return DatabaseAway(
                f"the database {name} does not answer ({detail}): start it, or correct"
                " DATABASE_URL; what was acknowledged is kept",
                retry_after_s=RETRY_AFTER_S,
            )
    return StorageError(f"the database {name} refused the operation: {detail}")
