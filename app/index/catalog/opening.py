"""Open the catalog's database: PostgreSQL where an address names one, else SQLite."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from app.core.errors import InvalidInput
from app.index.catalog.database import Database
from app.index.catalog.sqlite_database import SqliteDatabase
from app.index.files.steps import Steps


def open_database(path: Path, url: str, steps: Steps) -> Database:
    """Return the open catalog; create its tables in a new one.

    Args:
        path: The SQLite file, where no address is given.
        url: Of a PostgreSQL database; empty: the file.
        steps: Where write steps are counted.

    Raises:
        InvalidInput: The address is wrong or does not answer, or the extra `shared` is missing.
        Locked: Another server writes to the database.
        IndexDamaged: The file is damaged.
        StorageError: A newer release wrote it.
    """
    if not url:
        return SqliteDatabase(path, steps)
    opened: Database = _postgresql().PostgresDatabase(url, steps)
    return opened


def ask_database(url: str) -> str:
    """Return a PostgreSQL database's name and version; nothing is created or locked.

    Raises:
        InvalidInput: The address is wrong or does not answer, or the extra `shared` is missing.
    """
    return str(_postgresql().ask(url))


def _postgresql() -> ModuleType:
    """Return the module of PostgreSQL, whose driver is an extra."""
    try:
        return importlib.import_module("app.index.catalog.postgres_database")
    except ModuleNotFoundError as exc:
        raise InvalidInput(
            "DATABASE_URL needs the extra 'shared': pip install 'documind-server[shared]'"
        ) from exc
