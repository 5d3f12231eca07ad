"""Chroma behind the store: filled, searched, probed, rebuilt."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import IndexDamaged
from app.core.ids import fingerprint8
from app.core.types import Filters, Library
from app.index.dense.chroma.probe import probe
from app.index.dense.chroma.resting_store import Expected
from app.index.dense.exact import ExactIndex
from app.index.files.steps import Steps
from app.index.maintenance.start_checks import catalog_path
from app.index.options import IndexOptions
from app.index.store import IndexStore
from tests.unit.index.drafts import DIMENSION, FINGERPRINT, make_draft, unit_rows

PAPERS = Library.PAPERS
COLLECTION = f"papers__{fingerprint8(FINGERPRINT)}"
N = 1200


@pytest.fixture
def large(options: IndexOptions) -> IndexOptions:
    """As if the library were too large for exact rows."""
    return replace(options, exact_limit=0, exact_unfiltered_limit=0)


def fill(store: IndexStore) -> dict[int, int]:
    """Write N embedded chunks; return which row each chunk has."""
    store.writer.write(
        [
            make_draft(f"{i}.txt", f"text number {i} " * 10, chunks=12, year=1990 + i % 10, sections=("body", "methods"))
            for i in range(N // 12)
        ]
    )
    store.writer.claim(PAPERS, FINGERPRINT)
    chunks = store.writer.pending_vectors(PAPERS, N)
    store.writer.write_vectors(PAPERS, [chunk.chunk_id for chunk in chunks], unit_rows(N))
    store.writer.apply(PAPERS)
    return {chunk.chunk_id: at for at, chunk in enumerate(chunks)}


def test_filled_searched_damaged_rebuilt(large: IndexOptions, caplog: pytest.LogCaptureFixture) -> None:
    rows = unit_rows(N)
    with IndexStore(large, vector_store="foreground") as store:
        at = fill(store)
        assert store.vectors.count(PAPERS) == N
        for chunk_id in list(at)[::97]:
            assert store.vectors.search(PAPERS, rows[at[chunk_id]], 1)[0].chunk_id == chunk_id
        narrow, wide = Filters(year_from=1993, year_to=1993), Filters(sections=("methods",))
        for filters in (narrow, wide):
            found = store.vectors.search(PAPERS, rows[5], 20, filters)
            passages = store.catalog.passages(PAPERS, [hit.chunk_id for hit in found])
            assert len(passages) == 20
            assert all(p.document.year == 1993 or p.chunk.section == "methods" for p in passages.values())
        doc_id = store.catalog.passages(PAPERS, list(at)[:1]).popitem()[1].document.doc_id
        store.writer.delete(PAPERS, doc_id)
        assert store.vectors.count(PAPERS) == N - 12
        gone = list(at)[:12]
    before = probe_of(large, N - 12)
    assert before == ()
    vectors = next(large.chroma_dir.rglob("data_level0.bin"))
    os.truncate(vectors, vectors.stat().st_size // 2)
    with caplog.at_level(logging.ERROR), IndexStore(large, vector_store="foreground") as store:
        assert "made again from the catalog" in caplog.text
        assert len(list(large.data_dir.glob("chroma.broken.*"))) == 1
        assert store.vectors.count(PAPERS) == N - 12
        for chunk_id, row in [*list(at.items())[:12], *list(at.items())[12::13]]:
            best = store.vectors.search(PAPERS, rows[row], 1)[0]
            assert (best.chunk_id == chunk_id) == (chunk_id not in gone)


def probe_of(options: IndexOptions, count: int) -> tuple[str, ...]:
    """What the probe says of the store."""
    wanted = Expected(COLLECTION, 1, DIMENSION, count, sample=tuple(range(count - 30, count)))
    return probe(options.chroma_dir, catalog_path(options.data_dir), [wanted]).problems


def test_in_the_background_lexical_search_serves_at_once(large: IndexOptions) -> None:
    with IndexStore(large, vector_store="off") as store:
        fill(store)
        with pytest.raises(IndexDamaged, match="being checked or made again"):  # the caller says so to the user
            store.vectors.search(PAPERS, unit_rows(1)[0], 5)
        assert store.status.build_state(PAPERS) == f"rebuilding 0 of {N}"
        assert store.vectors.search(Library.PUBLIC, unit_rows(1)[0], 5) == []
    with IndexStore(large) as store:
        assert store.lexical.search(PAPERS, "number", 5) != []
        assert store.keeper.wait(60)
        assert store.status.build_state(PAPERS) == "ready"
        assert store.vectors.count(PAPERS) == N


def test_a_file_in_the_place_of_the_store_is_moved_aside(large: IndexOptions) -> None:
    with IndexStore(large, vector_store="off") as store:
        fill(store)
    large.chroma_dir.write_text("not a directory")
    with IndexStore(large) as store:
        assert store.keeper.wait(60)
        assert store.vectors.count(PAPERS) == N
    assert [path.read_text() for path in large.data_dir.glob("chroma.broken.*")] == ["not a directory"]


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x10
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        lambda p: flip(p / "rows.f32", 77),
        lambda p: flip(p / "ids.i64", 9),
        lambda p: os.truncate(p / "rows.f32", 100),
        lambda p: (p / "header.json").write_text("{"),
        lambda p: (p / "ids.i64").unlink(),
    ],
    ids=["row bit", "id bit", "truncated", "torn header", "lost ids"],
)
def test_damaged_exact_rows_are_made_again(options: IndexOptions, damage: Callable[[Path], None]) -> None:
    with IndexStore(options, vector_store="off") as store:
        fill(store)
        before = store.vectors.search(PAPERS, unit_rows(N)[3], 20)
    damage(options.data_dir / "exact" / "papers-1")
    with IndexStore(options, vector_store="off") as store:
        assert store.vectors.search(PAPERS, unit_rows(N)[3], 20) == before


def test_rows_past_the_saved_header_are_overwritten(tmp_path: Path) -> None:
    exact = ExactIndex(tmp_path, DIMENSION, Steps())
    exact.put([1, 2], unit_rows(2), [])
    exact.save(7)
    exact.put([3], unit_rows(1, seed=1), [])  # not saved: as after a crash
    again = ExactIndex(tmp_path, DIMENSION, Steps())
    assert (again.seq, again.ids()) == (7, [1, 2])
    again.put([4], unit_rows(1, seed=2), [])
    again.save(8)
    assert ExactIndex(tmp_path, DIMENSION, Steps()).ids() == [1, 2, 4]


def test_rebuild_makes_every_projection_anew(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        fill(store)
        before = store.vectors.search(PAPERS, unit_rows(N)[3], 20), store.lexical.search(PAPERS, "number 7", 20)
        store.rebuild()
        assert (store.vectors.search(PAPERS, unit_rows(N)[3], 20), store.lexical.search(PAPERS, "number 7", 20)) == before
        assert store.chroma.count(COLLECTION) == N
        assert store.fsck.run().exit_code == 0


def test_the_cap_is_shared_by_both_libraries(options: IndexOptions) -> None:
    with IndexStore(replace(options, max_dense_vectors=10), vector_store="off") as store:
        for library, wanted in ((PAPERS, 8), (Library.PUBLIC, 2)):
            store.writer.write([make_draft("a", "eight words in a text of some length", library=library, chunks=8)])
            store.writer.claim(library, FINGERPRINT)
            ids = [chunk.chunk_id for chunk in store.writer.pending_vectors(library, 8)]
            store.writer.write_vectors(library, ids, unit_rows(8))
            store.writer.apply(library)
            assert store.vectors.count(library) == wanted


def test_the_cap_holds_the_rest_back_from_dense_search(options: IndexOptions) -> None:
    with IndexStore(replace(options, max_dense_vectors=500), vector_store="off") as store:
        at = fill(store)
        assert store.vectors.count(PAPERS) == 500
        assert store.catalog.counts(PAPERS).embedded == N
        assert len(store.vectors.fetch(PAPERS, list(at))) == N
