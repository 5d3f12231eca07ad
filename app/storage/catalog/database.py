"""Read and write the catalog's database, whichever it is: connections and transactions.

One writer at a time (`write` holds a process-wide lock), any number of readers, each on a
consistent snapshot. `sqlite` and `app.shared.postgres` are the two databases.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy import Connection, Engine, Executable, Row, inspect, text

from app.core.errors import Busy, StorageError
from app.storage.catalog.schema import SCHEMA_VERSION, meta_value
from app.storage.catalog.statements import SqlDialect
from app.storage.files.durable import Steps

log = logging.getLogger(__name__)


class Cursor(Protocol):
    """The part of a driver's cursor that reads need."""

    # each driver returns its own cursor
    def execute(self, query: str, values: Sequence[object] = ..., /) -> Any:
        """Run a statement; rows are read from the result."""


class Lock(Protocol):
    """A re-entrant lock."""

    def acquire(self, blocking: bool = ..., /) -> bool:
        """Return whether it is held now; it is, where it is waited for."""
        ...

    def release(self) -> None: ...
    def __enter__(self) -> object: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...


def id_list(ids: Sequence[int]) -> str:
    """Return ids as JSON: one bound value for any number."""
    return "[" + ",".join(map(str, ids)) + "]"


class Database(ABC):
    """The catalog's database, open. Close it when done."""

    def __init__(
        self, name: str, dialect: SqlDialect, steps: Steps, writer: Engine, readers: Engine
    ) -> None:
        """Bring the schema to this release's.

        `name` stands in messages, without a password. `writer` has one connection, for
        transactions; those of `readers` are on snapshots.

        Raises:
            StorageError: The schema is of a newer release, or what the database says.
        """
        self.name = name
        self.dialect = dialect
        self.steps = steps
        self.lock = threading.RLock()
        self._commits = 0
        self.schema_before: str | None = None
        """Which schema this opening found; None for a new catalog."""
        self._writer = writer
        self._readers = readers
        self.writers = threading.RLock()
        """Held by this process from what it reads to what it writes of it, and to tantivy."""
        self._later = ThreadPoolExecutor(1, thread_name_prefix="write-later")
        try:
            with self.translated():
                self._upgrade()
        except BaseException:
            self.close()
            raise

    def snapshot(self) -> AbstractContextManager[None]:
        """Let this thread's reads in the block share a transaction, and `version` stay.

        A file's reads cost nothing to begin, and its version is known.
        """
        return nullcontext()

    @property
    def version(self) -> Hashable:
        """Return another number once something may have been committed.

        What was read under the same number still holds.
        """
        return self._commits

    def lock_of(self, name: str) -> Lock:  # noqa: ARG002  # the same
        """Return a re-entrant lock that all processes of this catalog know by `name`."""
        return threading.RLock()

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

    def meta(self, key: str) -> str | None:
        """Return a value of the table `meta`; None where it has none."""
        with self.read() as sql:
            return meta_value(sql, key)

    @abstractmethod
    def read_raw(self) -> AbstractContextManager[Cursor]:
        """Yield a plain cursor for reads that a person waits for; rows are tuples."""

    def raw(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Return every row of a query in the database's own SQL, as tuples."""
        with self.read_raw() as cursor:
            found: list[tuple[Any, ...]] = cursor.execute(query, values).fetchall()
        return found

    @contextmanager
    def write(self, name: str, *, wait: bool = True) -> Iterator[Connection]:
        """Yield a connection in a transaction: durable at the end, undone on error.

        The commit is the step `catalog.NAME`.

        Raises:
            Busy: Another one writes, and it is not to be waited for.
            DiskFull: No space; nothing of the block is kept.
            IndexDamaged: The database found damaged pages.
            DatabaseAway: The database does not answer.
        """
        with held(self.lock, wait=wait), self.translated(), self._writer.connect() as connection:
            transaction = connection.begin()
            try:
                self._order(connection, wait=wait)
                yield connection
                self._commits += 1  # from now on a reader may see either state ...
                try:
                    with self.steps.at(f"catalog.{name}"):
                        transaction.commit()
                finally:
                    self._commits += 1  # ... and from now on the new one only
            finally:
                if transaction.is_active:
                    transaction.rollback()

    def write_apart(self, name: str) -> AbstractContextManager[Connection]:
        """Yield a connection as `write` does, for what no document depends on.

        It waits for no other writer where the database has several.
        """
        return self.write(name)

    def write_later(self, name: str, work: Callable[[Connection], None]) -> None:
        """Write as `write_apart` does, in a thread, in order; a failure is told to the log.

        `finish_later` waits for it, and so does `close`.
        """

        def run() -> None:
            try:
                with self.write_apart(name) as sql:
                    work(sql)
            except StorageError as error:
                log.warning("what was to be kept is lost (%s): %s", name, error.message)

        self._later.submit(run)

    def finish_later(self) -> None:
        """Wait until what `write_later` was given is written; not from within a transaction."""
        self._later.submit(lambda: None).result()

    def lock_in(self, sql: Connection, name: str) -> None:  # noqa: B027  # nothing to wait for
        """Hold a lock of all processes until the transaction ends; SQLite has one writer anyway."""

    def notify(self, sql: Connection, news: str) -> None:  # noqa: B027  # others look themselves
        """Tell every process of jobs' changes when the transaction is committed; see `news`."""

    def listen(self, closing: threading.Event, poll_s: float) -> Iterator[str]:
        """Yield what `notify` was given, by any process, until `closing`.

        `lost` where changes may have gone by unseen, as all do in SQLite; an empty text after
        `poll_s` seconds without any.
        """
        while not closing.wait(poll_s):
            yield "lost"

    def _order(self, connection: Connection, *, wait: bool) -> None:  # noqa: B027
        """Wait for transactions of other processes; there are none."""

    @abstractmethod
    def translated(self) -> AbstractContextManager[None]:
        """Turn the database's errors into ours."""

    def _upgrade(self) -> None:
        with self.read() as connection:
            version = _schema_version(connection)
        self.schema_before = version
        if version != SCHEMA_VERSION:
            refuse_newer(self.name, version)
            with self.write("migrate") as connection:
                version = _schema_version(connection)  # another process may have done it
                if version != SCHEMA_VERSION:
                    upgrade(connection, version)

    def check(self) -> list[str]:
        """Return faults of pages and references, a line each; none where a server looks itself."""
        return self.check_pages()

    def check_pages(self) -> list[str]:
        """Return faults of pages that a start looks for; empty when sound."""
        return []

    @abstractmethod
    def missing(self) -> Sequence[str]:
        """Return by name what went away under the open store; empty when all is there."""

    def degraded(self) -> Sequence[str]:
        """Return what cannot be done now though questions are answered; a file has nothing."""
        return ()

    @abstractmethod
    def size_bytes(self) -> int:
        """Return how large the database is."""

    @abstractmethod
    def vacuum(self) -> None:
        """Rewrite the database without free pages; needs as much space again."""

    def analyse(self) -> None:  # noqa: B027  # SQLite's joins have an order of their own
        """Tell the planner how many rows the tables of vectors and chunks have now."""

    def checkpoint(self) -> None:  # noqa: B027  # a server does it itself
        """Move what was committed into the database's files, where that is our task."""

    def close(self) -> None:
        """Write what was to be written later, and close every connection."""
        self._later.shutdown()
        self._readers.dispose()
        self._writer.dispose()


@contextmanager
def held(lock: Lock, *, wait: bool) -> Iterator[None]:
    """Hold a lock for the block.

    Raises:
        Busy: Another one has it, and it is not to be waited for.
    """
    if not lock.acquire(wait):
        raise Busy("others are writing: try again in a moment")
    try:
        yield
    finally:
        lock.release()


def _schema_version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return found


# Bring a catalog to the schema of this release; refuse a newer one.

MIGRATIONS = Path(__file__).parent / "migrations"
FIRST = "0001"
"""The migration that creates a new store."""


def upgrade(connection: Connection, version: str | None) -> None:
    """Bring the schema, which stands at `version` (None: new), to this release's.

    The caller commits.
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
    """Raise StorageError for a catalog that a newer release wrote."""
    # takes 100 ms, and only an upgrade or a restore asks
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    known = {script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()}
    if version is not None and version not in known:
        raise StorageError(
            f"the catalog {name!r} has schema {version!r}, this release knows up to"
            f" {SCHEMA_VERSION!r}:"
            " start the newer release again, or restore a backup made by this one"
        )


# Cache reads of the catalog until the next commit.

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SinceCommit(Generic[K, V]):
    """Caches a reader's results until a commit; thread-safe.

    Every result is of some snapshot since the last commit. A question asks for the builds and
    counts of its library four times, and a library at rest is asked the same a thousand times.
    """

    def __init__(self, database: Database, read: Callable[[K], V]) -> None:
        self._database = database
        self._read = read
        self._held: dict[K, tuple[Hashable, V]] = {}

    def __call__(self, key: K) -> V:
        version = self._database.version
        held = self._held.get(key)
        if held is not None and held[0] == version:
            return held[1]
        value = self._read(key)
        self._held[key] = (version, value)
        return value
