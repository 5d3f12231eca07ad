"""Locks of several servers: what waits for whom, what a frozen process holds up, what it may still remove."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import Busy, DatabaseAway
from app.core.types import Library
from app.shared import postgres
from app.shared.postgres import ProcessLock
from app.shared.qdrant import SearchEngine
from app.shared.qdrant_words import QdrantWords
from app.storage.files.durable import Steps
from app.storage.store import IndexStore
from tests.fakes.postgres_server import PostgresServer
from tests.shared.test_shared_stores import options_for
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows
from tests.unit.storage.test_state_stores import an_answer

PAPERS, PUBLIC = Library.PAPERS, Library.PUBLIC


@pytest.fixture
def both(tmp_path: Path, database_url: str, engine_url: str) -> Iterator[tuple[IndexStore, ...]]:
    with (
        IndexStore(options_for(tmp_path / "a", database_url, engine_url), vector_store="off") as a,
        IndexStore(options_for(tmp_path / "b", database_url, engine_url), vector_store="off") as b,
    ):
        a.writer.claim(PAPERS, FINGERPRINT)
        yield a, b


def test_a_question_waits_for_no_writer_of_another_process(both: tuple[IndexStore, ...]) -> None:
    """What it keeps is written past them, or dropped."""
    asks, writes = both
    asks.writer.write([make_draft("one", "walruses whistle " * 9, chunks=1)])
    record = {"answer_id": "x", "at": "2026-01-01T00:00:00Z"}
    with writes.projector.writing(PAPERS):
        with pytest.raises(Busy):
            asks.writer.write_vectors(PAPERS, [1], unit_rows(1, seed=1), wait=False)
        with writes.database.write("meta"):
            asks.answers.save(an_answer("x"), record)
            assert asks.answers.get("x") == record
            talk = asks.conversations.create("talk")
            asks.conversations.begin(talk, "who?", "x")
            with pytest.raises(Busy), asks.database.write("meta", wait=False):
                pass
    asks.writer.write_vectors(PAPERS, [1], unit_rows(1, seed=1), wait=False)
    assert asks.catalog.counts(PAPERS).embedded == 1


def test_a_writer_of_one_library_waits_for_none_of_the_other(both: tuple[IndexStore, ...]) -> None:
    first, second = both
    with first.projector.writing(PAPERS):
        second.writer.write([make_draft("two", "penguins parade", chunks=1, library=PUBLIC)])
    assert second.catalog.counts(PUBLIC).documents == 1


def test_a_frozen_process_loses_its_lock_and_commits_nothing_under_it(
    both: tuple[IndexStore, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen, goes_on = both
    monkeypatch.setattr(postgres, "LEASE_S", 1)
    monkeypatch.setattr(ProcessLock, "beat", lambda _: None)
    with frozen.projector.writing(PAPERS):
        goes_on.writer.write([make_draft("two", "penguins parade", chunks=1)])
        with pytest.raises(DatabaseAway):
            frozen.builds.stage(PAPERS, replace(FINGERPRINT, embedding_model="other"))
    frozen.writer.write([make_draft("one", "walruses whistle", chunks=1)])
    assert goes_on.catalog.counts(PAPERS).documents == 2


def test_a_process_that_lives_keeps_its_lease(
    both: tuple[IndexStore, ...], postgres_server: PostgresServer
) -> None:
    heard = (
        "SELECT a.state_change FROM pg_stat_activity a JOIN pg_locks l USING (pid)"
        " WHERE l.locktype = 'advisory' AND l.mode = 'ExclusiveLock' AND l.granted"
    )
    store, _ = both
    with store.projector.writing(PAPERS):
        before = postgres_server.run(heard)
        assert before
        store.database._beat()  # type: ignore[attr-defined]
        assert postgres_server.run(heard) > before
        store.builds.stage(PAPERS, replace(FINGERPRINT, embedding_model="other"))
    assert store.builds.of(PAPERS, "staged")


def test_a_writer_that_was_held_up_removes_nothing_newer(both: tuple[IndexStore, ...]) -> None:
    """As one whose connection, and with it its lock, was lost between its upsert and its removal."""
    store, _ = both
    old, new = (make_draft("one", text, chunks=1) for text in ("walruses whistle", "orcas sing"))
    store.writer.write([old])
    engine = SearchEngine(store.options.search_url)
    held_up = QdrantWords(PAPERS, engine, store.options, Steps())
    (document,) = store.loader.lexical_documents([1])
    held_up.delete(document.doc, [chunk_id for chunk_id, _, _ in document.chunks])
    store.writer.write([new])
    held_up.commit()
    held_up.close()
    assert len(store.lexical.search(PAPERS, "orcas", 5)) == 1
    assert store.lexical.search(PAPERS, "walruses", 5) == []
    assert engine.ids("words_papers") == {2}


def test_a_lock_that_nobody_has_any_more_is_not_kept(both: tuple[IndexStore, ...]) -> None:
    database = both[0].database
    before = len(database._others)  # type: ignore[attr-defined]
    for _ in range(20):
        with database.lock_of("a purge"):
            database._beat()  # type: ignore[attr-defined]
    gc.collect()
    assert len(database._others) == before  # type: ignore[attr-defined]
