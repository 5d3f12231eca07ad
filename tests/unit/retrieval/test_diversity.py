"""Selection: one passage per document first, copies collapsed, caps, MMR."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.core.text import tokenise
from app.retrieval.diversity import diversify, jaccard, maximal_marginal_relevance, near_duplicate
from app.retrieval.scoring import Reading
from tests.stores import passage

_WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda omicron sigma upsilon omega".split()


def _reading(
    text: str, score: float, *, key: str = "doc", ordinal: int = 0, duplicate_of: str | None = None
) -> Reading:
    found = passage(text, key=key, ordinal=ordinal)
    found = replace(found, document=replace(found.document, duplicate_of=duplicate_of))
    return Reading(found, frozenset(tokenise(text)), score)


def _keys(readings: list[Reading]) -> list[str]:
    return [reading.passage.document.source_key for reading in readings]


def test_jaccard_by_hand() -> None:
    assert jaccard({"a", "b", "c"}, {"b", "c", "d"}) == 0.5
    assert jaccard(set(), set()) == 1.0
    assert jaccard({"a"}, set()) == 0.0


def test_the_best_chunk_of_each_document_comes_first() -> None:
    ranked = [
        _reading("alpha beta", 0.9, key="a"),
        _reading("gamma delta", 0.8, key="a", ordinal=1),
        _reading("epsilon zeta", 0.7, key="b"),
        _reading("eta theta", 0.6, key="c"),
    ]
    assert _keys(diversify(ranked, 3)) == ["a", "b", "c"]
    assert [r.score for r in diversify(ranked, 4)] == [0.9, 0.8, 0.7, 0.6], (
        "the rest fills up, best score first"
    )


def test_five_copies_take_one_place() -> None:
    text = (
        "the treaty was signed in the spring of that year by both kings and their heirs in the"
        " old palace"
    )
    copies = [_reading(f"{text} copy {'x' * i}", 1.0 - i / 100, key=f"copy{i}") for i in range(5)]
    others = [
        _reading(" ".join(_WORDS[i : i + 4]), 0.5 - i / 100, key=f"other{i}") for i in range(8)
    ]
    chosen = _keys(diversify([*copies, *others], 5))
    assert sum(key.startswith("copy") for key in chosen) == 1
    assert len(chosen) == 5


def test_records_that_differ_in_a_number_are_no_copies() -> None:
    first = "10.0.0.1: the anchor was checked by team 1 and needs 2 hours of work"
    second = "10.0.140.21: the anchor was checked by team 1 and needs 62 hours of work"
    chosen = diversify([_reading(first, 0.9, key="a"), _reading(second, 0.8, key="b")], 2)
    assert _keys(chosen) == ["a", "b"]
    page = " ".join(
        f"{a}{b}" for a in "bcdf" for b in ("antor", "orlan", "ulmex", "imber", "eplon", "oxund")
    )
    dated = [_reading(f"{page} retrieved {year}", 0.9, key=str(year)) for year in (2023, 2024)]
    assert len(diversify(dated, 2)) == 1  # the same text on another day


def test_the_fuller_of_two_near_copies_speaks_for_both() -> None:
    text = (
        "the wall was built by the east in the summer of that year and it was opened by its"
        " officials"
    )
    short, full = (
        _reading(text, 0.9, key="short"),
        _reading(f"{text} twenty eight years later", 0.8, key="full"),
    )
    between = _reading("alpha beta", 0.85, key="between")
    chosen = diversify([short, full, between], 2)
    assert [(r.passage.document.source_key, r.score) for r in chosen] == [
        ("full", 0.9),
        ("between", 0.85),
    ]


def test_within_a_document_the_better_of_two_near_copies_stays() -> None:
    text = (
        "the wall was built by the east in the summer of that year and it was opened by its"
        " officials"
    )
    better, fuller = (
        _reading(text, 0.9, key="a"),
        _reading(f"{text} twenty eight years later", 0.8, key="a", ordinal=1),
    )
    assert diversify([better, fuller], 2) == [better]


def test_a_copy_speaks_for_its_original() -> None:
    original = _reading("alpha beta gamma", 0.9, key="a")
    twin = _reading(
        "iota kappa lambda", 0.8, key="twin", duplicate_of=original.passage.document.doc_id
    )
    other = _reading("epsilon zeta", 0.1, key="b")
    assert _keys(diversify([original, twin, other], 2)) == ["a", "b"]


def test_where_most_of_the_head_is_of_one_document_the_best_are_chosen() -> None:
    long = [_reading(f"{_WORDS[i]} of it {i}", 1.0 - i / 100, key="long") for i in range(4)]
    other = [_reading(f"{_WORDS[-i]} else {i}", 0.99, key=f"other-{i}") for i in range(1, 3)]
    assert _keys(diversify([*long, *other], 5)) == ["long"] * 4 + ["other-1"]
    few = [*long[:2], *other, *long[2:]]
    assert _keys(diversify(few, 4)).count("long") == 2


def test_the_cap_is_lifted_only_for_want_of_others() -> None:
    long = [
        _reading(" ".join(_WORDS[i : i + 3]), 1.0 - i / 100, key="long", ordinal=i)
        for i in range(6)
    ]
    other = [
        _reading(f"other words number {i} {_WORDS[-i]}", 0.3 - i / 100, key="other", ordinal=i)
        for i in range(1, 4)
    ]
    mixed = [*long[:2], *other[:2], *long[2:], *other[2:]]
    chosen = _keys(diversify(mixed, 4, cap=0.25))
    assert chosen == ["long", "long", "other", "other"]
    assert _keys(diversify(long, 4, cap=0.5)) == ["long"] * 4


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.lists(st.sampled_from(_WORDS), max_size=5)),
        max_size=14,
    ),
    st.integers(1, 8),
)
def test_diversity_selects_without_reordering(rows: list[tuple[str, list[str]]], k: int) -> None:
    ranked = [
        _reading(" ".join(words), 1.0 - i / 100, key=key, ordinal=i)
        for i, (key, words) in enumerate(rows)
    ]
    chosen = diversify(ranked, k)
    assert len(chosen) <= k
    assert len({id(reading) for reading in chosen}) == len(chosen)
    assert [r.score for r in chosen] == sorted((r.score for r in chosen), reverse=True)
    if ranked:
        assert chosen[0].score == 1.0
    for i, one in enumerate(chosen):
        assert not any(near_duplicate(one, other, 0.7) for other in chosen[i + 1 :])


def test_mmr_by_hand() -> None:
    """The second pick trades relevance 0.9 with likeness 1 against relevance 0.5 with likeness 0."""
    first, twin = _reading("alpha beta", 1.0, key="a"), _reading("alpha beta", 0.9, key="b")
    other, last = _reading("gamma delta", 0.5, key="c"), _reading("epsilon zeta", 0.0, key="d")
    assert _keys(maximal_marginal_relevance([first, twin, other, last], 2)) == ["a", "c"]
    assert _keys(maximal_marginal_relevance([first, twin, other, last], 2, trade=1.0)) == ["a", "b"]
    assert maximal_marginal_relevance([], 3) == []


@given(st.lists(st.lists(st.sampled_from(_WORDS), max_size=4), max_size=8), st.integers(1, 10))
def test_mmr_without_novelty_is_the_ranking(texts: list[list[str]], k: int) -> None:
    ranked = [_reading(" ".join(words), 1.0 - i / 100, key=str(i)) for i, words in enumerate(texts)]
    assert maximal_marginal_relevance(ranked, k, trade=1.0) == ranked[:k]
