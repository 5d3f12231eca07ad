"""A bulk ledger in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from app.core.types import LedgerEntry, LedgerSummary, Library


class DictLedger:
    """The BulkLedger port over a dictionary."""

    def __init__(self) -> None:
        self._rows: dict[tuple[Library, str, str], LedgerEntry] = {}

    def entries(
        self, library: Library, source: str, articles: Sequence[str]
    ) -> dict[str, LedgerEntry]:
        return {
            article: self._rows[library, source, article]
            for article in articles
            if (library, source, article) in self._rows
        }

    def record(self, library: Library, source: str, entries: Sequence[LedgerEntry]) -> None:
        self._rows.update({(library, source, entry.article): entry for entry in entries})

    def page(
        self, library: Library, source: str, after: str = "", limit: int = 10_000
    ) -> list[LedgerEntry]:
        rows = sorted(
            (key[2], entry)
            for key, entry in self._rows.items()
            if key[:2] == (library, source) and key[2] > after
        )
        return [entry for _, entry in rows[:limit]]

    def delete(self, library: Library, source: str, articles: Sequence[str]) -> None:
        for article in articles:
            self._rows.pop((library, source, article), None)

    def summary(self, library: Library | None = None, source: str | None = None) -> LedgerSummary:
        rows = [
            entry
            for key, entry in self._rows.items()
            if library in (None, key[0]) and source in (None, key[1])
        ]
        states = Counter(entry.state for entry in rows)
        return LedgerSummary(
            states["indexed"],
            states["redirect"],
            Counter(entry.reason for entry in rows if entry.state == "skipped"),
        )
