"""Record which documents a synced folder sent: what a sync may remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from app.core.types import Library
from app.index.catalog.database import Database
from app.index.catalog.rows import pack_strings


@dataclass(frozen=True, slots=True)
class SyncClaims:
    """The claims of every folder; the last one that sent a source key has it."""

    database: Database

    def record(self, library: Library, folder: str, sent: Mapping[str, str]) -> None:
        """Remember what a folder sends, durably and before it is accepted.

        Args:
            library: Where to.
            folder: Names the folder; the sender makes it up and always uses the same.
            sent: SHA-256 of the bytes by source key.
        """
        with self.database.write("claims") as sql:
            sql.exec_driver_sql(
                "INSERT OR REPLACE INTO sync_claims (library, source_key, folder, sha256) VALUES (?, ?, ?, ?)",
                [(library.value, key, folder, sha256) for key, sha256 in sent.items()],
            )

    def held(self, library: Library, folder: str) -> dict[str, str]:
        """Return source key to doc_id of live documents a folder sent, bytes unchanged."""
        with self.database.read_raw() as cursor:
            rows = cursor.execute(
                "SELECT c.source_key, d.doc_id FROM sync_claims c JOIN documents d"
                " ON d.library = c.library AND d.source_key = c.source_key AND d.sha256 = c.sha256 AND d.state = 'live'"
                " WHERE c.library = ? AND c.folder = ? ORDER BY c.source_key",
                (library.value, folder),
            ).fetchall()
        return dict(rows)


def forget_claims(sql: Connection, library: Library, source_keys: Sequence[str]) -> None:
    """Remove claims on purged documents in the caller's transaction."""
    sql.exec_driver_sql(
        "DELETE FROM sync_claims WHERE library = ? AND source_key IN (SELECT value FROM json_each(?))",
        (library.value, pack_strings(source_keys)),
    )
