"""Keep what projections have applied in the catalog alone, where several servers share it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from sqlalchemy import Connection, ScalarSelect, delete, exists, func, select

from app.core.types import Library, StoreKind
from app.storage.catalog.changes import APPLIED, DENSE, LEXICAL, ChangeLog, Projection
from app.storage.catalog.schema import changes, put, watermarks

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

    def behind(self, stores: Mapping[Library, StoreKind]) -> list[Library]:
        """Return the libraries of which a projection lacks a change that is committed."""
        lacks = [
            exists().where(
                changes.c.library == library.value,
                relevant,
                changes.c.seq > func.coalesce(_mark(library, name), 0),
            )
            for library, store in stores.items()
            for name, relevant in (("lexical", LEXICAL), (store, DENSE))
        ]
        found = self._database.rows(select(*lacks))[0]
        return [library for at, library in enumerate(stores) if any(found[2 * at : 2 * at + 2])]

    def _rows(self, library: Library, sql: Connection | None = None) -> dict[str, int]:
        asked = _ROWS.where(watermarks.c.library == library.value)
        rows = self._database.rows(asked) if sql is None else sql.execute(asked).all()
        return {row.projection: int(row.seq) for row in rows}


def _mark(library: Library, name: str) -> ScalarSelect[int]:
    named = watermarks.c.library == library.value, watermarks.c.projection == name
    return select(watermarks.c.seq).where(*named).scalar_subquery()


def _put(sql: Connection, library: Library, name: str, seq: int) -> None:
    put(sql, watermarks, [{"library": library.value, "projection": name, "seq": seq}])
