from __future__ import annotations

import pytest

from app.generation.check.support import ClaimComparer, Comparison
from app.generation.language.claims import Claim, ReadPassage, spelt_figures

TEXT = (
    "The new parser was evaluated on four diverse benchmarks. It outperforms all earlier parsers"
    " on long sentences and is"
    " able to read tables. Prices increased in the spring, and most buyers were satisfied."
    " Maria Lopez wrote the grammar in twenty-five days."
)


def judged(claim: str, text: str = TEXT) -> Comparison:
    passage = ReadPassage.of_text(text)
    (found,) = ClaimComparer([passage], None, "source").compare(Claim(claim), [passage]).values()
    return found


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "The parser was evaluated on 4 diverse benchmarks.",
            "The parser was evaluated on twelve diverse benchmarks.",
        ),
        (
            "It outperforms all earlier parsers on long sentences.",
            "It underperforms all earlier parsers on long sentences.",
        ),
        ("The parser is able to read tables.", "The parser is unable to read tables."),
        ("In the spring prices increased.", "In the spring prices decreased."),
        ("Most of the buyers were satisfied.", "Most of the buyers were dissatisfied."),
        (
            "Most buyers were satisfied in the spring.",
            "Most buyers were not satisfied in the spring.",
        ),
        ("Maria Lopez wrote the grammar in 25 days.", "Maria Lopez wrote the grammar in 35 days."),
    ],
)
def test_an_edit_is_caught_and_its_original_kept(right: str, wrong: str) -> None:
    assert judged(right).verdict in ("supported", "unsure")
    assert judged(wrong).verdict == "contradicted"


def test_an_opposite_contradicts() -> None:
    assert judged("In the spring prices decreased.").denied
    assert not judged("In the spring prices increased.").denied


def test_a_true_quote_with_opposites_in_it_is_supported() -> None:
    text = "Sales rose in spring and fell in autumn. Sales rose again in winter."
    found = judged("Sales rose in spring and fell in autumn.", text)
    assert (found.score, found.denied) == (1.0, False)


def test_spelt_figures() -> None:
    assert spelt_figures("Twenty-five of ninety birds, twelve eggs and 1,500 ants") == {
        "25",
        "90",
        "12",
        "1500",
    }


TWO = (
    "Ines Almeida sold the mill to the council in 1921. Bram Coster built the weir below the mill in"
    " 1934. He lived in the house beside it until 1950."
)


@pytest.mark.parametrize(
    ("claim", "differs"),
    [
        ("Ines Almeida built the weir below the mill in 1934.", True),
        ("Bram Coster sold the mill to the council in 1921.", True),
        ("Bram Coster built the weir below the mill in 1934.", False),
        ("Coster built the weir below the mill.", False),
        ("Bram Coster built the house below the mill in 1934.", True),
        ("Bram Coster lived in the house beside it until 1950.", False),
    ],
)
def test_another_word_beside_copied_words_differs(claim: str, differs: bool) -> None:
    """Both words stand in the text; a pronoun may stand for either name."""
    assert judged(claim, TWO).changed is differs
