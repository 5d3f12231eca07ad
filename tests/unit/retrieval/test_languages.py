"""Search in languages that the embedder knows, and in others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.trace import Trace
from app.core.types import Library, Passage
from app.retrieval.candidates import question_words
from app.retrieval.request import Retrieval, SearchRequest
from app.retrieval.retrievers import matched_text
from tests.fakes.embedders import HashEmbedder
from tests.stores import passage
from tests.unit.retrieval.conftest import Shelve, StockedLibrary

GERMAN = "Die Normannen eroberten England im Jahr 1066 bei Hastings und bauten dort viele Burgen."
ENGLISH = "The dukes of Normandy conquered England in 1066 at Hastings and built many castles."


def written(text: str, language: str, key: str) -> Passage:
    found = passage(text, key=key)
    return replace(found, document=replace(found.document, language=language))


def asked(stocked: StockedLibrary, text: str, **fields: object) -> Retrieval:
    stocked.embedder = HashEmbedder(256, languages=frozenset({"en"}))
    request = SearchRequest(text, Library.PAPERS, keep_weak=True, top_k=3, **fields)  # type: ignore[arg-type]
    return stocked.retriever().retrieve(request, Trace())


def codes(found: Retrieval) -> list[str]:
    return [notice.code for notice in found.notices]


def test_a_language_that_the_embedder_does_not_know_is_searched_by_words(stock: Shelve) -> None:
    stocked = stock([written(GERMAN, "de", "de"), passage("Wheat is a cereal.", key="wheat")])
    found = asked(stocked, "Wer eroberte die Burg in England?")
    assert found.hits[0].passage.chunk.text == GERMAN
    assert found.hits[0].signals.dense is None
    assert codes(found) == ["language_differs"]
    assert "German" in found.notices[0].message
    assert "documind models use multilingual" in found.notices[0].message


def test_so_is_one_that_no_document_is_in(stock: Shelve) -> None:
    found = asked(stock([written(ENGLISH, "en", "en")]), "Wer eroberte das Land in England?")
    assert found.hits[0].signals.dense is None
    assert codes(found) == ["language_differs"]


def test_who_asks_for_vectors_gets_them(stock: Shelve) -> None:
    stocked = stock([written(GERMAN, "de", "de")])
    found = asked(stocked, "Wer eroberte die Burg in England?", fusion="dense")
    assert found.hits[0].signals.dense is not None
    by_setting = stocked.retriever(fusion="dense")
    request = SearchRequest("Wer eroberte die Burg in England?", Library.PAPERS, keep_weak=True)
    assert by_setting.retrieve(request, Trace()).hits[0].signals.dense is not None


def test_english_has_both_legs_and_no_notice(stock: Shelve) -> None:
    found = asked(stock([written(ENGLISH, "", "en")]), "Who conquered England?")
    assert found.hits[0].signals.dense is not None
    assert found.notices == ()


def test_a_question_counts_by_the_stems_of_each_language(stock: Shelve) -> None:
    stocked = stock([written(GERMAN, "de", "de"), written(ENGLISH, "en", "en")])
    words = question_words(stocked.lexical, Library.PAPERS, "Wer baute eine Burg?")
    assert set(words.weights) == {"baut", "burg"}
    assert set(words.stemmed_in("en").weights) == {"baut", "burg"}
    assert words.stemmed_in("fr") is words
    found = asked(stocked, "Wer baute die Burgen der Normannen?")
    assert found.hits[0].passage.chunk.text == GERMAN


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("Wer eroberte die Burgfn?", "Wer eroberte die Burgfn?"),
        ("Who built the castlas?", "Who built the castles?"),
    ],
)
def test_words_of_another_language_are_not_misspelt(stock: Shelve, text: str, matched: str) -> None:
    stocked = stock([written(ENGLISH, "en", "en")])
    assert matched_text(text, Library.PAPERS, stocked.lexical, stocked.catalog) == matched
