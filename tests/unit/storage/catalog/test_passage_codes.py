"""Codes in the catalog: kept with their chunks, gone with them, of one version, and never half a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.errors import InvalidInput
from app.core.types import Library, PassageCode
from app.storage.catalog import passage_codes
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft

PAPERS = Library.PAPERS
CODE = PassageCode(bytes(384), bytes(32))


def _ids(store: IndexStore) -> list[int]:
    return [chunk.chunk_id for chunk in store.codes.pending_codes(PAPERS, 100)]


def test_codes_live_and_go_with_their_chunks(store: IndexStore) -> None:
    draft = make_draft("a.txt", "Walruses whistle in the wind.")
    store.writer.write([draft, make_draft("b.txt", "Penguins parade past the pole.")])
    ids = _ids(store)
    store.codes.write_codes(dict.fromkeys(ids, CODE))
    assert store.codes.codes(ids) == dict.fromkeys(ids, CODE)
    assert _ids(store) == []
    store.writer.write([make_draft("a.txt", "Walruses sleep.")])
    new = _ids(store)
    assert len(new) >= 1
    assert set(new).isdisjoint(ids)
    kept = store.codes.codes(ids)
    assert 0 < len(kept) < len(ids), "a superseded revision has no codes"
    store.codes.write_codes(dict.fromkeys(ids, CODE))
    assert store.codes.codes(ids) == kept, "and gets none"
    store.writer.delete_all(PAPERS)
    assert store.codes.codes([*ids, *new]) == {}


def test_pending_goes_on_behind_a_chunk_and_by_document(store: IndexStore) -> None:
    first, second = (
        make_draft("a.txt", "Walruses whistle in the wind."),
        make_draft("b.txt", "Penguins parade past the pole."),
    )
    store.writer.write([first, second])
    ids = _ids(store)
    assert [chunk.chunk_id for chunk in store.codes.pending_codes(PAPERS, 100, ids[0])] == ids[1:]
    assert {
        chunk.doc_id for chunk in store.codes.pending_codes(PAPERS, 100, doc_ids=[second.doc_id])
    } == {second.doc_id}
    assert store.codes.pending_codes(Library.PUBLIC, 100) == []


def test_a_code_of_half_a_row_is_refused(store: IndexStore) -> None:
    with pytest.raises(InvalidInput, match="rows of 384 and 16"):
        store.codes.write_codes({1: PassageCode(bytes(383), bytes(16))})


def test_clearing_leaves_the_other_library(store: IndexStore) -> None:
    store.writer.write([make_draft("a.txt", "Walruses.")])
    store.writer.write([make_draft("wiki:1", "Lions.", library=Library.PUBLIC)])
    ids = [chunk.chunk_id for library in Library for chunk in store.codes.pending_codes(library, 9)]
    store.codes.write_codes(dict.fromkeys(ids, CODE))
    store.codes.delete_codes(PAPERS)
    assert len(store.codes.codes(ids)) == len(ids) - len(_ids(store))
    assert store.codes.pending_codes(Library.PUBLIC, 9) == []


def test_codes_of_another_version_are_dropped_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = IndexOptions(tmp_path, tmp_path / "chroma")
    with IndexStore(options, vector_store="off") as store:
        store.writer.write([make_draft("a.txt", "Walruses.")])
        store.codes.write_codes(dict.fromkeys(_ids(store), CODE))
    with IndexStore(options, vector_store="off") as store:
        assert _ids(store) == []
    monkeypatch.setattr(passage_codes, "CODES_VERSION", "another")
    with IndexStore(options, vector_store="off") as store:
        assert len(_ids(store)) >= 1
