from __future__ import annotations

import pytest

from app.answer.disagreement import disagreements, figures_by_unit
from app.answer.strategies import numbered
from app.core.types import Evidence, Hit, Library, Question
from tests.stores import passage
from tests.unit.answer.bench import Bench


def _pair(paper: str, article: str) -> tuple[Evidence, ...]:
    return numbered(
        [
            Hit(passage(paper, key="paper", library=Library.PAPERS), 1.0),
            Hit(passage(article, key="article", library=Library.PUBLIC), 0.9),
        ]
    )


@pytest.mark.parametrize(
    ("paper", "article"),
    [
        (
            "The melting point of pure copper is 1180 degrees.",
            "Pure copper has a melting point of 1085 degrees.",
        ),
        (
            "The bridge over the river Tagus opened in 1966.",
            "The Tagus river bridge was opened in 1998.",
        ),
        (
            "The lake basin holds 12 million litres of water.",
            "The basin of the lake holds 14 million litres of water.",
        ),
        (
            "The bridge over the river Tagus opened in 1966 and was widened in 1990.",
            "The bridge over the river Tagus opened in 1966 and was widened in 1999.",
        ),
        (
            "Efficacy of the vaccine in adults was 91%.",
            "The vaccine had an efficacy of 67% in adults.",
        ),
        (
            "The bridge over the river Tagus opened on 6 August 1966.",
            "The Tagus river bridge was opened on August 9, 1966.",
        ),
        (
            "The bridge over the river Tagus opened on 1966-08-06.",
            "The Tagus river bridge was opened on 6 May 1966.",
        ),
    ],
)
def test_different_figures_for_the_same_thing_are_flagged(paper: str, article: str) -> None:
    (found,) = disagreements(_pair(paper, article))
    assert (found.paper.n, found.article.n) == (1, 2)
    assert paper[found.paper.start : found.paper.end] == paper
    assert not set(found.paper.values) & set(found.article.values)


@pytest.mark.parametrize(
    ("paper", "article"),
    [
        (
            "The melting point of pure copper is 1085 degrees.",
            "Pure copper has a melting point of 1085 degrees.",
        ),
        (
            "The melting point of pure copper is 1084.6 degrees.",
            "Pure copper has a melting point of 1085 degrees.",
        ),
        (
            "Pure copper has a melting point of 1085 degrees.",
            "The tallest tower in Porto measures 76 metres.",
        ),
        (
            "The basin of the lake holds 12,000,000 litres.",
            "The lake basin holds 12 million litres.",
        ),
        (
            "The lake basin is 40 metres deep.",
            "The basin of the lake holds 12 million litres of water.",
        ),
        (
            "The treaty forbids abuse of a dominant position in article 86.",
            "Article 102 of the treaty forbids abuse of a dominant position.",
        ),
        (
            "The court first recognised the principle of certainty in the 60s.",
            "The court recognised the certainty principle in the 1970s.",
        ),
        (
            "The river Tagus bridge opened in 1966 [12].",
            "The bridge on the river Tagus opened in 1966 [7].",
        ),
        (
            "The bridge over the river Tagus opened on 6 August 1966.",
            "The Tagus river bridge was opened on August 6th, 1966.",
        ),
        (
            "The bridge over the river Tagus opened on 6 August 1966.",
            "The Tagus river bridge was opened in 1966.",
        ),
    ],
)
def test_equal_rounded_and_unrelated_figures_are_not(paper: str, article: str) -> None:
    assert disagreements(_pair(paper, article)) == ()


def test_figures_of_one_library_are_never_compared() -> None:
    first, second = _pair(
        "The bridge over the river opened in 1966.", "The bridge over the river opened in 1998."
    )
    assert disagreements([first, first]) == ()
    assert disagreements([second]) == ()


def test_figures_by_unit() -> None:
    assert figures_by_unit("In 1998 it rose by 3.5 % to 12,500 km and 2 million people (3).") == {
        "year": frozenset({1998.0}),
        "%": frozenset({3.5}),
        "km": frozenset({12500.0}),
        "peopl": frozenset({2e6}),
    }


def test_days_of_dates_are_no_figures_of_their_own() -> None:
    assert figures_by_unit("Born on 21 May 1863, 2 June, and on May 4, 1900 with 3 others.") == {
        "date": frozenset({18630521.0, 19000504.0}),
        "day": frozenset({602.0}),
        "year": frozenset({1863.0, 1900.0}),
        "other": frozenset({3.0}),
    }


def _both() -> Bench:
    return Bench(
        passages=[
            passage(
                "The bridge over the river Tagus opened in 1966.",
                key="paper",
                library=Library.PAPERS,
            ),
            passage(
                "The Tagus river bridge was opened in 1998.", key="article", library=Library.PUBLIC
            ),
        ]
    )


def test_a_question_to_both_libraries_reads_both_and_shows_the_disagreement() -> None:
    bench = _both()
    answer = bench.ask(Question("When was the Tagus river bridge opened?", "all"))
    assert {item.hit.passage.chunk.library for item in answer.evidence} == {
        Library.PAPERS,
        Library.PUBLIC,
    }
    assert [request.library for request in bench.retriever.requests] == [
        Library.PAPERS,
        Library.PUBLIC,
    ]
    (found,) = answer.trace.disagreements
    by_number = {item.n: item.hit.passage.chunk.library for item in answer.evidence}
    assert (by_number[found.paper.n], by_number[found.article.n]) == (
        Library.PAPERS,
        Library.PUBLIC,
    )
    assert (found.paper.values, found.article.values) == ((1966.0,), (1998.0,))
    (notice,) = [one for one in answer.notices if one.code == "libraries_disagree"]
    assert f"compare [{found.paper.n}] with [{found.article.n}]" in notice.message


def test_a_question_to_one_library_reads_nothing_of_the_other() -> None:
    bench = _both()
    answer = bench.ask(Question("When was the Tagus river bridge opened?", "public"))
    assert set(bench.touched) == {Library.PUBLIC}
    assert {item.hit.passage.chunk.library for item in answer.evidence} == {Library.PUBLIC}
    assert answer.trace.disagreements == ()
    assert "libraries_disagree" not in [one.code for one in answer.notices]
