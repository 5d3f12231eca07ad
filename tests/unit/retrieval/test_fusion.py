"""Fusion formulas, by hand and by property."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.types import Fusion, Scored
from app.retrieval.candidates import Candidates, QuestionWords, gather
from app.retrieval.fusion import (
    best_first,
    fuse,
    guarded_dense_weight,
    min_max,
    reciprocal_rank_fusion,
    relative_score,
)

_DISTANCES = st.lists(st.floats(0, 2), min_size=1, max_size=12)
_BM25 = st.lists(st.floats(0, 50), min_size=1, max_size=12)


def _pool(distances: Sequence[float], scores: Sequence[float], *, shift: int = 0) -> Candidates:
    dense = [Scored(i, d) for i, d in enumerate(sorted(distances))]
    lexical = [Scored(i + shift, s) for i, s in enumerate(sorted(scores, reverse=True))]
    return gather(dense, lexical)


def test_reciprocal_rank_by_hand() -> None:
    pool = gather([Scored(1, 0.1), Scored(2, 0.2)], [Scored(2, 5.0), Scored(3, 4.0)])
    scores = dict(zip(pool.ids.tolist(), reciprocal_rank_fusion(pool).tolist(), strict=True))
    assert scores[1] == pytest.approx(1 / 61)
    assert scores[2] == pytest.approx(1 / 62 + 1 / 61)
    assert scores[3] == pytest.approx(1 / 62)


def test_reciprocal_rank_refuses_a_negative_offset() -> None:
    with pytest.raises(ValueError, match="k must not be negative"):
        reciprocal_rank_fusion(_pool([0.1], [1.0]), k=-1)


def test_relative_score_by_hand() -> None:
    pool = gather([Scored(1, 0.2), Scored(2, 0.6)], [Scored(2, 10.0), Scored(3, 5.0)])
    pool = pool.with_distances({3: 0.4}).with_bm25({1: 0.0})
    assert relative_score(pool).tolist() == pytest.approx([0.5, 0.5, 0.5])
    assert relative_score(pool, dense_weight=1.0).tolist() == pytest.approx([1.0, 0.0, 0.5])


def test_relative_score_keeps_how_far_apart_hits_are() -> None:
    """Where RRF sees two equal ranks, the scores know that one leg is sure and the other is not."""
    pool = gather(
        [Scored(1, 0.50), Scored(2, 0.51), Scored(3, 0.9)],
        [Scored(2, 30.0), Scored(1, 5.0), Scored(3, 4.0)],
    )
    scores = relative_score(pool)
    assert pool.ids[best_first(scores)].tolist() == [2, 1, 3]
    ranks = reciprocal_rank_fusion(pool)
    assert ranks[0] == ranks[1]


@pytest.mark.parametrize(("best", "dense"), [(6.6, 0.5), (3.3, 0.5), (1.65, 0.75), (0.0, 1.0)])
def test_words_that_say_little_count_for_less(best: float, dense: float) -> None:
    """The idf of the question is 5, so BM25 gives at most 11, and three tenths of it are 3.3."""
    words = QuestionWords({"royc": 3.0, "logo": 2.0}, {})
    pool = _pool([0.1, 0.2], [best, 0.0])
    assert guarded_dense_weight(pool, words, dense_weight=0.5, guard=0.3) == pytest.approx(dense)
    assert guarded_dense_weight(pool, words, dense_weight=0.5, guard=0.0) == 0.5


def test_the_guard_needs_words_and_scores() -> None:
    words = QuestionWords({"logo": 2.0}, {})
    assert (
        guarded_dense_weight(gather([Scored(1, 0.2)], []), words, dense_weight=0.5, guard=0.3)
        == 0.5
    )
    assert (
        guarded_dense_weight(
            _pool([0.1], [1.0]), QuestionWords({}, {}), dense_weight=0.5, guard=0.3
        )
        == 0.5
    )


def test_a_chunk_without_a_vector_keeps_its_lexical_place() -> None:
    pool = gather([], [Scored(1, 9.0), Scored(2, 6.0), Scored(3, 3.0)]).with_distances(
        {1: 0.2, 3: 0.8}
    )
    assert pool.ids[best_first(relative_score(pool))].tolist() == [1, 2, 3]


def test_the_farthest_of_a_few_embedded_chunks_is_not_the_worst_of_all() -> None:
    """Two chunks that share most words were embedded on the way, by hand: words 1, 0.9, 0.5, 0; distances span 0.9 to 1."""
    ranks = np.arange(1, 5)
    pool = Candidates(
        np.arange(4),
        np.array([0.5, 0.3, np.nan, np.nan]),
        np.array([10.0, 9.0, 5.0, 0.0]),
        np.zeros(4, dtype=np.int64),
        ranks,
    )
    assert relative_score(pool).tolist() == pytest.approx(
        [0.5 * (0.9 + 1.0), 0.5 * (1.0 + 0.9), 0.5, 0.0]
    )
    whole = Candidates(
        pool.ids, np.array([0.5, 0.3, 0.4, 0.7]), pool.bm25, pool.dense_rank, pool.lexical_rank
    )
    assert relative_score(whole).tolist() == pytest.approx(
        [0.5 * (0.5 + 1.0), 0.5 * (1.0 + 0.9), 0.5 * (0.75 + 0.5), 0.0]
    )


@given(st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(math.nan)), max_size=20))
def test_min_max_bounds_and_order(values: list[float]) -> None:
    array = np.array(values, dtype=np.float64)
    scaled = min_max(array)
    known = ~np.isnan(array)
    assert (np.isnan(scaled) == np.isnan(array)).all()
    assert ((scaled[known] >= 0) & (scaled[known] <= 1)).all()
    if known.any():
        assert scaled[known].max() == 1.0
        assert scaled[known][np.argmax(array[known])] == 1.0


@given(
    _DISTANCES,
    _BM25,
    st.integers(0, 12),
    st.sampled_from(["relative_score", "rrf", "dense", "lexical"]),
)
def test_fusion_scores_every_candidate(
    distances: list[float], scores: list[float], shift: int, fusion: Fusion
) -> None:
    pool = _pool(distances, scores, shift=shift)
    fused = fuse(pool, fusion)
    assert fused.shape == (len(pool),)
    assert np.isfinite(fused).all()
    assert sorted(best_first(fused).tolist()) == list(range(len(pool)))


@given(_DISTANCES, _BM25, st.integers(0, 12))
def test_relative_score_ignores_the_scale_of_bm25(
    distances: list[float], scores: list[float], shift: int
) -> None:
    one, two = (
        _pool(distances, scores, shift=shift),
        _pool(distances, [4 * s for s in scores], shift=shift),
    )
    assert relative_score(one).tolist() == pytest.approx(relative_score(two).tolist())


def test_single_legs_put_what_they_do_not_know_last() -> None:
    pool = gather(
        [Scored(1, 0.9), Scored(2, 1.4)], [Scored(3, 9.0), Scored(4, 8.0), Scored(2, 1.0)]
    )
    assert pool.ids[best_first(fuse(pool, "dense"))].tolist() == [1, 2, 3, 4]
    assert pool.ids[best_first(fuse(pool, "lexical"))].tolist() == [3, 4, 2, 1]


def test_best_first_is_stable() -> None:
    assert best_first(np.array([0.5, 0.7, 0.5, 0.7])).tolist() == [1, 3, 0, 2]
