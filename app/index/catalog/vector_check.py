"""Find vectors that are unusable: of a wrong size, or not finite."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select

from app.index.catalog.database import Database
from app.index.catalog.rows import usable
from app.index.catalog.schema import BUILD_SHIFT, builds, vectors
from app.index.catalog.vectors import delete_vectors, fingerprint_from

log = logging.getLogger(__name__)

_BATCH = 4_096


@dataclass(frozen=True, slots=True)
class VectorCheck:
    """Finds and removes unusable vectors; their chunks are embedded again."""

    database: Database

    def find(self) -> list[int]:
        """Return the keys of all such vectors; reads every vector of the catalog."""
        found: list[int] = []
        with self.database.read() as sql:
            for build, packed in sql.execute(select(builds.c.build, builds.c.fingerprint)).all():
                dimension = fingerprint_from(packed).dimension
                low, high = build << BUILD_SHIFT, (build + 1) << BUILD_SHIFT
                rows = sql.execute(
                    select(vectors).where(vectors.c.key >= low, vectors.c.key < high)
                )
                for batch in rows.partitions(_BATCH):
                    good = usable([row.vector for row in batch], dimension)
                    found += [row.key for row, fit in zip(batch, good, strict=True) if not fit]
        return found

    def delete(self, keys: Sequence[int]) -> None:
        """Take vectors out of the catalog, its counters and every projection."""
        if keys:
            log.error(
                "%d vectors of the catalog cannot be used; their chunks are embedded again",
                len(keys),
            )
            with self.database.write("delete_vectors") as sql:
                delete_vectors(sql, keys)
