"""Record which documents a synced folder sent: what a sync may remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, bindparam, delete, select

from app.core.types import Library
from app.index.catalog.database import Database
from app.index.catalog.schema import documents
from app.index.catalog.statements import pieces, put
from app.index.catalog.work_schema import sync_claims

_HELD = select(sync_claims.c.source_key, documents.c.doc_id).join(
    documents,
    and_(
        documents.c.library == sync_claims.c.library,
        documents.c.source_key == sync_claims.c.source_key,
        documents.c.sha256 == sync_claims.c.sha256,
        documents.c.state == "live",
    ),
)

_FORGET = delete(sync_claims).where(
    sync_claims.c.library == bindparam("of"),
    sync_claims.c.source_key.in_(bindparam("keys", expanding=True)),
)


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
        of = {"library": library.value, "folder": folder}
        rows = [of | {"source_key": key, "sha256": sha256} for key, sha256 in sent.items()]
        with self.database.write("claims") as sql:
            put(sql, sync_claims, rows)

    def held(self, library: Library, folder: str) -> dict[str, str]:
        """Return source key to doc_id of live documents a folder sent, bytes unchanged."""
        mine = _HELD.where(sync_claims.c.library == library.value, sync_claims.c.folder == folder)
        return dict(self.database.rows(mine.order_by(sync_claims.c.source_key)))


def delete_claims(sql: Connection, library: Library, source_keys: Sequence[str]) -> None:
    """Remove claims on purged documents in the caller's transaction."""
    for some in pieces(source_keys):
        sql.execute(_FORGET, {"of": library.value, "keys": some})
