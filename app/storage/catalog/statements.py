"""Hold the statements that a question or a bulk load waits for, in either database's SQL.

They are SQL because a benchmark needs them: Core's objects for rows take as long again as reading
the rows, and its statements of many rows are slower than one `VALUES (...), (...)`. Ids and names
come as one JSON array. In SQLite CROSS JOIN keeps the planner from starting at all documents of a
library, and INDEXED BY makes it take the index that is already sorted.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import ClassVar, cast

from sqlalchemy import Connection, Table

from app.storage.catalog.rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS
from app.storage.catalog.schema import BUILD_SHIFT, changes
from app.storage.files.durable import utc_now

RowValues = tuple[object, ...]
"""The values of one row, in the order of the columns."""

OF_DRAFT = "doc_id source_key filename type sha256 source_url licence source_revision".split()
"""Columns of `documents` that are fields of a draft."""
_DOCUMENT = [
    *("doc library revision state".split()),
    *OF_DRAFT,
    *("title authors author_keys year language arxiv_id search_key".split()),
    *("characters pages bytes chunks embedded corrected links".split()),
    *("flags has_original tags metadata other_titles accepted added_at updated_at".split()),
]
_KEPT = {"doc", "library", "doc_id", "source_key", "corrected", "links", "added_at"}
INSERT_DOCUMENT = f"INSERT INTO documents ({', '.join(_DOCUMENT)})"
REPLACING = "ON CONFLICT (doc) DO UPDATE SET purge_at = NULL, " + ", ".join(
    f"{column} = excluded.{column}" for column in _DOCUMENT if column not in _KEPT
)
REPLACING += ", corrected = documents.corrected | excluded.corrected"
"""Follows INSERT_DOCUMENT: another revision of a document that is there."""
INSERT_REVISION = (
    "INSERT INTO revisions (doc, revision, sha256, source_revision, has_original,"
    " characters, pages, text, created_at, outline, corrections)"
)
INSERT_CHUNK = 'INSERT INTO chunks (chunk_id, doc, revision, ordinal, start, "end", section, page)'
INSERT_LABEL = "INSERT INTO labels (doc, key, value, library, kind, number)"
TAG_KEY = ""
"""Key of the labels that are tags."""
INSERT_CHANGE = "INSERT INTO changes (library, kind, doc, revision, ids)"

ORDERS = {"id": "d.doc", "longest": "d.characters DESC, d.doc", "linked": "d.links DESC, d.doc"}
"""In which order documents wait for vectors."""

_LIVE = "documents d ON d.doc = c.doc AND d.revision = c.revision AND d.state = 'live'"
_CHUNK_OF_VECTOR = f"chunks c ON c.chunk_id = v.key & {(1 << BUILD_SHIFT) - 1}"
_WITH_FACTS = "SELECT c.chunk_id, v.vector, c.doc, c.section, d.doc_id, d.type, d.year,"
_WITH_FACTS += " d.author_keys FROM "


class SqlDialect(ABC):
    """The statements of one database; a subclass says how it writes values, lists and joins."""

    NOW: ClassVar[str]
    """Seconds since 1970 by the database's clock, an expression."""
    mark: ClassVar[str]
    """A bound value."""
    number: ClassVar[str]
    """A bound number, where an expression needs its type."""
    items: ClassVar[str]
    """The table `k` of a bound JSON array."""
    pairs: ClassVar[str]
    """The same of arrays in an array."""
    item: ClassVar[str]
    """A number of `k`; `{}` is the expression."""
    join: ClassVar[str]
    among: ClassVar[str]
    """Follows a column that is one of a bound JSON array."""
    by_author: ClassVar[str]
    PENDING: ClassVar[Mapping[str, str]]
    """Ids of chunks without a vector by the order of documents; values: library, limit."""
    PENDING_OF: ClassVar[Mapping[str, str]]
    """The same of documents; a third value names them, as JSON."""

    def __init__(self) -> None:
        mark, number, join = self.mark, self.number, self.join
        value = self.item.format("k.value")
        chunks_of = f"{self.items} {join} chunks c ON c.chunk_id = {value}"
        live_vectors = f"vectors v {join} {_CHUNK_OF_VECTOR} {join} {_LIVE}"
        between = f"v.key > {mark} AND v.key < {mark}"
        self.PASSAGES = (
            f"SELECT {CHUNK_COLUMNS}, c.doc, d.revision, {DOCUMENT_COLUMNS} FROM {chunks_of}"
            f" {join} documents d ON d.doc = c.doc WHERE d.library = {mark} AND d.state = 'live'"
        )
        """Chunks and documents; values: ids, library."""
        self.TEXTS = (
            f"SELECT r.doc, r.revision, r.text FROM {self.pairs} {join} revisions r"
            f" ON r.doc = {self.item.format('k.value ->> 0')}"
            f" AND r.revision = {self.item.format('k.value ->> 1')}"
        )
        """Texts; values: pairs of document and revision, as JSON."""
        self.CODES = (
            f"SELECT p.chunk_id, p.sentences, p.tokens FROM {self.items}"
            f" {join} passage_codes p ON p.chunk_id = {value}"
        )
        """Codes for late interaction; values: ids."""
        self.MATCHING = f"SELECT c.chunk_id FROM {chunks_of} {join} {_LIVE} WHERE "
        """Ids of live chunks; values: ids. A condition of FILTERS follows."""
        self.FILTERS = {
            "sections": f"c.section {self.among}",
            "doc_ids": f"d.doc_id {self.among}",
            "exclude_doc_ids": f"NOT (d.doc_id {self.among})",
            "types": f"d.type {self.among}",
            "year_from": f"d.year >= {mark}",
            "year_to": f"d.year <= {mark}",
            "author": self.by_author,
        }
        """Conditions on chunk (c) and document (d) by the field of `Filters`; a value each."""
        self.LABELS = {
            "one": f"l.key = {mark} AND l.value {self.among}",
            "range": f"l.key = {mark} AND l.kind = {mark}"
            f" AND l.number >= {mark} AND l.number <= {mark}",
        }
        """Conditions on a label (l); values: key, which is empty for tags, and values, or kind,
        low and high."""
        self.HAS_LABEL = "EXISTS (SELECT 1 FROM labels l WHERE l.doc = d.doc AND {})"
        """A condition on document (d) around one of LABELS: for few documents."""
        self.LABELLED = f"SELECT d.doc_id FROM documents d WHERE d.library = {mark}"
        """Ids of documents, deleted ones too; value: library. AMONG_LABELLED follows for each
        condition."""
        self.AMONG_LABELLED = (
            f" AND d.doc IN (SELECT l.doc FROM labels l WHERE l.library = {mark} AND {{}})"
        )
        """The same for all documents of a library; its value stands first."""
        vectors_of = f"{_WITH_FACTS}{live_vectors} WHERE "
        self.VECTORS_OF = f"{vectors_of} v.key IN (SELECT {number} | {value} FROM {self.items})"
        """Vectors with what filters ask; values: build << 40, ids. VECTORS_END follows."""
        self.VECTORS_BETWEEN = f"{vectors_of} {between}"
        """The same of keys between two values. VECTORS_END follows."""
        self.LIMIT = f" LIMIT {mark}"
        """The end of a query; value: at most this many."""
        self.VECTORS_END = f" ORDER BY v.key{self.LIMIT}"
        """The order by key, and LIMIT."""
        self.FILTERED_VECTORS = (
            f"{_WITH_FACTS}documents d {join} chunks c ON c.doc = d.doc AND c.revision = d.revision"
            f" {join} vectors v ON v.key = {number} | c.chunk_id WHERE d.library = {mark} AND"
            " d.state = 'live' AND "
        )
        """The same, documents first; values: build << 40, library. Conditions of FILTERS follow."""
        self.VECTOR_IDS = f"SELECT c.chunk_id FROM {live_vectors} WHERE {between}"
        """Ids of live chunks with a vector; values: keys that it lies between."""
        self.COUNT_VECTORS = f"SELECT count(*) FROM {live_vectors} WHERE {between}"
        """Their number."""
        self.CHUNKS_WITHOUT_VECTOR = (
            f"SELECT c.chunk_id FROM chunks c {join} {_LIVE} AND d.library = {mark}"
            f" LEFT JOIN vectors v ON v.key = {number} | c.chunk_id"
            f" WHERE c.chunk_id > {mark} AND v.key IS NULL ORDER BY c.chunk_id LIMIT {mark}"
        )
        """Ids; values: library, build << 40, chunk id to begin after, limit."""

    @abstractmethod
    def insert_rows(
        self, sql: Connection, insert: str, rows: Sequence[RowValues], after: str = ""
    ) -> None:
        """Run `insert VALUES (...) after` for all rows.

        `insert` goes up to the columns, as `INSERT INTO t (a, b)`.
        """

    @abstractmethod
    def last_id(self, sql: Connection, table: Table) -> int:
        """Return the newest number of a table, 0 before the first; it is never given out twice."""

    @abstractmethod
    def keep_last_id(self, sql: Connection, table: Table, last: int) -> None:
        """Make `last` the newest number of a table whose rows were inserted with numbers."""

    @abstractmethod
    def last_change(self, sql: Connection) -> int:
        """Return the newest change that the connection sees; 0 before the first."""


_VALUES_AT_ONCE = 900
"""Bound values of one statement; SQLite took at most 999 before 3.32
(https://sqlite.org/limits.html, 9)."""

_PENDING = (
    "SELECT c.chunk_id FROM {documents}"
    " CROSS JOIN chunks c ON c.doc = d.doc AND c.revision = d.revision LEFT JOIN vectors v"
    f" ON v.key = (SELECT live_build << {BUILD_SHIFT} FROM libraries WHERE library = ?1) |"
    " c.chunk_id"
    " WHERE d.library = ?1 AND d.state = 'live' AND d.embedded < d.chunks AND v.key IS NULL"
    " ORDER BY {order}, c.ordinal LIMIT ?2"
)
_NAMED = "json_each(?3) k CROSS JOIN documents d ON d.library = ?1 AND d.doc_id = k.value"
_INDEXES = {"id": "pending", "longest": "longest", "linked": "linked"}


class SqliteDialect(SqlDialect):
    NOW = "((julianday('now') - 2440587.5) * 86400.0)"
    mark = number = "?"
    items = pairs = "json_each(?) k"
    item = "{}"
    join = "CROSS JOIN"
    among = "IN (SELECT value FROM json_each(?))"
    by_author = "instr(d.author_keys, ?)"
    PENDING: ClassVar[Mapping[str, str]] = {
        order: _PENDING.format(
            documents=f"documents d INDEXED BY ix_documents_{_INDEXES[order]}", order=by
        )
        for order, by in ORDERS.items()
    }
    PENDING_OF: ClassVar[Mapping[str, str]] = {
        order: _PENDING.format(documents=_NAMED, order=by) for order, by in ORDERS.items()
    }

    def insert_rows(
        self, sql: Connection, insert: str, rows: Sequence[RowValues], after: str = ""
    ) -> None:
        """Insert many rows a statement: half the time of a statement each."""
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

    def last_id(self, sql: Connection, table: Table) -> int:
        asked = "SELECT seq FROM sqlite_sequence WHERE name = ?"
        row = _driver(sql).execute(asked, (table.name,)).fetchone()
        return int(row[0]) if row else 0

    def keep_last_id(self, sql: Connection, table: Table, last: int) -> None:
        """Do nothing: an AUTOINCREMENT table follows the numbers that are inserted."""

    def last_change(self, sql: Connection) -> int:
        return self.last_id(sql, changes)


def _driver(sql: Connection) -> sqlite3.Connection:
    """Return SQLite's own connection, in the same transaction.

    A statement takes half as long as through SQLAlchemy's.
    """
    return cast("sqlite3.Connection", sql.connection.driver_connection)


def prepare_restored(catalog: Path) -> None:
    """Note in a copied, closed catalog what a restore changes.

    Backup jobs that it shows as running end; one of them made the copy. It has no vector store yet,
    so that one is filled, not taken for a damaged one.
    """
    with closing(sqlite3.connect(catalog)) as connection, connection:
        connection.execute(
            "UPDATE jobs SET state = 'cancelled', updated_at = ?"
            " WHERE kind = 'backup' AND state NOT IN ('done', 'failed', 'cancelled')",
            (utc_now(),),
        )
        connection.execute("DELETE FROM watermarks WHERE projection <> 'lexical'")
