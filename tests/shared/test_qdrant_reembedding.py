"""Another model's vectors in a second collection of the engine, while questions are answered."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from app.core.errors import FingerprintMismatch
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.embedders import HashEmbedder
from tests.unit.storage import conftest
from tests.unit.storage.maintenance import test_reembedding as suite
from tests.unit.storage.maintenance.test_reembedding import (
    NEVER,
    OLD,
    PAPERS,
    add,
    embed_live,
    fill,
    made_by,
)

globals().update({name: it for name, it in vars(suite).items() if name.startswith("test_")})
embedded = conftest.options
WIDE = HashEmbedder(256, model="wide")
ASKED = 20


@pytest.fixture
def options(embedded: IndexOptions, engine_url: str) -> IndexOptions:
    """Words and vectors in the engine, none in memory."""
    return replace(embedded, search_url=engine_url, vector_cache_vectors=0)


@pytest.fixture
def store(options: IndexOptions) -> Iterator[IndexStore]:
    """An open store that follows its engine."""
    with IndexStore(options, vector_store="foreground") as opened:
        yield opened


def test_questions_are_answered_all_the_while(store: IndexStore) -> None:
    """From the build that serves: the old one until the swap, then the new one."""
    add(store, *(f"animal{number}" for number in range(40)))
    embed_live(store)
    (before,) = store.vector_stores[PAPERS].collections()
    staged = store.reembedding.begin(PAPERS, made_by(WIDE))
    text = store.catalog.chunks_by_id(PAPERS, [7])[0].text
    queries = {1: OLD.embed_query(text), staged.number: WIDE.embed_query(text)}
    found: dict[int, list[int]] = {number: [] for number in queries}
    enough = {number: threading.Event() for number in queries}
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            live = store.loader.live_build(PAPERS)
            number = live.number if live else 0
            with suppress(FingerprintMismatch):  # swapped between these two lines
                hits = store.reembedding.view(number).search(PAPERS, queries[number], 1)
                found[number] += [hit.chunk_id for hit in hits] or [0]
                if len(found[number]) >= ASKED:
                    enough[number].set()

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        fill(store, staged.number, WIDE)
        with store.reembedding.beside(PAPERS, staged.number, NEVER) as complete:
            assert complete
            assert len(store.vector_stores[PAPERS].collections()) == 2
            assert enough[1].wait(60)
            store.reembedding.swap(PAPERS, staged.number)
        assert enough[staged.number].wait(60)
    finally:
        done.set()
        asker.join(60)
    assert {number: set(ids) for number, ids in found.items()} == {1: {7}, staged.number: {7}}
    store.reembedding.delete_others(PAPERS)
    (after,) = store.vector_stores[PAPERS].collections()
    assert after != before
    assert store.fsck.run().faults == ()
