"""Check that a running server's files still exist, and that its engines answer.

Every readiness probe asks. Files take a millisecond, each engine a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from app.core.types import Library
from app.index.catalog.database import Database
from app.index.files.originals import Originals
from app.index.lexical.port import WordIndex

if TYPE_CHECKING:
    from app.index.engine.qdrant import SearchEngine


class Presence:
    """The catalog, lexical indexes and engines as at the opening; thread-safe."""

    def __init__(
        self,
        database: Database,
        lexical: Mapping[Library, WordIndex],
        engine: SearchEngine | None,
        originals: Originals,
    ) -> None:
        """Watch these parts; `lexical` is the store's own table.

        The store replaces damaged indexes in that table.
        """
        self._database = database
        self._lexical = lexical
        self._engine = engine
        self._originals = originals

    def missing(self) -> tuple[str, ...]:
        """Return what was deleted, cut, renamed or replaced under the server.

        `catalog`, `lexical index of ...`; or which engine is away: `database ...`,
        `search engine ...`, `object store ...`.
        """
        missing = list(self._database.missing())
        missing += [
            f"lexical index of {library.value}"
            for library, index in self._lexical.items()
            if index.lost()
        ]
        away = () if self._engine is None else self._engine.away()
        return (*missing, *away, *self._originals.away())
