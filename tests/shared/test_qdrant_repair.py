"""What an engine lacks or has too much is put right while it serves; on PostgreSQL and the double."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.core.types import Library
from app.shared.qdrant import SearchEngine
from app.storage.catalog.changes import REFILL_OF_WORDS
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.qdrant_double import QdrantDouble
from tests.shared.test_shared_stores import options_for
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows

PAPERS = Library.PAPERS
WORDS, PHANTOM = "words_papers", 10**9
N = 400


@pytest.fixture
def double(tmp_path: Path) -> Iterator[QdrantDouble]:
    with QdrantDouble(tmp_path / "engine") as running:
        yield running


@pytest.fixture
def options(tmp_path: Path, postgres_server: PostgresServer, double: QdrantDouble) -> IndexOptions:
    schema = f"repair_{tmp_path.name}".lower().replace("-", "_")
    postgres_server.run(f"CREATE SCHEMA {schema}")
    return options_for(tmp_path / "data", postgres_server.url(schema), double.url)


@pytest.fixture
def engine(double: QdrantDouble) -> Iterator[SearchEngine]:
    with closing(SearchEngine(double.url)) as made:
        yield made


def write(store: IndexStore, name: str, chunks: int) -> list[int]:
    store.writer.write([make_draft(name, f"{name} sings with walruses " * chunks, chunks=chunks)])
    store.writer.claim(PAPERS, FINGERPRINT)
    ids = [chunk.chunk_id for chunk in store.writer.pending_vectors(PAPERS, 1000)]
    store.writer.write_vectors(PAPERS, ids, unit_rows(len(ids), ids[0]))
    store.writer.apply(PAPERS)
    return ids


def opened(options: IndexOptions) -> IndexStore:
    return IndexStore(options, vector_store="foreground")


def vectors_of(engine: SearchEngine) -> str:
    """Return the name of the vectors, which need not be there now."""
    found = (name for name in engine.collections() if name.startswith("vectors_"))
    return next(found, "vectors_none")


def removals(double: QdrantDouble) -> list[str]:
    return [path for method, path in double.asked if method == "DELETE"]


def wait_until(there: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not there():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_a_start_puts_few_points_right_and_drops_nothing(
    options: IndexOptions, double: QdrantDouble, engine: SearchEngine
) -> None:
    """A late write of a frozen node may leave such points."""
    with opened(options) as store:
        ids = write(store, "seal", N)
    for name in (WORDS, vectors_of(engine)):
        (point, *_) = double.held.shard(f"documind_{name}").retrieve([ids[0]], True, True)
        put = {"id": PHANTOM, "vector": point.vector, "payload": point.payload}
        put["vector"] = {
            key: {"indices": one.indices, "values": one.values} if hasattr(one, "indices") else one
            for key, one in point.vector.items()
        }
        double.held.upsert(f"documind_{name}", {"points": [put, {**put, "id": PHANTOM + 1}]})
        engine.delete(name, [ids[7]])
    double.asked.clear()
    with opened(options) as store:
        assert engine.ids(WORDS) == engine.ids(vectors_of(engine)) == set(ids)
        assert {hit.chunk_id for hit in store.lexical.search(PAPERS, "walruses", N)} == set(ids)
        assert store.fsck.run().sound
    assert removals(double) == []
    assert ("POST", "collections/aliases") not in double.asked


def test_a_counter_that_is_wrong_makes_no_start_fill_the_engine_again(
    options: IndexOptions,
    double: QdrantDouble,
    engine: SearchEngine,
    postgres_server: PostgresServer,
) -> None:
    with opened(options) as store:
        ids = write(store, "seal", N)
        with store.database.write("test") as sql:
            sql.exec_driver_sql("UPDATE libraries SET chunks = chunks + 2, embedded = embedded + 2")
    double.asked.clear()
    with opened(options):
        assert engine.ids(WORDS) == engine.ids(vectors_of(engine)) == set(ids)
    assert removals(double) == []
    assert not [path for method, path in double.asked if method == "PUT"]  # nor is a point sent


def test_what_lacks_much_is_filled_beside_and_serves_until_it_is_exchanged(
    options: IndexOptions, double: QdrantDouble, engine: SearchEngine
) -> None:
    with opened(options) as store:
        ids = write(store, "seal", N)
        store.rebuild()  # so that a name is an alias, as after the first exchange
        names = (WORDS, vectors_of(engine))
        # What a process leaves that is killed while it fills:
        store.projector.log.set_mark(PAPERS, REFILL_OF_WORDS, 1)
        for name in names:
            engine.create(f"{name}@9", sparse=["words"])
    before = {name: engine._serving(name) for name in names}
    for name in names:
        engine.delete(name, ids[::2])
    double.asked.clear()
    with opened(options) as store:
        assert engine.ids(WORDS) == engine.ids(vectors_of(engine)) == set(ids)
        assert not store.projector.log.kept_for(PAPERS, REFILL_OF_WORDS)
    switches = [at for at, (_, path) in enumerate(double.asked) if path == "collections/aliases"]
    for name, at in zip(names, switches, strict=True):
        assert engine._serving(name) != before[name]
        gone = double.asked.index(("DELETE", f"collections/documind_{before[name]}"))
        assert gone > at
    assert len(removals(double)) == 4
    assert sorted(engine._made()) == sorted(engine._serving(name) for name in names)


def test_what_is_written_while_an_index_is_filled_beside_is_in_it(
    options: IndexOptions, engine: SearchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SearchEngine.shadow_collection

    def shadow_collection(self: SearchEngine, name: str) -> str:
        """Another server writes and deletes after the fill began."""
        monkeypatch.setattr(SearchEngine, "shadow_collection", made)
        began = made(self, name)
        write(store, f"new{len(began)}", 3)
        store.writer.delete(PAPERS, old.pop())
        store.writer.apply(PAPERS)
        return began

    with opened(options) as store:
        for name in ("seal", "orca", "otter"):
            write(store, name, 5)
        old = [make_draft(name, "", chunks=1).doc_id for name in ("orca", "otter")]
        fills: list[Callable[[], None]] = [
            lambda: store.projector.words[PAPERS].rebuild(3),
            lambda: store.dense[PAPERS].replica.refill(threading.Event()),
        ]
        for fill in fills:
            monkeypatch.setattr(SearchEngine, "shadow_collection", shadow_collection)
            fill()
        live = store.loader.live_chunk_ids(PAPERS)
        assert len(live) == 5 + 2 * 3
        assert engine.ids(WORDS) == engine.ids(vectors_of(engine)) == live
        assert set(store.projector.log.lags().values()) == {0}


def test_lost_collections_are_noticed_and_filled_again_while_serving(
    options: IndexOptions, double: QdrantDouble, engine: SearchEngine
) -> None:
    """An engine that was restored from nothing looks like that."""
    with IndexStore(options, vector_store="background") as store:
        ids = write(store, "seal", N)
        row = unit_rows(N, ids[0])[9]
        wait_until(lambda: store.dense[PAPERS].replica.applied > 0 and len(engine.ids(WORDS)) == N)
        assert len(store.lexical.search(PAPERS, "walruses", N)) == N
        assert store.vectors.search(PAPERS, row, 1)[0].chunk_id == ids[9]
        for name in engine.collections():
            engine.drop(name)
        later = write(store, "orca", 3)  # which makes a collection of its words alone
        assert store.projector.words[PAPERS].lacking or len(engine.ids(WORDS)) == N + 3
        assert store.vectors.search(PAPERS, row, 1)[0].chunk_id == ids[9]
        wait_until(lambda: len(store.lexical.search(PAPERS, "walruses", 2 * N)) == N + 3)
        wait_until(lambda: engine.ids(vectors_of(engine)) == {*ids, *later})
        wait_until(lambda: not store.projector.words[PAPERS].lacking)
        assert store.vectors.search(PAPERS, row, 1)[0].chunk_id == ids[9]


def test_a_server_is_degraded_from_the_moment_that_a_loss_of_words_is_known(
    options: IndexOptions, engine: SearchEngine
) -> None:
    with opened(options) as store:
        ids = write(store, "seal", 4)
        assert store.degraded() == ()
        engine.drop(WORDS)
        assert store.lexical.search(PAPERS, "walruses", N) == []
        assert store.degraded() == ("words or vectors of papers are rebuilding 0 of 1",)
        store.projector.look(PAPERS)
        wait_until(lambda: store.degraded() == ())
        assert {hit.chunk_id for hit in store.lexical.search(PAPERS, "walruses", N)} == set(ids)


def test_an_empty_library_has_lost_nothing(options: IndexOptions) -> None:
    with opened(options) as store:
        assert store.lexical.search(PAPERS, "walruses", 3) == []
        write(store, "seal", 2)
        assert not store.projector.words[PAPERS].lacking
        store.writer.delete(PAPERS, make_draft("seal", "", chunks=1).doc_id)
        store.rebuild()
        assert store.lexical.search(PAPERS, "walruses", 3) == []
        assert store.vectors.search(PAPERS, unit_rows(1)[0], 3) == []
        assert not store.projector.words[PAPERS].lacking
        assert store.supervisor.ready
