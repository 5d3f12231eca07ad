"""A store of every earlier schema opens in this release with everything in it; a migration that fails changes nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import select

from app.core.errors import StorageError, Superseded
from app.core.types import Heading, Library
from app.storage.catalog import database, sqlite
from app.storage.catalog.schema import SCHEMA_VERSION, jobs
from app.storage.files.durable import CRASH_STATUS, Steps
from app.storage.maintenance.backup import restore
from app.storage.options import IndexOptions
from app.storage.queue import JobQueue
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft
from tests.unit.storage.stores import FOLDER, LABELS, TEXTS
from tests.unit.storage.test_writer import found

pytestmark = pytest.mark.sqlite_file

PAPERS, PUBLIC = Library.PAPERS, Library.PUBLIC
REVISIONS = sorted(
    script.revision for script in ScriptDirectory(str(database.MIGRATIONS)).walk_revisions()
)

GOOD = """
from alembic import op
revision, down_revision, branch_labels, depends_on = "9998", {head!r}, None, None
def upgrade():
    op.execute("ALTER TABLE documents ADD COLUMN shelf TEXT NOT NULL DEFAULT 'top'")
    op.execute("CREATE TABLE shelves (name TEXT NOT NULL PRIMARY KEY)")
    op.execute("INSERT INTO shelves SELECT DISTINCT shelf FROM documents")
"""
FAILING = GOOD + '    op.execute("UPDATE no_such_table SET x = 1")\n'


def lay_out(options: IndexOptions, revision: str) -> None:
    """Put the catalog of a release, and the originals it names, into a data directory."""
    options.data_dir.mkdir(parents=True)
    with closing(sqlite3.connect(options.data_dir / "catalog.sqlite3")) as connection:
        connection.executescript((FOLDER / f"{revision}.sql").read_text("utf-8"))
    originals = options.data_dir / "originals"
    originals.mkdir()
    for key in ("a.txt", "b.txt"):
        draft = make_draft(key, TEXTS[key])
        (originals / f"{draft.sha256}.bin").write_bytes(TEXTS[key].encode())


def check(store: IndexStore) -> None:
    """Everything that was written is there, is found, and fits together."""
    for library, keys in ((PAPERS, ("a.txt", "b.txt")), (PUBLIC, ("wiki:7",))):
        documents, _ = store.catalog.documents(library)
        assert sorted(document.source_key for document in documents) == sorted(keys)
        assert (
            store.catalog.counts(library).embedded
            == store.catalog.counts(library).chunks
            == 2 * len(keys)
        )
        for document in documents:
            text = TEXTS[document.source_key]
            assert store.catalog.text(library, document.doc_id).text == text
            assert (
                "".join(chunk.text for chunk in store.catalog.chunks(library, document.doc_id))
                == text
            )
        vectors = store.vectors.count(library)
        assert vectors == store.catalog.counts(library).chunks
    first = make_draft("a.txt", "").doc_id
    assert store.catalog.text(PAPERS, first, revision=1).text == "An older revision."
    assert (
        store.catalog.document(PAPERS, first).authors,
        store.catalog.document(PAPERS, first).year,
    ) == (("Ann", "Bo"), 2021)
    assert store.catalog.original(PAPERS, first).read_bytes() == TEXTS["a.txt"].encode()
    assert found(store, "walruses") == {first}
    assert found(store, "lions", PUBLIC)
    assert found(store, "deleted") == set()
    (job,) = store.jobs.list()
    assert (job.kind, job.total, job.unit, job.payload) == ("ingest", 3, "chunks", {"files": ["a"]})
    kept = store.answers.get("kept")
    assert (kept["answer"], kept["feedback"]) == ("Zürich", {"thumb": "up"})
    (talk,) = store.conversations.list()
    turns = cast("Sequence[dict[str, str]]", store.conversations.get(str(talk["id"]))["turns"])
    assert [turn["content"] for turn in turns] == ["Who whistles?", "Walruses. [1]"]
    assert store.fsck.run().faults == ()


def test_what_deletions_kept_out_stays_out_from_0012_on(options: IndexOptions) -> None:
    lay_out(options, "0012")
    with closing(sqlite3.connect(options.data_dir / "catalog.sqlite3")) as connection:
        ((job_id,),) = connection.execute("SELECT id FROM jobs").fetchall()
        payload = json.dumps({"library": "papers", "files": []})
        connection.execute("UPDATE jobs SET payload = ?", (payload,))
        note = (f"superseded/{job_id}", json.dumps(["gone.txt"]))
        connection.execute("INSERT INTO meta (key, value) VALUES (?, ?)", note)
        connection.commit()
    with IndexStore(options, vector_store="off") as store:
        late = replace(make_draft("gone.txt", "Deleted."), job_id=job_id)
        with pytest.raises(Superseded):
            store.writer.write([late])
        assert store.database.meta(f"superseded/{job_id}") is None


@pytest.mark.parametrize("revision", REVISIONS[:-1])
@pytest.mark.parametrize("crash_at", [1, 2])
def test_an_upgrade_that_is_killed_loses_nothing(
    options: IndexOptions, revision: str, crash_at: int
) -> None:
    """1: before the commit, 2: after it."""
    lay_out(options, revision)
    path = options.data_dir / "catalog.sqlite3"
    killed = subprocess.run([sys.executable, "-c", OPEN, path, str(crash_at)], check=False)
    assert killed.returncode == CRASH_STATUS
    with IndexStore(options, vector_store="off") as store:
        check(store)


def test_labels_are_kept_from_0009_on(options: IndexOptions) -> None:
    lay_out(options, SCHEMA_VERSION)
    with IndexStore(options, vector_store="off") as store:
        held = store.catalog.document(PAPERS, make_draft("a.txt", "").doc_id)
    assert (held.tags, held.metadata) == (LABELS.tags, LABELS.metadata)


def test_headings_are_kept_from_0008_on(options: IndexOptions) -> None:
    lay_out(options, SCHEMA_VERSION)
    with IndexStore(options, vector_store="off") as store:
        found = store.catalog.outline(PAPERS, make_draft("a.txt", "").doc_id)
    assert found == (Heading(0, 8, 1, "Walruses"),)


def test_there_is_a_store_of_every_schema() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.sql")) == REVISIONS
    assert REVISIONS[-1] == SCHEMA_VERSION


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_store_of_an_earlier_release_opens_with_everything(
    options: IndexOptions, revision: str
) -> None:
    lay_out(options, revision)
    with IndexStore(options, vector_store="off") as store:
        check(store)
    with IndexStore(
        options, vector_store="off"
    ) as store:  # and once more, now that it is of this release
        check(store)


OLD_JOBS = {
    "a" * 32: ("ingest", "queued", {"library": "papers", "files": []}),
    "b" * 32: ("backfill", "running", {"library": "papers"}),
    "c" * 32: ("backfill", "queued", {"library": "public"}),
    "d" * 32: ("fsck", "paused", {}),
    "e" * 32: ("export", "done", {"library": "papers"}),
}
CARRIED = {
    "a" * 32: ("queued", ""),
    "b" * 32: ("queued", "backfill:papers"),
    "c" * 32: ("queued", "backfill:public"),
    "d" * 32: ("paused", "fsck:all"),
    "e" * 32: ("done", ""),
}
OPEN = """
import sys
from pathlib import Path
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps
SqliteDatabase(Path(sys.argv[1]), Steps(int(sys.argv[2])))
"""


@pytest.mark.parametrize("revision", [one for one in REVISIONS if one < "0007"])
@pytest.mark.parametrize("crash_at", [0, 1, 2])
def test_jobs_of_an_earlier_release_go_on_also_where_the_upgrade_is_killed(
    options: IndexOptions, revision: str, crash_at: int
) -> None:
    lay_out(options, revision)
    path = options.data_dir / "catalog.sqlite3"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM jobs")
        for job_id, (kind, state, payload) in OLD_JOBS.items():
            connection.execute(
                "INSERT INTO jobs (id, kind, state, done, unit, errors, files, payload, created_at,"
                " updated_at) VALUES (?, ?, ?, 1, 'items', '[]', '[]', ?, '2026', '2026')",
                (job_id, kind, state, json.dumps(payload)),
            )
    if crash_at:  # 1: before the commit, 2: after it
        killed = subprocess.run([sys.executable, "-c", OPEN, path, str(crash_at)], check=False)
        assert killed.returncode == CRASH_STATUS
    opened = sqlite.SqliteDatabase(path, Steps())
    queue = JobQueue(opened)
    rows = opened.rows(select(jobs.c.id, jobs.c.state, jobs.c.exclusive_key))
    assert {row.id: (row.state, row.exclusive_key) for row in rows} == CARRIED
    assert [job.done for job in queue.list()] == [1] * len(OLD_JOBS)
    assert [queue.claim(["backfill", "ingest"], f"{n}") is not None for n in range(4)] == [
        True, True, True, False,
    ]  # fmt: skip
    opened.close()


def shape(path: Path) -> dict[str, object]:
    """Tables with their columns and keys, and indexes, however their SQL is written."""
    with closing(sqlite3.connect(path)) as connection:
        found: dict[str, object] = {}
        for kind, name, sql in connection.execute(
            "SELECT type, name, sql FROM sqlite_master"
        ).fetchall():
            written = (sql or "").upper()
            if kind == "table":
                columns = sorted(
                    row[1:] for row in connection.execute(f"PRAGMA table_info({name})")
                )
                parents = sorted(
                    row[2:] for row in connection.execute(f"PRAGMA foreign_key_list({name})")
                )
                found[name] = (
                    columns,
                    parents,
                    "AUTOINCREMENT" in written,
                    "WITHOUT ROWID" in written,
                )
            else:
                held = connection.execute(f"PRAGMA index_info({name})").fetchall()
                found[name] = (held and [row[2] for row in held], written.partition(" WHERE ")[2])
        return found


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_upgraded_store_has_the_shape_of_a_new_one(
    options: IndexOptions, tmp_path: Path, revision: str
) -> None:
    lay_out(options, revision)
    upgraded, new = options.data_dir / "catalog.sqlite3", tmp_path / "new.sqlite3"
    for path in (upgraded, new):
        sqlite.SqliteDatabase(path, Steps()).close()
    assert shape(upgraded) == shape(new)
    assert sqlite.schema_of(new) == SCHEMA_VERSION


@pytest.fixture
def migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the migrations, for a release after this one."""
    copy = tmp_path / "migrations"
    shutil.copytree(database.MIGRATIONS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(database, "MIGRATIONS", copy)
    monkeypatch.setattr(database, "SCHEMA_VERSION", "9998")
    return copy


def test_the_next_release_upgrades_a_store_of_this_one(
    options: IndexOptions, migrations: Path
) -> None:
    (migrations / "versions" / "v9998_next.py").write_text(GOOD.format(head=SCHEMA_VERSION))
    lay_out(options, SCHEMA_VERSION)
    with IndexStore(options, vector_store="off") as store:
        check(store)
    assert sqlite.schema_of(options.data_dir / "catalog.sqlite3") == "9998"
    with closing(sqlite3.connect(options.data_dir / "catalog.sqlite3")) as connection:
        assert connection.execute("SELECT name FROM shelves").fetchall() == [("top",)]


def test_a_migration_that_fails_changes_nothing(
    options: IndexOptions, migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (migrations / "versions" / "v9998_next.py").write_text(FAILING.format(head=SCHEMA_VERSION))
    lay_out(options, SCHEMA_VERSION)
    with pytest.raises(StorageError, match="no_such_table"):
        IndexStore(options, vector_store="off")
    assert sqlite.schema_of(options.data_dir / "catalog.sqlite3") == SCHEMA_VERSION
    monkeypatch.undo()
    with IndexStore(options, vector_store="off") as store:
        check(store)


def test_a_backup_of_a_newer_release_is_refused_before_anything_moves(
    options: IndexOptions, tmp_path: Path
) -> None:
    lay_out(options, SCHEMA_VERSION)
    with IndexStore(options, vector_store="off") as store:
        store.backup(tmp_path / "backup")
    catalog = tmp_path / "backup" / "catalog.sqlite3"
    with closing(sqlite3.connect(catalog)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    manifest = next(path for path in (tmp_path / "backup").iterdir() if path.suffix == ".json")
    record = json.loads(manifest.read_text())
    with catalog.open("rb") as file:
        record["catalog_sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    manifest.write_text(json.dumps(record))
    with pytest.raises(StorageError, match="start the newer release again"):
        restore(tmp_path / "backup", options.data_dir, Steps())
    assert not list(options.data_dir.glob("replaced.*"))
    with IndexStore(options, vector_store="off") as store:
        check(store)
