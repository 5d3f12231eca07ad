"""Unknown words are matched to near ones; known words, numbers, identifiers and short words stay."""

from __future__ import annotations

import pytest

from app.core.types import Library
from app.retrieval.retrievers import matched_text
from tests.stores import passage
from tests.unit.retrieval.conftest import Shelve, StockedLibrary

PAPERS = Library.PAPERS


@pytest.fixture
def shelf(stock: Shelve) -> StockedLibrary:
    texts = (
        "Rollo led the Normans to Normandy.",
        "The aqueduct carried water over the valley in 1885.",
        "Model X12ab of the engine",
    )
    return stock([], bare=[passage(text, key=str(i)) for i, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("asked", "searched"),
    [
        ("Where is Nrmandy?", "Where is normandy?"),
        ("who led the Nromans", "who led the normans"),
        ("what carried watter over the vally", "what carried water over the valley"),
        ("a rare aquedutc", "a rare aqueduct"),
    ],
)
def test_a_misspelt_word_is_matched(shelf: StockedLibrary, asked: str, searched: str) -> None:
    assert matched_text(asked, PAPERS, shelf.lexical, shelf.catalog) == searched


@pytest.mark.parametrize(
    "asked",
    [
        "Where is Normandy?",
        "What happened in 1886?",
        "model x13ab",
        "the sea",
        "Who is Zarathustra?",
        "What is RoLla?",
        "what is vAlley2vec or VALEY?",
        "Who is the king of Watar?",  # no passage writes water as a name
        "",
        "\u65e5\u672c",
        "C++ * ?",
    ],
)
def test_everything_else_stays_as_it_is(shelf: StockedLibrary, asked: str) -> None:
    for library in Library:
        assert matched_text(asked, library, shelf.lexical, shelf.catalog) == asked


def test_a_word_that_the_model_knows_whole_stays(shelf: StockedLibrary) -> None:
    lexical, catalog = shelf.lexical, shelf.catalog
    assert matched_text("a galley", PAPERS, lexical, catalog) == "a valley"
    assert matched_text("a galley", PAPERS, lexical, catalog, frozenset({"galley"})) == "a galley"


def test_a_function_word_with_two_letters_swapped_is_that_word(shelf: StockedLibrary) -> None:
    lexical, catalog = shelf.lexical, shelf.catalog
    known = frozenset({"who", "led", "form"})
    asked = "Who led teh Normans form Normandy?"
    searched = "Who led the Normans form Normandy?"
    assert matched_text(asked, PAPERS, lexical, catalog, known) == searched
    assert matched_text(asked, PAPERS, lexical, catalog) == asked  # no model knows the words
