"""Hold PostgreSQL's own statements, in the shape of `sqlite` (see `SqlDialect`).

The planner orders the joins; values are bound once and named by a common table expression where a
statement uses them twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, Table, func, select, text

from app.storage.catalog.database import RowValues as Row
from app.storage.catalog.rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS
from app.storage.catalog.schema import BUILD_SHIFT, changes, watermarks

_LIVE = "documents d ON d.doc = c.doc AND d.revision = c.revision AND d.state = 'live'"
_CHUNK_OF_VECTOR = f"chunks c ON c.chunk_id = v.key & {(1 << BUILD_SHIFT) - 1}"
_LIVE_VECTORS = f"vectors v JOIN {_CHUNK_OF_VECTOR} JOIN {_LIVE}"
_ASKED = "json_array_elements_text(%s::json) AS k(value)"
_AMONG = "IN (SELECT value FROM json_array_elements_text(%s::json) AS k(value))"

NOW = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
PASSAGES = (
    f"SELECT {CHUNK_COLUMNS}, c.doc, d.revision, {DOCUMENT_COLUMNS} FROM {_ASKED}"
    " JOIN chunks c ON c.chunk_id = k.value::bigint JOIN documents d ON d.doc = c.doc"
    " WHERE d.library = %s AND d.state = 'live'"
)
TEXTS = (
    "SELECT r.doc, r.revision, r.text FROM json_array_elements(%s::json) AS k(value)"
    " JOIN revisions r ON r.doc = (k.value ->> 0)::bigint AND r.revision = (k.value ->> 1)::bigint"
)
CODES = (
    f"SELECT p.chunk_id, p.sentences, p.tokens FROM {_ASKED}"
    " JOIN passage_codes p ON p.chunk_id = k.value::bigint"
)
MATCHING = (
    f"SELECT c.chunk_id FROM {_ASKED} JOIN chunks c ON c.chunk_id = k.value::bigint"
    f" JOIN {_LIVE} WHERE "
)
FILTERS: Mapping[str, str] = {
    "sections": f"c.section {_AMONG}",
    "doc_ids": f"d.doc_id {_AMONG}",
    "types": f"d.type {_AMONG}",
    "year_from": "d.year >= %s",
    "year_to": "d.year <= %s",
    "author": "strpos(d.author_keys, %s) > 0",
}

_VECTORS = (
    "SELECT c.chunk_id, v.vector, c.doc, c.section, d.doc_id, d.type, d.year, d.author_keys"
    f" FROM {_LIVE_VECTORS} WHERE "
)
VECTORS_OF = f"{_VECTORS} v.key IN (SELECT %s::bigint | k.value::bigint FROM {_ASKED})"
VECTORS_BETWEEN = f"{_VECTORS} v.key > %s AND v.key < %s"
LIMIT = " LIMIT %s"
VECTORS_END = f" ORDER BY v.key{LIMIT}"
FILTERED_VECTORS = (
    "SELECT c.chunk_id, v.vector, c.doc, c.section, d.doc_id, d.type, d.year, d.author_keys"
    " FROM documents d JOIN chunks c ON c.doc = d.doc AND c.revision = d.revision"
    " JOIN vectors v ON v.key = %s::bigint | c.chunk_id"
    " WHERE d.library = %s AND d.state = 'live' AND "
)
VECTOR_IDS = f"SELECT c.chunk_id FROM {_LIVE_VECTORS} WHERE v.key > %s AND v.key < %s"
COUNT_VECTORS = f"SELECT count(*) FROM {_LIVE_VECTORS} WHERE v.key > %s AND v.key < %s"
CHUNKS_WITHOUT_VECTOR = (
    f"SELECT c.chunk_id FROM chunks c JOIN {_LIVE} AND d.library = %s"
    " LEFT JOIN vectors v ON v.key = %s::bigint | c.chunk_id"
    " WHERE c.chunk_id > %s AND v.key IS NULL ORDER BY c.chunk_id LIMIT %s"
)
_PENDING = (
    "WITH asked AS (SELECT %s::text AS library, %s::bigint AS most{names})"
    " SELECT c.chunk_id FROM documents d"
    " JOIN chunks c ON c.doc = d.doc AND c.revision = d.revision LEFT JOIN vectors v"
    f" ON v.key = (SELECT l.live_build::bigint << {BUILD_SHIFT} FROM libraries l, asked a"
    " WHERE l.library = a.library) | c.chunk_id"
    " WHERE d.library = (SELECT library FROM asked) AND d.state = 'live'"
    " AND d.embedded < d.chunks AND v.key IS NULL{named}"
    " ORDER BY {order}, c.ordinal LIMIT (SELECT most FROM asked)"
)
_ORDERS = {
    "id": "d.doc",
    "longest": "d.characters DESC, d.doc",
    "linked": "d.links DESC, d.doc",
}
PENDING: Mapping[str, str] = {
    order: _PENDING.format(names="", named="", order=by) for order, by in _ORDERS.items()
}
PENDING_OF: Mapping[str, str] = {
    order: _PENDING.format(
        names=", %s::json AS names",
        named=" AND d.doc_id IN (SELECT json_array_elements_text(names) FROM asked)",
        order=by,
    )
    for order, by in _ORDERS.items()
}


def insert_rows(sql: Connection, insert: str, rows: Sequence[Row], after: str = "") -> None:
    """Run `insert VALUES (...) after` for all rows, in the driver's pipeline.

    Args:
        sql: In a transaction.
        insert: Up to the columns, as `INSERT INTO t (a, b)`.
        rows: All as wide as the columns are many.
        after: What follows the values, as `ON CONFLICT ...`.
    """
    if not rows:
        return
    marks = ", ".join(["%s"] * len(rows[0]))
    driver = cast("Any", sql.connection.driver_connection)
    with driver.cursor() as cursor:
        cursor.executemany(f"{insert} VALUES ({marks}) {after}", rows)


def last_id(sql: Connection, table: Table) -> int:
    """Return the newest number of a table's sequence; 0 before the first."""
    row = sql.execute(text(f"SELECT last_value, is_called FROM {_sequence(table)}")).one()
    return int(row.last_value) if row.is_called else 0


def keep_last_id(sql: Connection, table: Table, last: int) -> None:
    """Set a table's sequence to the newest number of the rows inserted with numbers.

    Only the writer draws numbers, and there is one writer, so the sequence never goes back.
    """
    if last:
        sql.execute(select(func.setval(_sequence(table), last)))


def last_change(sql: Connection) -> int:
    """Return the newest change that this connection sees; 0 before the first.

    Not the sequence's: that one counts transactions that have not committed. A change that is gone
    from the log is covered by a stored watermark.
    """
    logged = select(func.coalesce(func.max(changes.c.seq), 0)).scalar_subquery()
    applied = select(func.coalesce(func.max(watermarks.c.seq), 0)).scalar_subquery()
    return int(sql.execute(select(func.greatest(logged, applied))).scalar_one())


def _sequence(table: Table) -> str:
    (key,) = table.primary_key
    return f"{table.name}_{key.name}_seq"
