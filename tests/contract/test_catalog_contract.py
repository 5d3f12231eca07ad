"""What the catalog does, in SQLite and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.core.errors import NotFound
from app.core.types import Library
from app.storage.catalog.documents import Catalog
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft

PAPERS, PUBLIC = Library.PAPERS, Library.PUBLIC

DRAFTS = [
    make_draft("first.txt", "Walruses whistle in winter.", title="On walruses", chunks=2),
    make_draft("second.txt", "Penguins parade past the pier.", title="On penguins", chunks=3),
    make_draft("third.txt", "Zebras zigzag.", title="Zebra stripes", chunks=1),
]


@pytest.fixture(scope="module")
def store(
    tmp_path_factory: pytest.TempPathFactory, new_database_url: Callable[[], str]
) -> Iterator[IndexStore]:
    path: Path = tmp_path_factory.mktemp("data")
    options = IndexOptions(path, path / "chroma", new_database_url(), tantivy_threads=1)
    with IndexStore(options, vector_store="off") as opened:
        opened.writer.write(DRAFTS)
        yield opened


@pytest.fixture
def catalog(store: IndexStore) -> Catalog:
    return store.catalog


def test_passages_come_by_id_with_exact_text(catalog: Catalog) -> None:
    found = catalog.passages(PAPERS, [3, 1, 999])
    assert sorted(found) == [1, 3]
    assert found[1].chunk.text == "Walruses whis"
    assert found[3].document.title == "On penguins"
    assert catalog.passages(PAPERS, []) == {}
    assert catalog.passages(PUBLIC, [1]) == {}


def test_chunks_are_slices_of_the_text(catalog: Catalog) -> None:
    for draft in DRAFTS:
        text = catalog.text(PAPERS, draft.doc_id)
        assert (text.text, text.start, text.end, text.length, text.revision) == (
            draft.text, 0, len(draft.text), len(draft.text), 1,
        )  # fmt: skip
        chunks = catalog.chunks(PAPERS, draft.doc_id)
        assert [chunk.ordinal for chunk in chunks] == list(range(len(draft.chunks)))
        for chunk in chunks:
            assert catalog.text(PAPERS, draft.doc_id, chunk.start, chunk.end).text == chunk.text


def test_an_unknown_document_is_not_found(catalog: Catalog) -> None:
    with pytest.raises(NotFound):
        catalog.document(PAPERS, "0" * 16)
    with pytest.raises(NotFound):
        catalog.text(PUBLIC, DRAFTS[0].doc_id)


def test_documents_are_found_by_title_whatever_the_case(catalog: Catalog) -> None:
    found, _ = catalog.documents(PAPERS, "on ")
    assert {document.title for document in found} == {"On walruses", "On penguins"}
    assert catalog.documents(PUBLIC) == ([], None)


def test_counts_are_of_live_documents(catalog: Catalog) -> None:
    counts = catalog.counts(PAPERS)
    assert (counts.documents, counts.chunks) == (3, 6)
    assert catalog.counts(PUBLIC).documents == 0


def test_pages_follow_each_other_without_gap_or_repeat(catalog: Catalog) -> None:
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page, cursor = catalog.documents(PAPERS, cursor=cursor, limit=2)
        seen += [document.source_key for document in page]
        if cursor is None:
            break
    assert sorted(seen) == ["first.txt", "second.txt", "third.txt"]
