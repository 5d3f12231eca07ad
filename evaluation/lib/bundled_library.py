"""Fill a library to be bundled; ask it by words and by vectors."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.core.ids import document_id, fingerprint8
from app.core.ports import Embedder
from app.core.text import words
from app.core.types import ChunkSpan, DocumentDraft, Fingerprint, Library, Metadata, Scored
from app.ingest.embedding import VectorBackfill
from app.ingest.names import IngestOptions
from app.ingest.sources.synthetic import SyntheticEncyclopedia, SyntheticOptions
from app.storage.options import IndexOptions
from app.storage.store import IndexStore

LIBRARY = Library.PUBLIC


DEPTH = 10


CHUNK_CHARACTERS = 600


def made_by(embedder: Embedder) -> Fingerprint:
    """Return what the bench's vectors are made with."""
    identity = embedder.identity
    return Fingerprint(
        identity.model, identity.digest, identity.dimension, "", "", "bench", "en_stem"
    )


def options_at(data: Path) -> IndexOptions:
    """Return options under which the cache answers."""
    return IndexOptions(
        data,
        data / "chroma",
        tantivy_threads=1,
        tantivy_heap_bytes=50_000_000,
        vector_cache_vectors=10**9,
    )


def fill(store: IndexStore, embedder: Embedder, articles: int) -> list[str]:
    """Write a synthetic library with vectors; return sentences to ask."""
    asked: list[str] = []
    drafts = []
    rng = random.Random(5)
    for article in SyntheticEncyclopedia(
        SyntheticOptions(articles=articles, mean_words=250, redirect_share=0.0)
    ):
        text = " ".join(article.source.split())
        if len(text) < 50:
            continue
        starts = range(0, len(text), CHUNK_CHARACTERS)
        spans = tuple(
            ChunkSpan(n, at, min(at + CHUNK_CHARACTERS, len(text)), "body", None)
            for n, at in enumerate(starts)
        )
        key = f"article-{article.key}"
        drafts.append(
            DocumentDraft(
                library=LIBRARY,
                doc_id=document_id(LIBRARY, key),
                source_key=key,
                filename=key,
                sha256=hashlib.sha256(text.encode()).hexdigest(),
                type="text",
                text=text,
                metadata=Metadata(article.title, (), None),
                chunks=spans,
            )
        )
        found = words(text)
        at = rng.randrange(max(1, len(found) - 9))
        asked.append(" ".join(found[at : at + 8]))
    for at in range(0, len(drafts), 200):
        store.writer.write(drafts[at : at + 200])
    store.writer.claim(LIBRARY, made_by(embedder))
    VectorBackfill(store.writer, embedder, IngestOptions()).run(LIBRARY)
    store.writer.apply(LIBRARY)
    return asked


def answers(
    store: IndexStore, embedder: Embedder, questions: Sequence[str]
) -> list[tuple[list[object], list[object], list[object]]]:
    """Return per question: exact neighbours, best lexical chunks, graph neighbours."""
    collection = f"public__{fingerprint8(made_by(embedder))}"
    rows = []
    for question in questions:
        query = embedder.embed_query(question)
        exact = store.vectors.search(LIBRARY, query, DEPTH)
        lexical = store.lexical.search(LIBRARY, question, DEPTH)
        graph: list[object] = [
            (chunk.doc_id, chunk.ordinal)
            for chunk in store.catalog.chunks_by_id(
                LIBRARY, store.vector_stores[LIBRARY].search(collection, query, DEPTH)
            )
        ]
        rows.append((_named(store, exact), _scored(store, lexical), graph))
    return rows


def _named(store: IndexStore, hits: Sequence[Scored]) -> list[object]:
    """Chunks by what they are, as ids differ between stores."""
    return [
        (chunk.doc_id, chunk.ordinal)
        for chunk in store.catalog.chunks_by_id(LIBRARY, [hit.chunk_id for hit in hits])
    ]


def _scored(store: IndexStore, hits: Sequence[Scored]) -> list[object]:
    return [*_named(store, hits), *(float(np.float32(hit.score)) for hit in hits)]
