"""Open the catalog's database: PostgreSQL where an address names one, else SQLite."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from app.core.errors import InvalidInput
from app.index.catalog.changes import ChangeLog
from app.index.catalog.database import Database
from app.index.catalog.settling import Settling
from app.index.catalog.sqlite_database import SqliteDatabase
from app.index.files.steps import Steps


def open_database(path: Path, url: str, steps: Steps, *, shared: bool = False) -> Database:
    """Return the open catalog; create its tables in a new one.

    Args:
        path: The SQLite file, where no address is given.
        url: Of a PostgreSQL database; empty: the file.
        steps: Where write steps are counted.
        shared: Whether other processes write to the database as well.

    Raises:
        InvalidInput: The address is wrong or does not answer, or the extra `shared` is missing.
        Locked: Another server writes to the database.
        IndexDamaged: The file is damaged.
        StorageError: A newer release wrote it.
    """
    if not url:
        return SqliteDatabase(path, steps)
    opened: Database = (
        _postgresql("shared_database").SharedDatabase(url, steps)
        if shared
        else _postgresql("postgres_database").PostgresDatabase(url, steps)
    )
    return opened


def open_log(database: Database, *, shared: bool) -> tuple[ChangeLog, Settling]:
    """Return the log of changes, and what knows the revisions that are being replaced.

    Where the catalog is shared, both are read from it alone.
    """
    if not shared:
        return ChangeLog(database), Settling()
    from app.index.catalog.shared_changes import SharedChangeLog  # noqa: PLC0415  # not by default
    from app.index.catalog.shared_settling import SharedSettling  # noqa: PLC0415

    return SharedChangeLog(database), SharedSettling(database)


def ask_database(url: str) -> str:
    """Return a PostgreSQL database's name and version; nothing is created or locked.

    Raises:
        InvalidInput: The address is wrong or does not answer, or the extra `shared` is missing.
    """
    return str(_postgresql("postgres_database").ask(url))


def _postgresql(name: str) -> ModuleType:
    """Return a module of PostgreSQL, whose driver is an extra."""
    try:
        return importlib.import_module(f"app.index.catalog.{name}")
    except ModuleNotFoundError as exc:
        raise InvalidInput(
            "DATABASE_URL needs the extra 'shared': pip install 'documind-server[shared]'"
        ) from exc
