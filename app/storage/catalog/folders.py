"""Which documents a synced folder sent: what a sync may remove."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, and_, bindparam, delete, func, select

from app.core.serialization import PUBLIC
from app.core.types import Library
from app.storage.catalog.database import Database
from app.storage.catalog.schema import (
    documents,
    meta,
    meta_value,
    pieces,
    put,
    put_meta,
    sync_claims,
)
from app.storage.files.durable import utc_now

_UNCHANGED = and_(
    documents.c.library == sync_claims.c.library,
    documents.c.source_key == sync_claims.c.source_key,
    documents.c.sha256 == sync_claims.c.sha256,
    documents.c.state == "live",
)
_HELD = select(sync_claims.c.source_key, documents.c.doc_id).join(documents, _UNCHANGED)
_COUNTED = (
    select(sync_claims.c.library, sync_claims.c.folder, func.count())
    .join(documents, _UNCHANGED)
    .group_by(sync_claims.c.library, sync_claims.c.folder)
)
_LOOK = "synced/"
"""With the digest of a library and a folder: what its last sync reported."""
_LOOKS = select(meta.c.value).where(meta.c.key.startswith(_LOOK, autoescape=True))

_FORGET = delete(sync_claims).where(
    sync_claims.c.library == bindparam("of"),
    sync_claims.c.source_key.in_(bindparam("keys", expanding=True)),
)


_SILENT = timedelta(minutes=11)
"""A watch that said nothing for so long has ended: it reports every five minutes."""


@dataclass(frozen=True, slots=True)
class FailedFile:
    """A file of a folder that is no document here, and why."""

    __pydantic_config__ = PUBLIC
    file: str = field(metadata={"max_length": 4096})
    reason: str = field(metadata={"max_length": 4096})


@dataclass(frozen=True, slots=True)
class SyncedFolder:
    """A folder that a library follows, as its last sync left it."""

    __pydantic_config__ = PUBLIC
    library: Library
    folder: str
    documents: int
    """That it sent, and that are still as it sent them."""
    looked_at: str
    """When its files were last compared with the library, UTC."""
    watched: bool
    """Changes are followed: the last look was in the last minutes."""
    failed: tuple[FailedFile, ...]


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
        mine = _HELD.where(sync_claims.c.library == library.value, sync_claims.c.folder == folder)
        return dict(self.database.rows(mine.order_by(sync_claims.c.source_key)))

    def look(
        self, library: Library, folder: str, *, watching: bool, failed: Sequence[FailedFile] | None
    ) -> None:
        """Remember that a folder was looked at now; `failed` None: what failed is as before."""
        key = _LOOK + hashlib.sha256(f"{library.value}/{folder}".encode()).hexdigest()
        with self.database.write_apart("look") as sql:
            before = json.loads(meta_value(sql, key) or "{}")
            told = before.get("failed", []) if failed is None else list(map(astuple, failed))
            of = {"library": library.value, "folder": folder}
            state = of | {"looked_at": utc_now(), "watching": watching, "failed": told}
            put_meta(sql, key, json.dumps(state))

    def folders(self) -> list[SyncedFolder]:
        """Return folders that sent documents or could not, by library and name."""
        looks = [json.loads(row.value) for row in self.database.rows(_LOOKS)]
        counts = {(library, folder): n for library, folder, n in self.database.rows(_COUNTED)}
        since = datetime.now(UTC) - _SILENT
        found = [
            SyncedFolder(
                Library(look["library"]),
                look["folder"],
                counts.get((look["library"], look["folder"]), 0),
                look["looked_at"],
                look["watching"] and datetime.fromisoformat(look["looked_at"]) > since,
                tuple(FailedFile(*one) for one in look["failed"]),
            )
            for look in looks
        ]
        found = [one for one in found if one.documents or one.failed]
        return sorted(found, key=lambda one: (one.library, one.folder))


def delete_claims(sql: Connection, library: Library, source_keys: Sequence[str]) -> None:
    """Remove claims on purged documents in the caller's transaction."""
    for some in pieces(source_keys):
        sql.execute(_FORGET, {"of": library.value, "keys": some})
