"""Pools and candidates."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.types import Library, Mode, Scored
from app.retrieval.candidates import gather, pool_size, slots


@pytest.mark.parametrize(
    ("library", "mode", "top_k", "pool"),
    [
        (Library.PAPERS, "general", 5, 50),
        (Library.PAPERS, "general", 15, 60),
        (Library.PAPERS, "compare", 24, 64),
        (Library.PAPERS, "methodology", 24, 56),
        (Library.PUBLIC, "general", 10, 50),
        (Library.PUBLIC, "general", 15, 75),
        (Library.PUBLIC, "compare", 24, 96),
        (Library.PUBLIC, "reproduce", 24, 80),
        (Library.PAPERS, "general", 50, 100),
    ],
)
def test_pool_by_library_and_mode(library: Library, mode: Mode, top_k: int, pool: int) -> None:
    assert pool_size(library, mode, top_k) == pool


@given(
    st.sampled_from(list(Library)),
    st.sampled_from(["general", "compare", "methodology", "datasets", "reproduce"]),
    st.integers(1, 50),
)
def test_pool_is_never_small(library: Library, mode: Mode, top_k: int) -> None:
    assert pool_size(library, mode, top_k) >= max(50, 2 * top_k)
    assert slots(mode) <= 24


def test_gather_unites_both_lists() -> None:
    found = gather([Scored(7, 0.1), Scored(3, 0.2)], [Scored(3, 9.0), Scored(5, 4.0)])
    assert found.ids.tolist() == [7, 3, 5]
    assert found.distance.tolist()[:2] == [0.1, 0.2]
    assert math.isnan(found.distance[2])
    assert found.bm25.tolist()[1:] == [9.0, 4.0]
    assert found.dense_rank.tolist() == [1, 2, 0]
    assert found.lexical_rank.tolist() == [0, 1, 2]


def test_completing_fills_unknowns_only() -> None:
    found = gather([Scored(7, 0.1)], [Scored(5, 4.0), Scored(6, 3.0)])
    assert found.without_distance().tolist() == [5, 6]
    assert found.without_bm25().tolist() == [7]
    whole = found.with_distances({5: 0.5, 7: 0.9}).with_bm25({7: 0.0, 5: 100.0})
    assert whole.distance.tolist()[:2] == [0.1, 0.5]
    assert whole.bm25.tolist() == [0.0, 4.0, 3.0]
    assert whole.without_distance().tolist() == [6]
    assert len(found.without_distance()) == 2, "the first candidates are unchanged"


def test_no_hits_are_no_candidates() -> None:
    assert len(gather([], [])) == 0
