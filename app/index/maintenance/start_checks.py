"""Refuse a start with a catalog that does not belong to its data directory.

Before anything is opened or changed.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from app.core.errors import IndexDamaged
from app.index.catalog.database import Database
from app.index.catalog.engine import damaged
from app.index.catalog.jobs import FINISHED, originals_in
from app.index.catalog.unlinks import UNLINKED_KEY
from app.index.files.durable import replace_file
from app.index.files.originals import names_in
from app.index.files.steps import Steps

CATALOG_NAME = "catalog.sqlite3"

SEEN_NAME = "last_change"
"""A file with the number of the last change, written when a store opens and closes."""

CURE = (
    "put the catalog that belongs here back (or run: documind restore BACKUP), or make an entry for each uploaded file with:"
    " documind fsck --repair --library papers"
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


def refuse_foreign_catalog(data_dir: Path) -> None:
    """Refuse a catalog that names no original, or is older than its projections.

    Reads only. A catalog that cannot be read is left to `Database`, which says that it is damaged.

    Raises:
        IndexDamaged: It does not belong to this data; the message names the cure.
    """
    catalog = catalog_path(data_dir)
    try:
        known = _read(catalog)
    except sqlite3.DatabaseError:
        return
    kept = names_in(data_dir / "originals")
    if kept and not kept & known.originals and not known.deletions:
        raise IndexDamaged(
            f"the catalog {catalog.name!r} {'names none' if catalog.exists() else 'is missing and could name none'} of the"
            f" {len(kept)} uploaded files in 'originals': {CURE}"
        )
    for holder, seq in (*known.marks, (f"'{SEEN_NAME}'", seen_change(data_dir))):
        if seq > known.last_change:
            raise IndexDamaged(
                f"the catalog {catalog.name!r} is older than its indexes: {holder} knows change {seq}, the catalog ends with"
                f" change {known.last_change}: {CURE}"
            )


def refuse_damaged_pages(database: Database) -> None:
    """Refuse a catalog with damaged pages, and close it.

    Raises:
        IndexDamaged: It has some; the message names the cure.
    """
    if problems := database.check_pages():
        database.close()
        raise damaged(database.path, problems[0])


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
    with closing(sqlite3.connect(catalog)) as connection:
        tables = {
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if not {"revisions", "jobs", "changes", "watermarks", "meta"} <= tables:
            return _Knowledge()
        named = {
            row[0]
            for row in connection.execute("SELECT sha256 FROM revisions WHERE has_original = 1")
        }
        waiting = connection.execute(
            "SELECT payload FROM jobs WHERE state NOT IN (?, ?, ?)", FINISHED
        )
        named |= {name for (payload,) in waiting for name in originals_in(payload)}
        recorded = (
            {row[0] for row in connection.execute("SELECT sha256 FROM unlinks")}
            if "unlinks" in tables
            else set()
        )
        deletions = connection.execute(
            "SELECT count(*) FROM meta WHERE key = ? OR key LIKE 'deleted_since_purge/%'",
            (UNLINKED_KEY,),
        ).fetchone()[0]
        row = connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'changes'"
        ).fetchone()
        marks = connection.execute(
            "SELECT projection || ' of ' || library, seq FROM watermarks"
        ).fetchall()
    return _Knowledge(
        frozenset(named), bool(recorded or deletions), int(row[0]) if row else 0, tuple(marks)
    )
