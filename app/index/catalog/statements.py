"""Share conditions and writes between stores, in Core: for every database."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    literal,
    select,
)

from app.index.catalog.schema import BUILD_SHIFT, chunks, documents, meta

T = TypeVar("T")

PIECE = 500
"""Values of one `IN`: some hundred bound values are under the limit of every database."""

OF_REVISION = and_(documents.c.doc == chunks.c.doc, documents.c.revision == chunks.c.revision)
"""A chunk is of its document's last revision."""
IS_LIVE = and_(OF_REVISION, documents.c.state == "live")
"""The same, and the document is not deleted."""

_VALUE = select(meta.c.value).where(meta.c.key == bindparam("wanted"))


def pieces(values: Sequence[T], size: int = PIECE) -> Iterator[Sequence[T]]:
    """Yield values in order, at most `size` at a time."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def key_of(build: int | ColumnElement[Any]) -> ColumnElement[int]:
    """Return the key of a chunk's vector in a build, as an expression on `chunks`."""
    if isinstance(build, int):
        return literal(build << BUILD_SHIFT, BigInteger) + chunks.c.chunk_id
    return build * literal(1 << BUILD_SHIFT, BigInteger) + chunks.c.chunk_id


def put(sql: Connection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert rows; one that has the primary key of a row replaces it.

    Args:
        sql: In a transaction.
        table: Where to.
        rows: Values by column; all have the same columns.
    """
    if rows:
        statement = _on_conflict(sql.dialect.name, table, frozenset(rows[0]), adds=False)
        sql.execute(statement, rows)


def add(sql: Connection, table: Table, row: Mapping[str, object]) -> None:
    """Add numbers to the row with the same primary key, or insert them."""
    sql.execute(_on_conflict(sql.dialect.name, table, frozenset(row), adds=True), row)


@cache
def _on_conflict(dialect: str, table: Table, columns: frozenset[str], *, adds: bool) -> Any:  # noqa: ANN401  # each dialect has an Insert of its own
    insert = importlib.import_module(f"sqlalchemy.dialects.{dialect}").insert(table)
    changed = [c for c in table.c if not c.primary_key and c.name in columns]
    new = {
        c.name: c + insert.excluded[c.name] if adds else insert.excluded[c.name] for c in changed
    }
    return insert.on_conflict_do_update(index_elements=list(table.primary_key), set_=new)


def meta_value(sql: Connection, key: str) -> str | None:
    """Return a value of the table `meta`; None where it has none."""
    return sql.execute(_VALUE, {"wanted": key}).scalar()


def put_meta(sql: Connection, key: str, value: str) -> None:
    """Keep a value in the table `meta`, in the place of any before."""
    put(sql, meta, [{"key": key, "value": value}])
