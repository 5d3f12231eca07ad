"""Open the catalog's database: PostgreSQL where an address names one, else SQLite."""

from __future__ import annotations

from pathlib import Path

from app.core.errors import InvalidInput
from app.index.catalog.database import Database
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
        from app.index.catalog.sqlite_database import SqliteDatabase  # noqa: PLC0415  # the other one's imports are not for this

        return SqliteDatabase(path, steps)
    try:
        from app.index.catalog.postgres_database import PostgresDatabase  # noqa: PLC0415  # psycopg is an extra
    except ModuleNotFoundError as exc:
        raise InvalidInput(
            "DATABASE_URL needs the extra 'shared': pip install 'documind-server[shared]'"
        ) from exc
    return PostgresDatabase(url, steps)
