"""The catalog on PostgreSQL: who may write, what is said when it is away, what it cannot keep."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from app.cli import doctor
from app.core.errors import DatabaseAway, IndexDamaged, InvalidInput, Locked, StorageError
from app.core.types import Library
from app.settings import Settings
from app.storage.files.durable import Steps
from app.storage.opening import open_database
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.postgres_server import PASSWORD, PostgresServer, running_server
from tests.fakes.transaction_pooler import transaction_pooler
from tests.unit.storage.drafts import make_draft

PAPERS = Library.PAPERS


@pytest.fixture
def options(tmp_path: Path, database_url: str) -> IndexOptions:
    data = tmp_path / "data"
    return IndexOptions(
        data, data / "chroma", database_url, tantivy_threads=1, tantivy_heap_bytes=15_000_000
    )


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that the test may stop."""
    with running_server() as server:
        yield server


def said(error: pytest.ExceptionInfo[Exception]) -> str:
    """The message of an error of the database, which never shows the password."""
    assert PASSWORD not in f"{error.value}{error.value.__cause__}"
    return str(error.value)


def test_a_server_that_writes_alone_is_not_joined(options: IndexOptions, database_url: str) -> None:
    """As one of a release before, which took the lock for itself."""
    lone = "SELECT pg_advisory_lock(hashtext('documind'), hashtext(current_schema()))"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(lone)
        with pytest.raises(Locked) as refused:
            IndexStore(options, vector_store="off")
        assert "earlier release" in said(refused)


def test_words_are_indexed_again_in_an_empty_data_directory(
    options: IndexOptions, tmp_path: Path
) -> None:
    with IndexStore(options, vector_store="off") as store:
        store.writer.write([make_draft("a.txt", "Walruses whistle.")])
    moved = tmp_path / "moved"
    with IndexStore(
        replace(options, data_dir=moved, chroma_dir=moved / "chroma"), vector_store="off"
    ) as store:
        assert [hit.chunk_id for hit in store.lexical.search(PAPERS, "walruses", 5)]


def test_a_database_that_does_not_know_the_data_directory_is_refused(
    options: IndexOptions, own_server: PostgresServer
) -> None:
    with IndexStore(options, vector_store="off") as store:
        sha256 = store.writer.store_original(b"Walruses whistle.")
        draft = make_draft("a.txt", "Walruses whistle.", has_original=True, sha256=sha256)
        store.writer.write([draft])
    with pytest.raises(IndexDamaged) as refused:
        IndexStore(replace(options, database_url=own_server.url()), vector_store="off")
    assert "names none of the 1 uploaded files" in said(refused)
    with IndexStore(options, vector_store="off") as store:
        assert store.catalog.original(PAPERS, draft.doc_id).read_bytes() == b"Walruses whistle."


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://me:{word}@127.0.0.1:9/library", "127.0.0.1:9/library"),
        ("postgresql://documind:{word}-wrong@127.0.0.1:{port}/postgres", "password authentication"),
        ("mysql://me:{word}@127.0.0.1/library", "must be postgresql://"),
        ("postgresql://me:{word}@127.0.0.1", "must be postgresql://"),
        ("no address", "is no address"),
    ],
)
def test_a_wrong_address_is_named_without_its_password(
    tmp_path: Path, postgres_server: PostgresServer, url: str, expected: str
) -> None:
    address = url.format(word=PASSWORD, port=postgres_server.port)
    with pytest.raises(InvalidInput) as refused:
        open_database(tmp_path / "unused", address, Steps())
    assert expected in said(refused)
    assert "DATABASE_URL" in said(refused)


def test_doctor_asks_the_database_and_shows_no_password(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    for url, state in (
        (postgres_server.url(), "ok"),
        ("postgresql://a:b-word@[::1]:9/c", "problem"),
    ):
        settings = Settings(
            _env_file=None, data_dir=tmp_path, database_url=url, search_url="http://[::1]:9"
        )
        found, _ = doctor.engines(settings)
        assert (found.what, found.state) == ("PostgreSQL", state)
        assert PASSWORD not in f"{found}{settings}"
        assert "b-word" not in f"{found}{settings}"
    assert list(doctor.engines(Settings(_env_file=None, data_dir=tmp_path))) == []


def test_work_goes_on_when_the_database_is_back(tmp_path: Path, own_server: PostgresServer) -> None:
    data = tmp_path / "data"
    options = IndexOptions(data, data / "chroma", own_server.url(), tantivy_threads=1)
    with IndexStore(options, vector_store="off") as store:
        store.writer.write([make_draft("a.txt", "Walruses whistle.")])
        own_server.stop(kill=True)
        with pytest.raises(DatabaseAway) as away:
            store.writer.write([make_draft("b.txt", "Penguins parade.")])
        assert (away.value.retryable, away.value.retry_after_s) == (True, 5.0)
        assert f"127.0.0.1:{own_server.port}" in said(away)
        with pytest.raises(DatabaseAway):
            store.catalog.passages(PAPERS, [1])
        assert store.missing()[0].startswith("database ")
        own_server.start()
        assert store.missing() == ()
        store.writer.write([make_draft("b.txt", "Penguins parade.")])
        assert store.catalog.counts(PAPERS).documents == 2
        assert len(store.catalog.passages(PAPERS, [1, 2])) == 2


def test_what_postgresql_cannot_keep_is_refused_and_nothing_is_kept(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="off") as store:
        with pytest.raises(InvalidInput, match="NUL"):
            store.conversations.create("a\0b")
        assert store.conversations.list() == []


def test_a_newer_schema_is_refused(
    options: IndexOptions, database_url: str, postgres_server: PostgresServer
) -> None:
    IndexStore(options, vector_store="off").close()
    name = database_url.rpartition("%3D")[2]
    postgres_server.run(f"UPDATE {name}.alembic_version SET version_num = '9999'")
    with pytest.raises(StorageError, match="9999"):
        IndexStore(options, vector_store="off")


def test_a_backup_says_what_to_use(options: IndexOptions, tmp_path: Path) -> None:
    with (
        IndexStore(options, vector_store="off") as store,
        pytest.raises(InvalidInput, match="pg_dump"),
    ):
        store.backup(tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


def test_a_purge_rewrites_the_tables(
    options: IndexOptions, postgres_server: PostgresServer, database_url: str
) -> None:
    name = database_url.rpartition("%3D")[2]
    with IndexStore(options, vector_store="off") as store:
        store.writer.write([make_draft(f"{i}.txt", f"words {i} " * 500) for i in range(20)])
        before = postgres_server.run(f"SELECT pg_relation_filenode('{name}.revisions')")
        store.writer.delete_all(PAPERS)
        store.purger.run()
        after = postgres_server.run(f"SELECT pg_relation_filenode('{name}.revisions')")
        assert before != after
        assert postgres_server.run(f"SELECT pg_relation_size('{name}.revisions')") == "0"
        store.conversations.create("the connection serves on")
        assert len(store.conversations.list()) == 1


def test_numbers_are_never_given_out_twice(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="off") as store:
        store.writer.write([make_draft("a.txt", "Walruses whistle.", chunks=2)])
        held = set(store.loader.live_chunk_ids(PAPERS))
        store.writer.delete(PAPERS, make_draft("a.txt", "").doc_id)
        store.writer.write([make_draft("b.txt", "Penguins parade.", chunks=2)])
        assert not held & set(store.loader.live_chunk_ids(PAPERS))


def test_the_embedded_store_loads_nothing_of_it(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from app.storage.options import IndexOptions;"
        " from app.storage.store import IndexStore; data = Path(sys.argv[1]);"
        " IndexStore(IndexOptions(data, data / 'chroma'), vector_store='off').close();"
        " print([n for n in sys.modules if n.startswith('psycopg')])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "data")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.strip() == "[]"


def test_names_sort_by_code_point(options: IndexOptions) -> None:
    """The cluster sorts as people do; the catalog does not depend on it."""
    with IndexStore(options, vector_store="off") as store:
        for name in ("b.txt", "A.txt", "a.txt", "Ä.txt"):
            store.claims.record(PAPERS, "folder", {name: "0" * 64})
            store.writer.write([make_draft(name, f"text of {name}", sha256="0" * 64)])
        assert list(store.claims.held(PAPERS, "folder")) == ["A.txt", "a.txt", "b.txt", "Ä.txt"]


def test_a_pooler_in_transaction_mode_is_refused(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    with transaction_pooler(postgres_server.port) as port:
        url = postgres_server.url().replace(f":{postgres_server.port}/", f":{port}/")
        with psycopg.connect(url) as one, psycopg.connect(url) as other:  # it works, so far
            first, second = (_session(connection) for connection in (one, other))
            assert first == second
        with pytest.raises(InvalidInput, match="pool_mode = session"):
            open_database(tmp_path / "unused", url, Steps())
        settings = Settings(
            _env_file=None, data_dir=tmp_path, database_url=url, search_url="http://[::1]:9"
        )
        assert "pool_mode = session" in next(iter(doctor.engines(settings))).detail


def _session(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    connection.commit()
    assert row is not None
    return int(row[0])
