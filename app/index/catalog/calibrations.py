"""Calibrations of embedders, kept in the catalog by the embedder's key."""

from __future__ import annotations

import json
from collections.abc import Mapping

from app.index.catalog.database import Database
from app.index.catalog.since_commit import SinceCommit
from app.index.catalog.statements import meta_value, put_meta

_PREFIX = "calibration:"
"""Of the keys in the table `meta`."""


class SqliteCalibrations:
    """Reads and writes rows; thread-safe."""

    def __init__(self, database: Database) -> None:
        """Work on `database`."""
        self._database = database
        self._held = SinceCommit(database, self._read)

    def get(self, key: str) -> Mapping[str, float] | None:
        """Return the row of an embedder, None when there is none."""
        return self._held(key)

    def put(self, key: str, row: Mapping[str, float]) -> None:
        """Store a row durably, replacing any earlier one.

        Raises:
            DiskFull: No space; the row before stays.
        """
        with self._database.write("meta") as sql:
            put_meta(sql, _PREFIX + key, json.dumps(dict(row)))

    def _read(self, key: str) -> Mapping[str, float] | None:
        with self._database.read() as sql:
            found = meta_value(sql, _PREFIX + key)
        return json.loads(found) if found else None
