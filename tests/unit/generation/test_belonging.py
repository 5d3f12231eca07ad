"""What a sentence belongs to is matched with it; sentences about another thing of the same kind are left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.types import Evidence, Heading
from app.generation.quote.candidates import Candidate, candidates
from app.generation.quote.quoting import ExtractiveGenerator, quoted_text
from tests.unit.generation.passages import evidence


def _headed(text: str, *titles: str) -> tuple[Evidence, ...]:
    """Return one passage with those of its lines that are headings."""
    (item,) = evidence(text, title="Pages")
    spans = [(text.index(title), title) for title in titles]
    return (replace(item, headings=tuple(Heading(at, at + len(t), 2, t) for at, t in spans)),)


def _above(items: tuple[Evidence, ...]) -> dict[str, str]:
    return {one.text: one.above for one in candidates(items)}


def _answer(question: str, items: tuple[Evidence, ...]) -> str:
    selection = ExtractiveGenerator().select(question, items)
    return quoted_text(selection.chosen)


def test_text_below_a_heading_a_question_and_what_announces_it_belongs_to_them() -> None:
    found = _above(
        _headed(
            "Trips\n\nHow long is the crossing?\n\nTwenty-five minutes.\n\nTake along:\n"
            "- a warm coat\n- rope\n  - of hemp\n",
            "Trips",
        )
    )
    assert "Trips" not in found
    assert found["Twenty-five minutes."] == "Trips How long is the crossing?"
    assert found["a warm coat"] == "Trips How long is the crossing? Take along:"
    assert found["of hemp"].endswith("Take along: rope")


def test_a_heading_above_the_passage_belongs_to_it_too() -> None:
    (item,) = evidence("It is closed on Mondays.", start=500)
    above = (Heading(0, 5, 1, "Mills"), Heading(100, 110, 2, "The North Mill"))
    assert _above((replace(item, headings=above),)) == {
        "It is closed on Mondays.": "Mills The North Mill"
    }


@pytest.mark.parametrize(
    ("question", "text", "said", "unsaid"),
    [
        ("Where does the gull nest?",
         "The gull nests on tower one. The tern nests on tower two. The auk nests on the skerry.",
         "tower one", "tern"),
        ("How many litres does the lamp of pier 17 burn?",
         "The lamp of pier 15 burns 150 litres a month. The lamp of pier 17 burns 170 litres a month.",
         "170", "150"),
        ("How many hours does 10.0.0.1 need?",
         "10.0.28.5 needs 14 hours. 10.0.0.1 needs 2 hours. 10.0.84.13 needs 38 hours.", "2 hours",
         "14"),
        ("When is the beach cleaned?",
         "Dogs are not allowed on the beach in May. The beach is cleaned on Mondays.", "Mondays",
         "Dogs"),
    ],
)  # fmt: skip
def test_sentences_about_another_thing_of_the_kind_are_left_out(
    question: str, text: str, said: str, unsaid: str
) -> None:
    answer = _answer(question, evidence(text))
    assert said in answer
    assert unsaid not in answer


def test_the_whole_list_is_quoted_in_order_where_the_list_is_asked_for() -> None:
    recipe = (
        "Ingredients\n\n- 500 g rye flour\n- 12 g salt\n- 380 ml water\n\nSteps\n\n1. Mix it.\n"
        "2. Rest the dough for 14 hours.\n3. Bake it.\n"
    )
    items = _headed(recipe, "Ingredients", "Steps")
    assert _answer("What are the ingredients?", items) == (
        "- 500 g rye flour [1].\n- 12 g salt [1].\n- 380 ml water [1]."
    )
    how = _answer(
        "How is rye bread made?",
        _headed(f"Rye bread\n\n{recipe}", "Rye bread", "Ingredients", "Steps"),
    )
    assert "380 ml" not in how  # the list is not named, so it is not quoted to its end
    found = candidates(items)
    steps = [one for one in found if one.above == "Steps"]
    assert quoted_text(steps).splitlines() == [
        "1. Mix it [1].",
        "2. Rest the dough for 14 hours [1].",
        "3. Bake it [1].",
    ]


def test_what_stands_above_is_never_quoted() -> None:
    found: list[Candidate] = candidates(_headed("Fees\n\nA berth costs 310 euros.", "Fees"))
    assert [one.text for one in found] == ["A berth costs 310 euros."]
    assert _answer("What are the fees?", _headed("Fees\n\nA berth costs 310 euros.", "Fees"))
