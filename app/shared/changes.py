"""Keep what projections have applied in the catalog alone, where several servers share it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from secrets import token_hex
from typing import get_args

from sqlalchemy import Connection, Float, ScalarSelect, delete, exists, func, literal_column, select

from app.core.types import Library, StoreKind
from app.storage.catalog.changes import DENSE, LEXICAL, ChangeLog, Claim, Projection
from app.storage.catalog.schema import changes, put, watermarks

_ROWS = select(watermarks.c.projection, watermarks.c.seq)
_KEEPS = "keeps "
"""How a row begins that keeps changes for an index that is no projection."""
_BRINGS = "brings "
"""How a row begins that says which changes of words a process is bringing to the engine; its number
is that of the change before, its name has an id, the last change and the time by the database's
clock, in seconds."""

CLAIM_S = 30
"""Seconds without a renewal from which the process of a claim is dead, frozen or cut off."""


class SharedChangeLog(ChangeLog):
    """The log of changes of several processes: nothing is remembered here.

    A mark is written after the projection's own commit: that of vectors by the holder of their
    lock, that of words when a claim ends, and it stays behind every other claim. A process
    that ends in between leaves a mark that is too old, and whichever process looks next applies the
    changes again.
    """

    def set_mark(self, library: Library, name: str, seq: int, *, flushed: bool = True) -> None:
        """An index has everything up to `seq`, on disk if `flushed`; 0: it holds nothing.

        Changes after it are kept for it, until `unmark` where it is no projection.
        """
        if flushed and self._rows(library).get(name) != seq:
            with self._database.write("watermarks") as sql:
                self.set_mark_in(sql, library, name, seq)

    def set_mark_in(self, sql: Connection, library: Library, name: str, seq: int) -> None:
        """Set a mark in the caller's transaction."""
        _put(sql, library, name if name in get_args(Projection) else _KEEPS + name, seq)
        if name in get_args(StoreKind) and seq:
            others = [kind for kind in get_args(StoreKind) if kind != name]
            sql.execute(
                delete(watermarks).where(
                    watermarks.c.library == library.value, watermarks.c.projection.in_(others)
                )
            )

    def unmark(self, library: Library, name: str) -> None:
        """Keep no changes for an index that is no projection."""
        if name in self._rows(library):
            named = watermarks.c.library == library.value, watermarks.c.projection == _KEEPS + name
            with self._database.write("watermarks") as sql:
                sql.execute(delete(watermarks).where(*named))

    def save_into(self, sql: Connection) -> None:
        """Do nothing: every mark is written as it is set."""

    # Changes of words are claimed by the transaction that logs them.

    def claim(self, sql: Connection, library: Library) -> Claim | None:
        """Claim the changes of words that this transaction logged; None without any."""
        claims, mark = self._claims(sql, library)
        after = max([mark, *(claim.upto for claim in claims)])
        upto = max(after, _last(sql, library))
        return self._put_claim(sql, library, after, upto, upto) if upto > after else None

    def watch(self, library: Library) -> Claim:
        """Claim no change, so that `finish` says what changes from now on."""
        with self._database.write("claim") as sql:
            last = max(_last(sql, library), self._rows(library, sql)["lexical"])
            return self._put_claim(sql, library, last, last, last)

    def take(self, library: Library, most: int) -> Claim | None:
        """Claim up to so many changes that no living process brings; None when there are none."""
        if not self._lost(self._claims(None, library), library):
            return None
        with self._database.write("claim") as sql:
            lost = self._lost(found := self._claims(sql, library), library)
            if not lost:
                return None
            after = min(lost)
            for claim in found[0]:
                if claim.silent:
                    _end(sql, library, claim)
            some = self.pending(library, after, dense=False, limit=most)
            if not some:
                self._move(sql, library)
                return None
            upto, last = some[-1].seq, _last(sql, library)
            if last > upto:  # the rest is for whoever comes next
                self._put_claim(sql, library, upto, last, last, silent=True)
            return self._put_claim(sql, library, after, upto, last)

    def brings(self, library: Library) -> bool:
        """Return whether a living process brings changes of words."""
        return any(not claim.silent for claim in self._claims(None, library)[0])

    def _lost(self, found: tuple[list[Claim], int], library: Library) -> list[int]:
        """Return after which changes no one brings them."""
        claims, mark = found
        if claims:
            return [claim.after for claim in claims if claim.silent]
        return [mark] if self.pending(library, mark, dense=False, limit=1) else []

    def renew(self, library: Library, claim: Claim) -> None:
        """Say that the process lives which has a claim, unless it was taken over."""
        with self._database.write("claim") as sql:
            for held in self._claims(sql, library)[0]:
                if held.id == claim.id and _end(sql, library, held):
                    self._put_claim(sql, library, held.after, held.upto, claim.read, claim.id)

    def finish(self, library: Library, claim: Claim, docs: Collection[int]) -> Claim | None:
        """End a claim; or keep it and return it, where one of these documents changed since.

        A claim that another process took over is renewed: what was sent may be older than what that
        process sent.
        """
        with self._database.write("claim") as sql:
            held = _end(sql, library, claim)
            newer = (
                change.doc
                for changes in self.batches(library, claim.read, dense=False)
                for change in changes
            )
            if held and not any(doc in docs for doc in newer):
                self._move(sql, library)
                return None
            last = max(_last(sql, library), claim.read)
            after, upto = (claim.after, claim.upto) if held else (last, last)
            return self._put_claim(sql, library, after, upto, last, claim.id)

    def give_up(self, library: Library, claim: Claim) -> None:
        """Leave a claim to the next process."""
        with self._database.write("claim") as sql:
            if _end(sql, library, claim):
                self._put_claim(sql, library, claim.after, claim.upto, claim.read, silent=True)

    def _move(self, sql: Connection, library: Library) -> None:
        """Set the mark of words to the last change before every claim."""
        claims, mark = self._claims(sql, library)
        applied = min([claim.after for claim in claims] or [_last(sql, library)])
        if applied > mark:
            _put(sql, library, "lexical", applied)

    def _claims(self, sql: Connection | None, library: Library) -> tuple[list[Claim], int]:
        """Return the claims of a library's words, and the mark."""
        rows = self._rows(library, sql)
        made = {name: after for name, after in rows.items() if name.startswith(_BRINGS)}
        now_s = self._now_s(sql) if made else 0.0
        claims = []
        for name, after in made.items():
            _, ident, upto, made_s = name.split()
            claims.append(Claim(ident, after, int(upto), after, float(made_s) < now_s - CLAIM_S))
        return claims, rows["lexical"]

    def _now_s(self, sql: Connection | None) -> float:
        """Return the time by the database's clock: those of servers may differ by minutes."""
        now = select(literal_column(self._database.dialect.NOW, Float))
        rows = self._database.rows(now) if sql is None else sql.execute(now).all()
        return float(rows[0][0])

    def _put_claim(
        self,
        sql: Connection,
        library: Library,
        after: int,
        upto: int,
        read: int,
        ident: str = "",
        *,
        silent: bool = False,
    ) -> Claim:
        claim = Claim(ident or token_hex(8), after, upto, read, silent)
        made_s = 0 if silent else int(self._now_s(sql))
        _put(sql, library, f"{_BRINGS}{claim.id} {upto} {made_s}", after)
        return claim

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
        return {"lexical": 0} | {row.projection.removeprefix(_KEEPS): int(row.seq) for row in rows}


def _mark(library: Library, name: str) -> ScalarSelect[int]:
    named = watermarks.c.library == library.value, watermarks.c.projection == name
    return select(watermarks.c.seq).where(*named).scalar_subquery()


def _put(sql: Connection, library: Library, name: str, seq: int) -> None:
    put(sql, watermarks, [{"library": library.value, "projection": name, "seq": seq}])


def _last(sql: Connection, library: Library) -> int:
    """Return the newest change of a library's words in the log; 0 if there is none."""
    last = select(func.max(changes.c.seq)).where(changes.c.library == library.value, LEXICAL)
    return int(sql.execute(last).scalar() or 0)


def _end(sql: Connection, library: Library, claim: Claim) -> bool:
    """Remove a claim; return whether it was there."""
    named = watermarks.c.projection.startswith(f"{_BRINGS}{claim.id} ")
    gone = delete(watermarks).where(watermarks.c.library == library.value, named)
    return sql.execute(gone).rowcount > 0
