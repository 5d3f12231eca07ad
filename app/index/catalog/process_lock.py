"""Hold a lock that orders threads and processes: an advisory lock of PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from types import TracebackType

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from app.core.errors import DatabaseAway

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
        """Let the next one come."""
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
