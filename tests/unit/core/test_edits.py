"""Distances between words, and the words one edit away."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.core.text import edit_distance, one_edit_away

_WORD = st.text(alphabet="abc", max_size=6)


def test_distances_by_hand() -> None:
    assert edit_distance("normandi", "normandy") == 1
    assert edit_distance("nromans", "normans") == 1
    assert edit_distance("watter", "water") == 1
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "ab") == 2


@given(_WORD, _WORD)
def test_a_distance_is_symmetric_and_bounded(left: str, right: str) -> None:
    far = edit_distance(left, right)
    assert far == edit_distance(right, left)
    assert (far == 0) == (left == right)
    assert abs(len(left) - len(right)) <= far <= max(len(left), len(right))


@given(_WORD, _WORD)
def test_what_is_listed_is_what_the_distance_says(left: str, right: str) -> None:
    listed = bool(right) and (right in one_edit_away(left) or right == left)
    assert listed == (bool(right) and edit_distance(left, right) <= 1)
