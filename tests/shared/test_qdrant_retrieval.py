"""What a search does in any language and with typing errors, run on words in the engine."""

from __future__ import annotations

import pytest

from app.core.types import Library
from app.retrieval.retrievers import matched_text
from tests.stores import passage
from tests.unit.retrieval import conftest, test_languages, test_pipeline, test_spelling
from tests.unit.retrieval.conftest import Shelve, StockedLibrary

for suite in (test_languages, test_pipeline, test_spelling):
    globals().update({name: it for name, it in vars(suite).items() if name.startswith("test_")})
shelf, stock = test_spelling.shelf, conftest.stock


@pytest.fixture
def search_url(engine_url: str) -> str:
    return engine_url


@pytest.mark.parametrize(
    ("asked", "searched"),
    [
        ("the aqueudctt", "the aqueduct"),
        ("the normanndiy", "the normandy"),
        ("the valeyl", "the valeyl"),
        ("18875", "18875"),
    ],
)
def test_two_edits_are_matched_from_eight_letters(
    shelf: StockedLibrary, asked: str, searched: str
) -> None:
    assert matched_text(asked, Library.PAPERS, shelf.lexical, shelf.catalog) == searched


def test_a_title_weighs_less_than_a_body_and_function_words_nothing(stock: Shelve) -> None:
    held = [
        passage("Barley grows in fields of clay, and it ripens.", key="title", title="Walruses"),
        passage("Walruses grow in fields of clay, and they ripen.", key="body", title="Barley"),
    ]
    index = stock([], bare=held).lexical
    found = index.search(Library.PAPERS, "of walruses", 5)
    assert [hit.chunk_id for hit in found] == [2, 1]
    assert found == index.search(Library.PAPERS, "walruses", 5)
    assert index.search(Library.PAPERS, "of the and", 5) != []
