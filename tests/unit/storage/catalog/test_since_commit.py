"""What is remembered of the catalog is what the catalog says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.storage.catalog.database import Database, SinceCommit
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = SqliteDatabase(tmp_path / "c.sqlite3", Steps())
    yield database
    database.close()


def value_of(database: Database, key: str) -> str | None:
    with database.read_raw() as cursor:
        row = cursor.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def put(database: Database, key: str, value: str) -> None:
    with database.write("test") as sql:
        sql.exec_driver_sql("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def test_nothing_is_read_again_until_something_is_committed(database: Database) -> None:
    asked: list[str] = []

    def read(key: str) -> str | None:
        asked.append(key)
        return value_of(database, key)

    held = SinceCommit(database, read)
    assert [held("a"), held("a"), held("b")] == [None, None, None]
    assert asked == ["a", "b"]
    put(database, "a", "1")
    assert [held("a"), held("a"), held("b")] == ["1", "1", None]
    assert asked == ["a", "b", "a", "b"]


def test_what_was_read_while_a_commit_was_under_way_is_not_kept(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = SinceCommit[str, str | None](database, lambda key: value_of(database, key))
    seen: list[str | None] = []
    at = database.steps.at

    def asked_meanwhile(name: str) -> object:
        seen.append(held("a"))  # just before the commit: the old state, rightly
        return at(name)

    monkeypatch.setattr(database.steps, "at", asked_meanwhile)
    put(database, "a", "1")
    assert seen == [None]
    assert held("a") == "1"


def test_a_block_that_fails_changes_nothing(database: Database) -> None:
    put(database, "a", "1")
    held = SinceCommit[str, str | None](database, lambda key: value_of(database, key))
    assert held("a") == "1"

    def fail_midway() -> None:
        with database.write("test") as sql:
            sql.exec_driver_sql("UPDATE meta SET value = '2' WHERE key = 'a'")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_midway()
    assert held("a") == "1"


def test_a_reader_never_sees_less_than_what_was_committed_before_it_asked(
    database: Database,
) -> None:
    put(database, "n", "0")
    held = SinceCommit[str, int](database, lambda key: int(value_of(database, key) or 0))
    committed = [0]
    behind: list[tuple[int, int]] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            before = committed[0]
            if (found := held("n")) < before:
                behind.append((found, before))

    watchers = [threading.Thread(target=watch) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    for number in range(1, 101):
        put(database, "n", str(number))
        committed[0] = number
    stop.set()
    for watcher in watchers:
        watcher.join()
    assert behind == []
