"""The catalog's statements: portable ones are SQLAlchemy Core, SQLite's own stand in one file."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import insert, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql.expression import Executable

import app.storage.catalog as package
from app.core.types import Job, LedgerEntry, Library
from app.storage import writer
from app.storage.catalog import schema
from app.storage.catalog import schema as statements
from app.storage.catalog import schema as work_schema
from app.storage.catalog.changes import ChangeLog
from app.storage.catalog.database import Database
from app.storage.catalog.ledger import BulkLedger
from app.storage.catalog.schema import metadata
from app.storage.files.durable import Steps
from app.storage.opening import open_database
from app.storage.queue import JobQueue
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft

POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]
FOLDER = Path(package.__path__[0])
OWN_SQL = {f"{name}.py" for name in "engine sqlite postgres several statements".split()}
"""Statements of the dialects, and of the databases themselves: PRAGMA, BEGIN, SET."""


@pytest.fixture
def database(tmp_path: Path, database_url: str) -> Iterator[Database]:
    """A catalog without rows."""
    opened = open_database(tmp_path / "c.sqlite3", database_url, Steps())
    yield opened
    opened.close()


def raw_statements(path: Path) -> list[int]:
    """Lines that hand SQL of their own to a cursor or to the driver."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (
            node.func.attr == "exec_driver_sql"
            or (
                node.func.attr in {"execute", "executemany"}
                and isinstance(node.args[0], ast.Constant | ast.JoinedStr)
            )
        )
        and "sqlite." not in ast.unparse(node.args[0])
    ]


def test_only_the_dialects_file_holds_sql() -> None:
    files = [path for path in FOLDER.glob("*.py") if path.name not in OWN_SQL]
    files.append(Path(str(writer.__file__)))
    assert {path.name: found for path in files if (found := raw_statements(path))} == {}
    assert raw_statements(FOLDER / "statements.py")


def test_every_table_can_be_created_on_postgresql() -> None:
    made = [str(CreateTable(table).compile(dialect=POSTGRESQL)) for table in metadata.sorted_tables]
    made += [
        str(CreateIndex(i).compile(dialect=POSTGRESQL))
        for t in metadata.sorted_tables
        for i in t.indexes
    ]
    assert not [statement for statement in made if "BLOB" in statement or "ROWID" in statement]
    vectors = str(CreateTable(schema.vectors).compile(dialect=POSTGRESQL))
    assert "key BIGINT NOT NULL" in vectors  # a build's number and a chunk's: more than 32 bits


def test_statements_compile_for_postgresql() -> None:
    modules = [
        importlib.import_module(f"{package.__name__}.{found.name}")
        for found in pkgutil.iter_modules([str(FOLDER)])
        if found.name not in {"postgres", "several"}  # their driver is an extra
    ]
    held = [
        value
        for module in (*modules, writer)
        for value in vars(module).values()
        if isinstance(value, Executable) and hasattr(value, "compile")
    ]
    assert len(held) > 20
    for statement in held:
        assert str(statement.compile(dialect=POSTGRESQL))


def test_conflicts_are_settled_alike_on_both() -> None:
    columns = frozenset(("library", "type", "documents"))
    said = [
        str(
            statements._on_conflict("postgresql", schema.type_counts, columns, adds=adds).compile(
                dialect=POSTGRESQL
            )
        )
        for adds in (False, True)
    ]
    assert "ON CONFLICT (library, type) DO UPDATE SET documents = excluded.documents" in said[0]
    assert "SET documents = (type_counts.documents + excluded.documents)" in said[1]


def test_put_replaces_and_add_adds(database: Database) -> None:
    row = {"library": "papers", "type": "pdf"}
    with database.write("test") as sql:
        statements.add(sql, schema.type_counts, row | {"documents": 2})
        statements.add(sql, schema.type_counts, row | {"documents": 3})
        statements.put(
            sql, schema.type_counts, [row | {"type": "text", "documents": n} for n in (7, 9)]
        )
        statements.put(sql, schema.type_counts, [])
    counts = select(schema.type_counts.c.type, schema.type_counts.c.documents)
    assert dict(database.rows(counts)) == {"pdf": 5, "text": 9}


def test_more_names_than_one_statement_takes(database: Database) -> None:
    ledger = BulkLedger(database)
    names = [f"a{n}" for n in range(2 * statements.PIECE + 1)]
    ledger.record(Library.PUBLIC, "dump", [LedgerEntry(name, "1", "indexed") for name in names])
    assert sorted(ledger.entries(Library.PUBLIC, "dump", [*names, "absent"])) == sorted(names)
    ledger.delete(Library.PUBLIC, "dump", names[1:])
    assert [entry.article for entry in ledger.page(Library.PUBLIC, "dump")] == names[:1]


def test_a_list_is_searched_for_the_query_as_it_is_written(store: IndexStore) -> None:
    for name in ("50% off.txt", "50 cents off.txt", "a_b.txt", "axb.txt"):
        store.writer.write([make_draft(name, f"text of {name}", title=name)])
    for query, expected in (
        ("50%", ["50% off.txt"]),
        ("A_B", ["a_b.txt"]),
        ("off", ["50 cents off.txt", "50% off.txt"]),
    ):
        found, _ = store.catalog.documents(Library.PAPERS, query)
        assert [document.filename for document in found] == expected


def test_a_document_is_found_by_its_id_before_others_with_that_title(store: IndexStore) -> None:
    wanted = make_draft("wanted.txt", "the one", title="plain")
    namesakes = [make_draft(f"{n}.txt", f"text {n}", title=wanted.doc_id) for n in range(6)]
    store.writer.write([*namesakes, wanted])
    assert store.catalog.find(Library.PAPERS, wanted.doc_id).source_key == "wanted.txt"


def test_an_applied_change_goes_once_every_projection_has_it(database: Database) -> None:
    row = {"library": "papers", "kind": "write", "doc": 1, "revision": 1, "ids": None}
    with database.write("test") as sql:
        sql.execute(insert(schema.changes), [row, row | {"ids": b"\x01" * 8}, row])
    log = ChangeLog(database)
    log.set_mark(Library.PAPERS, "lexical", 2)
    log.save()
    assert [seq for (seq,) in database.rows(select(schema.changes.c.seq))] == [
        2,
        3,
    ]  # 2 is for the dense ones too
    log.set_mark(Library.PAPERS, "chroma", 2)
    log.save()
    assert [seq for (seq,) in database.rows(select(schema.changes.c.seq))] == [3]
    assert log.last() == 3


def test_pruned_jobs_are_the_oldest_finished_ones(database: Database) -> None:
    store = JobQueue(database)
    made: list[Job] = [store.create("ingest", {}) for _ in range(5)]
    with database.write("test") as sql:
        for job in (made[0], made[1], made[3]):
            finished = (
                work_schema.jobs.update()
                .where(work_schema.jobs.c.id == job.id)
                .values(state="done")
            )
            sql.execute(finished)
    assert store.delete_finished(1) == 2
    assert [job.id for job in store.list()] == [made[4].id, made[3].id, made[2].id]
