"""Hold SQLite's own statements: those of a question and of bulk writes (see `SqlDialect`).

They are SQL because a benchmark needs them: Core's objects for rows take as long again as reading
the rows, and its statements of many rows are slower than one `VALUES (...), (...)`. CROSS JOIN
keeps SQLite from starting at all documents of a library; INDEXED BY makes it take the index that is
already sorted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import cast

from sqlalchemy import Connection, Table

from app.storage.catalog.database import RowValues as Row
from app.storage.catalog.rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS
from app.storage.catalog.schema import BUILD_SHIFT, changes
from app.storage.files.durable import utc_now

_VALUES_AT_ONCE = 900
"""Bound values of one statement; SQLite took at most 999 before 3.32
(https://sqlite.org/limits.html, 9)."""

_LIVE = "documents d ON d.doc = c.doc AND d.revision = c.revision AND d.state = 'live'"
_CHUNK_OF_VECTOR = f"chunks c ON c.chunk_id = v.key & {(1 << BUILD_SHIFT) - 1}"
_LIVE_VECTORS = f"vectors v CROSS JOIN {_CHUNK_OF_VECTOR} CROSS JOIN {_LIVE}"

# A question: passages, texts, codes, filters. Ids come as one JSON array.

NOW = "((julianday('now') - 2440587.5) * 86400.0)"
PASSAGES = (
    f"SELECT {CHUNK_COLUMNS}, c.doc, d.revision, {DOCUMENT_COLUMNS} FROM json_each(?) k"
    " CROSS JOIN chunks c ON c.chunk_id = k.value CROSS JOIN documents d ON d.doc = c.doc"
    " WHERE d.library = ? AND d.state = 'live'"
)
TEXTS = (
    "SELECT r.doc, r.revision, r.text FROM json_each(?) k"
    " CROSS JOIN revisions r ON r.doc = k.value ->> 0 AND r.revision = k.value ->> 1"
)
CODES = (
    "SELECT p.chunk_id, p.sentences, p.tokens FROM json_each(?) k CROSS JOIN passage_codes p"
    " ON p.chunk_id = k.value"
)
MATCHING = (
    "SELECT c.chunk_id FROM json_each(?) k CROSS JOIN chunks c ON c.chunk_id = k.value"
    f" CROSS JOIN {_LIVE} WHERE "
)
_AMONG = "IN (SELECT value FROM json_each(?))"
FILTERS: Mapping[str, str] = {
    "sections": f"c.section {_AMONG}",
    "doc_ids": f"d.doc_id {_AMONG}",
    "types": f"d.type {_AMONG}",
    "year_from": "d.year >= ?",
    "year_to": "d.year <= ?",
    "author": "instr(d.author_keys, ?)",
}

# Vectors: the caches are filled with them, filters read them, the backfill looks for missing ones.

_VECTORS = (
    "SELECT c.chunk_id, v.vector, c.doc, c.section, d.doc_id, d.type, d.year, d.author_keys"
    f" FROM {_LIVE_VECTORS} WHERE "
)
VECTORS_OF = f"{_VECTORS} v.key IN (SELECT ? | value FROM json_each(?))"
VECTORS_BETWEEN = f"{_VECTORS} v.key > ? AND v.key < ?"
LIMIT = " LIMIT ?"
VECTORS_END = f" ORDER BY v.key{LIMIT}"
FILTERED_VECTORS = (
    "SELECT c.chunk_id, v.vector, c.doc, c.section, d.doc_id, d.type, d.year, d.author_keys"
    " FROM documents d CROSS JOIN chunks c ON c.doc = d.doc AND c.revision = d.revision"
    " CROSS JOIN vectors v ON v.key = ? | c.chunk_id"
    " WHERE d.library = ? AND d.state = 'live' AND "
)
VECTOR_IDS = f"SELECT c.chunk_id FROM {_LIVE_VECTORS} WHERE v.key > ? AND v.key < ?"
COUNT_VECTORS = f"SELECT count(*) FROM {_LIVE_VECTORS} WHERE v.key > ? AND v.key < ?"
CHUNKS_WITHOUT_VECTOR = (
    f"SELECT c.chunk_id FROM chunks c CROSS JOIN {_LIVE} AND d.library = ?"
    " LEFT JOIN vectors v ON v.key = ? | c.chunk_id"
    " WHERE c.chunk_id > ? AND v.key IS NULL ORDER BY c.chunk_id LIMIT ?"
)
_PENDING = (
    "SELECT c.chunk_id FROM {documents}"
    " CROSS JOIN chunks c ON c.doc = d.doc AND c.revision = d.revision LEFT JOIN vectors v"
    f" ON v.key = (SELECT live_build << {BUILD_SHIFT} FROM libraries WHERE library = ?1) |"
    " c.chunk_id"
    " WHERE d.library = ?1 AND d.state = 'live' AND d.embedded < d.chunks AND v.key IS NULL"
    " ORDER BY {order}, c.ordinal LIMIT ?2"
)
_ORDERS = {
    "id": ("ix_documents_pending", "d.doc"),
    "longest": ("ix_documents_longest", "d.characters DESC, d.doc"),
    "linked": ("ix_documents_linked", "d.links DESC, d.doc"),
}
PENDING: Mapping[str, str] = {
    order: _PENDING.format(documents=f"documents d INDEXED BY {index}", order=by)
    for order, (index, by) in _ORDERS.items()
}
PENDING_OF: Mapping[str, str] = {
    order: _PENDING.format(
        documents="json_each(?3) k CROSS JOIN documents d ON d.library = ?1 AND d.doc_id = k.value",
        order=by,
    )
    for order, (_, by) in _ORDERS.items()
}


def insert_rows(sql: Connection, insert: str, rows: Sequence[Row], after: str = "") -> None:
    """Run `insert VALUES (...), (...) after` for all rows, many a statement.

    Half the time of a statement each.

    Args:
        sql: In a transaction.
        insert: Up to the columns, as `INSERT INTO t (a, b)`.
        rows: All as wide as the columns are many.
        after: What follows the values, as `ON CONFLICT ...`.
    """
    if not rows:
        return
    driver = _driver(sql)
    width = len(rows[0])
    at_once = max(1, _VALUES_AT_ONCE // width)
    one = "(" + ", ".join("?" * width) + ")"
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        driver.execute(
            f"{insert} VALUES {', '.join([one] * len(some))} {after}",
            tuple(chain.from_iterable(some)),
        )


def last_id(sql: Connection, table: Table) -> int:
    """Return the newest number of an AUTOINCREMENT table; 0 before the first.

    It is never given out twice, even when its row is deleted.
    """
    row = (
        _driver(sql)
        .execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table.name,))
        .fetchone()
    )
    return int(row[0]) if row else 0


def keep_last_id(sql: Connection, table: Table, last: int) -> None:
    """Do nothing: an AUTOINCREMENT table follows the numbers that are inserted."""


def last_change(sql: Connection) -> int:
    """Return the newest change; 0 before the first."""
    return last_id(sql, changes)


def _driver(sql: Connection) -> sqlite3.Connection:
    """Return SQLite's own connection, in the same transaction.

    A statement takes half as long as through SQLAlchemy's.
    """
    return cast("sqlite3.Connection", sql.connection.driver_connection)


def end_backups(catalog: Path) -> None:
    """End backup jobs that a copied, closed catalog shows as running.

    One of them made the copy.

    Args:
        catalog: The SQLite file of the copy.
    """
    with closing(sqlite3.connect(catalog)) as connection, connection:
        connection.execute(
            "UPDATE jobs SET state = 'cancelled', updated_at = ?"
            " WHERE kind = 'backup' AND state NOT IN ('done', 'failed', 'cancelled')",
            (utc_now(),),
        )
