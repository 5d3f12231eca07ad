"""Refuse a start with a catalog that does not belong to its data directory.

Before anything is opened or changed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, create_engine, inspect, or_, select
from sqlalchemy.exc import DatabaseError

from app.core.errors import IndexDamaged, StorageError
from app.core.types import Library, LibraryCounts
from app.storage.catalog.changes import ChangeLog
from app.storage.catalog.database import Database
from app.storage.catalog.engine import damaged
from app.storage.catalog.schema import SCHEMA_VERSION, jobs, meta, unlinks, watermarks
from app.storage.catalog.state import FINISHED, ORIGINALS, UNLINKED_KEY, originals_in
from app.storage.catalog.statements import SqliteDialect
from app.storage.files.durable import Steps, delete_tree, move_aside, replace_file
from app.storage.files.originals import names_in
from app.storage.opening import Engine, open_database, open_words
from app.storage.options import IndexOptions
from app.storage.projector import Projector
from app.storage.words.port import WordIndex, is_shared
from app.storage.words.tantivy import CHECKED_AT_START_BYTES, damaged_files

log = logging.getLogger(__name__)

CATALOG_NAME = "catalog.sqlite3"

SEEN_NAME = "last_change"
"""A file with the number of the last change, written when a store opens and closes."""

CATALOG_CHECKED_AT_START_BYTES = 128 << 20
"""A catalog up to this size has its pages checked at every start, which takes well under a
second."""

CURE = (
    "put the catalog that belongs here back (or run: documind restore BACKUP), or make an entry"
    " for each uploaded file with:"
    " documind fsck --repair --library papers"
)
CURE_OF_A_DATABASE = (
    "name the database that belongs to this DATA_DIR in DATABASE_URL, or restore its dump; for an"
    " empty database take an"
    " empty DATA_DIR"
)


def catalog_path(data_dir: Path) -> Path:
    """Return where the catalog of a data directory is."""
    return data_dir / CATALOG_NAME


@dataclass(frozen=True, slots=True)
class _Knowledge:
    """A catalog's statements about the data; nothing without a catalog."""

    originals: frozenset[str] = frozenset()
    deletions: bool = False
    last_change: int = 0
    marks: tuple[tuple[str, int], ...] = ()


def refuse_foreign_catalog(data_dir: Path, database_url: str = "") -> None:
    """Refuse a catalog that names no original, or is older than its projections.

    Reads only. A catalog that cannot be read is left to `SqliteDatabase`, which says that it is
    damaged; one in another database is asked when it is open (`refuse_foreign_database`).

    Raises:
        IndexDamaged: It does not belong to this data; the message names the cure.
    """
    if database_url:
        return
    catalog = catalog_path(data_dir)
    try:
        known = _read(catalog)
    except DatabaseError:
        return
    _refuse_foreign(data_dir, known, catalog.name, CURE, exists=catalog.exists())


def refuse_foreign_database(data_dir: Path, database: Database) -> None:
    """Refuse an open database that does not belong to the data directory, and close it.

    Raises:
        IndexDamaged: It names no original, or is older than the projections.
    """
    try:
        with database.read() as sql:
            known = _known(sql, database.dialect.last_change(sql), has_unlinks=True)
        _refuse_foreign(data_dir, known, database.name, CURE_OF_A_DATABASE, exists=True)
    except BaseException:
        database.close()
        raise


def _refuse_foreign(
    data_dir: Path, known: _Knowledge, name: str, cure: str, *, exists: bool
) -> None:
    kept = names_in(data_dir / "originals")
    if kept and not kept & known.originals and not known.deletions:
        raise IndexDamaged(
            f"the catalog {name!r} {'names none' if exists else 'is missing and could name none'}"
            " of the"
            f" {len(kept)} uploaded files in 'originals': {cure}"
        )
    for holder, seq in (*known.marks, (f"'{SEEN_NAME}'", seen_change(data_dir))):
        if seq > known.last_change:
            raise IndexDamaged(
                f"the catalog {name!r} is older than its indexes: {holder} knows change {seq}, the"
                " catalog ends with"
                f" change {known.last_change}: {cure}"
            )


def open_catalog(options: IndexOptions, steps: Steps, *, heal: bool) -> Database:
    """Return the open catalog; with `heal`, refuse one that is damaged or of other data.

    Raises:
        IndexDamaged: It is; the message names the cure.
        InvalidInput: DATABASE_URL is wrong, or its database does not answer.
        Locked: A server of an earlier release writes to the database alone.
    """
    database = open_database(catalog_path(options.data_dir), options.database_url, steps)
    if heal and options.database_url:
        refuse_foreign_database(options.data_dir, database)
    if heal and is_small(database):
        refuse_damaged_pages(database)
    return database


def is_small(database: Database) -> bool:
    """Return whether a catalog is small enough to check at every opening."""
    return database.size_bytes() <= CATALOG_CHECKED_AT_START_BYTES


def refuse_damaged_pages(database: Database) -> None:
    """Refuse a catalog with damaged pages, and close it.

    Raises:
        IndexDamaged: It has some; the message names the cure.
    """
    if problems := database.check_pages():
        database.close()
        raise damaged(database.name, problems[0])


def seen_change(data_dir: Path) -> int:
    """Return the last known change of a store in this directory; 0 if unknown."""
    with suppress(OSError, ValueError):
        return int((data_dir / SEEN_NAME).read_text())
    return 0


def note_change(data_dir: Path, last: int, steps: Steps) -> None:
    """Write down the last change, so that an older catalog in its place is noticed."""
    if last != seen_change(data_dir):
        replace_file(data_dir / SEEN_NAME, str(last).encode(), steps, "seen")


def _read(catalog: Path) -> _Knowledge:
    if not catalog.exists():
        return _Knowledge()
    engine = create_engine(f"sqlite:///{catalog}")
    try:
        with engine.connect() as sql:
            tables = set(inspect(sql).get_table_names())
            if not {"revisions", "jobs", "changes", "watermarks", "meta"} <= tables:
                return _Knowledge()
            return _known(sql, SqliteDialect().last_change(sql), has_unlinks="unlinks" in tables)
    finally:
        engine.dispose()


def _known(sql: Connection, last: int, *, has_unlinks: bool) -> _Knowledge:
    named = set(sql.execute(ORIGINALS).scalars())
    waiting = sql.execute(select(jobs.c.payload).where(jobs.c.state.not_in(FINISHED))).scalars()
    named |= {name for payload in waiting for name in originals_in(payload)}
    purged = or_(meta.c.key == UNLINKED_KEY, meta.c.key.like("deleted_since_purge/%"))
    deletions = sql.execute(select(meta.c.key).where(purged)).first() is not None
    recorded = has_unlinks and sql.execute(select(unlinks.c.sha256)).first() is not None
    marks = sql.execute(select(watermarks.c.projection, watermarks.c.library, watermarks.c.seq))
    held = tuple((f"{projection} of {library}", seq) for projection, library, seq in marks)
    return _Knowledge(frozenset(named), recorded or deletions, last, held)


# Open the lexical indexes at a start; make a damaged or incomplete one again.

REBUILD_IN_FOREGROUND_CHUNKS = 20_000
"""A lexical index up to this size is rebuilt before the store opens (a second); a larger one
while it serves."""


class LexicalRepair:
    """The lexical indexes of a store as they are opened, repaired and closed."""

    def __init__(
        self,
        options: IndexOptions,
        log: ChangeLog,
        steps: Steps,
        engine: Engine | None,
        lock_of: Callable[[str], AbstractContextManager[object]],
        *,
        heal: bool,
    ) -> None:
        """Open every library's index, in `engine` if there is one.

        With `heal`, a damaged one is moved aside. `lock_of` returns a lock of all processes.
        """
        self._lock_of = lock_of
        self._engine = engine
        self._options = options
        self._log = log
        self._steps = steps
        self._threads: list[threading.Thread] = []
        self._old: set[Library] = set()
        """Libraries whose index in the engine may be older than what was here."""
        self.indexes: dict[Library, WordIndex] = {
            library: self._open(library, heal=heal) for library in Library
        }

    def _path(self, library: Library) -> Path:
        return self._options.data_dir / "tantivy" / library.value

    def _new(self, library: Library) -> WordIndex:
        return open_words(library, self._path(library), self._options, self._engine, self._steps)

    def _open(self, library: Library, *, heal: bool) -> WordIndex:
        path = self._path(library)
        if self._engine is not None:
            if heal and path.exists():  # it was written last, so that the engine's may be old
                self._old.add(library)
                delete_tree(path, self._steps, "tantivy.delete_embedded")
            return self._new(library)
        problems = damaged_files(path, CHECKED_AT_START_BYTES) if heal else []
        try:
            if not problems:
                return self._new(library)
        except IndexDamaged as exc:
            problems = [exc.message]
        return self._exchange(library, problems[0])

    def _exchange(self, library: Library, problem: str) -> WordIndex:
        """Move a damaged lexical index aside; return an empty one to be filled."""
        log.error(
            "the lexical index of %s is damaged (%s); it is moved aside and made again from the"
            " catalog",
            library.value,
            problem,
        )
        move_aside(self._path(library), self._steps, "tantivy.move_aside")
        self._log.set_mark(library, "lexical", 0)
        return self._new(library)

    def start(
        self, library: Library, projector: Projector, counts: Callable[[], LibraryCounts]
    ) -> None:
        """Bring an index up to the catalog; make it again where their counts differ.

        Args:
            library: Whose index.
            projector: Applies changes to it.
            counts: Returns what the catalog holds. Above 20,000 chunks the index is made again
                while the server serves.
        """
        try:
            projector.start(library)
        except IndexDamaged as exc:
            index = self.indexes[library]
            if not index.failed:
                raise
            if is_shared(index):
                log.exception("the index of words of %s cannot be written", library.value)
                self._old.add(library)
            else:
                index.close()
                self.indexes[library] = self._exchange(library, exc.message)
                projector.start(library)
        if counts().chunks <= REBUILD_IN_FOREGROUND_CHUNKS:
            self._compare(library, projector, counts)
        else:
            self._compare_in_background(library, projector, counts)

    def _compare_in_background(
        self, library: Library, projector: Projector, counts: Callable[[], LibraryCounts]
    ) -> None:
        def compare() -> None:
            try:
                self._compare(library, projector, counts)
            except StorageError:  # a look or the next start tries again
                log.exception("the lexical index of %s could not be made again", library.value)

        name = f"rebuild-lexical-{library.value}"
        if not any(thread.name == name and thread.is_alive() for thread in self._threads):
            thread = threading.Thread(target=compare, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _compare(
        self, library: Library, projector: Projector, counts: Callable[[], LibraryCounts]
    ) -> None:
        """Make an index right that holds another number of chunks than the catalog."""
        with self._lock_of(f"words of {library.value}"):
            projector.words[library].compare(counts, old=library in self._old)
            self._old.discard(library)

    def look(
        self, library: Library, projector: Projector, counts: Callable[[], LibraryCounts]
    ) -> None:
        """Make an index again that a search or a write found lost, in a thread."""
        index = self.indexes[library]
        if is_shared(index) and index.lacking:
            self._compare_in_background(library, projector, counts)

    def wait(self) -> None:
        """Wait until no index is being made again."""
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        """Close every index."""
        for index in self.indexes.values():
            index.close()


# Bring a catalog to this release's schema without opening anything else.


@dataclass(frozen=True, slots=True)
class Migration:
    """What a migration found and made."""

    name: str
    """Of the database, without a password."""
    before: str | None
    """The schema that was there; None for a new catalog."""
    after: str


def migrate_catalog(options: IndexOptions) -> Migration:
    """Create or upgrade the catalog that the settings name, in one transaction.

    The caller holds the directory's lock where the catalog is a file. Servers that share a catalog
    may run meanwhile.

    Raises:
        InvalidInput: DATABASE_URL is wrong, or its database does not answer.
        Locked: A server of an earlier release writes to the database alone.
        IndexDamaged: The catalog does not belong to its data directory.
        StorageError: A newer release wrote it.
    """
    refuse_foreign_catalog(options.data_dir, options.database_url)
    options.data_dir.mkdir(parents=True, exist_ok=True)
    database = open_database(catalog_path(options.data_dir), options.database_url, Steps())
    try:
        return Migration(database.name, database.schema_before, SCHEMA_VERSION)
    finally:
        database.close()
