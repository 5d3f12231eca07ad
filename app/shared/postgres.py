"""Keep the catalog in PostgreSQL (DATABASE_URL), for several servers."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from secrets import randbelow
from select import POLLIN, poll
from typing import Any, ClassVar, cast
from weakref import WeakSet

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    ExceptionContext,
    Executable,
    Row,
    Table,
    create_engine,
    event,
    func,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, InvalidatePoolError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from app.core.cancel import Periodic
from app.core.errors import (
    Busy,
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
from app.storage.catalog.schema import BUILD_SHIFT, changes, meta, meta_value, metadata, watermarks
from app.storage.catalog.statements import ORDERS, RowValues, SqlDialect
from app.storage.files.durable import Steps

logger = logging.getLogger(__name__)

CONNECTING = {
    "connect_timeout": 10,
    "application_name": "documind",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""A host that vanished is noticed within half a minute (libpq, section 34.1.2)."""

CHANNEL = "documind_jobs"
"""Channels belong to the database: two catalogs in it hear of each other's jobs, which they do not
have."""
_NOTIFY = text("SELECT pg_notify(:channel, :news)")
_LOCK_IN = text("SELECT pg_advisory_xact_lock(hashtext(current_schema()), hashtext(:name))")

_APART, _MORE_APART = 2, 6
"""Connections for jobs."""
_READERS, _MORE_READERS = 8, 24
"""Connections kept and added; with the writer a third of PostgreSQL's default of 100."""

# Write statements as PostgreSQL reads them.

_PENDING_IN_POSTGRES = (
    "WITH asked AS (SELECT %s::text AS library, %s::bigint AS most{names})"
    " SELECT c.chunk_id FROM documents d"
    " JOIN chunks c ON c.doc = d.doc AND c.revision = d.revision LEFT JOIN vectors v"
    f" ON v.key = (SELECT l.live_build::bigint << {BUILD_SHIFT} FROM libraries l, asked a"
    " WHERE l.library = a.library) | c.chunk_id"
    " WHERE d.library = (SELECT library FROM asked) AND d.state = 'live'"
    " AND d.embedded < d.chunks AND v.key IS NULL{named}"
    " ORDER BY {order}, c.ordinal LIMIT (SELECT most FROM asked)"
)


class PostgresDialect(SqlDialect):
    """The planner orders the joins; what a statement uses twice is bound once and named."""

    NOW = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
    mark = "%s"
    number = "%s::bigint"
    items = "json_array_elements_text(%s::json) AS k(value)"
    pairs = "json_array_elements(%s::json) AS k(value)"
    item = "({})::bigint"
    join = "JOIN"
    among = f"IN (SELECT value FROM {items})"
    by_author = "strpos(d.author_keys, %s) > 0"
    PENDING: ClassVar[Mapping[str, str]] = {
        order: _PENDING_IN_POSTGRES.format(names="", named="", order=by)
        for order, by in ORDERS.items()
    }
    PENDING_OF: ClassVar[Mapping[str, str]] = {
        order: _PENDING_IN_POSTGRES.format(
            names=", %s::json AS names",
            named=" AND d.doc_id IN (SELECT json_array_elements_text(names) FROM asked)",
            order=by,
        )
        for order, by in ORDERS.items()
    }

    def insert_rows(
        self, sql: Connection, insert: str, rows: Sequence[RowValues], after: str = ""
    ) -> None:
        """Insert rows in the driver's pipeline."""
        if rows:
            marks = ", ".join(["%s"] * len(rows[0]))
            driver = cast("Any", sql.connection.driver_connection)
            with driver.cursor() as cursor:
                cursor.executemany(f"{insert} VALUES ({marks}) {after}", rows)

    def last_id(self, sql: Connection, table: Table) -> int:
        """Return the newest number of a table's sequence; 0 before the first."""
        row = sql.execute(text(f"SELECT last_value, is_called FROM {_sequence(table)}")).one()
        return int(row.last_value) if row.is_called else 0

    def keep_last_id(self, sql: Connection, table: Table, last: int) -> None:
        """Set a table's sequence to the newest number of the rows inserted with numbers.

        Only the writer draws numbers, and there is one writer, so the sequence never goes back.
        """
        if last:
            sql.execute(select(func.setval(_sequence(table), last)))

    def last_change(self, sql: Connection) -> int:
        """Return the newest change that this connection sees; 0 before the first.

        Not the sequence's: that one counts transactions that have not committed. A change that is
        gone from the log is covered by a stored watermark.
        """
        logged = select(func.coalesce(func.max(changes.c.seq), 0)).scalar_subquery()
        applied = select(func.coalesce(func.max(watermarks.c.seq), 0)).scalar_subquery()
        return int(sql.execute(select(func.greatest(logged, applied))).scalar_one())


def _sequence(table: Table) -> str:
    (key,) = table.primary_key
    return f"{table.name}_{key.name}_seq"


# Hold a lock that orders threads and processes: an advisory lock of PostgreSQL.

WAIT_S = 60
"""How long another process is waited for, seconds; a check of everything may take longer."""

LEASE_S, BEAT_S = 30, 10
"""A holder that says nothing for a lease, as a process that is frozen, loses the lock: PostgreSQL
ends its session. Others say every beat that they live, in seconds."""

_PATIENCE = text(f"SET lock_timeout = '{WAIT_S}s'")
_TAKE = text("SELECT pg_advisory_lock(hashtext(:name), hashtext(current_schema()))")
_TRY = text("SELECT pg_try_advisory_lock(hashtext(:name), hashtext(current_schema()))")
_GIVE = text("SELECT pg_advisory_unlock(hashtext(:name), hashtext(current_schema()))")


class ProcessLock:
    """A re-entrant lock of all servers of one schema; a context manager.

    It lives in a connection of its own. When that is lost the lock is free. Call `beat` every
    BEAT_S, else a long hold is lost.
    """

    def __init__(
        self, name: str, engine: Engine, translated: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._name = {"name": f"documind {name}"}
        self._engine = engine
        self._translated = translated
        self._threads = threading.RLock()
        self._depth = 0
        self._connection: Connection | None = None
        self._driver: psycopg.Connection | None = None
        """Of the connection, while the lock is held."""

    def beat(self) -> None:
        """Keep the lease of a lock that is held, while its session rests."""
        driver = self._driver
        with suppress(psycopg.Error):  # who holds it meets that
            if driver and driver.info.transaction_status is not TransactionStatus.ACTIVE:
                driver.execute("SELECT 1")

    def __enter__(self) -> None:
        """Wait for the lock; DatabaseAway as `acquire`."""
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self, blocking: bool = True, /) -> bool:
        """Return whether the lock is held now; without `blocking` another one may have it.

        Raises:
            DatabaseAway: The database does not answer, or another process keeps the lock.
        """
        if not self._threads.acquire(blocking):
            return False
        try:
            if self._depth == 0:
                self._connection = self._take(wait=blocking)
            if self._connection is not None:
                self._depth += 1
                return True
        except BaseException:
            self._threads.release()
            raise
        self._threads.release()
        return False

    def release(self) -> None:
        self._depth -= 1
        try:
            if self._depth == 0:
                self._give_back()
        finally:
            self._threads.release()

    def _take(self, *, wait: bool) -> Connection | None:
        with self._translated():
            connection = self._engine.connect()
            try:
                connection.execute(_PATIENCE)
                if not wait and not connection.execute(_TRY, self._name).scalar():
                    connection.close()
                    return None
                if wait:
                    connection.execute(_TAKE, self._name)
                self._driver = _lease(connection, LEASE_S)
                connection.commit()
            except BaseException:
                _hang_up(connection)
                raise
        return connection

    def _give_back(self) -> None:
        connection, self._connection = self._connection, None
        self._driver = None
        if connection is None:
            return
        try:
            connection.rollback()
            _lease(connection, 0)
            connection.execute(_GIVE, self._name)
            connection.commit()
            connection.close()
        except DBAPIError:
            _hang_up(connection)
        except BaseException:
            _hang_up(connection)
            raise


def _lease(connection: Connection, limit_s: int) -> psycopg.Connection:
    """Let the session end after so long a rest outside of a transaction (0: never); return it."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)  # noqa: S101  # the engine's driver
    if driver.info.server_version >= 140_000:  # 13 ends sessions that rest in a transaction alone
        connection.execute(text(f"SET idle_session_timeout = '{limit_s}s'"))
    return driver


def _hang_up(connection: Connection) -> None:
    """End a connection, and with it every lock that it holds."""
    with suppress(DBAPIError):
        connection.invalidate()
        connection.close()


# Open the database.

_SHARE = (
    "SELECT set_config('lock_timeout', '5s', true),"
    " pg_advisory_lock_shared(hashtext('documind'), hashtext(current_schema()))"
)
_ORDER = text(
    "SELECT set_config('lock_timeout', :wait, true),"
    " pg_advisory_xact_lock(hashtext('documind transaction'), hashtext(current_schema()))"
)
_TRY_ORDER = text(
    "SELECT pg_try_advisory_xact_lock(hashtext('documind transaction'), hashtext(current_schema()))"
)


_READ_ONLY = text("SHOW transaction_read_only")
_SNAPSHOT = text("SELECT CAST(pg_current_snapshot() AS text)")
"""It changes with each commit that writes, of any process."""


class _Moment(threading.local):
    """What a thread's reads share while it is in a moment."""

    begun = False
    connection: Connection | None = None
    version: str | None = None


class PostgresDatabase(Database):
    """A catalog in a database of a server, open; other processes write to it as well.

    Every writing transaction takes one lock first and holds it until it is committed, so that the
    order of commits is the order of change numbers. It is not held while the search engine is told.
    """

    def __init__(self, url: str, steps: Steps) -> None:
        """Connect, and bring the schema to this release's.

        Raises:
            InvalidInput: No such address, or it does not answer, or refuses us.
            Locked: A server of an earlier release writes to it alone.
            StorageError: The schema is of a newer release.
        """
        address = parsed(url)
        self._name = shown(address)
        self._address = address
        self.calls = Calls("database")
        self._reads = itertools.count(1)
        self._moment = _Moment()
        readers = open_engine(address, _READERS, _MORE_READERS, isolation="REPEATABLE READ")
        writer = open_engine(address, 1, 0)
        event.listen(writer, "connect", self._share)
        self._apart = open_engine(address, _APART, _MORE_APART)
        self._locks = open_engine(address, 1, 8)
        self._others: WeakSet[ProcessLock] = WeakSet()
        """Locks that `lock_of` gave out, as long as someone has them."""
        self._listing = threading.Lock()
        self._beats = Periodic("lease of locks", self._beat, BEAT_S)
        self._beats.__enter__()
        try:
            super().__init__(self._name, PostgresDialect(), steps, writer, readers)
            with self.translated():
                _refuse_pooled(self._apart)
            with self.translated(), writer.connect():
                pass  # a server that writes alone is noticed now
        except BaseException as exc:
            self.close()
            if isinstance(exc, DatabaseAway):
                raise InvalidInput(f"DATABASE_URL: {exc.message}") from exc
            raise

    def _share(self, connection: psycopg.Connection, _: ConnectionPoolEntry) -> None:
        """Keep a server of an earlier release away, which would write alone."""
        try:
            connection.execute(_SHARE)
            connection.commit()
        except psycopg.errors.LockNotAvailable as exc:
            connection.close()
            raise Locked(
                f"a DocuMind server of an earlier release writes alone to {self._name}: stop it"
            ) from exc
        except BaseException:
            connection.close()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let this thread's reads in the block share a transaction, and `version` stay.

        A statement sees what was committed before it, so that a moment may begin before the engine
        is asked.
        """
        here = self._moment
        if here.begun:
            yield
            return
        here.begun = True
        try:
            yield
        finally:
            shared, here.begun, here.connection, here.version = here.connection, False, None, None
            if shared is not None:
                with suppress(DBAPIError):
                    shared.close()

    @contextmanager
    def _shared(self) -> Iterator[Connection | None]:
        """Yield the connection of this thread's moment; None outside of one."""
        here = self._moment
        if here.begun and here.connection is None:
            opened = self._readers.connect()
            here.connection = opened.execution_options(isolation_level="READ COMMITTED")
        try:
            yield here.connection
        except BaseException:
            if here.connection is not None:
                with suppress(DBAPIError):
                    here.connection.rollback()
            raise

    @property
    def version(self) -> Hashable:
        """Return what this moment sees of all processes' commits; outside of one it is new."""
        if not self._moment.begun:
            return next(self._reads)
        if self._moment.version is None:
            self._moment.version = str(self.rows(_SNAPSHOT)[0][0])
        return self._moment.version

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection on one consistent snapshot, in a moment on the newest."""
        with self.translated(), self._shared() as shared:
            if shared is not None:
                yield shared
                return
            with self._readers.connect() as own:
                yield own
                own.rollback()

    def rows(
        self, statement: Executable, values: Mapping[str, object] | None = None
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        """Return every row of a query; one statement is a snapshot without a transaction."""
        with self.translated(), self._shared() as shared:
            if shared is not None:
                return shared.execute(statement, values).all()
            with self._readers.connect() as own:
                alone = own.execution_options(isolation_level="AUTOCOMMIT")
                return alone.execute(statement, values).all()

    def lock_of(self, name: str) -> ProcessLock:
        lock = ProcessLock(name, self._locks, self.translated)
        with self._listing:
            self._others.add(lock)
        return lock

    def _beat(self) -> float:
        with self._listing:
            others = tuple(self._others)
        for lock in others:
            lock.beat()
        return BEAT_S

    @contextmanager
    def write(self, name: str, *, wait: bool = True) -> Iterator[Connection]:
        with super().write(name, wait=wait) as connection:
            try:
                yield connection
            except psycopg.errors.ReadOnlySqlTransaction:  # of a driver's own cursor
                connection.invalidate()
                raise

    def _order(self, connection: Connection, *, wait: bool) -> None:
        if wait:
            connection.execute(_ORDER, {"wait": f"{WAIT_S}s"})
        elif not connection.execute(_TRY_ORDER).scalar():
            raise Busy("others are writing: try again in a moment")

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

    def listen(self, closing: threading.Event, poll_s: float) -> Iterator[str]:
        """Yield what `notify` was given; a lost connection is made again."""
        address = self._address.set(drivername="postgresql").render_as_string(hide_password=False)
        away = False
        while not closing.is_set():
            try:
                with psycopg.connect(address, autocommit=True, **CONNECTING) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    away = False
                    yield "lost"  # of what happened before, nothing was heard
                    while not closing.is_set():
                        for note in connection.notifies(timeout=poll_s):
                            yield note.payload
                        yield ""
            except psycopg.Error as exc:
                if not away:
                    logger.warning("jobs are polled until PostgreSQL answers again: %s", exc)
                away = True
                yield "lost"
                closing.wait(poll_s)

    @contextmanager
    def read_raw(self) -> Iterator[Cursor]:
        with self.translated(), self._shared() as shared:
            if shared is not None:
                yield shared.connection.cursor()
                return
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
        self._beats.__exit__()
        super().close()
        for engine in (self._apart, self._locks):
            engine.dispose()

    def missing(self) -> Sequence[str]:
        """Return the database's address where it does not answer now."""
        try:
            self.rows(_READ_ONLY)
        except DatabaseAway:
            return (f"database {self._name}",)
        return ()

    def degraded(self) -> Sequence[str]:
        """Return that the database can only be read, as a standby."""
        if self.rows(_READ_ONLY)[0][0] == "on":
            self._readers.dispose()  # new connections may find the primary
            if self.rows(_READ_ONLY)[0][0] == "on":
                return (f"database {self._name} can only be read: nothing is added or deleted",)
        return ()

    def size_bytes(self) -> int:
        sizes = " + ".join(f"pg_total_relation_size('{name}')" for name in metadata.tables)
        return int(self.rows(text(f"SELECT {sizes}"))[0][0])

    def analyse(self) -> None:
        """Tell the planner how many rows the tables of vectors and chunks have now.

        Autovacuum does it up to a minute after a bulk load; until then a page of vectors reads
        all of them for each chunk.
        """
        with self.write_apart("analyse") as sql:
            sql.execute(text("ANALYZE documents, chunks, vectors"))

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


def open_engine(address: URL, size: int, more: int, isolation: str = "READ COMMITTED") -> Engine:
    """Return a pool of `size` connections, and `more` while those are busy."""
    engine = create_engine(
        address,
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=more,
        isolation_level=isolation,
        connect_args=CONNECTING,
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: psycopg.Connection, _: ConnectionPoolEntry) -> None:
        connection.execute("SET synchronous_commit = on")  # acknowledged is durable
        connection.execute("SET client_encoding = 'UTF8'")
        if isolation == "READ COMMITTED":  # a frozen writer holds up the others no longer
            connection.execute(f"SET idle_in_transaction_session_timeout = '{LEASE_S}s'")
        connection.commit()

    @event.listens_for(engine, "checkout")
    def _refuse_lost(connection: psycopg.Connection, *_: object) -> None:
        # A server that ended a session has said so; to ask would cost a round trip each time.
        try:
            said = poll()
            said.register(connection.fileno(), POLLIN)
            if said.poll(0):
                engine.dialect.do_ping(cast("Any", connection))
        except psycopg.Error as exc:
            raise InvalidatePoolError from exc

    @event.listens_for(engine, "handle_error")
    def _leave_standby(context: ExceptionContext) -> None:
        if isinstance(context.original_exception, psycopg.errors.ReadOnlySqlTransaction):
            context.is_disconnect = True  # a new connection may find the primary

    return engine


_SESSION = text(
    "SELECT pg_backend_pid() AS pid, EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory'"
    " AND pid = pg_backend_pid() AND objid = :mine AND classid = :ours) AS held"
)
_TAKE_SESSION = text("SELECT pg_advisory_lock_shared(:ours, :mine)")


def _refuse_pooled(engine: Engine) -> None:
    """Refuse a pooler that gives a transaction any session: locks would stay with others.

    One connection takes a lock of its session, another begins a transaction, and the first looks
    in a second transaction whether it has the lock.

    Raises:
        InvalidInput: There is one.
    """
    named = {"ours": 7_356, "mine": randbelow(2**31)}
    with engine.connect() as first, engine.connect() as second:
        first.execute(_TAKE_SESSION, named)
        before = first.execute(_SESSION, named).one()
        first.commit()
        other = second.execute(_SESSION, named).one()
        after = first.execute(_SESSION, named).one()
        first.invalidate()  # and with it the lock
    if not after.held or before.pid == other.pid:
        raise InvalidInput(
            "DATABASE_URL names a pooler in transaction mode (as PgBouncer's pool_mode ="
            " transaction), where locks of a session and LISTEN do not work: name PostgreSQL"
            " itself, or set pool_mode = session"
        )


def shown(address: URL) -> str:
    """Return an address without its password."""
    return address.set(drivername="postgresql", query={}).render_as_string(hide_password=True)


def ask(url: str) -> str:
    """Return a database's address and version; nothing is created or locked.

    Raises:
        InvalidInput: The address is wrong, or it does not answer.
    """
    address = parsed(url)
    engine = open_engine(address, 2, 0)
    try:
        _refuse_pooled(engine)
        with engine.connect() as connection:
            version = connection.execute(text("SHOW server_version")).scalar_one()
    except DBAPIError as exc:
        raise InvalidInput(f"DATABASE_URL: {error_of(shown(address), exc.orig)}") from exc
    finally:
        engine.dispose()
    return f"{shown(address)}, PostgreSQL {version}"


def ask_meta(url: str, key: str) -> str:
    """Return a value of the table `meta`, empty without one; nothing is created or locked.

    Raises:
        InvalidInput: The database does not answer.
    """
    address = parsed(url)
    engine = open_engine(address, 1, 0)
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table(meta.name):
                return ""
            return meta_value(connection, key) or ""
    except DBAPIError as exc:
        raise InvalidInput(f"DATABASE_URL: {error_of(shown(address), exc.orig)}") from exc
    finally:
        engine.dispose()


def error_of(name: str, cause: BaseException | None) -> DocuMindError:
    """Return what an error of the driver means to us; `name` is the database's."""
    detail = " ".join(str(cause).split())
    match cause:
        case psycopg.errors.DiskFull():
            return DiskFull(f"the database {name} has no space left: free some")
        case psycopg.errors.DataCorrupted() | psycopg.errors.IndexCorrupted():
            return IndexDamaged(f"the database {name} is damaged ({detail}): restore a dump of it")
        case psycopg.errors.ReadOnlySqlTransaction():
            return DatabaseAway(
                f"the database {name} can only be read at present ({detail}); what was acknowledged"
                " is kept"
            )
        case psycopg.DataError():
            return InvalidInput(f"PostgreSQL cannot keep a value: {detail}")
        case psycopg.errors.LockNotAvailable():
            return DatabaseAway(
                f"another process has held a lock of the database {name} for {WAIT_S} s: try again"
            )
        case psycopg.errors.IdleInTransactionSessionTimeout():
            return DatabaseAway(
                f"the database {name} ended a transaction that had rested for {LEASE_S} s, as this"
                " process did: try again"
            )
        case psycopg.OperationalError() | psycopg.InterfaceError() | PoolTimeout():
            return DatabaseAway(
                f"the database {name} does not answer ({detail}): start it, or correct"
                " DATABASE_URL; what was acknowledged is kept"
            )
    return StorageError(f"the database {name} refused the operation: {detail}")
