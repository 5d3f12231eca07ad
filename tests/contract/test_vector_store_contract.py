"""What every VectorStore does, run on Chroma in its own process and on faiss."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from app.core.types import FloatArray
from app.core.vectors import cosine_distances
from app.storage.files.durable import Steps
from app.storage.vectors.chroma import ChromaStore
from app.storage.vectors.faiss import FaissStore
from app.storage.vectors.library import CANDIDATES
from app.storage.vectors.port import VectorStore
from tests.unit.storage.drafts import stamped, unit_rows

N = 400


@pytest.fixture(scope="module", params=["chroma", "faiss", "faiss rows"])
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[VectorStore]:
    store: VectorStore
    if request.param == "chroma":
        store = ChromaStore(tmp_path_factory.mktemp("store") / "chroma", Steps(), ef_search=400)
    else:
        few = N // 2 if request.param == "faiss" else 10 * N  # the second never learns lists
        path = tmp_path_factory.mktemp("store") / "faiss"
        store = FaissStore(path, Steps(), learn_from=few, least_kept=N // 4)
    yield store
    store.close()


@pytest.fixture
def store(opened: VectorStore) -> VectorStore:
    """The same store for all tests, without collections."""
    for name in opened.collections():
        opened.drop(name)
    return opened


def put(store: VectorStore, ids: list[int], rows: FloatArray, name: str = "papers__1") -> None:
    store.upsert(name, ids, rows, stamped())


def test_a_vector_is_the_first_that_is_proposed_for_it(store: VectorStore) -> None:
    rows = unit_rows(N)
    put(store, list(range(1, N + 1)), rows)
    assert [store.search("papers__1", row, 1) for row in rows[::17]] == [
        [at + 1] for at in range(0, N, 17)
    ]


def test_the_nearest_are_proposed_first(store: VectorStore) -> None:
    rows, found, wanted = unit_rows(N), 0, 0
    put(store, list(range(1, N + 1)), rows)
    for query in unit_rows(20, seed=9):
        distances = cosine_distances(query, rows)
        proposed = store.search("papers__1", query, CANDIDATES)
        assert len(proposed) == len(set(proposed)) == CANDIDATES
        order = distances[np.array(proposed) - 1]
        assert order[:20].mean() < order[20:60].mean() < order[60:].mean()
        found += len(set(proposed) & {int(at) + 1 for at in np.argsort(distances)[:10]})
        wanted += 10
    assert found >= 0.98 * wanted


def test_a_collection_that_is_prepared_is_filled_like_any_other(store: VectorStore) -> None:
    rows = unit_rows(N)
    asked: list[int] = []

    def sample(n: int) -> FloatArray:
        asked.append(n)
        return rows[:: max(1, N // n)][:n]

    store.prepare("papers__1", N, sample)
    assert store.count("papers__1") == 0
    put(store, list(range(1, N + 1)), rows)
    assert store.ids("papers__1") == set(range(1, N + 1))
    assert store.search("papers__1", rows[7], 1) == [8]
    assert all(0 < n <= N for n in asked)


def test_no_more_is_proposed_than_there_is(store: VectorStore) -> None:
    put(store, [5, 7, 9], unit_rows(3))
    assert set(store.search("papers__1", unit_rows(1)[0], 100)) == {5, 7, 9}
    assert store.search("papers__2", unit_rows(1)[0], 100) == []


def test_a_vector_that_is_put_again_is_replaced(store: VectorStore) -> None:
    put(store, [1, 2], unit_rows(2))
    put(store, [1], unit_rows(1, seed=5))
    assert store.count("papers__1") == 2
    assert store.search("papers__1", unit_rows(1, seed=5)[0], 1) == [1]
    assert store.search("papers__1", unit_rows(2)[1], 1) == [2]


def test_what_is_deleted_is_not_listed_any_more(store: VectorStore) -> None:
    put(store, list(range(1, 11)), unit_rows(10))
    store.delete("papers__1", [2, 3, 999])
    store.delete("papers__1", [])
    store.delete("papers__2", [1])
    assert store.ids("papers__1") == {1, 4, 5, 6, 7, 8, 9, 10}
    assert store.count("papers__1") == 8


def test_collections_are_apart(store: VectorStore) -> None:
    put(store, [1, 2], unit_rows(2))
    put(store, [1], np.eye(3, dtype=np.float32)[:1], "public__1")
    assert sorted(store.collections()) == ["papers__1", "public__1"]
    assert (store.count("papers__1"), store.count("public__1"), store.count("none")) == (2, 1, 0)
    assert store.search("public__1", np.eye(3, dtype=np.float32)[1], 5) == [1]
    store.drop("papers__1")
    store.drop("never there")
    assert store.collections() == ["public__1"]
    assert store.ids("papers__1") == set()
    put(store, [3], np.eye(5, dtype=np.float32)[:1])  # of another dimension: the name is free again
    assert store.ids("papers__1") == {3}


def test_a_large_batch_is_taken(store: VectorStore) -> None:
    put(store, list(range(1, 1001)), unit_rows(1000))
    assert store.ids("papers__1") == set(range(1, 1001))
    store.delete("papers__1", list(range(1, 1000)))
    assert store.ids("papers__1") == {1000}


def test_searches_go_on_while_it_is_written(store: VectorStore) -> None:
    rows = unit_rows(N)
    put(store, list(range(1, N + 1)), rows)
    with ThreadPoolExecutor(3) as pool:
        writing = pool.submit(put, store, list(range(N + 1, 2 * N + 1)), unit_rows(N, seed=3))
        asked = [pool.submit(store.search, "papers__1", row, 1) for row in rows[::20]]
        assert [future.result(120) for future in asked] == [[at + 1] for at in range(0, N, 20)]
        writing.result(120)
    assert store.count("papers__1") == 2 * N


def test_a_store_that_is_set_aside_is_empty_and_goes_on(store: VectorStore) -> None:
    put(store, [1], unit_rows(1))
    store.set_aside()
    assert store.collections() == []
    put(store, [2], unit_rows(1))
    assert store.ids("papers__1") == {2}


def test_a_closed_store_opens_again(opened: VectorStore) -> None:
    opened.set_aside()
    put(opened, [1, 2], unit_rows(2))
    assert opened.flush("papers__1", at_once=True)
    opened.close()
    assert opened.ids("papers__1") == {1, 2}


def test_what_is_durable_stays_and_the_rest_may_be_told_again(opened: VectorStore) -> None:
    opened.set_aside()
    put(opened, [1, 2, 3], unit_rows(3))
    opened.flush("papers__1", at_once=True)
    put(opened, [3, 4], unit_rows(2, seed=5))
    opened.delete("papers__1", [2])
    durable = opened.flush("papers__1", at_once=False)
    opened.close()
    assert opened.ids("papers__1") in ([{1, 3, 4}] if durable else [{1, 3, 4}, {1, 2, 3}])
    put(opened, [3, 4], unit_rows(2, seed=5))
    opened.delete("papers__1", [2])
    assert opened.ids("papers__1") == {1, 3, 4}
    assert opened.search("papers__1", unit_rows(1, seed=5)[0], 1) == [3]
