"""Keep copies of answers that open by a link: the digest of its token, never the token."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, select, update

from app.core.access import digest_of
from app.core.errors import NotFound
from app.core.ids import new_id
from app.storage.catalog.database import Database
from app.storage.catalog.schema import shares
from app.storage.files.durable import utc_now

Record = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Share:
    """A link to an answer, as it is kept."""

    share_id: str
    answer_id: str
    record: Record
    """What it shows: the answer as it was when it was shared."""
    created_at: str


class ShareStore:
    """The shared answers of a catalog."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, answer_id: str, record: Record) -> tuple[str, Share]:
        """Share a copy; return its token (256 random bits), which nothing can show again."""
        token = secrets.token_urlsafe(32)
        made = Share(new_id(), answer_id, record, utc_now())
        row = {
            "id": made.share_id,
            "digest": digest_of(token.encode()),
            "answer_id": answer_id,
            "record": json.dumps(record, ensure_ascii=False),
            "created_at": made.created_at,
        }
        with self._database.write("share") as sql:
            sql.execute(shares.insert().values(row))
        return token, made

    def open(self, token: str) -> Share:
        """Return what a link shows.

        Raises:
            NotFound: It was revoked, or there never was one.
        """
        rows = self._database.rows(
            select(shares).where(shares.c.digest == digest_of(token.encode()))
        )
        if not rows:
            raise NotFound("this link opens nothing: it was revoked, or a part of it is missing")
        return _share(rows[0])

    def list(self, answer_id: str | None = None) -> Sequence[Share]:
        """Return the links, or those of one answer, newest first."""
        found = select(shares).order_by(shares.c.created_at.desc(), shares.c.id)
        if answer_id is not None:
            found = found.where(shares.c.answer_id == answer_id)
        return [_share(row) for row in self._database.rows(found)]

    def revoke(self, share_id: str) -> Share:
        """Forget a link and its copy; return what it was.

        Raises:
            NotFound: There is none of this id.
        """
        rows = self._database.rows(select(shares).where(shares.c.id == share_id))
        if not rows:
            raise NotFound(f"no shared answer {share_id!r}; GET /api/v1/shares lists them")
        with self._database.write("share") as sql:
            sql.execute(delete(shares).where(shares.c.id == share_id))
        return _share(rows[0])


def rewrite_shares(sql: Connection, doc_id: str, change: Callable[[Record], Record]) -> None:
    """Change the copies that name a document."""
    quoting = select(shares.c.id, shares.c.record).where(shares.c.record.contains(doc_id))
    for share_id, packed in sql.execute(quoting).all():
        record = json.dumps(change(json.loads(packed)), ensure_ascii=False)
        sql.execute(update(shares).where(shares.c.id == share_id).values(record=record))


def _share(row: Any) -> Share:  # noqa: ANN401  # a row of SQLAlchemy
    return Share(row.id, row.answer_id, json.loads(row.record), row.created_at)
