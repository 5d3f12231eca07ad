"""Share a catalog in PostgreSQL (DATABASE_URL, SEARCH_URL) between several servers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from sqlalchemy import Connection, text

from app.index.catalog.postgres_database import PostgresDatabase
from app.index.catalog.process_lock import WAIT_S, ProcessLock
from app.index.files.steps import Steps

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
        """Connect, and bring the schema to this release's (see `PostgresDatabase`)."""
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
