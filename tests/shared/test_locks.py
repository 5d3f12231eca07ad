"""Locks of several servers: what waits for whom, what a frozen process holds up, what it may still remove."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import func, update

from app.core.errors import Busy, DatabaseAway, NotFound
from app.core.types import Library, Metadata
from app.shared import changes, postgres
from app.shared import words as shared_words
from app.shared.changes import SharedChangeLog
from app.shared.postgres import ProcessLock
from app.shared.qdrant import SearchEngine
from app.shared.qdrant_words import QdrantWords
from app.shared.words import SharedLexicalWriter
from app.storage.catalog.changes import Claim
from app.storage.catalog.schema import meta_value, put_meta, watermarks
from app.storage.files.durable import Steps
from app.storage.store import IndexStore
from tests.fakes.postgres_server import PostgresServer
from tests.shared.test_shared_stores import options_for
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows
from tests.unit.storage.test_state_stores import an_answer

PAPERS = Library.PAPERS
AGED = (
    update(watermarks)
    .where(watermarks.c.projection.startswith("brings "))
    .values(projection=func.regexp_replace(watermarks.c.projection, " [0-9]+$", " 1"))
)


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
    with writes.database.write("meta"):
        with pytest.raises(Busy):
            asks.writer.write_vectors(PAPERS, [1], unit_rows(1, seed=1), wait=False)
        asks.answers.save(an_answer("x"), record)
        assert asks.answers.get("x") == record
        talk = asks.conversations.create("talk")
        asks.conversations.begin(talk, "who?", "x")
    asks.writer.write_vectors(PAPERS, [1], unit_rows(1, seed=1), wait=False)
    assert asks.catalog.counts(PAPERS).embedded == 1


@pytest.fixture
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "LEASE_S", 1)
    monkeypatch.setattr(ProcessLock, "beat", lambda _: None)


@pytest.mark.usefixtures("short_lease")
def test_a_frozen_process_loses_its_transaction_and_commits_nothing(
    tmp_path: Path, database_url: str, engine_url: str
) -> None:
    options = [options_for(tmp_path / name, database_url, engine_url) for name in "ab"]
    with (
        IndexStore(options[0], vector_store="off") as frozen,
        IndexStore(options[1], vector_store="off") as goes_on,
    ):

        def freeze() -> None:
            with frozen.database.write("meta") as sql:
                put_meta(sql, "of", "the frozen one")
                goes_on.writer.write([make_draft("two", "penguins parade", chunks=1)])

        with pytest.raises(DatabaseAway, match="rested"):
            freeze()
        frozen.writer.write([make_draft("one", "walruses whistle", chunks=1)])
        assert goes_on.catalog.counts(PAPERS).documents == 2
        with goes_on.database.read() as sql:
            assert meta_value(sql, "of") is None


@pytest.mark.usefixtures("short_lease")
def test_a_frozen_process_loses_its_lock(both: tuple[IndexStore, ...]) -> None:
    frozen, goes_on = both
    with frozen.database.lock_of("words"), goes_on.database.lock_of("words"):
        pass


def test_a_process_that_lives_keeps_its_lease(
    both: tuple[IndexStore, ...], postgres_server: PostgresServer
) -> None:
    heard = (
        "SELECT a.state_change FROM pg_stat_activity a JOIN pg_locks l USING (pid)"
        " WHERE l.locktype = 'advisory' AND l.mode = 'ExclusiveLock' AND l.granted"
    )
    store, _ = both
    with store.database.lock_of("words"):
        before = postgres_server.run(heard)
        assert before
        store.database._beat()  # type: ignore[attr-defined]
        assert postgres_server.run(heard) > before


def test_two_processes_that_delete_and_restore_a_document_count_it_once(
    both: tuple[IndexStore, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No lock of theirs is held from what they read to what they write."""
    here, there = both
    draft = make_draft("one", "walruses whistle", chunks=2)
    here.writer.write([draft, make_draft("two", "penguins parade", chunks=1)])
    key = here.writer._key

    def then(happens: Callable[[], object]) -> None:
        def read(library: Library, doc_id: str, state: str) -> int:
            monkeypatch.setattr(here.writer, "_key", key)
            found = key(library, doc_id, state)
            happens()
            return found

        monkeypatch.setattr(here.writer, "_key", read)

    then(lambda: there.writer.delete(PAPERS, draft.doc_id, grace_s=60))
    here.writer.delete(PAPERS, draft.doc_id, grace_s=60)
    then(lambda: there.writer.restore(PAPERS, draft.doc_id))
    with pytest.raises(NotFound, match="just been restored"):
        here.writer.restore(PAPERS, draft.doc_id)
    then(lambda: there.writer.delete(PAPERS, draft.doc_id))
    here.writer.delete(PAPERS, draft.doc_id)
    counts = there.catalog.counts(PAPERS)
    assert (counts.documents, counts.chunks) == (1, 1)
    assert there.fsck.run().sound


def test_a_check_does_not_take_for_damage_what_another_process_is_about_to_bring(
    both: tuple[IndexStore, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, checks = both
    store.writer.write([make_draft("one", "narwhals sing", chunks=1)])
    index, told = words(checks), words(store)
    ids, commit = index.ids, told.commit
    looked, sends = threading.Event(), threading.Event()

    def look() -> list[int]:
        """Look when a new document is in the catalog, and not in the engine yet."""
        if not looked.is_set():
            written.append(threads.submit(store.writer.write, [draft]))
            assert sends.wait(60)
        found = ids()
        looked.set()
        return found

    def later() -> None:
        sends.set()
        assert looked.wait(60)
        commit()

    monkeypatch.setattr(index, "ids", look)
    monkeypatch.setattr(told, "commit", later)
    draft, written = make_draft("one", "walruses whistle", chunks=1), list[Future[object]]()
    with ThreadPoolExecutor(1) as threads:
        report = checks.fsck.run()
        written[0].result()
    assert [fault.code for fault in report.faults] == []


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
    engine.close()
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


# The engine is told without a lock.


def words(store: IndexStore) -> QdrantWords:
    index = store.projector.indexes[PAPERS]
    assert isinstance(index, QdrantWords)
    return index


def before_it_sends(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]
) -> None:
    """Let something happen after the store has read what it sends next, and before it sends it."""
    index, commit = words(store), words(store).commit

    def later() -> None:
        monkeypatch.setattr(index, "commit", commit)
        held, index._queued = index._queued, []
        removed, index._removed = index._removed, set()
        happens()
        index._queued, index._removed = held, removed
        commit()

    monkeypatch.setattr(index, "commit", later)


def held_ids(store: IndexStore) -> set[int]:
    with closing(SearchEngine(store.options.search_url)) as engine:
        return engine.ids("words_papers")


def test_no_writer_waits_while_another_tells_the_engine(
    both: tuple[IndexStore, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = both
    telling, goes_on = threading.Event(), threading.Event()

    def hang() -> None:
        telling.set()
        assert goes_on.wait(60)

    before_it_sends(slow, monkeypatch, hang)
    with ThreadPoolExecutor(1) as threads:
        written = threads.submit(
            slow.writer.write, [make_draft("one", "walruses whistle", chunks=1)]
        )
        assert telling.wait(60)
        with quick.database.write("meta", wait=False):
            pass
        quick.writer.write([make_draft("two", "penguins parade", chunks=1)])
        assert len(quick.lexical.search(PAPERS, "penguins", 5)) == 1
        quick.writer.write_vectors(PAPERS, [1, 2], unit_rows(2, seed=1), wait=False)
        assert (
            quick.projector.log.lags()["papers/lexical"] == 2
        )  # the mark stays behind the slow one
        quick.projector.log.save()
        goes_on.set()
        written.result()
    assert len(quick.lexical.search(PAPERS, "walruses", 5)) == 1
    assert quick.projector.log.lags()["papers/lexical"] == 0


@pytest.mark.parametrize("change", ["replaced", "deleted", "corrected", "restored"])
def test_the_older_of_two_writers_leaves_nothing_old_when_it_sends_last(
    both: tuple[IndexStore, ...], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    older, newer = both
    older.writer.write([make_draft("one", "narwhals sing", chunks=1)])
    draft = make_draft("one", "walruses whistle", chunks=1)
    facts = Metadata(title="Penguins", authors=(), year=None, language="en")
    happens: Mapping[str, Callable[[], object]] = {
        "replaced": lambda: newer.writer.write([make_draft("one", "orcas parade", chunks=1)]),
        "deleted": lambda: newer.writer.delete(PAPERS, draft.doc_id),
        "corrected": lambda: newer.writer.correct(PAPERS, draft.doc_id, facts),
        "restored": lambda: newer.writer.restore(PAPERS, draft.doc_id),
    }
    before_it_sends(older, monkeypatch, happens[change])
    if change == "restored":
        older.writer.delete(PAPERS, draft.doc_id, grace_s=60)
    else:
        older.writer.write([draft])
    live = newer.loader.live_chunk_ids(PAPERS)
    assert held_ids(newer) == live
    found = {"replaced": "orcas", "corrected": "penguins", "restored": "narwhals"}.get(change)
    if found:
        assert {hit.chunk_id for hit in newer.lexical.search(PAPERS, found, 5)} == live
    for store in both:
        assert set(store.projector.log.lags().values()) == {0}


def test_what_a_dead_or_frozen_process_claimed_is_taken_over(
    both: tuple[IndexStore, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen, goes_on = both
    claimed = changes.CLAIM_S

    def meanwhile() -> None:
        monkeypatch.setattr(changes, "CLAIM_S", -1)  # it has been silent for long
        goes_on.writer.write([make_draft("one", "orcas parade", chunks=1)])
        monkeypatch.setattr(changes, "CLAIM_S", claimed)
        assert goes_on.projector.log.lags()["papers/lexical"] == 0
        goes_on.projector.log.save()

    before_it_sends(frozen, monkeypatch, meanwhile)
    frozen.writer.write([make_draft("one", "walruses whistle", chunks=1)])
    assert held_ids(frozen) == frozen.loader.live_chunk_ids(PAPERS) == {2}
    assert set(frozen.projector.log.lags().values()) == {0}


@pytest.mark.parametrize("ahead_s", [0, 600])
def test_a_document_that_is_sent_again_is_found_though_the_first_to_take_it_died(
    both: tuple[IndexStore, ...], monkeypatch: pytest.MonkeyPatch, ahead_s: int
) -> None:
    """Also where the clock of the server that died was ten minutes ahead."""
    dies, other = both
    clock = time.time
    draft = make_draft("one", "walruses whistle", chunks=1)

    def kill() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SharedChangeLog, "give_up", lambda *_: None)
        patch.setattr(time, "time", lambda: clock() + ahead_s)
        before_it_sends(dies, patch, kill)
        with pytest.raises(KeyboardInterrupt):
            dies.writer.write([draft])
    assert other.lexical.search(PAPERS, "walruses", 5) == []
    other.writer.write([make_draft("two", "penguins parade", chunks=1)])
    assert other.lexical.search(PAPERS, "walruses", 5) == []  # it may live
    monkeypatch.setattr(changes, "CLAIM_S", -1)
    (result,) = other.writer.write([draft])
    assert result.status == "unchanged"
    assert len(other.lexical.search(PAPERS, "walruses", 5)) == 1
    assert set(other.projector.log.lags().values()) == {0}


def test_a_process_that_sends_for_long_keeps_its_claim(
    both: tuple[IndexStore, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, other = both
    renewed = threading.Event()

    def renew(log: SharedChangeLog, library: Library, claim: Claim) -> None:
        was_renewed(log, library, claim)
        renewed.set()

    was_renewed = SharedChangeLog.renew
    monkeypatch.setattr(SharedChangeLog, "renew", renew)
    monkeypatch.setattr(shared_words, "RENEWED_S", 0.01)

    def meanwhile() -> None:
        with other.database.write("test") as sql:  # as of a minute ago
            sql.execute(AGED)
        renewed.clear()
        assert renewed.wait(60)
        assert other.projector.log.take(PAPERS, 9) is None  # type: ignore[attr-defined]

    before_it_sends(slow, monkeypatch, meanwhile)
    slow.writer.write([make_draft("one", "walruses whistle", chunks=1)])
    assert set(other.projector.log.lags().values()) == {0}


def test_a_start_does_not_take_what_is_on_its_way_for_lost(
    both: tuple[IndexStore, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = both
    repaired: list[object] = []
    monkeypatch.setattr(SharedLexicalWriter, "_mend", repaired.append)
    monkeypatch.setattr(SharedLexicalWriter, "rebuild", lambda *asked: repaired.append(asked))

    def start() -> None:
        IndexStore(replace(store.options, data_dir=tmp_path / "c"), vector_store="off").close()

    store.writer.write([make_draft("one", "narwhals sing", chunks=3)])
    before_it_sends(store, monkeypatch, start)
    store.writer.write([make_draft("one", "walruses whistle", chunks=2)])
    assert repaired == []
