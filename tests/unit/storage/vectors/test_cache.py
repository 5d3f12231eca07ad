"""The cache finds exactly what a scan finds, whatever was put, hidden and replaced before."""

from __future__ import annotations

import numpy as np
import pytest

from app.core.types import Filters, FloatArray
from app.core.vectors import cosine_distances, l2_normalise
from app.storage.catalog.rows import DocumentFacts
from app.storage.vectors.cache import VectorCache

DIMENSION = 33


def random_rows(n: int, seed: int) -> FloatArray:
    return l2_normalise(np.random.default_rng(seed).normal(size=(n, DIMENSION)))


def filled(rows: FloatArray, capacity: int = 0) -> VectorCache:
    cache = VectorCache(DIMENSION, capacity)
    cache.describe([DocumentFacts(doc, f"d{doc}", "text", 2000 + doc, "") for doc in range(10)])
    for at in range(0, len(rows), 128):
        block = rows[at : at + 128]
        cache.put(
            range(at, at + len(block)),
            block,
            [(i % 10, "body") for i in range(at, at + len(block))],
        )
    return cache


@pytest.mark.parametrize("capacity", [0, 900, 2000])
@pytest.mark.parametrize("dead", [0, 40, 300])
def test_it_finds_what_a_scan_finds(dead: int, capacity: int) -> None:
    rows, rng = random_rows(900, 7), np.random.default_rng(7)
    cache = filled(rows, capacity)
    gone = rng.choice(900, size=dead, replace=False).tolist()
    cache.hide([*gone, 5000])
    alive = np.setdiff1d(np.arange(900), gone)
    for query in l2_normalise(rng.normal(size=(5, DIMENSION))):
        wanted = alive[
            np.argsort(cosine_distances(query, rows[alive]), kind="stable")[:20]
        ].tolist()
        assert [hit.chunk_id for hit in cache.search(query, 20)] == wanted
        cache.compact()  # a third of 300 dead rows is copied away
        assert [hit.chunk_id for hit in cache.search(query, 20)] == wanted
    assert cache.count == len(cache.ids()) == 900 - dead


@pytest.mark.parametrize("years", [1, 5])
def test_filters_are_met_before_and_after_rows_are_copied(years: int) -> None:
    rows, query = random_rows(900, 3), l2_normalise(np.ones(DIMENSION))
    cache, filters = filled(rows), Filters(year_to=2000 + years - 1)
    allowed = np.array([i for i in range(900) if i % 10 < years])
    wanted = allowed[
        np.argsort(cosine_distances(query, rows[allowed]), kind="stable")[:20]
    ].tolist()
    assert [hit.chunk_id for hit in cache.search(query, 20, filters)] == wanted
    cache.hide([i for i in range(900) if i not in wanted])
    cache.compact(above=0.0)
    assert [hit.chunk_id for hit in cache.search(query, 50, filters)] == wanted


def test_a_row_that_is_put_again_is_replaced() -> None:
    rows = random_rows(6, 1)
    cache = filled(rows[:5])
    cache.put([2], rows[5:], [(2, "body")])
    assert cache.count == 5
    assert cache.search(rows[5], 1)[0].chunk_id == 2
    assert cache.search(rows[2], 1)[0].score > 0.01
    np.testing.assert_array_equal(cache.fetch([2, 99])[2], rows[5])


def test_a_reader_keeps_its_rows_while_others_are_put() -> None:
    rows = random_rows(400, 2)
    cache = filled(rows[:100], capacity=400)
    before = cache.fetch(list(range(100)))
    cache.put(range(100, 400), rows[100:], [(0, "body")] * 300)
    cache.hide(list(range(100)))
    cache.compact(above=0.0)
    for chunk_id, row in before.items():
        np.testing.assert_array_equal(row, rows[chunk_id])


def test_an_empty_cache_finds_nothing() -> None:
    assert VectorCache(DIMENSION).search(l2_normalise(np.ones(DIMENSION)), 5) == []
    assert filled(random_rows(5, 1)).search(l2_normalise(np.ones(DIMENSION)), 0) == []
