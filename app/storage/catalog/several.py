"""Share a catalog in PostgreSQL (DATABASE_URL, SEARCH_URL) between several servers."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import get_args

from sqlalchemy import Connection, Engine, and_, bindparam, delete, func, select, text
from sqlalchemy.exc import DBAPIError

from app.core.errors import DatabaseAway
from app.core.types import Library, StoreKind
from app.storage.catalog.changes import APPLIED, LINGER_S, ChangeLog, Projection, Settling
from app.storage.catalog.database import Database
from app.storage.catalog.postgres import PostgresDatabase
from app.storage.catalog.schema import changes, documents, put, revisions, watermarks
from app.storage.files.durable import Steps

# Hold a lock that orders threads and processes: an advisory lock of PostgreSQL.

WAIT_S = 60
"""How long another process is waited for, seconds; a check of everything may take longer."""

_PATIENCE = text(f"SET lock_timeout = '{WAIT_S}s'")
_TAKE = text("SELECT pg_advisory_lock(hashtext(:name), hashtext(current_schema()))")
_GIVE = text("SELECT pg_advisory_unlock(hashtext(:name), hashtext(current_schema()))")


class ProcessLock:
    """A re-entrant lock of all servers of one schema; a context manager.

    It lives in a connection of its own. When that is lost the lock is free, and what is written
    through `connection` fails: nothing is committed under a lock that another process holds.
    """

    def __init__(
        self,
        name: str,
        engine: Engine,
        translated: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Prepare the lock `name`.

        Connections come from `engine`, errors go to `translated`.
        """
        self._name = {"name": f"documind {name}"}
        self._engine = engine
        self._translated = translated
        self._threads = threading.RLock()
        self._owner = 0
        self._depth = 0
        self._connection: Connection | None = None
        self.before_release: Callable[[], None] = lambda: None
        """Called by the owner before other processes come."""

    @property
    def connection(self) -> Connection | None:
        """Return the lock's connection to the thread that holds it, else None.

        Raises:
            DatabaseAway: It was lost, and the lock with it; SQLAlchemy would make another.
        """
        if self._connection is None or self._owner != threading.get_ident():
            return None
        if self._connection.invalidated:
            raise DatabaseAway(
                "the connection that held the lock of all writers was lost: try again",
                retry_after_s=1.0,
            )
        return self._connection

    def __enter__(self) -> None:
        """Wait for the lock.

        Raises:
            DatabaseAway: The database does not answer, or another process keeps the lock.
        """
        self._threads.acquire()
        try:
            if self._depth == 0:
                self._connection = self._take()
                self._owner = threading.get_ident()
            self._depth += 1
        except BaseException:
            self._threads.release()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._depth == 1:
                self.before_release()
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._give_back()
            self._threads.release()

    def _take(self) -> Connection:
        with self._translated():
            connection = self._engine.connect()
            try:
                connection.execute(_PATIENCE)
                connection.execute(_TAKE, self._name)
                connection.commit()
            except BaseException:
                _hang_up(connection)
                raise
        return connection

    def _give_back(self) -> None:
        connection, self._connection, self._owner = self._connection, None, 0
        if connection is None:
            return
        try:
            connection.rollback()
            connection.execute(_GIVE, self._name)
            connection.commit()
            connection.close()
        except DBAPIError:
            _hang_up(connection)
        except BaseException:
            _hang_up(connection)
            raise


def _hang_up(connection: Connection) -> None:
    """End a connection, and with it every lock that it holds."""
    with suppress(DBAPIError):
        connection.invalidate()
        connection.close()


_ORDER = text(
    "SELECT set_config('lock_timeout', :wait, true),"
    " pg_advisory_xact_lock(hashtext('documind transaction'), hashtext(current_schema()))"
)


class SharedDatabase(PostgresDatabase):
    """A catalog that other processes write to as well.

    Every writing transaction takes one lock first and holds it until it is committed, so that the
    order of commits is the order of change numbers. The lock `writing` orders what has to be done
    after a commit too: the words of a change are in the search engine before the next one comes.
    """

    _OWN = "SELECT pg_advisory_lock_shared(hashtext('documind'), hashtext(current_schema()))"
    """Keeps a server away that would write alone."""

    def __init__(self, url: str, steps: Steps) -> None:
        self._reads = itertools.count(1)
        self._ordering = self._engine_of(url, size=1, more=0)
        self._locks = self._engine_of(url, size=1, more=8)
        self._writing = ProcessLock("writing", self._ordering, self.translated)
        super().__init__(url, steps)

    @property
    def version(self) -> int:
        """Return another number each time: another process may have committed."""
        return next(self._reads)

    def order_writers(self, before_release: Callable[[], None]) -> AbstractContextManager[object]:
        """Return the lock of all writers of all processes."""
        self._writing.before_release = before_release
        return self._writing

    def lock_of(self, name: str) -> AbstractContextManager[object]:
        """Return a re-entrant lock of all processes."""
        return ProcessLock(name, self._locks, self.translated)

    @contextmanager
    def _writing_connection(self) -> Iterator[Connection]:
        """Yield the connection that holds `writing` to its holder, else the common one."""
        held = self._writing.connection
        if held is not None:
            yield held
        else:
            with super()._writing_connection() as connection:
                yield connection

    def _order(self, connection: Connection) -> None:
        connection.execute(_ORDER, {"wait": f"{WAIT_S}s"})

    def close(self) -> None:
        """Close every connection."""
        super().close()
        self._ordering.dispose()
        self._locks.dispose()


# Keep the watermarks of several processes in the catalog alone.

_ROWS = select(watermarks.c.projection, watermarks.c.seq)
_KEEPS = "keeps "
"""How a row begins that keeps changes for a holder, such as a build that is being made."""


class SharedChangeLog(ChangeLog):
    """The log of changes of several processes: nothing is remembered here.

    A mark is written after the projection's own commit, by the holder of that projection's lock.
    A process that ends in between leaves a mark that is too old, and whichever process looks next
    applies the changes again.
    """

    def mark(self, library: Library, projection: Projection) -> int:
        """Return up to which change a projection is applied; 0 before the first."""
        return self._rows(library).get(projection, 0)

    def set_mark(
        self, library: Library, projection: Projection, seq: int, *, flushed: bool = True
    ) -> None:
        """A projection has everything up to `seq`, on disk if `flushed`; 0: it holds nothing."""
        if flushed and self.mark(library, projection) != seq:
            with self._database.write("watermarks") as sql:
                self.set_mark_in(sql, library, projection, seq)

    def set_mark_in(
        self, sql: Connection, library: Library, projection: Projection, seq: int
    ) -> None:
        """Set a mark in the caller's transaction."""
        _put(sql, library, projection, seq)
        if projection != "lexical" and seq:
            others = [kind for kind in get_args(StoreKind) if kind != projection]
            sql.execute(
                delete(watermarks).where(
                    watermarks.c.library == library.value, watermarks.c.projection.in_(others)
                )
            )

    def marks(self) -> dict[str, int]:
        """Return every watermark by `library/projection`."""
        found: dict[str, int] = {}
        for library in Library:
            rows = {"lexical": 0} | self._rows(library)
            dense = max((rows.get(kind, 0) for kind in get_args(StoreKind)), default=0)
            for name, seq in sorted(rows.items()):
                if not name.startswith(_KEEPS) and (seq or name == "lexical" or not dense):
                    found[f"{library.value}/{name}"] = seq
        return found

    def save_into(self, sql: Connection) -> None:
        """Do nothing: every mark is written as it is set."""

    def save(self) -> None:
        """Forget changes that every projection applied."""
        with self._database.write("watermarks") as sql:
            for library in Library:
                rows = self._rows(library, sql)
                stores = [rows.get(kind, 0) for kind in get_args(StoreKind)]
                kept = [seq for name, seq in rows.items() if name.startswith(_KEEPS)]
                dense = min(max(stores), *kept) if kept else max(stores)
                lexical = rows.get("lexical", 0)
                sql.execute(APPLIED, {"of": library.value, "lexical": lexical, "dense": dense})

    def hold(self, library: Library, holder: str, seq: int | None) -> None:
        """Keep changes after `seq` for a holder, until None or until the next of its name."""
        name = _KEEPS + holder
        with self._database.write("watermarks") as sql:
            if seq is not None:
                _put(sql, library, name, seq)
            else:
                sql.execute(
                    delete(watermarks).where(
                        watermarks.c.library == library.value, watermarks.c.projection == name
                    )
                )

    def holds(self, library: Library, holder: str) -> bool:
        """Return whether changes are kept for this holder, in any process."""
        return _KEEPS + holder in self._rows(library)

    def is_behind(self, library: Library, store: StoreKind) -> bool:
        """Return whether a projection lacks a change that is committed."""
        rows = self._rows(library)
        return any(
            self.pending(library, rows.get(name, 0), dense=dense, limit=1)
            for name, dense in (("lexical", False), (store, True))
        )

    def _rows(self, library: Library, sql: Connection | None = None) -> dict[str, int]:
        asked = _ROWS.where(watermarks.c.library == library.value)
        rows = self._database.rows(asked) if sql is None else sql.execute(asked).all()
        return {row.projection: int(row.seq) for row in rows}


def _put(sql: Connection, library: Library, name: str, seq: int) -> None:
    put(sql, watermarks, [{"library": library.value, "projection": name, "seq": seq}])


# Show replaced revisions while another process makes the new text searchable.

_NAMED = documents.c.doc.in_(bindparam("docs", expanding=True))
_LIVE_SINCE = (
    select(documents.c.doc, revisions.c.created_at)
    .join(
        revisions,
        and_(revisions.c.doc == documents.c.doc, revisions.c.revision == documents.c.revision),
    )
    .where(_NAMED)
)
_NOT_FOUND_YET = (
    select(changes.c.doc)
    .outerjoin(
        watermarks,
        and_(watermarks.c.library == changes.c.library, watermarks.c.projection == "lexical"),
    )
    .where(
        changes.c.kind == "write",
        changes.c.doc.in_(bindparam("docs", expanding=True)),
        changes.c.seq > func.coalesce(watermarks.c.seq, 0),
    )
)


class SharedSettling(Settling):
    """Which superseded revision may still be shown, by the catalog; thread-safe.

    One is shown until the words of its successor are in the engine, and for two seconds after the
    swap: a search that began before it holds the old ids. Clocks of servers may differ by less.
    """

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    def begin(self, revisions: Iterable[tuple[int, int]]) -> None:
        """Do nothing: the change says it."""

    def end(self, revisions: Iterable[tuple[int, int]]) -> None:
        """Do nothing: the watermark says it."""

    def shown(self, found: Iterable[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        """Return which of these superseded `(doc, revision)` pairs may be shown now."""
        pairs = frozenset(found)
        if not pairs:
            return pairs
        docs = {"docs": sorted({doc for doc, _ in pairs})}
        since = datetime.now(UTC) - timedelta(seconds=LINGER_S)
        with self._database.read() as sql:
            shown = set(sql.execute(_NOT_FOUND_YET, docs).scalars())
            for doc, created_at in sql.execute(_LIVE_SINCE, docs):
                if datetime.fromisoformat(created_at) > since:
                    shown.add(doc)
        return frozenset(pair for pair in pairs if pair[0] in shown)
