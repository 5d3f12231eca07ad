"""Unknown words are matched to near ones; known words, numbers, identifiers and short words stay."""

from __future__ import annotations

import pytest

from app.core.types import Library
from app.retrieval.legs import matched_text
from tests.fakes.indexes import MemoryCatalog, TextbookBM25
from tests.fakes.retrievers import passage


@pytest.fixture
def catalog() -> MemoryCatalog:
    texts = (
        "Rollo led the Normans to Normandy.",
        "The aqueduct carried water over the valley in 1885.",
        "Model X12ab of the engine",
    )
    return MemoryCatalog([passage(text, key=str(i)) for i, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("asked", "searched"),
    [
        ("Where is Nrmandy?", "Where is normandy?"),
        ("who led the Nromans", "who led the normans"),
        ("what carried watter over the vally", "what carried water over the valley"),
        ("a rare aquedutc", "a rare aqueduct"),
    ],
)
def test_a_misspelt_word_is_matched(catalog: MemoryCatalog, asked: str, searched: str) -> None:
    library = next(iter(library for library, known in catalog.by_library.items() if known))
    assert matched_text(asked, library, TextbookBM25(catalog), catalog) == searched


@pytest.mark.parametrize(
    "asked",
    [
        "Where is Normandy?",
        "What happened in 1886?",
        "model x13ab",
        "the sea",
        "Who is Zarathustra?",
        "",
        "\u65e5\u672c",
        "C++ * ?",
    ],
)
def test_everything_else_stays_as_it_is(catalog: MemoryCatalog, asked: str) -> None:
    for library in Library:
        assert matched_text(asked, library, TextbookBM25(catalog), catalog) == asked


def test_a_word_that_the_model_knows_whole_stays(catalog: MemoryCatalog) -> None:
    library = next(iter(library for library, known in catalog.by_library.items() if known))
    lexical = TextbookBM25(catalog)
    assert matched_text("a galley", library, lexical, catalog) == "a valley"
    assert matched_text("a galley", library, lexical, catalog, frozenset({"galley"})) == "a galley"


def test_a_function_word_with_two_letters_swapped_is_that_word(catalog: MemoryCatalog) -> None:
    library = next(iter(library for library, known in catalog.by_library.items() if known))
    lexical, known = TextbookBM25(catalog), frozenset({"who", "led", "form"})
    asked = "Who led teh Normans form Normandy?"
    searched = "Who led the Normans form Normandy?"
    assert matched_text(asked, library, lexical, catalog, known) == searched
    assert matched_text(asked, library, lexical, catalog) == asked  # no model knows the words
