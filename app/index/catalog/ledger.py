"""The bulk ledger in the catalog: one row per article of every source."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, func, select

from app.core.types import LedgerEntry, LedgerPage, LedgerSummary, Library
from app.index.catalog.database import Database
from app.index.catalog.statements import pieces, put
from app.index.catalog.work_schema import ledger

_ENTRIES = select(ledger.c.article, ledger.c.revision, ledger.c.state, ledger.c.reason)
_SUMS = select(ledger.c.state, ledger.c.reason, func.count()).group_by(
    ledger.c.state, ledger.c.reason
)


class SqliteLedger:
    """The BulkLedger port; sums are counted from rows, so they are exact."""

    def __init__(self, database: Database) -> None:
        """Keep entries in the catalog's file."""
        self._database = database

    def entries(
        self, library: Library, source: str, articles: Sequence[str]
    ) -> dict[str, LedgerEntry]:
        """Return what is known of these articles."""
        asked = _ENTRIES.where(ledger.c.library == library.value, ledger.c.source == source)
        with self._database.read() as sql:
            rows = [
                row
                for some in pieces(articles)
                for row in sql.execute(asked.where(ledger.c.article.in_(some)))
            ]
        return {row.article: LedgerEntry(*row) for row in rows}

    def record(self, library: Library, source: str, entries: Sequence[LedgerEntry]) -> None:
        """Write entries durably, replacing what was known of the same articles.

        Raises:
            DiskFull: No space; none of the entries is kept.
        """
        with self._database.write("ledger") as connection:
            record_page(connection, LedgerPage(library, source, entries))

    def page(
        self, library: Library, source: str, after: str = "", limit: int = 10_000
    ) -> list[LedgerEntry]:
        """Return entries with an article key above `after`, ascending by key."""
        following = _ENTRIES.where(
            ledger.c.library == library.value, ledger.c.source == source, ledger.c.article > after
        )
        return [
            LedgerEntry(*row)
            for row in self._database.rows(following.order_by(ledger.c.article).limit(limit))
        ]

    def delete(self, library: Library, source: str, articles: Sequence[str]) -> None:
        """Drop entries of articles that the source no longer has."""
        if not articles:
            return
        gone = delete(ledger).where(ledger.c.library == library.value, ledger.c.source == source)
        with self._database.write("ledger_forget") as connection:
            for some in pieces(articles):
                connection.execute(gone.where(ledger.c.article.in_(some)))

    def summary(self, library: Library | None = None, source: str | None = None) -> LedgerSummary:
        """Return the account of one source, one library or everything."""
        sums = _SUMS.order_by(ledger.c.reason)
        if library is not None:
            sums = sums.where(ledger.c.library == library.value)
        if source is not None:
            sums = sums.where(ledger.c.source == source)
        rows = self._database.rows(sums)
        skipped = {reason: count for state, reason, count in rows if state == "skipped"}
        counts = {state: count for state, _, count in rows}
        return LedgerSummary(counts.get("indexed", 0), counts.get("redirect", 0), skipped)


def record_page(sql: Connection, page: LedgerPage) -> None:
    """Write entries in the caller's transaction, replacing those of the articles."""
    rows = [
        {
            "library": page.library.value,
            "source": page.source,
            "article": entry.article,
            "revision": entry.revision,
            "state": entry.state,
            "reason": entry.reason,
        }
        for entry in page.entries
    ]
    put(sql, ledger, rows)
