"""What a search does in any language and with typing errors, run on words in the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pytest

from app.core.types import Filters, Library, Passage, Scored
from app.retrieval.legs import matched_text
from app.shared.qdrant import SearchEngine
from app.shared.qdrant_words import WORDS, QdrantWords
from app.storage.catalog.changes import ChangeLog
from app.storage.catalog.reading import CatalogLoader
from app.storage.catalog.rows import LexicalDocument
from app.storage.files.durable import Steps
from app.storage.options import IndexOptions
from app.storage.words.port import LibraryWords
from tests.fakes.indexes import MemoryCatalog
from tests.fakes.retrievers import passage
from tests.stores import catalog_database
from tests.unit.retrieval import conftest, test_languages, test_pipeline, test_spelling
from tests.unit.retrieval.conftest import StockedLibrary

Shelve = Callable[[Sequence[Passage]], StockedLibrary]
for suite in (test_languages, test_pipeline, test_spelling):
    globals().update({name: it for name, it in vars(suite).items() if name.startswith("test_")})
catalog = test_spelling.catalog
in_memory = conftest.stock


class WatchedWords(LibraryWords):
    """Words in the engine; tells which libraries were searched."""

    def __init__(self, words: dict[Library, QdrantWords], passages: Sequence[Passage]) -> None:
        database = catalog_database()
        super().__init__(words, CatalogLoader(database, ChangeLog(database)))
        self.searched: list[Library] = []
        for library, index in words.items():
            of = sorted(
                (p for p in passages if p.chunk.library is library), key=lambda p: p.chunk.doc_id
            )
            for number, (_, some) in enumerate(groupby(of, lambda p: p.chunk.doc_id), 1):
                index.add(_document(number, list(some)))
            index.commit()

    def search(
        self, library: Library, text: str, k: int, filters: Filters | None = None
    ) -> list[Scored]:
        self.searched.append(library)
        return super().search(library, text, k, filters)


def _document(number: int, passages: Sequence[Passage]) -> LexicalDocument:
    document = passages[0].document
    return LexicalDocument(
        number, document.doc_id, document.title, document.authors, document.year, document.type,
        [(p.chunk.chunk_id, p.chunk.section, p.chunk.text) for p in passages], document.language,
    )  # fmt: skip


@pytest.fixture
def words(engine_url: str, tmp_path: Path) -> Iterator[Callable[[Sequence[Passage]], WatchedWords]]:
    """Put words into the engine, which is empty."""
    opened: list[QdrantWords] = []

    def fill(passages: Sequence[Passage]) -> WatchedWords:
        options, engine = IndexOptions(tmp_path, tmp_path / "chroma"), SearchEngine(engine_url)
        made = {library: QdrantWords(library, engine, options, Steps()) for library in Library}
        opened.extend(made.values())
        for library, index in made.items():
            engine.delete(f"{WORDS}_{library.value}", index.ids())
        return WatchedWords(made, passages)

    yield fill
    for index in opened:
        index.close()


@pytest.fixture
def stock(
    in_memory: Shelve, words: Callable[[Sequence[Passage]], WatchedWords]
) -> Callable[[Sequence[Passage]], StockedLibrary]:
    """Index passages, all with a vector, the words in the engine."""

    def build(passages: Sequence[Passage]) -> StockedLibrary:
        stocked = in_memory(passages)
        stocked.lexical = words(passages)  # type: ignore[assignment]
        return stocked

    return build


@pytest.fixture(autouse=True)
def engine_words(
    words: Callable[[Sequence[Passage]], WatchedWords], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the suite of spelling ask the engine instead of the textbook."""

    def instead(catalog: MemoryCatalog) -> WatchedWords:
        return words([p for known in catalog.by_library.values() for p in known.values()])

    monkeypatch.setattr(test_spelling, "TextbookBM25", instead)


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
    catalog: MemoryCatalog,
    words: Callable[[Sequence[Passage]], WatchedWords],
    asked: str,
    searched: str,
) -> None:
    held = [p for known in catalog.by_library.values() for p in known.values()]
    assert matched_text(asked, Library.PAPERS, words(held), catalog) == searched


def test_a_title_weighs_less_than_a_body_and_function_words_nothing(
    words: Callable[[Sequence[Passage]], WatchedWords],
) -> None:
    held = [
        passage("Barley grows in fields of clay, and it ripens.", key="title", title="Walruses"),
        passage("Walruses grow in fields of clay, and they ripen.", key="body", title="Barley"),
    ]
    index = words(held)
    found = index.search(Library.PAPERS, "of walruses", 5)
    assert [hit.chunk_id for hit in found] == [held[1].chunk.chunk_id, held[0].chunk.chunk_id]
    assert found == index.search(Library.PAPERS, "walruses", 5)
    assert index.search(Library.PAPERS, "of the and", 5) != []
