"""Show replaced revisions while another process makes the new text searchable."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from sqlalchemy import and_, bindparam, func, select

from app.index.catalog.database import Database
from app.index.catalog.schema import changes, documents, revisions, watermarks
from app.index.catalog.settling import LINGER_S, Settling

_NAMED = documents.c.doc.in_(bindparam("docs", expanding=True))
_LIVE_SINCE = (
    select(documents.c.doc, revisions.c.created_at)
    .join(
        revisions,
        and_(revisions.c.doc == documents.c.doc, revisions.c.revision == documents.c.revision),
    )
    .where(_NAMED)
)
_NOT_FOUND_YET = (
    select(changes.c.doc)
    .outerjoin(
        watermarks,
        and_(watermarks.c.library == changes.c.library, watermarks.c.projection == "lexical"),
    )
    .where(
        changes.c.kind == "write",
        changes.c.doc.in_(bindparam("docs", expanding=True)),
        changes.c.seq > func.coalesce(watermarks.c.seq, 0),
    )
)


class SharedSettling(Settling):
    """Which superseded revision may still be shown, by the catalog; thread-safe.

    One is shown until the words of its successor are in the engine, and for two seconds after the
    swap: a search that began before it holds the old ids. Clocks of servers may differ by less.
    """

    def __init__(self, database: Database) -> None:
        """Ask `database`, and only when a search has found a superseded chunk."""
        super().__init__()
        self._database = database

    def begin(self, revisions: Iterable[tuple[int, int]]) -> None:
        """Do nothing: the change says it."""

    def end(self, revisions: Iterable[tuple[int, int]]) -> None:
        """Do nothing: the watermark says it."""

    def shown(self, found: Iterable[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        """Return which of these superseded `(doc, revision)` pairs may be shown now."""
        pairs = frozenset(found)
        if not pairs:
            return pairs
        docs = {"docs": sorted({doc for doc, _ in pairs})}
        since = datetime.now(UTC) - timedelta(seconds=LINGER_S)
        with self._database.read() as sql:
            shown = set(sql.execute(_NOT_FOUND_YET, docs).scalars())
            for doc, created_at in sql.execute(_LIVE_SINCE, docs):
                if datetime.fromisoformat(created_at) > since:
                    shown.add(doc)
        return frozenset(pair for pair in pairs if pair[0] in shown)
