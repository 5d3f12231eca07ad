"""Nearest rows are the same wherever they stand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.vectors import cosine_distances, l2_normalise, nearest


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 300),
    k=st.integers(1, 40),
    repeats=st.integers(1, 4),
)
def test_neither_order_nor_distances_depend_on_where_rows_stand(
    seed: int, n: int, k: int, repeats: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = l2_normalise(np.repeat(rng.normal(size=(n, 33)), repeats, axis=0))
    ids = np.arange(1, len(rows) + 1, dtype=np.int64)
    query = l2_normalise(rng.normal(size=33))
    best, distances = nearest(query, rows, ids, k)
    moved = rng.permutation(len(rows))
    again, same = nearest(query, rows[moved], ids[moved], k)
    assert ids[best].tolist() == ids[moved][again].tolist()
    assert distances.tolist() == same.tolist()
    assert len(best) == min(k, len(rows))
    assert distances == pytest.approx(np.sort(cosine_distances(query, rows))[:k], abs=1e-6)
    keys = list(zip(distances.tolist(), ids[best].tolist(), strict=True))
    assert keys == sorted(keys)


def test_rows_at_infinity_are_left_out() -> None:
    rows = l2_normalise(np.eye(4))
    distances = cosine_distances(rows[0], rows)
    distances[1] = np.inf
    best, _ = nearest(rows[0], rows, np.arange(4, dtype=np.int64), 4, distances)
    assert best.tolist() == [0, 2, 3]


@pytest.mark.parametrize(("k", "n"), [(0, 3), (3, 0)])
def test_nothing_asked_or_nothing_there(k: int, n: int) -> None:
    best, distances = nearest(
        np.ones(2, np.float32), np.zeros((n, 2), np.float32), np.arange(n, dtype=np.int64), k
    )
    assert (len(best), len(distances)) == (0, 0)


@pytest.mark.parametrize("stride", [1, 156])
@pytest.mark.parametrize("k", [1, 20, 30])
def test_few_rows_among_many_left_out_are_found_wherever_they_stand(stride: int, k: int) -> None:
    """Thirty of 5,000 rows, side by side or so far apart that they fall into the same groups."""
    rng = np.random.default_rng(11)
    rows, query = l2_normalise(rng.normal(size=(5000, 33))), l2_normalise(rng.normal(size=33))
    kept = np.arange(30) * stride
    distances = np.full(5000, np.inf, np.float32)
    distances[kept] = cosine_distances(query, rows[kept])
    best, _ = nearest(query, rows, np.arange(5000, dtype=np.int64), k, distances)
    assert best.tolist() == kept[np.argsort(distances[kept], kind="stable")][:k].tolist()
