"""A store of a few passages, and the retriever over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from app.core.ports import Embedder, Reranker
from app.core.types import Passage
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions
from app.retrieval.reranking import LateInteraction
from tests.fakes.embedders import HashEmbedder
from tests.stores import OpenWriter


class StockedLibrary:
    """A store of passages."""

    def __init__(self, writer: OpenWriter) -> None:
        self.writer = writer
        store = writer.opened
        self.catalog, self.vectors, self.lexical = store.catalog, store.vectors, store.lexical
        self.embedder: Embedder | None = None

    def retriever(
        self,
        *,
        writer: OpenWriter | None = None,
        reranker: Reranker | None = None,
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
            reranker=reranker,
            late=late,
            asks_host=asks_host,
        )


Shelve = Callable[..., StockedLibrary]
"""Indexes passages, the first with a vector, those given as `bare` without."""


@pytest.fixture
def search_url() -> str:
    """The engine that holds words and vectors; empty: files."""
    return ""


@pytest.fixture
def stock(search_url: str) -> Shelve:
    def build(passages: Sequence[Passage], bare: Sequence[Passage] = ()) -> StockedLibrary:
        stocked = StockedLibrary(OpenWriter(search_url))
        embedder = stocked.embedder = HashEmbedder(dimension=256)
        stocked.writer.shelve(passages, embedder)
        stocked.writer.shelve(bare)
        embedder.embedded.clear()
        return stocked

    return build
