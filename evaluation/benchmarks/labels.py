"""Measure what a filter by tags costs a search, and that it finds all it should.

    python -m evaluation.benchmarks.labels [--documents 20000]

A library of made-up documents is tagged so that filters allow 0.1 to 50 percent of them. Questions
are asked with and without each filter in turn, by words and by vectors, and compared with the whole
ranking of all passages. Writes evaluation/reports/labels.{md,json}.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.core.ids import document_id
from app.core.labels import Labels
from app.core.trace import Trace
from app.core.types import (
    ChunkSpan,
    DocumentDraft,
    Filters,
    Fingerprint,
    FloatArray,
    Library,
    Metadata,
    Scored,
)
from app.core.vectors import cosine_distances, l2_normalise
from app.models.minilm import MiniLmEmbedder
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions, SearchRequest
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.served import Line, write

PAPERS = Library.PAPERS
SEED, DIMENSION, TOP, POOL, QUESTIONS = 7, 384, 10, 50, 60
SHARES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
WORDS = 4000
CHUNKS = 2


def tag_of(share: float) -> str:
    return f"share {share:g}"


def make(store: IndexStore, documents: int, rng: np.random.Generator) -> None:
    """Write documents of words that are as frequent as those of a language, and their vectors."""
    chance = 1 / np.arange(1, WORDS + 1)
    chance /= chance.sum()
    for start in range(0, documents, 500):
        drafts = []
        for n in range(start, min(documents, start + 500)):
            text = " ".join(f"word{w}" for w in rng.choice(WORDS, 120, p=chance))
            middle = text.index(" ", len(text) // 2)
            spans = ChunkSpan(0, 0, middle, "body"), ChunkSpan(1, middle + 1, len(text), "body")
            drawn = rng.random(len(SHARES))
            tags = tuple(
                tag_of(s) for s, chance_of in zip(SHARES, drawn, strict=True) if chance_of < s
            )
            drafts.append(
                DocumentDraft(
                    library=PAPERS, doc_id=document_id(PAPERS, f"{n}"), source_key=f"{n}",
                    filename=f"{n}", sha256=hashlib.sha256(text.encode()).hexdigest(), type="text",
                    text=text, metadata=Metadata(f"{n}"), chunks=spans, labels=Labels(tags),
                )
            )  # fmt: skip
        store.writer.store(drafts)
    store.writer.settle(PAPERS)
    store.writer.claim(PAPERS, Fingerprint("made up", "", DIMENSION, "", "", "bench", "en_stem"))
    while some := store.writer.pending_vectors(PAPERS, 5000):
        rows = l2_normalise(rng.standard_normal((len(some), DIMENSION)).astype(np.float32))
        store.writer.write_vectors(PAPERS, [chunk.chunk_id for chunk in some], rows)
    store.writer.apply(PAPERS)


def recall(found: Sequence[Scored], wanted: Sequence[int]) -> float:
    return len({hit.chunk_id for hit in found[:TOP]} & set(wanted)) / max(1, len(wanted))


def measure(store: IndexStore, documents: int, rng: np.random.Generator) -> int:
    """Ask, compare and write the report."""
    questions = [" ".join(f"word{w}" for w in rng.integers(5, 400, 6)) for _ in range(QUESTIONS)]
    embedder = MiniLmEmbedder()
    options = RetrievalOptions(embed_on_query_budget_ms=0)
    retriever = Retriever(store.catalog, store.vectors, store.lexical, embedder, options)
    ids = sorted(store.loader.live_chunk_ids(PAPERS))
    held = store.vectors.fetch(PAPERS, ids)
    rows: FloatArray = np.stack([held[i] for i in ids])
    tags = {i: p.document.tags for i, p in store.catalog.passages(PAPERS, ids).items()}
    filters = [Filters(), *(Filters(tags=(tag_of(share),)) for share in SHARES)]
    legs: dict[Filters, list[float]] = {one: [] for one in filters}
    whole: dict[Filters, list[float]] = {one: [] for one in filters}
    right: dict[Filters, list[float]] = {one: [] for one in filters}
    for n, text in enumerate(questions):
        query = embedder.embed_query(text)
        ranked = [hit.chunk_id for hit in store.lexical.search(PAPERS, text, len(ids))]
        nearest = [ids[at] for at in np.argsort(cosine_distances(query, rows), kind="stable")]
        for one in filters:
            for _ in range(3):  # in turn, so that what else runs meets all alike
                began = time.perf_counter()
                by_words = store.lexical.search(PAPERS, text, POOL, one)
                by_vector = store.vectors.search(PAPERS, query, POOL, one)
                both = time.perf_counter()
                retriever.retrieve(SearchRequest(text, PAPERS, top_k=TOP, filters=one), Trace())
                if n:  # the first question fills what is remembered of a filter
                    legs[one].append((both - began) * 1000)
                    whole[one].append((time.perf_counter() - both) * 1000)
            for found, order in ((by_words, ranked), (by_vector, nearest)):
                wanted = [i for i in order if not one or one.tags[0] in tags[i]][:TOP]
                if wanted:
                    right[one].append(recall(found, wanted))
    lines, figures = [], {}
    for share, one in zip(SHARES, filters[1:], strict=True):
        times = float(np.median(whole[one]) / np.median(whole[filters[0]]))
        recalled = float(np.mean(right[one]))
        lines.append(Line(f"recall@{TOP}, tag of {share:.1%}", recalled, 1, "", at_most=False))
        lines.append(Line(f"p50 of a search, tag of {share:.1%} / none", times, 1.2, "times"))
        times = float(np.median(legs[one]) / np.median(legs[filters[0]]))
        figures[f"p50 of both legs alone, tag of {share:.1%} / none"] = times
    figures["p50 of a search without a filter, ms"] = float(np.median(whole[filters[0]]))
    remarks = [
        f"{documents:,} made-up documents, {len(ids):,} passages, vectors in memory; {QUESTIONS}"
        " questions, each asked three times under each filter, in turn. A search is that of the"
        f" server, with the question's embedding and without late interaction; legs rank {POOL}.",
        "Three other people's tests ran on the two cores: the ratios count, not the milliseconds.",
    ]
    command = f"python -m evaluation.benchmarks.labels --documents {documents}"
    return write("labels", "Filters by tags", remarks, lines, figures, command)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    documents = parser.parse_args().documents
    rng = np.random.default_rng(SEED)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with IndexStore(IndexOptions(path, path / "chroma"), vector_store="off") as store:
            make(store, documents, rng)
            return measure(store, documents, rng)


if __name__ == "__main__":
    raise SystemExit(main())
