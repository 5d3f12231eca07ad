"""Two stores on one PostgreSQL and one double of Qdrant, as two servers have them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from app.core.types import Library
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.qdrant_double import QdrantDouble
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows

PAPERS = Library.PAPERS


def options_for(path: Path, database: str, search: str) -> IndexOptions:
    return IndexOptions(
        path, path / "chroma", database_url=database, search_url=search, vector_cache_vectors=0
    )


def schema_of(path: Path) -> str:
    return f"stores_{path.name}".lower().replace("-", "_")


@pytest.fixture
def places(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[tuple[str, str]]:
    """The database and the engine of a new library."""
    schema = schema_of(tmp_path)
    postgres_server.run(f"CREATE SCHEMA {schema}")
    with QdrantDouble(tmp_path / "engine") as double:
        yield postgres_server.url(schema), double.url


@pytest.fixture
def both(tmp_path: Path, places: tuple[str, str]) -> Iterator[tuple[IndexStore, IndexStore]]:
    with (
        IndexStore(options_for(tmp_path / "a", *places), vector_store="foreground") as first,
        IndexStore(options_for(tmp_path / "b", *places), vector_store="foreground") as second,
    ):
        yield first, second


def found(store: IndexStore, words: str) -> list[str]:
    """The texts that a store finds and shows."""
    hits = store.lexical.search(PAPERS, words, 9)
    passages = store.catalog.passages(PAPERS, [hit.chunk_id for hit in hits])
    return [passage.chunk.text for passage in passages.values()]


def embed(store: IndexStore, seed: int) -> list[int]:
    store.writer.claim(PAPERS, FINGERPRINT)
    ids = [chunk.chunk_id for chunk in store.writer.pending_vectors(PAPERS, 1000)]
    store.writer.write_vectors(PAPERS, ids, unit_rows(len(ids), seed))
    store.writer.apply(PAPERS)
    return ids


def test_what_one_writes_replaces_and_deletes_the_other_shows_at_once(
    both: tuple[IndexStore, IndexStore],
) -> None:
    first, second = both
    for number in range(4):
        here, there = both if number % 2 else (second, first)
        here.writer.write([make_draft(f"n{number}", f"walrus number{number} sings " * 9, chunks=2)])
        assert len(found(there, f"number{number}")) == 2
        assert there.catalog.counts(PAPERS).documents == number + 1
    second.writer.write([make_draft("n1", "penguins parade past the pier " * 9, chunks=2)])
    assert found(first, "number1") == []
    assert len(found(first, "penguins")) == 2
    draft = make_draft("n1", "", chunks=1)
    first.writer.delete(PAPERS, draft.doc_id)
    assert found(second, "penguins") == []
    assert second.catalog.counts(PAPERS) == first.catalog.counts(PAPERS)
    assert set(second.projector.log.lags().values()) == {0}


def test_vectors_of_one_are_found_by_the_other(both: tuple[IndexStore, IndexStore]) -> None:
    first, second = both
    first.writer.write([make_draft("one", "walruses whistle " * 40, chunks=12)])
    ids = embed(first, seed=1)
    live = second.builds.of(PAPERS, "live")
    assert live is not None
    assert live == first.builds.of(PAPERS, "live")
    row = unit_rows(12, seed=1)[7]
    hit = second.dense[PAPERS].search(row, 1, None, live.number)[0]
    assert (hit.chunk_id, round(hit.score, 3)) == (ids[7], 0.0)
    second.writer.write([make_draft("two", "penguins parade " * 40, chunks=5)])
    later = embed(second, seed=2)
    assert first.vectors.search(PAPERS, unit_rows(5, seed=2)[3], 1)[0].chunk_id == later[3]
    assert first.catalog.counts(PAPERS).embedded == 17


def test_the_planner_knows_the_tables_when_a_collection_is_filled(
    both: tuple[IndexStore, IndexStore], postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """Else it joins a page of vectors with every chunk, until autovacuum comes by."""
    both[0].writer.write([make_draft("one", "walruses whistle " * 40, chunks=12)])
    embed(both[0], seed=1)
    known = postgres_server.run(
        "SELECT string_agg(DISTINCT tablename, ' ' ORDER BY tablename) FROM pg_stats WHERE"
        f" schemaname = '{schema_of(tmp_path)}' AND tablename IN ('vectors', 'chunks', 'documents')"
    )
    assert known == "chunks documents vectors"


def test_words_that_a_process_did_not_live_to_write_come_with_the_next_writer(
    both: tuple[IndexStore, IndexStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = both
    index = first.projector.indexes[PAPERS]
    with monkeypatch.context() as patch:
        # As a kill between the catalog's commit and the engine's: rows are stored, words are not.
        patch.setattr(index, "add", lambda _: (_ for _ in ()).throw(RuntimeError))
        with pytest.raises(RuntimeError):
            first.writer.write([make_draft("left", "walruses whistle " * 9, chunks=2)])
    assert found(second, "walruses") == []
    assert second.projector.log.lags()["papers/lexical"] == 1
    second.writer.write([make_draft("next", "penguins parade " * 9, chunks=1)])
    assert len(found(second, "walruses")) == 2
    assert second.projector.log.lags()["papers/lexical"] == 0


def test_words_that_a_process_left_come_while_nobody_writes(
    tmp_path: Path, places: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        IndexStore(options_for(tmp_path / "a", *places), vector_store="off") as first,
        IndexStore(options_for(tmp_path / "b", *places)) as second,
    ):
        with monkeypatch.context() as patch:
            index = first.projector.indexes[PAPERS]
            patch.setattr(index, "add", lambda _: (_ for _ in ()).throw(RuntimeError))
            with pytest.raises(RuntimeError):
                first.writer.write([make_draft("left", "walruses whistle " * 9, chunks=2)])
        looked = threading.Event()
        while not found(second, "walruses"):
            looked.wait(0.05)
        while second.projector.log.lags()["papers/lexical"]:  # the mark follows what is found
            looked.wait(0.05)


def test_writers_of_both_lose_no_change(both: tuple[IndexStore, IndexStore]) -> None:
    faults: list[BaseException] = []

    def write(store: IndexStore, name: str) -> None:
        try:
            for number in range(6):
                text = f"{name}{number} whistles " * 6
                store.writer.write([make_draft(f"{name}{number}", text, chunks=2)])
        except BaseException as error:  # told below
            faults.append(error)

    threads = [
        threading.Thread(target=write, args=(store, name))
        for store, name in zip((*both, *both), "abcd", strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    for store in both:
        assert store.catalog.counts(PAPERS).documents == 24
        assert set(store.projector.log.lags().values()) == {0}
        for name in "abcd":
            for number in range(6):
                assert len(found(store, f"{name}{number}")) == 2, (name, number)
    assert both[0].projector.indexes[PAPERS].count == 48


def test_two_starts_at_once_make_one_catalog(tmp_path: Path, places: tuple[str, str]) -> None:
    faults: list[BaseException] = []

    def start(name: str) -> None:
        try:
            with IndexStore(options_for(tmp_path / name, *places), vector_store="off") as store:
                store.writer.write([make_draft(name, f"words of {name} " * 9, chunks=1)])
        except BaseException as error:  # told below
            faults.append(error)

    threads = [threading.Thread(target=start, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    with IndexStore(options_for(tmp_path / "d", *places), vector_store="off") as store:
        assert store.catalog.counts(PAPERS).documents == 3


def test_a_build_that_one_makes_live_serves_in_both(both: tuple[IndexStore, IndexStore]) -> None:
    first, second = both
    first.writer.write([make_draft("one", "walruses whistle " * 40, chunks=6)])
    embed(first, seed=1)
    assert second.vectors.search(PAPERS, unit_rows(6, seed=1)[2], 1)
    staged = first.reembedding.begin(PAPERS, replace(FINGERPRINT, embedding_model="other"))
    lacking = partial(first.writer.pending_vectors, PAPERS, 100, build=staged.number)
    ids = [chunk.chunk_id for chunk in lacking()]
    first.writer.write_vectors(PAPERS, ids, unit_rows(6, seed=5), staged.number)
    with first.reembedding.beside(PAPERS, staged.number, threading.Event()) as complete:
        assert complete
        second.writer.write([make_draft("two", "penguins parade " * 40, chunks=2)])
        late = [chunk.chunk_id for chunk in lacking()]
        second.writer.write_vectors(PAPERS, late, unit_rows(2, seed=6), staged.number)
        first.reembedding.swap(PAPERS, staged.number)
    for store in both:
        assert store.builds.of(PAPERS, "live") == staged
        assert store.made_with(PAPERS) == replace(FINGERPRINT, embedding_model="other")
        assert store.vectors.search(PAPERS, unit_rows(6, seed=5)[2], 1)[0].chunk_id == ids[2]
        hit = store.dense[PAPERS].search(unit_rows(2, seed=6)[1], 1, None, staged.number)[0]
        assert hit.chunk_id == late[1]
        assert store.catalog.counts(PAPERS).embedded == 8
