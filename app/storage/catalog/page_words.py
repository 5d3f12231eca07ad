"""What OCR recognised on the pages of originals."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import Connection, delete, select

from app.core.types import PageWords
from app.storage.catalog.database import Database
from app.storage.catalog.schema import page_words, pieces, put, revisions
from app.storage.catalog.texts import pack_texts, unpack_text
from app.storage.catalog.uploads import ORIGINALS


def words_of(
    database: Database, sha256: str, pages: Collection[int] | None = None
) -> list[PageWords]:
    """Return the pages of an original that OCR has read, all or some, in order."""
    asked = select(page_words.c.words).where(page_words.c.sha256 == sha256)
    if pages is not None:
        asked = asked.where(page_words.c.page.in_(pages))
    frames = database.rows(asked.order_by(page_words.c.page))
    return [PageWords.from_json(json.loads(unpack_text(row.words))) for row in frames]


def keep_words(database: Database, sha256: str, pages: Sequence[PageWords]) -> None:
    """Keep what OCR read on pages while a revision holds their original."""
    if not pages:
        return
    frames = pack_texts([json.dumps(page.to_json(), ensure_ascii=False) for page in pages])
    rows = [
        {"sha256": sha256, "page": page.page, "words": frame}
        for page, frame in zip(pages, frames, strict=True)
    ]
    with database.write("words") as sql:
        if sql.execute(ORIGINALS.where(revisions.c.sha256 == sha256)).first() is not None:
            put(sql, page_words, rows)


def delete_words(sql: Connection, shas: Iterable[str]) -> None:
    """Forget what OCR read of originals that no revision holds any more."""
    for some in pieces(sorted(shas)):
        held = ORIGINALS.where(revisions.c.sha256.in_(some))
        gone = set(some) - set(sql.execute(held).scalars())
        sql.execute(delete(page_words).where(page_words.c.sha256.in_(gone)))
