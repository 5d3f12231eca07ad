"""Terms near a word, of a library's most frequent ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.core.text import edit_distance
from app.shared.qdrant_words import KnownTerms, LetterCounts

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


def test_terms_are_read_once_for_many_words() -> None:
    asked: list[int] = []

    def listed(most: int) -> list[str]:
        asked.append(most)
        return ["norman"]

    known = KnownTerms(listed)
    assert known.near("1066", 2) == []
    assert asked == []
    assert known.near("nromna", 2) == ["norman"]
    assert known.near("walrus", 2) == []
    assert len(asked) == 1
