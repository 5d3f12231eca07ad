"""Real stores of the catalog, for tests that keep answers, conversations, findings or accounts."""

from __future__ import annotations

import atexit
import itertools
import shutil
import tempfile
from functools import cache
from pathlib import Path

from app.storage.catalog.answers import AnswerStore
from app.storage.catalog.database import Database
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps

_NUMBERS = itertools.count()


@cache
def _folder() -> Path:
    """Return this process's folder; it goes when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="documind-catalogs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _empty() -> bytes:
    path = _folder() / "empty.sqlite3"
    SqliteDatabase(path, Steps()).close()
    return path.read_bytes()


def catalog_database() -> Database:
    """Open an empty catalog of its own, copied from one that was made once."""
    path = _folder() / f"catalog{next(_NUMBERS)}.sqlite3"
    path.write_bytes(_empty())
    return SqliteDatabase(path, Steps())


def kept_answers(store: AnswerStore) -> list[str]:
    """Return the ids of the answers that a store keeps, newest first."""
    return [str(record["answer_id"]) for record in store.list()]
