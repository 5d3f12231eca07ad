"""The store of vectors behind the index: filled, searched, filled again; and the cap on what it holds."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.core.errors import IndexDamaged
from app.core.ids import document_id, fingerprint8
from app.core.types import Filters, Library
from app.storage.files.durable import Steps
from app.storage.maintenance.backup import restore
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.vectors import library as reader
from evaluation.lib.vector_checks import differences
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows
from tests.unit.storage.test_writer import embed_all

PAPERS = Library.PAPERS
COLLECTION = f"papers__{fingerprint8(FINGERPRINT)}"
N = 1200


@pytest.fixture
def uncached(options: IndexOptions) -> IndexOptions:
    """Chroma answers every search."""
    return replace(options, vector_cache_vectors=0)


def fill(store: IndexStore) -> dict[int, int]:
    """Write N embedded chunks; return which row each chunk has."""
    store.writer.write(
        [
            make_draft(
                f"{i}.txt",
                f"text number {i} " * 10,
                chunks=12,
                year=1900 + i,
                sections=("body", "methods"),
            )
            for i in range(N // 12)
        ]
    )
    store.writer.claim(PAPERS, FINGERPRINT)
    chunks = store.writer.pending_vectors(PAPERS, N)
    store.writer.write_vectors(PAPERS, [chunk.chunk_id for chunk in chunks], unit_rows(N))
    store.writer.apply(PAPERS)
    return {chunk.chunk_id: at for at, chunk in enumerate(chunks)}


def test_chroma_finds_what_the_cache_finds(
    options: IndexOptions, uncached: IndexOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters = [None, Filters(year_to=1909), Filters(year_to=1900), Filters(sections=("methods",))]
    queries = unit_rows(40, seed=5)
    with IndexStore(options, vector_store="off") as store:
        fill(store)
        wanted = [
            [store.vectors.search(PAPERS, query, 10, only) for query in queries] for only in filters
        ]
    monkeypatch.setattr(reader, "SCANNED", 0)  # so that a filter's rows come from Chroma too
    with IndexStore(uncached, vector_store="foreground") as store:
        found = [
            [store.vectors.search(PAPERS, query, 10, only) for query in queries] for only in filters
        ]
        assert store.vectors.count(PAPERS) == N
    for ours, theirs in zip(found, wanted, strict=True):
        same = [
            len({hit.chunk_id for hit in a} & {hit.chunk_id for hit in b}) / len(b)
            for a, b in zip(ours, theirs, strict=True)
        ]
        assert np.mean(same) >= 0.99
    scores = {(n, hit.chunk_id): hit.score for n, hits in enumerate(wanted[0]) for hit in hits}
    for n, hits in enumerate(found[0]):  # the catalog's vectors score in both
        assert all(scores.get((n, hit.chunk_id), hit.score) == hit.score for hit in hits), n


def test_what_was_just_written_or_deleted_is_seen_at_once(
    uncached: IndexOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chroma follows in its own time; the catalog says what it has not seen yet."""
    with IndexStore(uncached, vector_store="foreground") as store:
        at = fill(store)
        assert store.vectors.search(PAPERS, unit_rows(N)[20], 1)[0].chunk_id == list(at)[20]
    with IndexStore(uncached, vector_store="foreground") as store:
        monkeypatch.setattr(
            store.dense[PAPERS].replica, "follow", lambda _=None: None
        )  # as if it took its time
        store.writer.write([make_draft("new.txt", "one more text", chunks=1)])
        (chunk,) = store.writer.pending_vectors(PAPERS, 10)
        store.writer.write_vectors(PAPERS, [chunk.chunk_id], unit_rows(1, seed=77))
        store.writer.apply(PAPERS)
        assert (
            store.vectors.search(PAPERS, unit_rows(1, seed=77)[0], 1)[0].chunk_id == chunk.chunk_id
        )
        store.writer.delete(PAPERS, document_id(PAPERS, "1.txt"))
        gone = list(at)[12:24]
        found = {
            hit.chunk_id
            for row in unit_rows(N)[12:24]
            for hit in store.vectors.search(PAPERS, row, 20)
        }
        assert found.isdisjoint(gone)
        assert store.projector.log.lags()["papers/chroma"] > 0


def test_while_it_is_filled_words_serve_and_the_state_says_so(
    uncached: IndexOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with IndexStore(uncached, vector_store="off") as store:
        fill(store)
        assert (
            len(store.vectors.search(PAPERS, unit_rows(1)[0], 5)) == 5
        )  # few enough to be read from the catalog
        monkeypatch.setattr(reader, "SCANNED", 100)
        with pytest.raises(
            IndexDamaged, match="checked or filled again"
        ):  # the caller says so to the user
            store.vectors.search(PAPERS, unit_rows(1)[0], 5)
        assert str(store.projector.state(PAPERS)) == f"rebuilding 0 of {N}"
        assert store.vectors.search(Library.PUBLIC, unit_rows(1)[0], 5) == []
    with IndexStore(uncached) as store:
        assert store.lexical.search(PAPERS, "number", 5) != []
        assert store.supervisor.wait(100)
        assert str(store.projector.state(PAPERS)) == "ready"
        assert store.vectors.count(PAPERS) == N


def test_a_document_in_its_grace_is_no_damage(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        store.writer.write(
            [make_draft(name, f"walruses whistle for {name}") for name in ("ann", "bea", "cid")]
        )
        embed_all(store)
        store.writer.delete(PAPERS, document_id(PAPERS, "bea"), grace_s=3600)
        assert store.fsck.run().faults == ()
    with IndexStore(options, vector_store="foreground") as store:
        assert list(options.data_dir.glob("chroma.broken.*")) == []
        store.writer.restore(PAPERS, document_id(PAPERS, "bea"))
        assert differences(store, PAPERS) == []


def test_the_first_start_after_a_restore_fills_a_store_and_moves_none_aside(
    options: IndexOptions, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        fill(store)
    with IndexStore(options, vector_store="foreground") as store:
        store.backup(tmp_path / "backup")
    restore(tmp_path / "backup", options.data_dir, Steps())
    caplog.clear()
    with IndexStore(options, vector_store="foreground") as store:
        assert store.dense[PAPERS].replica.store.count(COLLECTION) == N
        assert differences(store, PAPERS) == []
        assert store.fsck.run().faults == ()
    assert list(options.data_dir.glob("chroma.broken.*")) == []
    assert not [line for line in caplog.messages if "vector store" in line]


def test_rebuild_makes_every_projection_again(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        fill(store)
        before = (
            store.vectors.search(PAPERS, unit_rows(N)[3], 20),
            store.lexical.search(PAPERS, "number 7", 20),
        )
        store.rebuild()
        assert (
            store.vectors.search(PAPERS, unit_rows(N)[3], 20),
            store.lexical.search(PAPERS, "number 7", 20),
        ) == before
        assert differences(store, PAPERS) == []
        assert [fault.code for fault in store.fsck.run().faults] == ["leftovers"]


def test_a_cache_that_is_large_is_filled_while_the_store_serves(
    options: IndexOptions, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with IndexStore(options, vector_store="off") as store:
        fill(store)
    monkeypatch.setattr("app.storage.vectors.library.FILLED_AT_ONCE", 10)
    with caplog.at_level(logging.ERROR), IndexStore(options) as store:
        assert store.supervisor.wait(100)
        cache = store.dense[PAPERS]._serving.cache  # type: ignore[union-attr]
        assert cache is not None
        assert cache.count == N
    assert caplog.text == ""


@pytest.mark.parametrize("cached", [0, 1000])
def test_the_cap_is_shared_by_both_libraries(options: IndexOptions, cached: int) -> None:
    capped = replace(options, max_dense_vectors=10, vector_cache_vectors=cached)
    with IndexStore(capped, vector_store="foreground") as store:
        for library, wanted in ((PAPERS, 8), (Library.PUBLIC, 2)):
            store.writer.write(
                [make_draft("a", "eight words in a text of some length", library=library, chunks=8)]
            )
            store.writer.claim(library, FINGERPRINT)
            ids = [chunk.chunk_id for chunk in store.writer.pending_vectors(library, 8)]
            store.writer.write_vectors(library, ids, unit_rows(8))
            store.writer.apply(library)
            assert store.vectors.count(library) == wanted
            replica, build = store.dense[library].replica, store.loader.live_build(library)
            assert build is not None
            assert store.vector_stores[library].count(replica.collection(build)) == wanted
        assert store.fsck.run().faults == ()
    with IndexStore(capped, vector_store="foreground"):
        assert list(options.data_dir.glob("chroma.broken.*")) == []


def test_the_cap_holds_the_rest_back_from_dense_search(options: IndexOptions) -> None:
    with IndexStore(replace(options, max_dense_vectors=500), vector_store="off") as store:
        at = fill(store)
        assert store.vectors.count(PAPERS) == 500
        assert store.catalog.counts(PAPERS).embedded == N
        assert len(store.vectors.fetch(PAPERS, list(at))) == N
