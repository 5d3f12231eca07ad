"""Codes say how far off they may be, and searches through them are exact."""

from __future__ import annotations

import sys

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.types import FloatArray
from app.core.vectors import l2_normalise, nearest
from app.storage.vectors.cache import Codes


def spiky(rng: np.random.Generator, n: int, dimension: int) -> FloatArray:
    """Rows of all kinds: even, with few large numbers, with one number, and of zeros."""
    rows = rng.normal(size=(n, dimension)) * rng.choice(
        [1.0, 0.01], size=(n, dimension), p=[0.3, 0.7]
    )
    rows[::7] = np.eye(dimension)[rng.integers(dimension, size=len(rows[::7]))]
    rows[::11] = 0
    return l2_normalise(rows)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000), n=st.integers(1, 400), dimension=st.sampled_from([1, 3, 33, 384])
)
def test_no_row_is_farther_off_than_is_said(seed: int, n: int, dimension: int) -> None:
    rng = np.random.default_rng(seed)
    rows, query = spiky(rng, n, dimension), spiky(rng, 2, dimension)[1]
    about, slack = Codes.of(rows).distances(query)
    true = 1.0 - rows.astype(np.float64) @ query.astype(np.float64)
    assert np.all(np.abs(about - true) <= slack + 1e-6)


def test_the_error_of_even_rows_is_small() -> None:
    """What makes the codes worth having: only few rows are left to be looked at again."""
    rng = np.random.default_rng(3)
    rows = l2_normalise(rng.normal(size=(5000, 384)))
    about, slack = Codes.of(rows).distances(rows[17])
    assert slack < 0.04
    bound = np.partition(about, 9)[9] + 2 * slack
    assert np.count_nonzero(about <= bound) < 500


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 400), k=st.integers(1, 60))
def test_the_nearest_by_codes_are_the_nearest(seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    rows, query = spiky(rng, n, 33), spiky(rng, 2, 33)[1]
    ids = np.arange(1, n + 1, dtype=np.int64)
    plain = nearest(query, rows, ids, k)
    coded = nearest(query, rows, ids, k, *Codes.of(rows).distances(query))
    assert plain[0].tolist() == coded[0].tolist()
    assert plain[1].tolist() == coded[1].tolist()


def test_rows_added_in_pieces_are_coded_as_in_one() -> None:
    rng = np.random.default_rng(5)
    rows = spiky(rng, 3000, 33)
    pieces = Codes.empty(33)
    before = []
    for at in range(0, 3000, 170):
        pieces = pieces.plus(rows[at : at + 170])
        before.append((pieces, pieces.n))
    whole = Codes.of(rows)
    (ours, slack), (theirs, same) = pieces.distances(rows[8]), whole.distances(rows[8])
    assert ours.tolist() == theirs.tolist()
    assert slack == same
    assert [codes.n for codes, _ in before] == [n for _, n in before], (
        "a reader's view does not grow under it"
    )
    assert len(before[0][0].distances(rows[8])[0]) == 170


def test_an_index_without_rows_has_nothing_near() -> None:
    about, _ = Codes.empty(8).distances(np.eye(8, dtype=np.float32)[0])
    assert len(about) == 0


def test_a_scan_leaves_the_interpreters_counts_alone() -> None:
    """A library that gives None away once too often ends the process after a hundred thousand questions."""
    rows = np.eye(64, dtype=np.float32)
    codes = Codes.of(rows)
    codes.distances(rows[0])
    before = sys.getrefcount(None)
    for _ in range(1000):
        codes.distances(rows[0])
    assert abs(sys.getrefcount(None) - before) < 100
