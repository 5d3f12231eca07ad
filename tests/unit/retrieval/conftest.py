"""A small library over the in-memory index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from app.core.types import Library, Passage
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions
from tests.fakes.embedders import HashEmbedder
from tests.fakes.indexes import ExactVectors, MemoryCatalog, TextbookBM25


@dataclass
class StockedLibrary:
    """The ports of an index that lives in memory, and the retriever over them."""

    catalog: MemoryCatalog
    vectors: ExactVectors
    lexical: TextbookBM25
    embedder: HashEmbedder

    def retriever(self, **options: object) -> Retriever:
        """A retriever with the given options on top of the defaults."""
        return Retriever(
            self.catalog,
            self.vectors,
            self.lexical,
            self.embedder,
            RetrievalOptions(**options),  # type: ignore[arg-type]
        )


@pytest.fixture
def stock() -> Callable[[Sequence[Passage]], StockedLibrary]:
    """Index passages, all with a vector."""

    def build(passages: Sequence[Passage]) -> StockedLibrary:
        embedder = HashEmbedder(dimension=256)
        catalog = MemoryCatalog(passages)
        vectors = ExactVectors(catalog)
        for library in Library:
            known = [p for p in passages if p.chunk.library is library]
            if known:
                vectors.add(
                    library,
                    [p.chunk.chunk_id for p in known],
                    embedder.embed_passages([p.chunk.text for p in known]),
                )
        embedder.embedded.clear()
        return StockedLibrary(catalog, vectors, TextbookBM25(catalog), embedder)

    return build
