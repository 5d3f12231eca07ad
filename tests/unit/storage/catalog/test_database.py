"""The catalog's file: schema, versions, damage, a full disk."""

from __future__ import annotations

import resource
import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from app.core.errors import DiskFull, IndexDamaged, StorageError
from app.core.types import Library
from app.storage.catalog.schema import SCHEMA_VERSION, metadata
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps
from app.storage.maintenance.start import catalog_path
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft


def test_migrations_make_the_schema_that_the_code_expects(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "c.sqlite3", Steps())
    with database.read() as connection:
        context = MigrationContext.configure(connection)
        assert context.get_current_revision() == SCHEMA_VERSION
        assert compare_metadata(context, metadata) == []
    database.close()


def test_a_newer_store_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite3"
    SqliteDatabase(path, Steps()).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(StorageError, match="newer release"):
        SqliteDatabase(path, Steps())


def test_the_settings_that_durability_rests_on(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "c.sqlite3", Steps())
    with database.write("test") as connection:
        pragma = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete")
        }
    database.close()
    assert pragma == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "secure_delete": 1,
    }


def test_a_block_that_raises_leaves_nothing(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "c.sqlite3", Steps())

    def fail_midway() -> None:
        with database.write("test") as connection:
            connection.exec_driver_sql("INSERT INTO meta VALUES ('a', 'b')")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail_midway()
    with database.read_raw() as cursor:
        assert cursor.execute("SELECT count(*) FROM meta").fetchone() == (0,)
    database.close()


@pytest.mark.sqlite_file
@pytest.mark.parametrize("damage", ["not a database", "flipped pages"])
def test_a_damaged_catalog_is_refused_with_the_cure(options: IndexOptions, damage: str) -> None:
    with IndexStore(options, vector_store="off") as store:
        store.writer.write([make_draft(f"{i}.txt", f"text {i} " * 200) for i in range(20)])
    path = catalog_path(options.data_dir)
    content = bytearray(path.read_bytes())
    if damage == "not a database":
        content[:100] = b"x" * 100
    else:
        for at in range(4096, len(content), 4096):
            content[at : at + 8] = b"\xff" * 8
    path.write_bytes(content)
    with (
        pytest.raises(IndexDamaged, match="documind restore"),
        IndexStore(options, vector_store="off") as store,
    ):
        store.catalog.documents(Library.PAPERS)


def write_without_end(store: IndexStore) -> None:
    for i in range(200):
        store.writer.write([make_draft(f"{i}.txt", f"delta {i} " * 20_000, chunks=50)])


@pytest.mark.sqlite_file
def test_a_full_disk_is_an_error_and_nothing_is_lost(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="off") as store:
        store.writer.write([make_draft("a.txt", "alpha beta gamma", chunks=1)])
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (256 * 1024, hard))
        try:
            with pytest.raises(DiskFull):
                write_without_end(store)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert store.lexical.search(Library.PAPERS, "alpha", 1) != []
        store.writer.write([make_draft("b.txt", "epsilon zeta", chunks=1)])
        assert store.lexical.search(Library.PAPERS, "epsilon", 1) != []
        shown = store.catalog.counts(Library.PAPERS)
    with IndexStore(options, vector_store="off") as store:
        assert store.catalog.counts(Library.PAPERS) == shown
        assert store.lexical.search(Library.PAPERS, "alpha", 1) != []
