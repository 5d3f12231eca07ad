"""What tantivy's index promises beyond the contract of lexical indexes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from app.core.ids import document_id
from app.core.types import Library
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft


def test_a_tie_is_cut_by_chunk_id_and_not_by_segment(tmp_path: Path) -> None:
    with IndexStore(IndexOptions(tmp_path, tmp_path / "chroma"), vector_store="off") as store:
        for name in "dbcafe":  # a commit, hence a segment, each
            store.writer.write(
                [make_draft(name, "Walruses whistle in the winter wind.", title="", chunks=1)]
            )
        everything = store.lexical.search(Library.PAPERS, "winter wind", 10)
        assert [hit.chunk_id for hit in everything] == [1, 2, 3, 4, 5, 6]
        assert len({hit.score for hit in everything}) == 1
        for k in range(1, 7):
            assert store.lexical.search(Library.PAPERS, "winter wind", k) == everything[:k]


def commit_cut_short(directory: Path, *, known: bool) -> Path:
    """Return a data directory as a kill leaves it between a commit's deletions and its meta.json.

    Args:
        directory: Where it is made.
        known: Whether tantivy's list of its own files has those of the deletions.
    """
    data, killed = directory / "data", directory / "killed"
    meta = data / "tantivy" / "papers" / "meta.json"
    with IndexStore(
        IndexOptions(data, data / "chroma", tantivy_threads=1), vector_store="off"
    ) as store:
        store.writer.write(
            [
                make_draft(name, f"walruses whistle for {name}", chunks=1)
                for name in ("ann", "bea", "cid")
            ]
        )
        before = meta.read_bytes()
        store.writer.delete(Library.PAPERS, document_id(Library.PAPERS, "ann"))
        shutil.copytree(data, killed)
    index = (killed / meta.relative_to(data)).parent
    (index / "meta.json").write_bytes(before)
    (left,) = index.glob("*.del")
    segment = left.name.split(".")[0]
    # The name has the number of operations so far, and a new process may count from another one.
    names = [f"{segment}.{n}.del" for n in range(20)]
    for name in names:
        if name != left.name:
            shutil.copyfile(left, index / name)
    managed = set(json.loads((index / ".managed.json").read_bytes()))
    (index / ".managed.json").write_text(
        json.dumps(sorted(managed | set(names) if known else managed - set(names)))
    )
    return killed


def found_after_start(data: Path) -> list[int]:
    with IndexStore(
        IndexOptions(data, data / "chroma", tantivy_threads=1), vector_store="off"
    ) as store:
        return [hit.chunk_id for hit in store.lexical.search(Library.PAPERS, "walruses", 5)]


def test_a_commit_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    data = commit_cut_short(tmp_path, known=True)
    assert found_after_start(data) == [2, 3]
    assert list(data.rglob("*.broken.*")) == []


def test_an_index_that_cannot_be_written_at_the_start_is_made_anew(tmp_path: Path) -> None:
    data = commit_cut_short(tmp_path, known=False)
    assert found_after_start(data) == [2, 3]
    assert len(list(data.rglob("papers.broken.*"))) == 1
    assert found_after_start(data) == [2, 3]
