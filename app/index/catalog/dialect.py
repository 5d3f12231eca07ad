"""Declare the statements that each database has of its own.

Every other statement of the catalog is SQLAlchemy Core. The modules `sqlite` and `postgres` are the
two dialects. Ids are one bound value: a JSON array, as `id_list` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import Connection, Table

from app.index.catalog.row_inserts import Row


class Cursor(Protocol):
    """The part of a driver's cursor that reads need."""

    def execute(self, query: str, values: Sequence[object] = ..., /) -> Any:  # noqa: ANN401  # each driver returns its own cursor
        """Run a statement; rows are read from the result."""


class SqlDialect(Protocol):
    """A module with the statements of one database."""

    PASSAGES: str
    """Chunks and documents; values: ids, library."""
    TEXTS: str
    """Texts; values: pairs of document and revision, as JSON."""
    CODES: str
    """Codes for late interaction; values: ids."""
    MATCHING: str
    """Ids of live chunks; values: ids. A condition of FILTERS follows."""
    FILTERS: Mapping[str, str]
    """Conditions on chunk (c) and document (d) by the field of `Filters`; a value each."""
    VECTORS_OF: str
    """Vectors with what filters ask; values: build << 40, ids. VECTORS_END follows."""
    VECTORS_BETWEEN: str
    """The same of keys between two values. VECTORS_END follows."""
    VECTORS_END: str
    """The order by key, and LIMIT."""
    FILTERED_VECTORS: str
    """The same, documents first; values: build << 40, library. Conditions of FILTERS follow."""
    LIMIT: str
    """The end of a query; value: at most this many."""
    VECTOR_IDS: str
    """Ids of live chunks with a vector; values: keys that it lies between."""
    COUNT_VECTORS: str
    """Their number."""
    CHUNKS_WITHOUT_VECTOR: str
    """Ids; values: library, build << 40, chunk id to begin after, limit."""
    PENDING: Mapping[str, str]
    """Ids of chunks without a vector by the order of documents; values: library, limit."""
    PENDING_OF: Mapping[str, str]
    """The same of documents; a third value names them, as JSON."""

    def insert_rows(
        self, sql: Connection, insert: str, rows: Sequence[Row], after: str = "", /
    ) -> None:
        """Run `insert VALUES (...) after` for all rows."""

    def last_id(self, sql: Connection, table: Table, /) -> int:
        """Return the newest number of a table; it is never given out twice."""

    def keep_last_id(self, sql: Connection, table: Table, last: int, /) -> None:
        """Make `last` the newest number of a table whose rows were inserted with numbers."""

    def last_change(self, sql: Connection, /) -> int:
        """Return the newest change that the connection sees; 0 before the first."""


def id_list(ids: Sequence[int]) -> str:
    """Return ids as JSON: one bound value for any number."""
    return "[" + ",".join(map(str, ids)) + "]"
