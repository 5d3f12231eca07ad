"""Keep what projections have applied in the catalog alone, where several servers share it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import get_args

from sqlalchemy import Connection, and_, bindparam, delete, func, select

from app.core.types import Library, StoreKind
from app.storage.catalog.changes import APPLIED, LINGER_S, ChangeLog, Projection, Settling
from app.storage.catalog.database import Database
from app.storage.catalog.schema import changes, documents, put, revisions, watermarks

_ROWS = select(watermarks.c.projection, watermarks.c.seq)
_KEEPS = "keeps "
"""How a row begins that keeps changes for a holder, such as a build that is being made."""


class SharedChangeLog(ChangeLog):
    """The log of changes of several processes: nothing is remembered here.

    A mark is written after the projection's own commit, by the holder of that projection's lock.
    A process that ends in between leaves a mark that is too old, and whichever process looks next
    applies the changes again.
    """

    def mark(self, library: Library, projection: Projection) -> int:
        """Return up to which change a projection is applied; 0 before the first."""
        return self._rows(library).get(projection, 0)

    def set_mark(
        self, library: Library, projection: Projection, seq: int, *, flushed: bool = True
    ) -> None:
        """A projection has everything up to `seq`, on disk if `flushed`; 0: it holds nothing."""
        if flushed and self.mark(library, projection) != seq:
            with self._database.write("watermarks") as sql:
                self.set_mark_in(sql, library, projection, seq)

    def set_mark_in(
        self, sql: Connection, library: Library, projection: Projection, seq: int
    ) -> None:
        """Set a mark in the caller's transaction."""
        _put(sql, library, projection, seq)
        if projection != "lexical" and seq:
            others = [kind for kind in get_args(StoreKind) if kind != projection]
            sql.execute(
                delete(watermarks).where(
                    watermarks.c.library == library.value, watermarks.c.projection.in_(others)
                )
            )

    def marks(self) -> dict[str, int]:
        """Return every watermark by `library/projection`."""
        found: dict[str, int] = {}
        for library in Library:
            rows = {"lexical": 0} | self._rows(library)
            dense = max((rows.get(kind, 0) for kind in get_args(StoreKind)), default=0)
            for name, seq in sorted(rows.items()):
                if not name.startswith(_KEEPS) and (seq or name == "lexical" or not dense):
                    found[f"{library.value}/{name}"] = seq
        return found

    def save_into(self, sql: Connection) -> None:
        """Do nothing: every mark is written as it is set."""

    def save(self) -> None:
        """Forget changes that every projection applied."""
        with self._database.write("watermarks") as sql:
            for library in Library:
                rows = self._rows(library, sql)
                stores = [rows.get(kind, 0) for kind in get_args(StoreKind)]
                kept = [seq for name, seq in rows.items() if name.startswith(_KEEPS)]
                dense = min(max(stores), *kept) if kept else max(stores)
                lexical = rows.get("lexical", 0)
                sql.execute(APPLIED, {"of": library.value, "lexical": lexical, "dense": dense})

    def hold(self, library: Library, holder: str, seq: int | None) -> None:
        """Keep changes after `seq` for a holder, until None or until the next of its name."""
        name = _KEEPS + holder
        with self._database.write("watermarks") as sql:
            if seq is not None:
                _put(sql, library, name, seq)
            else:
                sql.execute(
                    delete(watermarks).where(
                        watermarks.c.library == library.value, watermarks.c.projection == name
                    )
                )

    def holds(self, library: Library, holder: str) -> bool:
        """Return whether changes are kept for this holder, in any process."""
        return _KEEPS + holder in self._rows(library)

    def _rows(self, library: Library, sql: Connection | None = None) -> dict[str, int]:
        asked = _ROWS.where(watermarks.c.library == library.value)
        rows = self._database.rows(asked) if sql is None else sql.execute(asked).all()
        return {row.projection: int(row.seq) for row in rows}


def _put(sql: Connection, library: Library, name: str, seq: int) -> None:
    put(sql, watermarks, [{"library": library.value, "projection": name, "seq": seq}])


# Show replaced revisions while another process makes the new text searchable.

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
