"""Log what the projections have to apply, and how far each got."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from sqlalchemy import Connection, and_, bindparam, delete, func, or_, select

from app.core.types import Library, StoreKind
from app.storage.catalog.database import Database
from app.storage.catalog.rows import unpack_ids
from app.storage.catalog.schema import changes, put, watermarks

Projection = Literal["lexical", StoreKind]
"""A library has one store of vectors; the mark of another is 0 as soon as that one is complete."""
STAGED = "staged"
"""The mark of a build that is being made."""
REFILL_OF_WORDS = "refill of words"
"""How the mark of an index of words begins that is filled next to the one that serves."""

Kind = Literal["write", "vectors", "remove", "restore", "correct"]

LAG_COUNTED = 10_000
"""Changes that are counted of those a projection has to apply: a number is shown, and a bulk run
leaves millions."""
_MARKS = select(watermarks.c.library, watermarks.c.projection, watermarks.c.seq).where(
    watermarks.c.projection.in_(get_args(Projection))
)
DENSE = or_(changes.c.ids.is_not(None), changes.c.kind == "correct")
LEXICAL = changes.c.kind != "vectors"
_PENDING = {
    dense: select(changes.c.seq, changes.c.kind, changes.c.doc, changes.c.ids)
    .where(changes.c.library == bindparam("of"), changes.c.seq > bindparam("after"), relevant)
    .order_by(changes.c.seq)
    .limit(bindparam("most"))
    for dense, relevant in ((True, DENSE), (False, LEXICAL))
}
_APPLIED = delete(changes).where(
    changes.c.library == bindparam("of"),
    or_(changes.c.seq <= bindparam("lexical"), changes.c.kind == "vectors"),
    or_(
        changes.c.seq <= bindparam("dense"),
        and_(changes.c.kind == "write", changes.c.ids.is_(None)),
    ),
)


@dataclass(frozen=True, slots=True)
class BuildState:
    """`done` of `total` items while a library's projections are rebuilt."""

    state: Literal["ready", "rebuilding"]
    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        return self.state if self.state == "ready" else f"{self.state} {self.done} of {self.total}"


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the log; `ids` are the chunks whose vectors came or went."""

    seq: int
    kind: Kind
    doc: int
    ids: list[int]


@dataclass(frozen=True, slots=True)
class Claim:
    """Changes of words, after one up to another, that one of several processes brings."""

    id: str
    after: int
    upto: int
    read: int
    """What is sent is of this change or newer."""
    silent: bool
    """Whether the process has given it up or says nothing any more."""


class ChangeLog:
    """The changes table and the watermarks; thread-safe.

    A watermark is set here after the projection's own commit and written with the next catalog
    transaction: one that is too old after a crash costs a replay of idempotent changes, one that is
    too new cannot be.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._marks = {
            (library, projection): int(seq) for library, projection, seq in database.rows(_MARKS)
        }
        self._flushed: dict[tuple[str, str], int] = {}
        """The marks that are on disk, of projections that have more in memory."""

    def mark(self, library: Library, name: str) -> int:
        """Return up to which change an index has everything; 0 before the first."""
        return self._rows(library).get(name, 0)

    def kept_for(self, library: Library, beginning: str) -> list[str]:
        """Return the marks that begin so of indexes that are no projections."""
        return [name for name in self._rows(library) if name.startswith(beginning)]

    def _rows(self, library: Library, sql: Connection | None = None) -> dict[str, int]:
        """Return the marks; with `sql` those that survive a crash, and all that are no projections.

        That is what changes are kept for.
        """
        with self._lock:
            marks = self._marks if sql is None else self._marks | self._flushed
            return {name: seq for (of, name), seq in marks.items() if of == library.value}

    def set_mark(self, library: Library, name: str, seq: int, *, flushed: bool = True) -> None:
        """An index has everything up to `seq`, on disk if `flushed`; 0: it holds nothing.

        Changes after it are kept for it. The mark of an index that is no projection lives as long
        as the process.
        """
        key = (library.value, name)
        with self._lock:
            if flushed:
                self._flushed.pop(key, None)
            else:
                self._flushed.setdefault(key, self._marks.get(key, 0))
            if self._marks.get(key, 0) != seq:
                self._marks[key] = seq
            if name in get_args(StoreKind) and seq:
                for other in get_args(StoreKind):
                    if other != name and (library.value, other) in self._marks:
                        self._marks[library.value, other] = 0

    def unmark(self, library: Library, name: str) -> None:
        """Keep no changes for an index that is no projection."""
        with self._lock:
            self._marks.pop((library.value, name), None)

    def set_mark_in(self, sql: Connection, library: Library, name: str, seq: int) -> None:
        """Set a mark, and write it with the others in the caller's transaction."""
        self.set_mark(library, name, seq)
        self.save_into(sql)

    def claim(self, sql: Connection, library: Library) -> Claim | None:  # noqa: ARG002
        """Claim the changes of words that this transaction logs; a process alone need not."""
        return None

    def marks(self) -> dict[str, int]:
        """Return every watermark by `library/projection`."""
        found: dict[str, int] = {}
        for library in Library:
            rows = self._rows(library)
            whole = any(rows.get(store) for store in get_args(StoreKind))
            for name, seq in sorted(rows.items()):
                if name in get_args(Projection) and (seq or name == "lexical" or not whole):
                    found[f"{library.value}/{name}"] = seq
        return found

    def save_into(self, sql: Connection) -> None:
        """Write watermarks that moved, as part of the caller's transaction.

        What is written is compared with what the catalog holds, for an earlier transaction may have
        been rolled back.
        """
        held = {(library, projection): seq for library, projection, seq in sql.execute(_MARKS)}
        with self._lock:
            moved = [
                {"library": key[0], "projection": key[1], "seq": seq}
                for key, seq in (self._marks | self._flushed).items()
                if key[1] in get_args(Projection) and held.get(key, 0) != seq
            ]
        put(sql, watermarks, moved)

    def save(self) -> None:
        """Write watermarks that moved and forget changes that every index applied."""
        with self._database.write("watermarks") as sql:
            self.save_into(sql)
            for library in Library:
                rows = self._rows(library, sql)
                stores = [rows.get(store, 0) for store in get_args(StoreKind)]
                kept = [seq for name, seq in rows.items() if name not in get_args(Projection)]
                dense = min([max(stores), *kept])
                filled = [seq for name, seq in rows.items() if name.startswith(REFILL_OF_WORDS)]
                lexical = min([rows.get("lexical", 0), *filled])
                sql.execute(_APPLIED, {"of": library.value, "lexical": lexical, "dense": dense})

    def behind(self, stores: Mapping[Library, StoreKind]) -> list[Library]:
        """Return the libraries of which a projection lacks a change that is committed."""
        return [
            library
            for library, store in stores.items()
            if self.pending(library, self.mark(library, "lexical"), dense=False, limit=1)
            or self.pending(library, self.mark(library, store), dense=True, limit=1)
        ]

    def pending(
        self, library: Library, after: int, *, dense: bool, limit: int = 1000
    ) -> list[Change]:
        """Return the next changes of a library in order.

        Args:
            library: Whose changes.
            after: The watermark.
            dense: True for those that concern vectors or what filters on them; False for those that
                concern text.
            limit: Most changes to return.
        """
        rows = self._database.rows(
            _PENDING[dense], {"of": library.value, "after": after, "most": limit}
        )
        return [
            Change(seq, cast("Kind", kind), doc, unpack_ids(ids)) for seq, kind, doc, ids in rows
        ]

    def batches(self, library: Library, after: int, *, dense: bool) -> Iterator[list[Change]]:
        """Yield all changes after one, in order, those that come while it yields too."""
        while found := self.pending(library, after, dense=dense):
            yield found
            after = found[-1].seq

    def lags(self) -> dict[str, int]:
        """Return how many changes each projection is behind; LAG_COUNTED means more.

        Keys are `library/projection`. The difference of two sequence numbers would not do: numbers
        are shared by both libraries, and not every change concerns every projection.
        """
        found = {}
        for name, mark in self.marks().items():
            library, _, projection = name.partition("/")
            relevant = LEXICAL if projection == "lexical" else DENSE
            behind = select(changes.c.seq).where(
                changes.c.library == library, changes.c.seq > mark, relevant
            )
            counted = select(func.count()).select_from(behind.limit(LAG_COUNTED).subquery())
            found[name] = int(self._database.rows(counted)[0][0])
        return found

    def lengths(self) -> dict[str, int]:
        """Return how many changes are kept of each library; LAG_COUNTED means more."""
        found = {}
        for library in Library:
            kept = select(changes.c.seq).where(changes.c.library == library.value)
            counted = select(func.count()).select_from(kept.limit(LAG_COUNTED).subquery())
            found[library.value] = int(self._database.rows(counted)[0][0])
        return found

    def last(self) -> int:
        """Return the newest change; 0 before the first."""
        with self._database.read() as sql:
            return self._database.dialect.last_change(sql)
