"""Storage over a search engine: away at the start, away later, killed, and back. On the double."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pytest

from app.client import FileToSend
from app.core.errors import IndexDamaged, InvalidInput, SearchAway, passes_by_itself
from app.core.types import Library
from app.shared.qdrant import QdrantStore, SearchEngine
from app.storage.files.durable import Steps
from app.storage.opening import engine_states
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.served import Served
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.qdrant_double import QdrantDouble
from tests.shared.engines import IMPATIENT, ROOT, DoubleProcess
from tests.unit.storage.drafts import FINGERPRINT, make_draft, stamped, unit_rows

PAPERS = Library.PAPERS


@pytest.fixture
def engine_process(tmp_path: Path) -> Iterator[DoubleProcess]:
    process = DoubleProcess(tmp_path / "engine")
    process.start()
    yield process
    process.kill()


def options_for(path: Path, url: str) -> IndexOptions:
    return IndexOptions(
        path, path / "chroma", tantivy_threads=1, vector_cache_vectors=0, search_url=url
    )


def write(store: IndexStore, name: str, chunks: int, seed: int) -> list[int]:
    store.writer.write([make_draft(name, f"words of {name} " * max(20, chunks), chunks=chunks)])
    store.writer.claim(PAPERS, FINGERPRINT)
    ids = [chunk.chunk_id for chunk in store.writer.pending_vectors(PAPERS, 1000)]
    store.writer.write_vectors(PAPERS, ids, unit_rows(len(ids), seed))
    store.writer.apply(PAPERS)
    return ids


def closed_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def test_vectors_go_to_the_engine_and_are_found_there(
    tmp_path: Path, engine_process: DoubleProcess
) -> None:
    with IndexStore(
        options_for(tmp_path / "data", engine_process.url), vector_store="foreground"
    ) as store:
        ids = write(store, "first", 40, seed=1)
        row = unit_rows(40, seed=1)[7]
        assert store.vectors.search(PAPERS, row, 1)[0].chunk_id == ids[7]
        assert store.missing() == ()
    assert not (tmp_path / "data" / "chroma").exists()
    with closing(SearchEngine(engine_process.url)) as engine:
        (name,) = QdrantStore(engine, Steps(), ef_search=400).collections()
    assert name.startswith("papers__")


def test_what_was_written_while_the_engine_was_away_is_found_when_it_is_back(
    tmp_path: Path, engine_process: DoubleProcess
) -> None:
    url = engine_process.url
    with IndexStore(options_for(tmp_path / "data", url), vector_store="foreground") as store:
        write(store, "first", 20, seed=1)
        store.writer.write([make_draft("second", "walruses whistle " * 20, chunks=5)])
        later = [chunk.chunk_id for chunk in store.writer.pending_vectors(PAPERS, 1000)]
        engine_process.kill()
        for search in (
            lambda: store.vectors.search(PAPERS, unit_rows(1)[0], 3),
            lambda: store.lexical.search(PAPERS, "walruses", 3),
            lambda: store.writer.write([make_draft("third", "penguins parade " * 9, chunks=1)]),
        ):
            with pytest.raises(SearchAway, match=url) as caught:
                search()
            assert (caught.value.retryable, caught.value.retry_after_s) == (True, 5.0)
        assert store.missing() == (f"search engine {url}",)
        store.writer.write_vectors(PAPERS, later, unit_rows(5, seed=2))  # the catalog keeps them
        engine_process.start()
        store.writer.apply(PAPERS)
        row = unit_rows(5, seed=2)[3]
        assert store.vectors.search(PAPERS, row, 1)[0].chunk_id == later[3]
        assert len(store.lexical.search(PAPERS, "walruses", 9)) == 5
        assert len(store.lexical.search(PAPERS, "penguins", 9)) == 1
        assert store.missing() == ()


def test_a_document_that_is_replaced_or_deleted_leaves_the_words(
    tmp_path: Path, engine_process: DoubleProcess
) -> None:
    options = options_for(tmp_path / "data", engine_process.url)
    with IndexStore(options, vector_store="foreground") as store:
        store.writer.write([make_draft("one", "walruses whistle " * 20, chunks=3)])
        store.writer.write([make_draft("one", "penguins parade " * 20, chunks=2)])
        assert store.lexical.search(PAPERS, "walruses", 9) == []
        assert len(store.lexical.search(PAPERS, "penguins", 9)) == 2
        store.writer.delete(PAPERS, make_draft("one", "", chunks=1).doc_id)
        assert store.lexical.search(PAPERS, "penguins", 9) == []
        assert store.lexical.document_frequencies(PAPERS, ["penguin"]) == (0, {"penguin": 0})


def test_words_and_vectors_move_between_the_engine_and_the_files(
    tmp_path: Path, engine_process: DoubleProcess
) -> None:
    path = tmp_path / "data"
    embedded, shared = options_for(path, ""), options_for(path, engine_process.url)
    row = unit_rows(6, seed=1)[2]
    written: list[int] = []
    for at, options in enumerate((embedded, shared, embedded, shared)):
        with IndexStore(options, vector_store="foreground") as store:
            written += write(store, f"part {at}", 6, seed=at + 1)
            assert {hit.chunk_id for hit in store.lexical.search(PAPERS, "words", 99)} == set(
                written
            )
            assert store.vectors.search(PAPERS, row, 1)[0].chunk_id == written[2]
            (name,) = store.vector_stores[PAPERS].collections()
            assert store.vector_stores[PAPERS].ids(name) == set(written)


def test_an_engine_that_lost_its_data_is_filled_again(
    tmp_path: Path, engine_process: DoubleProcess
) -> None:
    options = options_for(tmp_path / "data", engine_process.url)
    with IndexStore(options, vector_store="foreground") as store:
        write(store, "first", 20, seed=1)
    with closing(SearchEngine(engine_process.url)) as engine:
        QdrantStore(engine, Steps(), ef_search=400).set_aside()
    with IndexStore(options, vector_store="foreground") as store:
        row = unit_rows(20, seed=1)[4]
        assert store.vectors.search(PAPERS, row, 1)[0].score == pytest.approx(0, abs=1e-4)
        assert store.vector_stores[PAPERS].collections() != []


def test_a_purge_leaves_no_deleted_vector_in_the_engine(
    tmp_path: Path, engine_process: DoubleProcess
) -> None:
    with IndexStore(
        options_for(tmp_path / "data", engine_process.url), vector_store="foreground"
    ) as store:
        write(store, "kept", 6, seed=1)
        gone = write(store, "gone", 6, seed=2)
        draft = make_draft("gone", "words of gone " * 20, chunks=6)
        store.writer.delete(PAPERS, draft.doc_id)
        report = store.purger.run()
        assert report.rebuilt == ("papers",)
        (name,) = store.vector_stores[PAPERS].collections()
        held = store.vector_stores[PAPERS].ids(name)
        assert len(held) == 6
        assert not held & set(gone)


def test_no_acknowledged_vector_is_lost_by_kills(
    tmp_path: Path, engine_process: DoubleProcess
) -> None:
    store = QdrantStore(SearchEngine(engine_process.url), Steps(), ef_search=400)
    acknowledged: list[int] = []
    refused = 0
    for round_ in range(3):
        wanted = len(acknowledged) + 40
        reached = threading.Event()

        def write_until_refused(first: int = 1 + 10_000 * round_) -> None:
            nonlocal refused
            for chunk_id in range(first, first + 5_000):
                try:
                    store.upsert("papers__1", [chunk_id], unit_rows(1), stamped())
                except SearchAway:
                    refused += 1
                    return
                acknowledged.append(chunk_id)
                if len(acknowledged) >= wanted:  # noqa: B023  # this round's
                    reached.set()  # noqa: B023

        writer = threading.Thread(target=write_until_refused)
        writer.start()
        assert reached.wait(60)
        engine_process.kill()
        writer.join(60)
        engine_process.start()
    assert refused == 3
    assert len(acknowledged) >= 120
    assert set(acknowledged) <= store.ids("papers__1")
    store.close()


def test_a_node_that_is_away_is_passed_over(tmp_path: Path) -> None:
    with QdrantDouble(tmp_path / "engine") as double:
        engine = SearchEngine(f"{closed_address()}, {double.url}")
        store = QdrantStore(engine, Steps(), ef_search=400)
        store.upsert("papers__1", [1, 2], unit_rows(2), stamped())
        assert store.search("papers__1", unit_rows(2)[1], 1) == [2]
        assert engine.away() == ()
        store.close()


@pytest.fixture
def two_nodes(tmp_path: Path) -> Iterator[list[QdrantDouble]]:
    """Yield two nodes that hold the same two vectors."""
    with QdrantDouble(tmp_path / "one") as one, QdrantDouble(tmp_path / "two") as two:
        for node in (one, two):
            with closing(SearchEngine(node.url)) as engine:
                store = QdrantStore(engine, Steps(), ef_search=400)
                store.upsert("papers__1", [1, 2], unit_rows(2), stamped())
            node.asked.clear()
        yield [one, two]
        for node in (one, two):
            node.awake.set()


def test_requests_go_to_every_node_in_turn(
    two_nodes: list[QdrantDouble], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.shared.qdrant.SECOND_S", 60.0)  # a busy machine is no slow node
    store = QdrantStore(SearchEngine(",".join(one.url for one in two_nodes)), Steps(), ef_search=4)
    for _ in range(10):
        assert store.search("papers__1", unit_rows(2)[1], 1) == [2]
    assert [len(node.asked) for node in two_nodes] == [5, 5]
    store.close()


@pytest.mark.parametrize(
    ("status", "said"),
    [(408, "Healthcheck timeout 2000ms exceeded"), (429, "Too many requests"), (500, "no replica")],
)
def test_a_node_that_cannot_answer_now_is_passed_over_and_is_no_damage(
    two_nodes: list[QdrantDouble], status: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.shared.qdrant.SECOND_S", 60.0)  # a busy machine is no slow node
    monkeypatch.setattr("app.shared.qdrant.SECOND_WRITE_S", 60.0)
    store = QdrantStore(SearchEngine(",".join(one.url for one in two_nodes)), Steps(), ef_search=4)
    two_nodes[0].refusals = [(status, said)] * 9
    for _ in range(4):
        assert store.search("papers__1", unit_rows(2)[1], 1) == [2]
        store.upsert("papers__1", [2], unit_rows(2)[1:], stamped())
    assert len(two_nodes[0].asked) == 1  # it is asked last for a while
    two_nodes[1].refusals = [(status, said)] * 9
    with pytest.raises(SearchAway, match=str(status)):
        store.upsert("papers__1", [2], unit_rows(2)[1:], stamped())
    store.close()


def test_a_silent_node_holds_no_question_up(two_nodes: list[QdrantDouble]) -> None:
    """A frozen node accepts connections and says nothing."""
    engine = SearchEngine(",".join(one.url for one in two_nodes))
    two_nodes[0].awake.clear()
    for _ in range(4):
        found = engine.read(lambda client: client.count("documind_vectors_papers__1"), 600)
        assert found.count == 2
    assert len(two_nodes[0].asked) <= 1  # then it is asked last
    two_nodes[1].awake.clear()
    with pytest.raises(SearchAway, match="no node answers in 1 s"):
        engine.read(lambda client: client.get_collections(), 1)
    engine.close()


def test_a_frozen_node_holds_no_upload_up(
    two_nodes: list[QdrantDouble], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever node is asked: the other one does the write, and a deletion, too."""
    monkeypatch.setattr("app.shared.qdrant.SECOND_WRITE_S", 0.2)
    monkeypatch.setattr("app.shared.qdrant.WRITE_S", 600)
    store = QdrantStore(SearchEngine(",".join(one.url for one in two_nodes)), Steps(), ef_search=4)
    two_nodes[0].awake.clear()
    for chunk_id in (3, 4):
        store.upsert("papers__1", [chunk_id], unit_rows(1), stamped())
    store.delete("papers__1", [3])
    assert store.ids("papers__1") == {1, 2, 4}
    assert len(two_nodes[0].asked) <= 1  # then it is asked last
    store.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[QdrantDouble]]:
    """Yield two nodes that hold the same collections; the second hears late of changes of them."""
    with QdrantDouble(tmp_path / "engine") as one, QdrantDouble(tmp_path, beside=one) as two:
        yield [one, two]


def test_a_change_of_collections_is_known_to_every_node_when_it_is_done(
    cluster: list[QdrantDouble],
) -> None:
    engine = SearchEngine(",".join(one.url for one in cluster))
    store, row = QdrantStore(engine, Steps(), ef_search=4), unit_rows(2)[1]
    cluster[1].stale = 4
    store.upsert("papers__1", [1, 2], unit_rows(2), stamped())
    assert [store.search("papers__1", row, 1) for _ in range(4)] == [[2]] * 4
    for chunk_id in (5, 6):
        filled = store.shadow_collection("papers__1")
        cluster[1].stale = 4
        store.upsert(filled, [chunk_id], unit_rows(1), stamped())
        cluster[1].stale = 4
        store.promote("papers__1", filled)
        assert [store.ids("papers__1") for _ in range(4)] == [{chunk_id}] * 4
    cluster[1].stale = 4
    store.drop("papers__1")
    assert [store.collections() for _ in range(4)] == [[]] * 4
    store.close()


def test_a_node_that_does_not_follow_the_others_is_told(
    cluster: list[QdrantDouble], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.shared.qdrant.KNOWN_S", 0.2)
    engine = SearchEngine(",".join(one.url for one in cluster))
    cluster[1].stale = 10_000
    with pytest.raises(SearchAway, match="does not follow the others"):
        engine.create("vectors_papers__1", dense={"dense": 2})
    engine.close()


def test_no_id_is_no_request(tmp_path: Path) -> None:
    """The engine refuses an update of nothing with 400."""
    with QdrantDouble(tmp_path / "engine") as double:
        engine = SearchEngine(double.url)
        store = QdrantStore(engine, Steps(), ef_search=400)
        store.upsert("papers__1", [1], unit_rows(1), stamped())
        double.asked.clear()
        engine.delete("vectors_papers__1", [])
        store.delete("papers__1", [])
        store.upsert("papers__1", [], unit_rows(0), stamped())
        assert double.asked == []
        store.close()


def test_suites_on_a_real_engine_run_one_after_another() -> None:
    """Side by side they would remove each other's collections."""

    def made(*named: str) -> str:
        run = ["make", "--dry-run", "--always-make", "shared-test", *named]
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME"}}
        said = subprocess.run(run, cwd=ROOT, env=kept, capture_output=True, text=True, check=True)
        return next(line for line in said.stdout.splitlines() if "--catalog postgresql" in line)

    assert "--numprocesses" in made()
    assert "--numprocesses" not in made("SEARCH_TEST_URL=http://127.0.0.1:1")


def test_a_node_that_is_away_stops_nothing_where_there_are_two_copies(tmp_path: Path) -> None:
    with QdrantDouble(tmp_path / "engine", peers=3) as double:
        store = QdrantStore(SearchEngine(double.url, replicas=2), Steps(), ef_search=400)
        store.upsert("papers__1", [1, 2], unit_rows(2), stamped())
        double.held.down = {2}
        store.upsert("papers__1", [3], unit_rows(3)[2:], stamped())
        store.delete("papers__1", [1])
        assert store.search("papers__1", unit_rows(3)[2], 1) == [3]
        states = [
            one["state"]
            for part in ("local_shards", "remote_shards")
            for one in double.held.cluster("documind_vectors_papers__1")[part]
        ]
        assert sorted(states) == ["Active"] * 8 + ["Dead"] * 4
        store.close()


def test_collections_of_an_earlier_release_take_writes_too(tmp_path: Path) -> None:
    """It made them so that two of two copies had to confirm a write."""
    with QdrantDouble(tmp_path / "engine", peers=3) as double:
        name = "documind_vectors_papers__1"
        made = {"vectors": {"dense": {"size": 16, "distance": "Cosine"}}, "replication_factor": 2}
        double.answer("PUT", ["collections", name], {**made, "write_consistency_factor": 2}, "")
        double.held.down = {3}
        store = QdrantStore(SearchEngine(double.url, replicas=2), Steps(), ef_search=400)
        with pytest.raises(SearchAway, match="fewer than 2"):
            store.upsert("papers__1", [1], unit_rows(1), stamped())
        options = options_for(tmp_path / "data", double.url)
        with IndexStore(options, vector_store="off"):
            store.upsert("papers__1", [1], unit_rows(1), stamped())
        assert double.held.info(name)["config"]["params"]["write_consistency_factor"] == 1
        store.close()


@pytest.mark.parametrize(
    ("peers", "asked", "shards"), [(1, 0, 6), (3, 0, 6), (5, 0, 10), (3, 4, 4)]
)
def test_a_collection_has_shards_for_nodes_that_join_later(
    tmp_path: Path, peers: int, asked: int, shards: int
) -> None:
    with QdrantDouble(tmp_path / "engine", peers=peers) as double:
        engine = SearchEngine(double.url, shards=asked)
        engine.create("words_papers", sparse=["words"])
        assert [one.shards for one in engine.copies()] == [shards]
        engine.close()


def test_no_collection_is_made_with_fewer_nodes_than_copies(tmp_path: Path) -> None:
    """It would keep one copy for ever: nodes of a chart start one after the other."""
    with QdrantDouble(tmp_path / "engine") as double:
        store = QdrantStore(SearchEngine(double.url, replicas=2), Steps(), ef_search=400)
        with pytest.raises(SearchAway, match="start the other nodes, or lower") as caught:
            store.upsert("papers__1", [1], unit_rows(1), stamped())
        assert (caught.value.retryable, caught.value.retry_after_s) == (True, 5.0)
        assert double.held.shards == {}
        double.held.peers = 3
        store.upsert("papers__1", [1], unit_rows(1), stamped())
        assert {
            len(copies) for copies in double.held.settings["documind_vectors_papers__1"]["copies"]
        } == {2}
        store.close()


def test_doctor_compares_the_cluster_with_the_settings(tmp_path: Path) -> None:
    """And `documind rebuild` makes collections as the settings say, beside those that serve."""
    with QdrantDouble(tmp_path / "engine", peers=3) as double:
        options = replace(
            options_for(tmp_path / "data", double.url), search_replicas=2, search_shards=2
        )

        def state() -> tuple[bool, str]:
            (found,) = [one for one in engine_states(options) if one.setting == "SEARCH_REPLICAS"]
            return found.answers, found.detail

        with IndexStore(options, vector_store="foreground") as store:
            ids = write(store, "first", 20, seed=1)
        assert state() == (True, "SEARCH_REPLICAS=2 in a cluster of 3 nodes: any 1 may be away")
        options = replace(options, search_shards=0)
        assert not state()[0]
        assert "has 2 shards for 3 nodes, new collections have 6" in state()[1]
        with IndexStore(options, vector_store="foreground") as store:
            store.rebuild()
            assert {hit.chunk_id for hit in store.lexical.search(PAPERS, "words", 99)} == set(ids)
            assert {(one.shards, one.fewest, one.dead) for one in store.copies()} == {(6, 2, 0)}
            double.held.down = {2}
            write(store, "second", 2, seed=2)
            assert {(one.fewest, one.dead) for one in store.copies()} == {(1, 4)}
        assert "1 of 2 copies, 4 are dead" in state()[1]
        double.held.down = set()
        double.held.recover()
        assert state()[0]
        options = replace(options, search_replicas=4)
        assert state() == (False, "SEARCH_REPLICAS=4, and the cluster has 3 nodes")


def test_doctor_names_nodes_that_have_fewer_copies_than_others(tmp_path: Path) -> None:
    """A node joined, or was away when a collection was made; a rebuild spreads it."""
    with QdrantDouble(tmp_path / "engine", peers=3) as double:
        options = replace(
            options_for(tmp_path / "data", double.url), search_replicas=2, search_shards=8
        )

        def state() -> tuple[bool, str]:
            (found,) = [one for one in engine_states(options) if one.setting == "SEARCH_REPLICAS"]
            return found.answers, found.detail

        with IndexStore(options, vector_store="foreground") as store:
            write(store, "first", 2, seed=1)
            assert state()[0]
            double.held.peers = 4
            assert not state()[0]
            assert "unbalanced; copies of shards by node: 1: 5, 2: 6, 3: 5, 4: 0" in state()[1]
            store.rebuild()
            assert state()[0]


def test_an_index_of_payload_that_is_missing_is_made_at_the_start(tmp_path: Path) -> None:
    """A kill between a collection and its indexes leaves it without them: facets are refused."""
    with QdrantDouble(tmp_path / "engine") as double:
        options = options_for(tmp_path / "data", double.url)
        with IndexStore(options, vector_store="foreground") as store:
            write(store, "first", 2, seed=1)
        fields = double.held.settings["documind_words_papers"]["fields"]
        whole = dict(fields)
        del fields["body"], fields["doc_id"]
        double.asked.clear()
        with IndexStore(options, vector_store="foreground"):
            assert fields == whole
        made = [path for method, path in double.asked if path.endswith("/index")]
        assert len(made) == 2


def test_collections_of_others_are_left_alone(tmp_path: Path) -> None:
    with QdrantDouble(tmp_path / "engine") as double:
        engine = SearchEngine(double.url)
        double.answer("PUT", ["collections", "theirs"], {"sparse_vectors": {"w": {}}}, "")
        store = QdrantStore(engine, Steps(), ef_search=400)
        store.upsert("papers__1", [1], unit_rows(1), stamped())
        assert store.collections() == ["papers__1"]
        store.set_aside()
        assert double.answer("GET", ["collections"], {}, "") == {
            "collections": [{"name": "theirs"}]
        }
        store.close()


def test_a_row_of_another_dimension_is_damage_and_not_absence(tmp_path: Path) -> None:
    with QdrantDouble(tmp_path / "engine") as double:
        store = QdrantStore(SearchEngine(double.url), Steps(), ef_search=400)
        store.upsert("papers__1", [1], unit_rows(1), stamped())
        with pytest.raises(IndexDamaged, match="refused"):
            store.upsert("papers__1", [2], np.eye(5, dtype=np.float32)[:1], stamped())
        store.close()


def test_a_wrong_key_is_told_at_the_start(tmp_path: Path) -> None:
    with (
        QdrantDouble(tmp_path / "engine", api_key="word") as double,
        closing(SearchEngine(double.url)) as engine,
    ):
        with pytest.raises(InvalidInput, match=r"SEARCH_URL.*401") as caught:
            engine.check()
        assert not passes_by_itself(caught.value)  # no start waits for it
    with pytest.raises(InvalidInput, match="start the engine") as caught:
        engine.check()
    assert passes_by_itself(caught.value)


@pytest.mark.parametrize("url", ["qdrant", "ftp://host:6333", "http://", ","])
def test_what_is_no_address_is_told(url: str) -> None:
    with pytest.raises(InvalidInput, match="SEARCH_URL"):
        SearchEngine(url)


@pytest.mark.parametrize("with_database", [True, False])
def test_a_server_without_its_engine_or_database_ends_with_2(
    tmp_path: Path, with_database: bool
) -> None:
    url = closed_address()
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    database = closed_address().replace("http://", "postgresql://a:b@") + "/documind"
    environment = {
        **kept, "DATA_DIR": str(tmp_path / "data"), "SEARCH_URL": url, "PYTHONPATH": str(ROOT),
        "DATABASE_URL": database if with_database else "", "SAMPLES": "0",
        "API_PORT": closed_address().rpartition(":")[2], "OLLAMA_BASE_URL": "http://127.0.0.1:9",
    }  # fmt: skip
    ended = subprocess.run(
        IMPATIENT,
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert ended.returncode == 2, ended.stderr
    last = ended.stderr.strip().splitlines()[-1]
    assert "SEARCH_URL" in last
    assert url in last if with_database else "DATABASE_URL" in last


def test_a_server_answers_503_while_its_engine_is_away(
    tmp_path: Path, engine_process: DoubleProcess, postgres_server: PostgresServer
) -> None:
    postgres_server.run("CREATE SCHEMA engine_away")
    path = tmp_path / "walruses.txt"
    path.write_text("Walruses whistle in the winter wind. " * 20)
    settings = {
        "SEARCH_URL": engine_process.url,
        "DATABASE_URL": postgres_server.url("engine_away"),
        "EMBEDDING_PROVIDER": "minilm",
    }
    with Served(tmp_path / "data", **settings) as server:
        server.client.ingest([FileToSend(path)], "papers")
        found = server.client.search("walruses", "papers", limit=5)["hits"]
        assert found
        with urlopen(f"{server.url}/metrics") as reply:
            said = reply.read().decode()
        assert 'documind_search_copies{collection="words_papers"} 1.0' in said
        assert 'documind_search_dead_copies{collection="words_papers"} 0.0' in said
        rebuilt = subprocess.run(
            [sys.executable, "-m", "app", "rebuild"], cwd=ROOT, check=False, capture_output=True,
            env={**os.environ, **settings, "DATA_DIR": str(tmp_path / "other")}, text=True,
        )  # fmt: skip
        assert rebuilt.returncode == 0, rebuilt.stderr
        with urlopen(f"{server.url}/metrics") as reply:
            made = r'documind_search_shards\{collection="words_papers@\w+"\} 6\.0'
            assert re.search(made, reply.read().decode())
        assert server.client.search("walruses", "papers", limit=5)["hits"] == found
        engine_process.kill()
        with pytest.raises(HTTPError) as caught:
            urlopen(f"{server.url}/api/v1/search?q=walruses&library=papers")
        problem = json.loads(caught.value.read())
        caught.value.close()
        assert (caught.value.code, caught.value.headers["Retry-After"]) == (503, "5")
        assert (problem["code"], problem["retryable"]) == ("search_away", True)
        assert engine_process.url in problem["detail"]
        engine_process.start()
        assert server.client.search("walruses", "papers", limit=5)["hits"] == found
