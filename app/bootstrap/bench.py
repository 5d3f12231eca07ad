"""Index collections as the server does, in a temporary directory."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from app.bootstrap.libraries import fingerprint_of
from app.core.errors import InvalidInput
from app.core.ids import fingerprint8
from app.core.ports import Embedder, PassageEncoder
from app.core.types import EmbedderIdentity, FloatArray, Library, RawDocument
from app.evaluation.collections import Collection
from app.index.options import IndexOptions
from app.index.store import IndexStore
from app.ingest.codes import CodeBackfill
from app.ingest.embedding import VectorBackfill
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.pipeline import IngestPipeline

PREFIX = "documind-bench-"
"""Of temporary directories."""

Step = Callable[[str, int, int], None]
"""Told what is being done, how much is done, of how much; may raise Cancelled."""


class CachedEmbedder:
    """Embedder that caches vectors of whole batches of passages on disk.

    Questions are embedded each time.
    """

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        """Keep vectors in `folder`, named by model and texts."""
        self._embedder = embedder
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def identity(self) -> EmbedderIdentity:
        """The model's own."""
        return self._embedder.identity

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors from disk, or embed and keep them."""
        key = hashlib.sha256("\0".join([self.identity.digest, *texts]).encode()).hexdigest()[:32]
        path = self._folder / f"{key}.npy"
        if path.is_file():
            kept: FloatArray = np.load(path)
            return kept
        rows = self._embedder.embed_passages(texts)
        np.save(path, rows)
        return rows

    def embed_query(self, text: str) -> FloatArray:
        """Embed a question, uncached: its time is part of what is measured."""
        return self._embedder.embed_query(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the model's own counts."""
        return self._embedder.count_tokens(texts)


@dataclass(frozen=True, slots=True)
class Bench:
    """An open index with collections in it."""

    store: IndexStore
    embedder: Embedder
    passage_of: dict[str, str]
    """Collection id by doc_id, over all collections."""
    fingerprint: str
    index_s: float
    """Seconds to parse, chunk and index all documents lexically."""
    embed_s: float
    """Seconds until their vectors were applied; small when they came from the cache."""


@contextmanager
def bench(
    collections: Mapping[Library, Sequence[Collection]],
    embedder: Embedder,
    *,
    ingest: IngestOptions,
    parent: Path | None = None,
    boost: float | None = None,
    embedded: float = 1.0,
    encoder: PassageEncoder | None = None,
    step: Step = lambda *_: None,
) -> Iterator[Bench]:
    """Index collections, one file per passage; remove the index afterwards.

    Args:
        collections: By library.
        embedder: Of passages and questions.
        ingest: Chunk sizes and chunker.
        parent: Where the temporary directory is made; the system's own place by default.
        boost: Weight of the title in BM25; default as the server.
        embedded: Share of the chunks that get a vector, [0, 1], in the order of their documents.
        encoder: Makes codes for late interaction; None makes none.
        step: Told of each document and batch of vectors.

    Raises:
        InvalidInput: A passage cannot be indexed.
        Cancelled: The step said so.
    """
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent) as folder:
        options = IndexOptions(Path(folder), Path(folder) / "chroma")
        if boost is not None:
            options = replace(options, title_boost=boost)
        with IndexStore(options) as store:
            start = time.perf_counter()
            passage_of = _fill(store, collections, embedder, ingest, step)
            indexed_at = time.perf_counter()
            fingerprint = fingerprint_of(embedder.identity, ingest)
            for library in collections:
                store.writer.claim(library, fingerprint)
                wanted = round(embedded * store.catalog.counts(library).chunks)

                def progress(done: int, of: int = wanted) -> None:
                    step("vectors", done, of)

                VectorBackfill(store.writer, embedder, ingest).run(
                    library, limit=wanted, progress=progress
                )
                if encoder is not None:
                    CodeBackfill(
                        store.codes, encoder, store.catalog, ingest.late_interaction_max_chunks
                    ).run(library)
            embed_s = time.perf_counter() - indexed_at
            yield Bench(
                store, embedder, passage_of, fingerprint8(fingerprint), indexed_at - start, embed_s
            )


def _fill(
    store: IndexStore,
    collections: Mapping[Library, Sequence[Collection]],
    embedder: Embedder,
    ingest: IngestOptions,
    step: Step,
) -> dict[str, str]:
    pipeline = IngestPipeline(DirectParser(ingest), store.writer, embedder, ingest)
    passage_of: dict[str, str] = {}
    total = sum(len(collection.passages) for some in collections.values() for collection in some)
    for library, some in collections.items():
        for collection in some:
            names = [f"{collection.name}-{passage.id}.txt" for passage in collection.passages]
            raw = (
                RawDocument(name, name, passage.document.encode())
                for name, passage in zip(names, collection.passages, strict=True)
            )
            outcomes = pipeline.ingest(library, raw)
            for passage, outcome in zip(collection.passages, outcomes, strict=True):
                if outcome.doc_id is None:
                    raise InvalidInput(
                        f"passage {passage.id!r} of {collection.name!r} cannot be indexed:"
                        f" {outcome.reason}"
                    )
                passage_of[outcome.doc_id] = passage.id
                step("documents", len(passage_of), total)
    return passage_of
