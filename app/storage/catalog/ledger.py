"""The bulk ledger in the catalog: one row for each article of every source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import Connection, bindparam, delete, func, select

from app.core.types import LedgerEntry, LedgerPage, LedgerSummary, Library
from app.storage.catalog.database import Database
from app.storage.catalog.schema import ledger, pieces, put, rows_of

_ENTRIES = select(ledger.c.article, ledger.c.revision, ledger.c.state, ledger.c.reason)
_SUMS = select(ledger.c.state, ledger.c.reason, func.count()).group_by(
    ledger.c.state, ledger.c.reason
)


class BulkLedger:
    """Records the outcome of every article of every bulk source.

    Sums are counted from rows, so they are exact.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def entries(
        self, library: Library, source: str, articles: Sequence[str]
    ) -> dict[str, LedgerEntry]:
        asked = _ENTRIES.where(ledger.c.library == library.value, ledger.c.source == source)
        named = asked.where(ledger.c.article.in_(bindparam("articles", expanding=True)))
        with self._database.read() as sql:
            rows = rows_of(sql, named, "articles", articles)
            return {row.article: LedgerEntry(*row) for row in rows}

    def record(self, library: Library, source: str, entries: Sequence[LedgerEntry]) -> None:
        """Write entries durably, replacing what was known of the same articles.

        Raises:
            DiskFull: No space; none of the entries is kept.
        """
        with self._database.write("ledger") as sql:
            record_page(sql, LedgerPage(library, source, entries))

    def page(
        self, library: Library, source: str, after: str = "", limit: int = 10_000
    ) -> list[LedgerEntry]:
        """Return entries with an article key above `after`, ascending by key."""
        following = _ENTRIES.where(
            ledger.c.library == library.value, ledger.c.source == source, ledger.c.article > after
        )
        rows = self._database.rows(following.order_by(ledger.c.article).limit(limit))
        return [LedgerEntry(*row) for row in rows]

    def delete(self, library: Library, source: str, articles: Sequence[str]) -> None:
        """Drop entries of articles that the source no longer has."""
        if not articles:
            return
        gone = delete(ledger).where(ledger.c.library == library.value, ledger.c.source == source)
        with self._database.write("ledger_forget") as sql:
            for some in pieces(articles):
                sql.execute(gone.where(ledger.c.article.in_(some)))

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
        indexed, redirects = counts.get("indexed", 0), counts.get("redirect", 0)
        articles = indexed + redirects + sum(skipped.values())
        return LedgerSummary(articles, indexed, redirects, skipped)


def delete_sources(sql: Connection, library: Library) -> None:
    """Drop what is known of every bulk source of a library."""
    sql.execute(delete(ledger).where(ledger.c.library == library.value))


def record_page(sql: Connection, page: LedgerPage) -> None:
    """Write entries in the caller's transaction, replacing those of the articles."""
    of = {"library": page.library.value, "source": page.source}
    put(sql, ledger, [of | asdict(entry) for entry in page.entries])
