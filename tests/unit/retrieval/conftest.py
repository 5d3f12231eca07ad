"""A store of a few passages, and the retriever over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pytest

from app.core.ports import Embedder, Reader
from app.core.types import Passage
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions
from app.retrieval.reranking import LateInteraction
from app.storage.store import IndexStore
from app.storage.writer import CatalogIndexWriter
from tests.fakes.embedders import HashEmbedder
from tests.stores import OpenWriter, shelved


class StockedLibrary:
    """A store of passages."""

    def __init__(self, store: IndexStore, embedder: Embedder | None) -> None:
        self.store = store
        self.catalog, self.vectors, self.lexical = store.catalog, store.vectors, store.lexical
        self.embedder = embedder

    def retriever(
        self,
        *,
        writer: CatalogIndexWriter | None = None,
        reader: Reader | None = None,
        late: LateInteraction | None = None,
        asks_host: bool = False,
        **options: object,
    ) -> Retriever:
        """Return a retriever with the given options on top of the defaults."""
        return Retriever(
            self.catalog,
            self.vectors,
            self.lexical,
            self.embedder,
            RetrievalOptions(**options),  # type: ignore[arg-type]
            writer=writer,
            reader=reader,
            late=late,
            asks_host=asks_host,
        )


class Shelve(Protocol):
    def __call__(
        self, passages: Sequence[Passage], *, bare: Sequence[Passage] = (), own: bool = False
    ) -> StockedLibrary:
        """Return a store of passages with a vector, and `bare` without; its own may be written."""


@pytest.fixture
def search_url() -> str:
    """The engine that holds words and vectors; empty: files."""
    return ""


@pytest.fixture
def stock(search_url: str) -> Shelve:
    embedder = HashEmbedder(dimension=256)

    def build(
        passages: Sequence[Passage], *, bare: Sequence[Passage] = (), own: bool = False
    ) -> StockedLibrary:
        if own or search_url:
            writer = OpenWriter(search_url)
            writer.shelve(passages, embedder)
            writer.shelve(bare)
            store = writer.opened
        else:
            store = shelved(*passages, embedder=embedder, bare=bare)
        embedder.embedded.clear()
        return StockedLibrary(store, embedder)

    return build
