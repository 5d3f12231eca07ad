"""Bring a catalog to the schema of this release; refuse a newer one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection

from app.core.errors import StorageError
from app.index.catalog.schema import SCHEMA_VERSION
from app.index.catalog.sqlite_engine import damaged

MIGRATIONS = Path(__file__).parent / "migrations"
FIRST = "0001"
"""The migration that creates a new store."""


def upgrade(connection: Connection, version: str | None) -> None:
    """Bring the schema to this release's; the caller commits.

    Args:
        connection: In a transaction.
        version: Where it stands; None for a new store.
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
    """Refuse a catalog whose schema this release does not know.

    Args:
        name: Of its database, for the message.
        version: What it says of itself; None for a new one.

    Raises:
        StorageError: A newer release wrote it.
    """
    from alembic.script import ScriptDirectory  # noqa: PLC0415  # takes 100 ms, and only an upgrade or a restore asks

    known = {script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()}
    if version is not None and version not in known:
        raise StorageError(
            f"the catalog {name!r} has schema {version!r}, this release knows up to"
            f" {SCHEMA_VERSION!r}:"
            " start the newer release again, or restore a backup made by this one"
        )


def schema_of(path: Path) -> str | None:
    """Return the schema version of a closed catalog; None without a version.

    Raises:
        IndexDamaged: It cannot be read.
    """
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
        ) as connection:
            if not connection.execute(
                "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"
            ).fetchone()[0]:
                return None
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.DatabaseError as exc:
        raise damaged(path.name, str(exc)) from exc
    return str(row[0]) if row else None
