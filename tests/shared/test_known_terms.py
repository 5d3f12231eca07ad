"""Terms near a word, of a library's most frequent ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.core.text import edit_distance
from app.shared.qdrant_words import LetterCounts, Terms

_WORD = st.text(alphabet="abcz", min_size=4, max_size=8)


@given(st.lists(_WORD, max_size=20), _WORD, st.integers(0, 2))
def test_exactly_the_terms_within_the_edits_are_found(
    terms: list[str], word: str, edits: int
) -> None:
    near = [term for term in terms if edit_distance(word, term) <= edits]
    assert LetterCounts(terms).near(word, edits) == near


def test_numbers_identifiers_and_other_scripts_are_not_near() -> None:
    held = LetterCounts(["1066", "x12ab", "b\u00fccher", "cat", "norman"])
    for word in ("1066", "x12ab", "bucher", "cats"):
        assert held.near(word, 2) == []
    assert held.near("noramn", 2) == ["norman"]


def test_terms_hold_while_a_library_hardly_changes() -> None:
    """A small one is counted again after each change."""
    small, large = (Terms({"norman": 3}, {"walrus": 1}, chunks) for chunks in (100, 100_000))
    assert small.near("nromna", 2) == ["norman"]
    assert small.near("walrsu", 2) == ["walrus"]
    assert [small.are_of(chunks) for chunks in (99, 100, 101)] == [False, True, False]
    assert [large.are_of(n * 1000) for n in (89, 90, 110, 111)] == [False, True, True, False]
    assert small.whole
