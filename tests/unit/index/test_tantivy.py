"""What tantivy's index promises beyond the contract of lexical indexes."""

from __future__ import annotations

from pathlib import Path

from app.core.types import Library
from app.index.options import IndexOptions
from app.index.store import IndexStore
from tests.unit.index.drafts import make_draft


def test_a_tie_is_cut_by_chunk_id_and_not_by_segment(tmp_path: Path) -> None:
    with IndexStore(IndexOptions(tmp_path, tmp_path / "chroma"), vector_store="off") as store:
        for name in "dbcafe":  # a commit, hence a segment, each
            store.writer.write([make_draft(name, "Walruses whistle in the winter wind.", title="", chunks=1)])
        everything = store.lexical.search(Library.PAPERS, "winter wind", 10)
        assert [hit.chunk_id for hit in everything] == [1, 2, 3, 4, 5, 6]
        assert len({hit.score for hit in everything}) == 1
        for k in range(1, 7):
            assert store.lexical.search(Library.PAPERS, "winter wind", k) == everything[:k]
