"""Refuse a start with a catalog that does not belong to its data directory.

Before anything is opened or changed.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, create_engine, inspect, or_, select
from sqlalchemy.exc import DatabaseError

from app.core.errors import IndexDamaged
from app.storage.catalog.database import Database
from app.storage.catalog.schema import SCHEMA_VERSION, jobs, meta, unlinks, watermarks
from app.storage.catalog.sqlite import damaged
from app.storage.catalog.statements import SqliteDialect
from app.storage.catalog.uploads import FINISHED, ORIGINALS, UNLINKED_KEY, originals_in
from app.storage.files.durable import Steps, replace_file
from app.storage.files.originals import names_in
from app.storage.opening import open_database
from app.storage.options import IndexOptions

CATALOG_NAME = "catalog.sqlite3"

SEEN_NAME = "last_change"
"""A file with the number of the last change, written when a store opens and closes."""

CATALOG_CHECKED_AT_START_BYTES = 128 << 20
"""A catalog up to this size has its pages checked at every start, which takes well under a
second."""

CURE = (
    "put the catalog that belongs here back (or run: documind restore BACKUP), or make an entry for"
    " each uploaded file with: documind fsck --repair --library papers"
)
CURE_OF_A_DATABASE = (
    "name the database that belongs to this DATA_DIR in DATABASE_URL, or restore its dump; for an"
    " empty database take an empty DATA_DIR"
)


def catalog_path(data_dir: Path) -> Path:
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
    damaged; one in another database is asked when it is open (`open_catalog`).

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


def _refuse_foreign(
    data_dir: Path, known: _Knowledge, name: str, cure: str, *, exists: bool
) -> None:
    kept = names_in(data_dir / "originals")
    if kept and not kept & known.originals and not known.deletions:
        raise IndexDamaged(
            f"the catalog {name!r} {'names none' if exists else 'is missing and could name none'}"
            f" of the {len(kept)} uploaded files in 'originals': {cure}"
        )
    for holder, seq in (*known.marks, (f"'{SEEN_NAME}'", seen_change(data_dir))):
        if seq > known.last_change:
            raise IndexDamaged(
                f"the catalog {name!r} is older than its indexes: {holder} knows change {seq}, the"
                f" catalog ends with change {known.last_change}: {cure}"
            )


def open_catalog(options: IndexOptions, steps: Steps, *, heal: bool) -> Database:
    """Return the open catalog; with `heal`, refuse one that is damaged or of other data.

    Raises:
        IndexDamaged: It is; the message names the cure.
        InvalidInput: DATABASE_URL is wrong, or its database does not answer.
        Locked: A server of an earlier release writes to the database alone.
    """
    data_dir = options.data_dir
    database = open_database(catalog_path(data_dir), options.database_url, steps)
    with ExitStack() as refused:
        refused.callback(database.close)
        if heal and options.database_url:
            with database.read() as sql:
                known = _known(sql, database.dialect.last_change(sql), has_unlinks=True)
            _refuse_foreign(data_dir, known, database.name, CURE_OF_A_DATABASE, exists=True)
        if heal and is_small(database) and (problems := database.check_pages()):
            raise damaged(database.name, problems[0])
        refused.pop_all()
    return database


def is_small(database: Database) -> bool:
    """Return whether a catalog is small enough to check at every opening."""
    return database.size_bytes() <= CATALOG_CHECKED_AT_START_BYTES


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
    may run in the meantime.

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
