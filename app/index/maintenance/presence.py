"""Check in a millisecond that a running server's files still exist.

Every readiness probe asks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from app.core.types import Library
from app.index.lexical.port import WordIndex

_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")


class Presence:
    """The catalog and lexical indexes as at the opening; thread-safe."""

    def __init__(self, catalog: Path, lexical: Mapping[Library, WordIndex]) -> None:
        """Remember the catalog's file; `lexical` is the store's own table.

        The store replaces damaged indexes in that table.
        """
        self._catalog = catalog
        self._opened = catalog.stat()
        self._lexical = lexical

    def missing(self) -> tuple[str, ...]:
        """Return what was deleted, cut, renamed or replaced under the server.

        `catalog`, `lexical index of ...`.
        """
        missing = [] if self._catalog_is_there() else ["catalog"]
        missing += [
            f"lexical index of {library.value}"
            for library, index in self._lexical.items()
            if index.lost()
        ]
        return tuple(missing)

    def _catalog_is_there(self) -> bool:
        """Return whether a new connection would open our catalog file.

        SQLite itself notices one that was cut.
        """
        try:
            found = self._catalog.stat()
            if (found.st_dev, found.st_ino) != (self._opened.st_dev, self._opened.st_ino):
                return False
            # Never opened without SQLite: closing a file drops this process's locks on it (POSIX).
            with closing(
                sqlite3.connect(
                    f"file:{quote(str(self._catalog.absolute()))}?mode=ro", uri=True, timeout=1
                )
            ) as connection:
                connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except OSError:
            return False
        except sqlite3.DatabaseError as exc:
            return (getattr(exc, "sqlite_errorname", "") or "").startswith(_BUSY)
        return True
