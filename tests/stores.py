"""Real stores of the catalog, for tests that keep answers, conversations, findings or accounts."""

from __future__ import annotations

import itertools
import tempfile
from functools import cache
from pathlib import Path

from app.storage.catalog.answers import AnswerStore
from app.storage.catalog.database import Database
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps

_NUMBERS = itertools.count()


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return this process's folder; it goes when the process ends."""
    return tempfile.TemporaryDirectory(ignore_cleanup_errors=True)


@cache
def _empty() -> bytes:
    path = Path(_folder().name) / "empty.sqlite3"
    SqliteDatabase(path, Steps()).close()
    return path.read_bytes()


def catalog_database() -> Database:
    """Open an empty catalog of its own, copied from one that was made once."""
    path = Path(_folder().name) / f"catalog{next(_NUMBERS)}.sqlite3"
    path.write_bytes(_empty())
    return SqliteDatabase(path, Steps())


def kept_answers(store: AnswerStore) -> list[str]:
    """Return the ids of the answers that a store keeps, newest first."""
    return [str(record["answer_id"]) for record in store.list()]
