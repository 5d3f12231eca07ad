"""Collections indexed as the server would, in a temporary directory: the same parser, chunker, writer, backfill and projections."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.core.ids import fingerprint8
from app.core.ports import Embedder
from app.core.text import TOKENIZER_VERSION
from app.core.types import EmbedderIdentity, Fingerprint, FloatArray, Library, RawDocument
from app.evaluation.arms import Arm
from app.evaluation.collections import Collection
from app.evaluation.report import Provenance, Report, to_csv, to_json, to_markdown
from app.evaluation.runner import RetrieverSearch
from app.index.options import IndexOptions
from app.index.store import IndexStore
from app.ingest.chunking import CHUNKER_VERSION
from app.ingest.embedding import VectorBackfill
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.pipeline import IngestPipeline
from app.providers.minilm import MiniLmEmbedder
from app.retrieval.options import RetrievalOptions
from app.retrieval.pipeline import Retriever

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "evaluation" / "reports"
SEED = 7


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that every program here has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of collections in BEIR layout")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "documind-vectors", help="where vectors are kept between runs"
    )
    return parser


class CachedEmbedder:
    """An embedder that keeps the vectors of whole batches of passages on disk; questions are embedded each time."""

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

    def retriever(self, options: RetrievalOptions) -> Retriever:
        """Return a retriever with these options."""
        return Retriever(self.store.catalog, self.store.vectors, self.store.lexical, self.embedder, options)

    def search(self, library: Library) -> RetrieverSearch:
        """Return a search of arms over a library."""

        def of(arm: Arm) -> Retriever:
            return self.retriever(arm.options)

        return RetrieverSearch(of, library, self.passage_of)

    def provenance(self) -> Provenance:
        """Return what a report over this bench is made from; the settings' hash is the report's to fill in."""
        sha = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
        identity = self.embedder.identity
        return Provenance(sha, "", self.fingerprint, {identity.model: identity.digest}, SEED)


@contextmanager
def indexed(
    shelves: Mapping[Library, Sequence[Collection]],
    cache: Path,
    *,
    ingest: IngestOptions | None = None,
    boost: float | None = None,
    embedded: float = 1.0,
) -> Iterator[Bench]:
    """Index collections, one text file per passage, and close and remove the index afterwards.

    Args:
        shelves: Collections by library.
        cache: Where vectors are kept between runs.
        ingest: Chunk sizes; default as the server.
        boost: Weight of the title in BM25; default as the server.
        embedded: Share of the chunks that get a vector, [0, 1], in the order of their documents.
    """
    ingest = ingest or IngestOptions()
    embedder = CachedEmbedder(MiniLmEmbedder(cache / "graph"), cache / "passages")
    with tempfile.TemporaryDirectory(prefix="documind-bench-") as folder:
        options = IndexOptions(Path(folder), Path(folder) / "chroma")
        if boost is not None:
            options = IndexOptions(Path(folder), Path(folder) / "chroma", title_boost=boost)
        with IndexStore(options) as store:
            start = time.perf_counter()
            passage_of = _ingest(store, shelves, embedder, ingest)
            indexed_at = time.perf_counter()
            fingerprint = _fingerprint(embedder.identity, ingest)
            for library in shelves:
                store.writer.claim(library, fingerprint)
                wanted = round(embedded * store.catalog.counts(library).chunks)
                VectorBackfill(store.writer, embedder, ingest).run(library, limit=wanted)
            embed_s = time.perf_counter() - indexed_at
            yield Bench(store, embedder, passage_of, fingerprint8(fingerprint), indexed_at - start, embed_s)


def _ingest(
    store: IndexStore, shelves: Mapping[Library, Sequence[Collection]], embedder: Embedder, ingest: IngestOptions
) -> dict[str, str]:
    pipeline = IngestPipeline(DirectParser(ingest), store.writer, embedder, ingest)
    passage_of: dict[str, str] = {}
    for library, collections in shelves.items():
        for collection in collections:
            names = [f"{collection.name}-{passage.id}.txt" for passage in collection.passages]
            raw = (
                RawDocument(name, name, passage.document.encode()) for name, passage in zip(names, collection.passages, strict=True)
            )
            outcomes = pipeline.ingest(library, raw)
            for passage, outcome in zip(collection.passages, outcomes, strict=True):
                if outcome.doc_id is None:
                    raise SystemExit(f"{outcome.filename} was not indexed: {outcome.reason}")
                passage_of[outcome.doc_id] = passage.id
    return passage_of


def _fingerprint(identity: EmbedderIdentity, ingest: IngestOptions) -> Fingerprint:
    return Fingerprint(
        identity.model,
        identity.digest,
        identity.dimension,
        identity.query_prefix,
        identity.passage_prefix,
        f"{CHUNKER_VERSION}:{ingest.chunk_size}:{ingest.chunk_overlap}",
        TOKENIZER_VERSION,
    )


def write(report: Report, name: str) -> None:
    """Write a report as Markdown, CSV and JSON under evaluation/reports/, and print the Markdown."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    for suffix, text in ((".md", to_markdown(report)), (".csv", to_csv(report)), (".json", to_json(report))):
        (REPORTS / f"{name}{suffix}").write_text(text, encoding="utf-8")
    print(to_markdown(report))


def say(line: str) -> None:
    """Tell whoever waits how far it is."""
    print(f"  {line}", flush=True)
