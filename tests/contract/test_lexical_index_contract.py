"""What a search for words does, by tantivy, whose scores are the textbook's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.text import tokenise
from app.core.types import Condition, Filters, Labels, Library
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.words.port import LibraryWords
from tests.contract.oracles import matches, textbook_bm25
from tests.unit.storage.drafts import make_draft

PAPERS = Library.PAPERS

DRAFTS = [
    make_draft(
        "a",
        "Walruses whistle in the winter wind.",
        title="",
        chunks=1,
        year=1999,
        authors=("Ann Li", "Émile Roux"),
        kind="pdf",
        labels=Labels(("Sea", "winter"), {"rating": 5, "due": "2026-02-01"}),
    ),
    make_draft(
        "b",
        "Penguins parade past the windy pier.",
        title="",
        chunks=1,
        year=2005,
        authors=("Bo Ek",),
        sections=("methods",),
        labels=Labels(("sea",), {"rating": 2.5, "project": "Apollo 1"}),
    ),
    make_draft("c", "The winter pier whistles: wind, wind, wind.", title="", chunks=1, kind="html"),
    make_draft(
        "d", "Nothing in common with them at all, really nothing.", title="", chunks=1, year=2010
    ),
    make_draft("e", "日本語の文章を検索する。", title="", chunks=1),
]

FILTERS = [
    Filters(sections=("methods",)),
    Filters(doc_ids=(DRAFTS[0].doc_id, DRAFTS[2].doc_id)),
    Filters(exclude_doc_ids=(DRAFTS[0].doc_id, DRAFTS[3].doc_id)),
    Filters(exclude_doc_ids=(DRAFTS[0].doc_id,), tags=("sea",)),
    Filters(year_from=2000),
    Filters(year_to=2000),
    Filters(year_from=1999, year_to=2005),
    Filters(author="ANN l"),
    Filters(author="émile"),
    Filters(author=".*"),
    Filters(types=("pdf", "html")),
    Filters(types=("pdf",), year_from=2001),
    Filters(tags=("SEA",)),
    Filters(tags=("no such tag",)),
    Filters(tags=("winter", "sea"), year_from=2000),
    Filters(tags=("sea",), doc_ids=(DRAFTS[0].doc_id, DRAFTS[2].doc_id)),
    Filters(metadata=(Condition.equal("rating", 5),)),
    Filters(metadata=(Condition.equal("project", "apollo  1"),)),
    Filters(metadata=(Condition.between("rating", 2.5, None),)),
    Filters(metadata=(Condition.between("due", None, "2026-02-01"),)),
    Filters(tags=("sea",), metadata=(Condition.between("rating", 3, 6),)),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexStore]:
    path: Path = tmp_path_factory.mktemp("data")
    options = IndexOptions(path, path / "chroma", tantivy_threads=1, title_boost=0, section_boost=0)
    with IndexStore(options, vector_store="off") as opened:
        opened.writer.write(DRAFTS)
        yield opened


@pytest.fixture
def index(store: IndexStore) -> LibraryWords:
    return store.lexical


def test_hits_are_sorted_and_share_a_word(index: LibraryWords) -> None:
    hits = index.search(PAPERS, "winter winds", 10)
    assert [hit.chunk_id for hit in hits] == [3, 1, 2] or {hit.chunk_id for hit in hits} == {1, 3}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert index.search(PAPERS, "winter winds", 1) == hits[:1]
    assert index.search(Library.PUBLIC, "winter", 10) == []


@pytest.mark.parametrize(
    "text", ["", "   ", "C++ AND (", '"unclosed', "title:x^", "zzzz", "*:*", "\x00", "日本"]
)
def test_any_text_is_a_query(index: LibraryWords, text: str) -> None:
    hits = index.search(PAPERS, text, 10)
    assert [hit.chunk_id for hit in hits] == ([5] if text == "日本" else [])


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filters_keep_exactly_what_matches(store: IndexStore, filters: Filters) -> None:
    query = "walruses penguins winter nothing wind pier"
    everything = {hit.chunk_id for hit in store.lexical.search(PAPERS, query, 10)}
    passages = store.catalog.passages(PAPERS, sorted(everything))
    expected = {chunk_id for chunk_id, passage in passages.items() if matches(passage, filters)}
    hits = store.lexical.search(PAPERS, query, 10, filters)
    assert {hit.chunk_id for hit in hits} == expected


def test_scores_of_given_chunks_are_those_of_the_search(index: LibraryWords) -> None:
    found = {hit.chunk_id: hit.score for hit in index.search(PAPERS, "winter wind", 10)}
    scores = index.score(PAPERS, "winter wind", [1, 2, 3, 4])
    assert scores == pytest.approx({**dict.fromkeys((1, 2, 3, 4), 0.0), **found}, rel=1e-5)


def test_document_frequencies_count_chunks(index: LibraryWords) -> None:
    total, counts = index.document_frequencies(PAPERS, tokenise("winter whistle absent"))
    assert (total, counts) == (5, {"winter": 2, "whistl": 2, "absent": 0})


@pytest.mark.parametrize(
    ("token", "edits", "found"),
    [
        ("wintr", 1, {1, 3}),
        ("wniter", 1, {1, 3}),
        ("penguis", 1, {2}),
        ("penguin", 0, {2}),
        ("pennguis", 2, {2}),
        ("pegnun", 2, {2}),
        ("winsr", 1, set()),
        ("xxxx", 2, set()),
    ],
)
def test_near_words_are_found(index: LibraryWords, token: str, edits: int, found: set[int]) -> None:
    assert set(index.near(PAPERS, token, edits, 10)) == found
    assert len(index.near(PAPERS, token, edits, 1)) <= 1


@pytest.mark.parametrize(
    ("start", "found"), [("wint", {1, 3}), ("pengu", {2}), ("winter", {1, 3}), ("xx", set())]
)
def test_words_are_found_by_their_beginning(
    index: LibraryWords, start: str, found: set[int]
) -> None:
    assert set(index.beginning(PAPERS, start, 10)) == found
    assert len(index.beginning(PAPERS, start, 1)) <= 1


def test_tantivy_is_the_textbook(store: IndexStore) -> None:
    """Lengths are stored in one byte, exact up to 40 tokens: on short texts the scores are equal."""
    for query in ("winter", "wind pier", "nothing in common", "the walruses of winter"):
        theirs = store.lexical.score(PAPERS, query, [1, 2, 3, 4, 5])
        passages = store.catalog.passages(PAPERS, [1, 2, 3, 4, 5])
        assert theirs == pytest.approx(textbook_bm25(passages, query), rel=1e-4)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60))
def test_no_text_is_an_error(store: IndexStore, text: str) -> None:
    store.lexical.search(PAPERS, text, 3)
    store.lexical.search(PAPERS, "winter", 3, Filters(author=text or "x"))
