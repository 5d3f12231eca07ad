"""What the ledger of bulk sources does, on each database of the catalog."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.types import LedgerEntry, Library
from app.storage.catalog.ledger import BulkLedger
from app.storage.files.durable import Steps
from app.storage.opening import open_database

PUBLIC = Library.PUBLIC
ROWS = [
    LedgerEntry("1", "10", "indexed"),
    LedgerEntry("2", "20", "redirect"),
    LedgerEntry("3", "30", "skipped", "namespace"),
    LedgerEntry("4", "40", "skipped", "empty"),
    LedgerEntry("5", "50", "skipped", "empty"),
]


@pytest.fixture
def ledger(tmp_path: Path, database_url: str) -> Iterator[BulkLedger]:
    database = open_database(tmp_path / "catalog.sqlite3", database_url, Steps())
    yield BulkLedger(database)
    database.close()


def test_sums_are_the_rows(ledger: BulkLedger) -> None:
    ledger.record(PUBLIC, "w", ROWS)
    ledger.record(Library.PAPERS, "w", ROWS[:1])
    summary = ledger.summary(PUBLIC, "w")
    assert (summary.indexed, summary.redirects, dict(summary.skipped)) == (
        1,
        1,
        {"namespace": 1, "empty": 2},
    )
    assert summary.articles == len(ROWS)
    assert ledger.summary().articles == len(ROWS) + 1
    assert ledger.summary(PUBLIC, "other").articles == 0


def test_a_later_entry_replaces_the_earlier_one(ledger: BulkLedger) -> None:
    ledger.record(PUBLIC, "w", ROWS)
    ledger.record(PUBLIC, "w", [LedgerEntry("1", "11", "redirect")])
    assert ledger.entries(PUBLIC, "w", ["1", "9"]) == {"1": LedgerEntry("1", "11", "redirect")}
    assert ledger.summary(PUBLIC, "w").articles == len(ROWS)


def test_pages_walk_every_entry_once(ledger: BulkLedger) -> None:
    rows = [LedgerEntry(str(n), "1", "indexed") for n in range(25)]
    ledger.record(PUBLIC, "w", rows)
    found: list[str] = []
    after = ""
    while page := ledger.page(PUBLIC, "w", after, 7):
        found += [entry.article for entry in page]
        after = page[-1].article
    assert found == sorted(row.article for row in rows)


def test_what_is_forgotten_is_gone(ledger: BulkLedger) -> None:
    ledger.record(PUBLIC, "w", ROWS)
    ledger.delete(PUBLIC, "w", ["1", "2", "unknown"])
    ledger.delete(PUBLIC, "w", [])
    assert ledger.summary(PUBLIC, "w").articles == 3
