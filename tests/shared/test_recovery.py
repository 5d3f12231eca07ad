"""Fills that are cut off, copies that are behind, restored databases; on PostgreSQL and the double."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from app.core.errors import DatabaseAway, IndexDamaged, SearchAway
from app.core.types import DocumentDraft, Library
from app.shared.qdrant import SearchEngine
from app.storage.catalog.changes import REFILL_OF_WORDS, STAGED
from app.storage.catalog.schema import watermarks
from app.storage.files.durable import Steps
from app.storage.opening import engine_states
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.vectors.replica import REFILL
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.qdrant_double import QdrantDouble
from tests.shared.test_qdrant_repair import opened, removals, vectors_of, wait_until, write
from tests.shared.test_shared_stores import options_for
from tests.unit.storage.drafts import make_draft

PAPERS = Library.PAPERS
WORDS = "words_papers"
N = 300


class CutOff(Steps):
    """Lets a write fail as where the database or the engine goes away at that step."""

    at_step = ""

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Surround a write, unless it is cut off."""
        if name == self.at_step:
            raise DatabaseAway("cut off")
        with super().at(name):
            yield


@pytest.fixture
def schema(tmp_path: Path) -> str:
    return f"recovery_{tmp_path.name}".lower().replace("-", "_")


@pytest.fixture
def double(tmp_path: Path) -> Iterator[QdrantDouble]:
    with QdrantDouble(tmp_path / "engine") as running:
        yield running


@pytest.fixture
def options(
    tmp_path: Path, schema: str, postgres_server: PostgresServer, double: QdrantDouble
) -> IndexOptions:
    postgres_server.run(f"CREATE SCHEMA {schema}")
    return options_for(tmp_path / "data", postgres_server.url(schema), double.url)


@pytest.fixture
def engine(double: QdrantDouble) -> Iterator[SearchEngine]:
    with closing(SearchEngine(double.url)) as made:
        yield made


def marks(store: IndexStore) -> set[str]:
    """Return the marks in the catalog that are no projection's."""
    rows = store.database.rows(select(watermarks.c.projection))
    return {row.projection for row in rows if row.projection not in {"lexical", "qdrant"}}


def unserved(engine: SearchEngine) -> list[str]:
    """Return the collections under which nothing is searched."""
    names = {name.partition("@")[0] for name in engine._made()}
    return sorted(set(engine._made()) - {engine._serving(name) for name in names})


def refuse_deletions(server: PostgresServer, schema: str) -> None:
    server.run(
        f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'read only' USING ERRCODE = '25006'; END $$;"
        f" CREATE TRIGGER refuse BEFORE DELETE ON {schema}.watermarks"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse()"
    )


def allow_deletions(server: PostgresServer, schema: str) -> None:
    server.run(f"DROP FUNCTION IF EXISTS {schema}.refuse CASCADE")


@pytest.mark.parametrize("kind", ["vectors", "words"])
def test_a_fill_that_is_cut_off_leaves_nothing_for_good(
    options: IndexOptions,
    engine: SearchEngine,
    postgres_server: PostgresServer,
    schema: str,
    kind: str,
) -> None:
    """The database can only be read when it ends: the mark stays until the next look."""
    steps = CutOff()
    step = {"vectors": "qdrant.delete_unserved", "words": "qdrant_words.delete_unserved"}[kind]
    with IndexStore(options, vector_store="foreground", steps=steps) as store:
        ids = write(store, "seal", N)
        replica, words = store.dense[PAPERS].replica, store.projector.words[PAPERS]
        refuse_deletions(postgres_server, schema)
        switch = {"vectors": "qdrant.switch", "words": "qdrant_words.switch"}[kind]
        steps.at_step = switch
        with pytest.raises(DatabaseAway):
            replica.refill(threading.Event()) if kind == "vectors" else words.rebuild(1)
        (mark,) = marks(store)
        assert mark.startswith(f"keeps {REFILL if kind == 'vectors' else REFILL_OF_WORDS} ")
        allow_deletions(postgres_server, schema)
        # What nobody could remove: the engine was away too.
        engine.create(
            f"{vectors_of(engine) if kind == 'vectors' else WORDS}@left", sparse=["words"]
        )
        steps.at_step = step
        with suppress(DatabaseAway):
            store.projector.maintain()
        assert marks(store) == {mark}  # it keeps naming what is left
        steps.at_step = ""
        assert store.projector.maintain()
        assert (marks(store), unserved(engine)) == (set(), [])
        assert engine.ids(WORDS) == engine.ids(vectors_of(engine)) == set(ids)
        store.projector.log.save()
        assert store.projector.log.lengths()["papers"] == 0


def test_another_process_removes_what_a_killed_one_left_and_never_a_fill_under_way(
    tmp_path: Path, options: IndexOptions, engine: SearchEngine, double: QdrantDouble
) -> None:
    other = options_for(tmp_path / "other", options.database_url, options.search_url)
    with opened(options) as store:
        write(store, "seal", N)
        replica = store.dense[PAPERS].replica
        name = vectors_of(engine)
        engine.create(f"{name}@left", sparse=["words"])
        engine.create(f"{WORDS}@left", sparse=["words"])
        for mark in (f"{REFILL} left", f"{REFILL_OF_WORDS} left", STAGED):
            store.projector.log.set_mark(PAPERS, mark, 1)
        with IndexStore(other, vector_store="off") as second:
            assert not second.projector.log.kept_for(PAPERS, REFILL_OF_WORDS)  # by its start
            words = store.database.lock_of("words of papers")
            with replica._filling, replica.staging, words:  # somebody is at it
                second.projector.maintain()
                assert len(marks(store)) == 2
                assert len(unserved(engine)) == 1
            assert second.projector.maintain()
            assert not second.projector.maintain()
            assert (marks(store), unserved(engine)) == (set(), [])


def test_a_process_that_was_taken_for_dead_exchanges_nothing(
    options: IndexOptions, engine: SearchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lost its lock while it was frozen, and another process removed what it filled."""
    with opened(options) as store:
        ids = write(store, "seal", N)
        replica, words = store.dense[PAPERS].replica, store.projector.words[PAPERS]
        analyse = store.loader.analyse

        def frozen() -> None:
            analyse()
            (mark,) = store.projector.log.kept_for(PAPERS, REFILL)
            store.projector.log.unmark(PAPERS, mark)

        monkeypatch.setattr(store.loader, "analyse", frozen)
        before = {name: engine._serving(name) for name in (WORDS, vectors_of(engine))}
        with pytest.raises(IndexDamaged, match="for dead"):
            replica.refill(threading.Event())
        live_docs = store.loader.live_docs

        def removed(*asked: object) -> Iterator[list[int]]:
            yield from live_docs(*asked)  # type: ignore[arg-type]
            engine.delete_unserved(WORDS)

        monkeypatch.setattr(store.loader, "live_docs", removed)
        with pytest.raises(IndexDamaged, match="removed while it was filled"):
            words.rebuild(1)
        assert {name: engine._serving(name) for name in before} == before
        assert engine.ids(WORDS) == engine.ids(vectors_of(engine)) == set(ids)
        assert (marks(store), unserved(engine)) == (set(), [])


def test_a_copy_that_is_behind_is_no_damage(
    options: IndexOptions, double: QdrantDouble, engine: SearchEngine
) -> None:
    with opened(options) as store:
        ids = write(store, "seal", N)
    double.held.behind = N // 2
    double.asked.clear()
    with opened(options) as store:
        assert store.dense[PAPERS].replica.problem() == ""
    assert removals(double) == []
    assert not [path for method, path in double.asked if method == "PUT"]  # nothing is sent
    double.held.behind = 0
    assert engine.ids(WORDS) == engine.ids(vectors_of(engine)) == set(ids)


def test_a_restored_database_has_its_own_words_and_vectors_again(
    options: IndexOptions,
    double: QdrantDouble,
    engine: SearchEngine,
    postgres_server: PostgresServer,
    schema: str,
) -> None:
    """As many chunks came as went since the dump, so that every count is right."""
    with opened(options) as store:
        kept, gone = write(store, "seal", N), write(store, "orca", 4)
    dump = postgres_server.dump(schema)

    def epochs() -> tuple[bool, str]:
        (found,) = [one for one in engine_states(options) if one.setting == "epoch"]
        return found.answers, found.detail

    with opened(options) as store:
        store.writer.delete(PAPERS, make_draft("orca", "", chunks=1).doc_id)
        late = write(store, "otter", 4)
        assert engine.ids(WORDS) == engine.ids(vectors_of(engine)) == {*kept, *late}
        assert epochs()[0]
    postgres_server.restore(schema, dump)
    assert not epochs()[0]
    assert "written for another state of the catalog" in epochs()[1]
    (options.data_dir / "last_change").unlink()  # a server of a restored catalog has a new one
    double.asked.clear()
    with opened(options) as store:
        assert engine.ids(WORDS) == engine.ids(vectors_of(engine)) == {*kept, *gone}
        hits = store.lexical.search(PAPERS, "orca", 9)
        assert {hit.chunk_id for hit in hits} == set(gone)
        assert store.fsck.run().sound
        assert not store.projector.words[PAPERS].lacking
        store.projector.maintain()
        assert epochs()[0]
    assert removals(double) == []  # what serves is put right in its place


def test_a_database_that_is_restored_under_a_server_is_noticed_by_its_look(
    options: IndexOptions, engine: SearchEngine, postgres_server: PostgresServer, schema: str
) -> None:
    with opened(options) as store:
        kept = write(store, "seal", N)
        store.projector.maintain()
        dump = postgres_server.dump(schema)
        write(store, "orca", 3)
        store.projector.maintain()
        postgres_server.restore(schema, dump)
        store.projector.maintain()
        assert store.projector.words[PAPERS].lacking
        assert any("words or vectors of papers" in said for said in store.degraded())
        assert not store.dense[PAPERS].replica.whole
        store.projector.look(PAPERS)
        store.supervisor.initialise()
        wait_until(lambda: not store.projector.words[PAPERS].lacking)
        assert engine.ids(WORDS) == engine.ids(vectors_of(engine)) == set(kept)
        store.projector.maintain()
        assert not store.projector.words[PAPERS].lacking
        assert store.dense[PAPERS].replica.whole


def test_an_engine_that_is_restored_is_compared_too(
    options: IndexOptions, engine: SearchEngine
) -> None:
    """Disks of the engine are put back to what they were; counts say nothing."""
    with opened(options) as store:
        kept = write(store, "seal", N)
    old = {name: engine.epoch(name) for name in (WORDS, vectors_of(engine))}
    for number in range(3):
        with opened(options) as store:
            kept += write(store, f"orca{number}", 1)
    for name, epoch in old.items():
        assert epoch
        assert epoch != engine.epoch(name)
        engine.set_epoch(name, epoch)
        (point, *_) = engine.ids_after(name, 0, 1)
        engine.delete(name, [point])
    with opened(options) as store:
        assert engine.ids(WORDS) == engine.ids(vectors_of(engine)) == set(kept)


def test_epochs_of_servers_that_look_at_once_are_known_to_all(
    tmp_path: Path, options: IndexOptions, engine: SearchEngine
) -> None:
    other = options_for(tmp_path / "other", options.database_url, options.search_url)
    with opened(options) as store, IndexStore(other, vector_store="off") as second:
        for number in range(3):
            write(store, f"seal{number}", 2)
            looks = [
                threading.Thread(target=one.projector.keep_epochs)
                for one in (store, second, store, second)
            ]
            for look in looks:
                look.start()
            for look in looks:
                look.join()
            store.projector.keep_epochs()
            assert not store.projector.words[PAPERS].lacking
            assert store.dense[PAPERS].replica.whole
            (epoch,) = {engine.epoch(name) for name in (WORDS, vectors_of(engine))}
            assert epoch


def test_a_look_counts_the_languages_that_another_process_brought(
    tmp_path: Path, options: IndexOptions
) -> None:
    """So that the next question in one of them finds its words."""
    other = options_for(tmp_path / "other", options.database_url, options.search_url)
    german = make_draft("penguins", "Die Pinguine watscheln.")
    metadata = replace(german.metadata, language="de")
    with opened(options) as store, IndexStore(other, vector_store="off") as second:
        write(store, "seal", 2)
        second.projector.maintain()
        assert second.lexical.languages(PAPERS) == ("en",)
        store.writer.write([replace(german, metadata=metadata)])
        second.projector.maintain()
        wait_until(lambda: set(second.lexical.languages(PAPERS)) == {"de", "en"})


def test_stored_words_are_brought_while_the_next_are_stored(
    options: IndexOptions, engine: SearchEngine, double: QdrantDouble
) -> None:
    """Two batches at most; and what the engine refused stops the next one until it is brought."""

    def draft(number: int) -> DocumentDraft:
        return make_draft(f"seal{number}", f"Seal number {number} sleeps.")

    with IndexStore(options, vector_store="off") as store:
        words = store.projector.words[PAPERS]
        store.writer.write([draft(0)])
        double.awake.clear()
        for number in (1, 2):
            store.writer.store([draft(number)])
        third = threading.Thread(target=store.writer.store, args=([draft(3)],))
        third.start()
        assert store.catalog.counts(PAPERS).documents == 3
        assert store.projector.log.marks()["papers/lexical"] < store.projector.log.last()
        double.awake.set()
        third.join(60)
        store.writer.flush(PAPERS)
        assert len(engine.ids(WORDS)) == 8
        assert marks(store) == set()

        double.refusals += [(503, "busy")] * 100
        store.writer.store([draft(4)])
        wait_until(lambda: not words.in_step)
        with pytest.raises(SearchAway):
            store.writer.store([draft(5)])
        assert store.catalog.counts(PAPERS).documents == 5
        double.refusals.clear()
        store.writer.store([draft(5)])
        store.writer.flush(PAPERS)
        assert len(engine.ids(WORDS)) == 12
        assert words.in_step
        assert marks(store) == set()
