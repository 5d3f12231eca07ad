"""How far each projection is behind."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import insert

from app.core.types import Library
from app.storage.catalog import changes, schema
from app.storage.catalog.changes import ChangeLog
from app.storage.files.durable import Steps
from app.storage.opening import open_database

ROWS = [
    ("papers", "write", None),
    ("papers", "vectors", b"\x01"),
    ("public", "write", None),
    ("papers", "correct", None),
]


def test_a_projection_is_behind_by_the_changes_that_concern_it(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database(tmp_path / "catalog.sqlite", database_url, Steps())
    try:
        with database.write("test") as sql:
            for library, kind, ids in ROWS:
                row = {"library": library, "kind": kind, "doc": 1, "revision": 1, "ids": ids}
                sql.execute(insert(schema.changes), row)
        log = ChangeLog(database)
        assert log.lags() == {}
        for library in Library:
            for projection in ("lexical", "chroma"):
                log.set_mark(library, projection, 1 if library is Library.PAPERS else 3)
        assert log.last() == 4
        assert log.lags() == {
            "papers/lexical": 1,  # the correction; vectors are none of its business
            "papers/chroma": 2,
            "public/lexical": 0,  # though the newest number is another library's
            "public/chroma": 0,
        }
        monkeypatch.setattr(changes, "LAG_COUNTED", 1)
        assert log.lags()["papers/chroma"] == 1
    finally:
        database.close()


def test_a_watermark_whose_transaction_failed_is_written_with_the_next(
    tmp_path: Path, database_url: str
) -> None:
    database = open_database(tmp_path / "catalog.sqlite", database_url, Steps())
    try:
        log = ChangeLog(database)
        for seq in (5, 0):
            log.set_mark(Library.PAPERS, "chroma", seq)
            with suppress(RuntimeError), database.write("test") as sql:
                log.save_into(sql)
                raise RuntimeError("no space")
            log.set_mark(Library.PAPERS, "chroma", seq)  # as who tries again does
            log.save()
            assert ChangeLog(database).mark(Library.PAPERS, "chroma") == seq
    finally:
        database.close()
