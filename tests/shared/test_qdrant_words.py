"""What a search for words does, by sparse vectors in Qdrant."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import SearchAway
from app.core.types import Library
from app.shared import qdrant_words
from app.shared.qdrant import SearchEngine
from app.shared.qdrant_words import QdrantWords
from app.storage.files.durable import Steps
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.words.port import LibraryWords
from tests.contract.oracles import textbook_bm25
from tests.contract.test_lexical_index_contract import (  # noqa: F401  # the suite of the port
    DRAFTS,
    test_any_text_is_a_query,
    test_document_frequencies_count_chunks,
    test_filters_keep_exactly_what_matches,
    test_hits_are_sorted_and_share_a_word,
    test_near_words_are_found,
    test_no_text_is_an_error,
    test_scores_of_given_chunks_are_those_of_the_search,
)
from tests.fakes.qdrant_double import QdrantDouble
from tests.shared.engines import ENGINES, url_of
from tests.unit.storage.drafts import make_draft

PAPERS = Library.PAPERS


def in_engine(path: Path, url: str) -> IndexOptions:
    return IndexOptions(path, path / "chroma", search_url=url, title_boost=0, section_boost=0)


@pytest.fixture(scope="module", params=ENGINES)
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IndexStore]:
    path = tmp_path_factory.mktemp("data")
    with (
        url_of(request.param, path / "engine") as url,
        IndexStore(in_engine(path / "data", url), vector_store="off") as opened,
    ):
        opened.writer.write(DRAFTS)
        yield opened


@pytest.fixture
def index(store: IndexStore) -> LibraryWords:
    return store.lexical


def test_order_is_the_textbooks(store: IndexStore) -> None:
    """The average length is fixed, so that scores differ by a factor for each length."""
    passages = store.catalog.passages(PAPERS, range(1, 100))
    for query in ("winter", "wind pier", "nothing in common", "the walruses of winter"):
        theirs = [hit.chunk_id for hit in store.lexical.search(PAPERS, query, 10)]
        scores = textbook_bm25(passages, query)
        assert theirs == sorted(filter(scores.get, scores), key=lambda i: (-scores[i], i))


def test_words_are_in_the_engine_alone(store: IndexStore) -> None:
    assert not (store.options.data_dir / "tantivy").exists()
    with closing(SearchEngine(store.options.search_url)) as engine:
        assert "words_papers" in engine.collections()


def test_a_check_asks_the_engine_once_a_chunk(tmp_path: Path) -> None:
    with (
        QdrantDouble(tmp_path / "engine") as double,
        IndexStore(in_engine(tmp_path / "data", double.url), vector_store="off") as opened,
    ):
        opened.writer.write(DRAFTS)
        engine = SearchEngine(double.url)
        words = QdrantWords(PAPERS, engine, opened.options, Steps())
        assert words.languages
        double.asked.clear()
        for chunk in opened.catalog.chunks_by_id(PAPERS, range(1, 6)):
            assert words.finds(chunk.chunk_id, chunk.text)
        assert not words.finds(1, "penguins parade")
        assert len(double.asked) == 6
        words.close()
        engine.close()


def test_no_question_waits_for_what_the_engine_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But the first; and whoever wrote knows of the new language."""
    german = make_draft("penguins", "Die Pinguine watscheln.")
    counts, may_count = SearchEngine.facet, threading.Event()

    def held_up(engine: SearchEngine, name: str, field: str, n: int) -> dict[str, int]:
        assert may_count.wait(60)
        return counts(engine, name, field, n)

    with (
        QdrantDouble(tmp_path / "engine") as double,
        IndexStore(in_engine(tmp_path / "data", double.url), vector_store="off") as opened,
    ):
        opened.writer.write(DRAFTS)
        found = opened.lexical.search(PAPERS, "winter", 5)
        monkeypatch.setattr(qdrant_words, "FRESH_S", -1.0)
        monkeypatch.setattr(qdrant_words, "KNOWN_TERMS_FRESH_S", -1.0)
        monkeypatch.setattr(SearchEngine, "facet", held_up)
        assert found
        for _ in range(3):
            assert opened.lexical.search(PAPERS, "winter", 5) == found
        threads = counting()
        assert len(threads) == 2  # languages and terms
        may_count.set()
        for thread in threads:
            thread.join(60)
        for at_once in (5_000, 0):  # small, and large
            monkeypatch.setattr(qdrant_words, "COUNTED_AT_ONCE", at_once)
            language = "de" if at_once else "es"
            metadata = replace(german.metadata, language=language)
            key = f"{german.source_key} {language}"
            written = make_draft(key, german.text)
            opened.writer.write([replace(written, metadata=metadata)])
            assert language in opened.lexical.languages(PAPERS)
        for thread in counting():
            thread.join(60)


def counting() -> list[threading.Thread]:
    """Return the threads that count languages or terms."""
    return [thread for thread in threading.enumerate() if " of words_" in thread.name]


def test_what_is_sent_beside_each_other_is_there_when_it_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or refused as a whole: no request is under way any more."""
    monkeypatch.setattr(qdrant_words, "PIECE", 2)
    with (
        QdrantDouble(tmp_path / "engine") as double,
        closing(SearchEngine(double.url)) as engine,
        IndexStore(in_engine(tmp_path / "data", double.url), vector_store="off") as opened,
    ):
        opened.writer.write([make_draft("walrus", "One walrus after the other. " * 60, chunks=31)])
        (document,) = opened.loader.lexical_documents([1])
        ids = [chunk_id for chunk_id, _, _ in document.chunks]
        assert engine.ids("words_papers") == set(ids)
        engine.delete("words_papers", ids)
        words = QdrantWords(PAPERS, engine, opened.options, Steps())
        words.add(document)
        double.refusals += [(503, "busy")] * 2 * len(ids)
        with pytest.raises(SearchAway):
            words.commit()
        double.refusals.clear()
        assert engine.ids("words_papers") < set(ids)
        words.add(document)
        words.commit()
        assert engine.ids("words_papers") == set(ids)
        words.close()


def test_a_group_that_writes_a_document_twice_keeps_the_second(store: IndexStore) -> None:
    engine = SearchEngine(store.options.search_url)
    words = QdrantWords(Library.PUBLIC, engine, store.options, Steps())
    (document,) = store.loader.lexical_documents([1])
    ids = [chunk_id for chunk_id, _, _ in document.chunks]
    words.add(document)
    words.delete(document.doc, ids)
    words.commit()
    assert words.ids() == []
    words.add(document)
    words.delete(document.doc, ids)
    words.add(document)
    words.commit()
    assert words.ids() == ids
    words.delete_all()
    assert words.count == 0
    words.close()
    engine.close()
