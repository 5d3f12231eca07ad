from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.core.types import FloatArray
from app.models.embedding import RememberedEncoder
from tests.fakes.embedders import HashEmbedder
from tests.fakes.encoders import HashEncoder


def _rows(encoder: RememberedEncoder, texts: Sequence[str]) -> FloatArray:
    rows, codes = encoder.embed_and_encode(texts)
    assert codes == HashEncoder(HashEmbedder()).encode(texts)
    return rows


class _Counting(HashEmbedder):
    """Keeps what it was asked to count, too."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: list[str] = []

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        self.counted += texts
        return super().count_tokens(texts)


def test_a_text_is_embedded_and_counted_once() -> None:
    inner = _Counting()
    encoder = RememberedEncoder(HashEncoder(inner))
    first = _rows(encoder, ["iron", "zinc", "iron"])
    again = _rows(encoder, ["zinc", "tin", "iron"])
    assert inner.embedded == ["iron", "zinc", "tin"]
    np.testing.assert_array_equal(again, HashEmbedder().embed_passages(["zinc", "tin", "iron"]))
    np.testing.assert_array_equal(first[0], first[2])
    inner.counted.clear()
    assert encoder.count_tokens(["iron", "iron ore", "iron"]) == HashEmbedder().count_tokens(
        ["iron", "iron ore", "iron"]
    )
    encoder.count_tokens(["iron ore", "iron"])
    assert inner.counted == ["iron", "iron ore"]
    _rows(encoder, ["iron ore"])
    assert inner.embedded[3:] == ["iron ore"], "a count is no vector"


def test_what_was_not_asked_for_longest_is_forgotten_first() -> None:
    inner = HashEmbedder()
    encoder = RememberedEncoder(HashEncoder(inner), 2)
    for text in ("iron", "zinc", "iron", "tin", "iron", "zinc"):
        _rows(encoder, [text])
    assert inner.embedded == ["iron", "zinc", "tin", "zinc"]


def test_changing_a_row_that_was_given_out_changes_nothing_that_is_remembered() -> None:
    encoder = RememberedEncoder(HashEncoder(HashEmbedder()))
    rows = _rows(encoder, ["iron", "zinc"])
    rows[:] = 0
    np.testing.assert_array_equal(_rows(encoder, ["zinc"]), HashEmbedder().embed_passages(["zinc"]))


@given(st.lists(st.lists(st.text(max_size=8), max_size=6), max_size=6), st.integers(1, 4))
def test_rows_are_the_embedders_own_whatever_is_remembered(
    calls: list[list[str]], most: int
) -> None:
    encoder = RememberedEncoder(HashEncoder(HashEmbedder()), most)
    for texts in calls:
        assert encoder.count_tokens(texts) == HashEmbedder().count_tokens(texts)
        np.testing.assert_array_equal(_rows(encoder, texts), HashEmbedder().embed_passages(texts))


def test_many_threads_get_their_own_rows() -> None:
    encoder = RememberedEncoder(HashEncoder(HashEmbedder()), 5)
    texts = [[f"sentence {n % 9}", f"sentence {n % 4}"] for n in range(200)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda asked: _rows(encoder, asked), texts))
    for rows, asked in zip(found, texts, strict=True):
        np.testing.assert_array_equal(rows, HashEmbedder().embed_passages(asked))
