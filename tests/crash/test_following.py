"""Chroma is left behind while exact rows answer, and follows when nobody writes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from app.core.ids import fingerprint8
from app.core.types import Library
from app.index.options import IndexOptions
from app.index.store import IndexStore
from tests.crash.test_vector_store import probe_of
from tests.unit.index.drafts import FINGERPRINT, make_draft, unit_rows

PAPERS = Library.PAPERS
COLLECTION = f"papers__{fingerprint8(FINGERPRINT)}"
NEVER_S = 600.0


@pytest.fixture
def busy(options: IndexOptions) -> IndexOptions:
    """As if somebody wrote all the time; a small library is searched in Chroma, once that has everything."""
    return replace(options, follow_after_s=NEVER_S, exact_unfiltered_limit=0)


def write(store: IndexStore, name: str, chunks: int, seed: int) -> list[int]:
    """Write a document with a vector for each chunk; return its chunk ids."""
    store.writer.write([make_draft(name, f"words of {name} " * 20, chunks=chunks)])
    store.writer.claim(PAPERS, FINGERPRINT)
    ids = [chunk.chunk_id for chunk in store.writer.pending_vectors(PAPERS, 1000)]
    store.writer.write_vectors(PAPERS, ids, unit_rows(chunks, seed))
    store.writer.apply(PAPERS)
    return ids


def until(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def lag(store: IndexStore) -> int:
    """Changes that Chroma has yet to apply; before its first there is no watermark to count from."""
    return store.status.lags().get("papers/chroma", 1)


def test_exact_rows_answer_until_chroma_has_followed(options: IndexOptions) -> None:
    with IndexStore(replace(options, follow_after_s=1.0, exact_unfiltered_limit=0)) as store:
        assert store.keeper.wait(60)
        ids = write(store, "a.txt", 30, seed=1)
        assert lag(store) > 0
        assert store.chroma.count(COLLECTION) == 0
        assert [store.vectors.search(PAPERS, row, 1)[0].chunk_id for row in unit_rows(30, 1)] == ids
        assert until(lambda: lag(store) == 0)
        assert store.chroma.count(COLLECTION) == 30
        assert store.chroma.differing(COLLECTION, dict(zip(ids, unit_rows(30, 1), strict=True))) == []
        assert [store.vectors.search(PAPERS, row, 1)[0].chunk_id for row in unit_rows(30, 1)] == ids


def test_what_was_left_behind_is_applied_at_the_next_start(busy: IndexOptions) -> None:
    with IndexStore(busy) as store:
        assert store.keeper.wait(60)
        ids = write(store, "a.txt", 30, seed=1)
        assert store.chroma.count(COLLECTION) == 0
    with IndexStore(busy) as store:
        assert store.keeper.wait(60)
        assert lag(store) == 0
        assert store.chroma.differing(COLLECTION, dict(zip(ids, unit_rows(30, 1), strict=True))) == []
    assert probe_of(busy, 30) == ()


def test_chroma_is_never_further_behind_than_allowed(busy: IndexOptions) -> None:
    with IndexStore(replace(busy, behind_at_most=25)) as store:
        assert store.keeper.wait(60)
        for number in range(7):
            write(store, f"{number}.txt", 10, seed=number)
            assert 10 * (number + 1) - store.chroma.count(COLLECTION) <= 25
        assert lag(store) > 0


def test_libraries_that_outgrow_their_exact_rows_are_not_left_behind(busy: IndexOptions) -> None:
    with IndexStore(replace(busy, behind_at_most=25, exact_limit=40)) as store:
        assert store.keeper.wait(60)
        write(store, "a.txt", 10, seed=1)
        assert lag(store) > 0
        for number in range(4):
            write(store, f"{number}.txt", 10, seed=2 + number)
            assert store.vectors.search(PAPERS, unit_rows(10, 2 + number)[3], 1)[0].score < 1e-3
        assert lag(store) == 0
        assert store.chroma.count(COLLECTION) == 50


def test_what_is_deleted_while_chroma_is_behind_is_never_found_again(options: IndexOptions) -> None:
    with IndexStore(replace(options, follow_after_s=1.0, exact_unfiltered_limit=0)) as store:
        assert store.keeper.wait(60)
        kept, gone = write(store, "kept.txt", 10, seed=1), write(store, "gone.txt", 10, seed=2)
        assert until(lambda: lag(store) == 0)
        document = store.writer.current(PAPERS, "gone.txt")
        assert document is not None
        store.writer.delete(PAPERS, document.doc_id)
        seen: set[int] = set()

        def applied() -> bool:
            seen.update(hit.chunk_id for row in unit_rows(10, 2) for hit in store.vectors.search(PAPERS, row, 20))
            return lag(store) == 0

        assert until(applied)
        assert seen == set(kept)
        assert store.chroma.count(COLLECTION) == 10
        assert store.chroma.held_of(COLLECTION, dict(zip(gone, unit_rows(10, 2), strict=True))) == {}
