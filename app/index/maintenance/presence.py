"""Check in a millisecond that a running server's files still exist.

Every readiness probe asks.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.core.types import Library
from app.index.catalog.database import Database
from app.index.lexical.port import WordIndex


class Presence:
    """The catalog and lexical indexes as at the opening; thread-safe."""

    def __init__(self, database: Database, lexical: Mapping[Library, WordIndex]) -> None:
        """Watch the database; `lexical` is the store's own table.

        The store replaces damaged indexes in that table.
        """
        self._database = database
        self._lexical = lexical

    def missing(self) -> tuple[str, ...]:
        """Return what was deleted, cut, renamed or replaced under the server.

        `catalog`, `lexical index of ...`.
        """
        missing = list(self._database.missing())
        missing += [
            f"lexical index of {library.value}"
            for library, index in self._lexical.items()
            if index.lost()
        ]
        return tuple(missing)
