"""The bulk ledger in the catalog: one row per article of every source."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import Connection

from app.core.types import LedgerEntry, LedgerPage, LedgerSummary, Library
from app.index.catalog.database import Database
from app.index.catalog.rows import insert_rows


class SqliteLedger:
    """The BulkLedger port; sums are counted from rows, so they are exact."""

    def __init__(self, database: Database) -> None:
        """Keep entries in the catalog's file."""
        self._database = database

    def entries(self, library: Library, source: str, articles: Sequence[str]) -> dict[str, LedgerEntry]:
        """Return what is known of these articles."""
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                "SELECT article, revision, state, reason FROM ledger WHERE library = ? AND source = ?"
                " AND article IN (SELECT value FROM json_each(?))",
                (library.value, source, json.dumps(list(articles))),
            ).fetchall()
        return {row[0]: LedgerEntry(*row) for row in rows}

    def record(self, library: Library, source: str, entries: Sequence[LedgerEntry]) -> None:
        """Write entries durably, replacing what was known of the same articles.

        Raises:
            DiskFull: No space; none of the entries is kept.
        """
        with self._database.write("ledger") as connection:
            record_page(connection, LedgerPage(library, source, entries))

    def page(self, library: Library, source: str, after: str = "", limit: int = 10_000) -> list[LedgerEntry]:
        """Return entries with an article key above `after`, ascending by key."""
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                "SELECT article, revision, state, reason FROM ledger WHERE library = ? AND source = ? AND article > ?"
                " ORDER BY article LIMIT ?",
                (library.value, source, after, limit),
            ).fetchall()
        return [LedgerEntry(*row) for row in rows]

    def forget(self, library: Library, source: str, articles: Sequence[str]) -> None:
        """Drop entries of articles that the source no longer has."""
        if not articles:
            return
        with self._database.write("ledger_forget") as connection:
            connection.exec_driver_sql(
                "DELETE FROM ledger WHERE library = ? AND source = ? AND article IN (SELECT value FROM json_each(?))",
                (library.value, source, json.dumps(list(articles))),
            )

    def summary(self, library: Library | None = None, source: str | None = None) -> LedgerSummary:
        """Return the account of one source, one library or everything."""
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                "SELECT state, reason, count(*) FROM ledger WHERE (?1 IS NULL OR library = ?1) AND (?2 IS NULL OR source = ?2)"
                " GROUP BY state, reason ORDER BY reason",
                (library.value if library else None, source),
            ).fetchall()
        skipped = {reason: count for state, reason, count in rows if state == "skipped"}
        counts = {state: count for state, _, count in rows}
        return LedgerSummary(counts.get("indexed", 0), counts.get("redirect", 0), skipped)


def record_page(sql: Connection, page: LedgerPage) -> None:
    """Write entries in the caller's transaction, replacing those of the articles."""
    insert_rows(
        sql,
        "INSERT OR REPLACE INTO ledger (library, source, article, revision, state, reason)",
        [(page.library.value, page.source, entry.article, entry.revision, entry.state, entry.reason) for entry in page.entries],
    )
