"""Share the indexed collections of the studies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.core.ids import checkout_sha
from app.core.ports import PassageEncoder
from app.core.types import Library
from app.evaluation.collections import Collection
from app.evaluation.report import ReportProvenance
from app.evaluation.runner import RetrieverSearch
from app.evaluation.workshop import Bench as IndexedBench
from app.evaluation.workshop import CachedEmbedder, bench
from app.ingest.names import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions
from app.retrieval.reranking import LateInteraction
from evaluation.lib.reports import SEED


@dataclass(frozen=True, slots=True)
class Bench(IndexedBench):
    """An open index with collections in it, and what a report needs of it."""

    encoder: PassageEncoder | None = None

    def retriever(self, options: RetrievalOptions) -> Retriever:
        late = LateInteraction(self.store.codes, self.encoder) if self.encoder else None
        store = self.store
        return Retriever(
            store.catalog, store.vectors, store.lexical, self.embedder, options, late=late
        )

    def search(self) -> RetrieverSearch:
        return RetrieverSearch(
            lambda arm: self.retriever(arm.options), Library.PUBLIC, self.passage_of
        )

    def provenance(self, settings_hash: str = "") -> ReportProvenance:
        identity = self.embedder.identity
        models = {identity.model: identity.digest}
        return ReportProvenance(checkout_sha(), settings_hash, self.fingerprint, models, SEED)


@contextmanager
def indexed(
    collection: Collection, cache: Path, encoder: PassageEncoder | None = None
) -> Iterator[Bench]:
    """Index a collection in the public library, one file per passage; remove the index afterwards.

    Args:
        collection: What is indexed.
        cache: Where vectors are kept between runs.
        encoder: Makes codes for late interaction; None makes none, and nothing is ordered by them.
    """
    embedder = CachedEmbedder(MiniLmEmbedder(), cache / "passages")
    with bench(collection, embedder, ingest=IngestOptions(), encoder=encoder) as opened:
        yield Bench(opened.store, opened.embedder, opened.passage_of, opened.fingerprint, encoder)
