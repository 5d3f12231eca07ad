"""Estimate a bulk run's time, disk and memory from a timed sample."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

from app.core.errors import DocuMindError
from app.core.ports import Embedder, IndexWriter
from app.core.types import Article, DocumentDraft, Library
from app.index.options import IndexOptions, stored_bytes
from app.ingest.bulk import BATCH_ARTICLES, Positioned
from app.ingest.bulk_work import BulkTask, Prepared, prepare
from app.ingest.options import IngestOptions
from app.ingest.sources.articles import open_articles, source_name
from app.jobs.bulk import workers_for
from app.jobs.context import JobContext

VECTOR_ROW_BYTES = 24
"""Key and row header of a vector in the catalog, besides two bytes a number."""
BULK_PLAN = "bulk_plan"
SAMPLE_S = 15.0
"""Longest the sample is read and written, seconds."""
SAMPLE_ARTICLES = 5_000
_EMBEDDED_SAMPLE = 64


def catalog_vector_bytes(dimension: int) -> int:
    """Return the bytes of a vector in the catalog: float16, key and row header."""
    return 2 * dimension + VECTOR_ROW_BYTES


class Scratch(Protocol):
    """An empty index that is thrown away."""

    @property
    def writer(self) -> IndexWriter:
        """Its write side."""
        ...

    def disk_bytes(self) -> int:
        """Return what it takes on disk now."""
        ...


@dataclass(frozen=True, slots=True)
class BulkPlan:
    """The estimate: the sample scaled by its share of the source. Bytes, seconds."""

    source: str
    name: str
    sampled_articles: int
    sampled_share: float | None
    """Of the source, [0, 1]; None when it cannot say, and then the figures below are those of
    the sample alone."""
    articles: int
    """Redirects and skipped pages included."""
    documents: int
    chunks: int
    text_s: float
    """Until all text is durable and searchable, with `workers` processes besides the server's."""
    workers: int
    vectors_s: float | None
    """Until every chunk has a vector; None while no embedder can be had."""
    text_disk_bytes: int
    vectors_disk_bytes: int
    free_disk_bytes: int
    memory_bytes: int
    """Of the dense projections with every vector; text is on disk."""
    dense_cap: int
    """Vectors that are kept in memory for dense search (MAX_DENSE_VECTORS); chunks beyond are
    found by words and ranked again."""
    vector_store: str
    """The library's store of vectors, which disk and memory are computed for."""
    advised_vector_store: str
    """The store that can search every vector: `faiss` where those of a graph do not fit."""
    fits: bool
    """Whether text and vectors leave a tenth of the free disk."""


@dataclass(frozen=True, slots=True)
class _Sample:
    articles: int
    share: float | None
    prepared: list[Prepared]
    prepare_s: float

    @property
    def drafts(self) -> list[DocumentDraft]:
        return [item.draft for item in self.prepared if item.draft is not None]


class BulkPlanJob:
    """Handler of `bulk_plan`."""

    def __init__(
        self,
        *,
        scratch: Callable[[], AbstractContextManager[Scratch]],
        embedder_of: Callable[[Library], Embedder | None],
        options: IngestOptions,
        data_dir: Path,
        index: IndexOptions,
    ) -> None:
        """Take the parts the job needs.

        Args:
            scratch: Opens an empty index on the disk of the data directory.
            embedder_of: Who would embed; None while it cannot be had.
            options: How articles are chunked.
            data_dir: Whose disk has to hold all.
            index: Which store each library has, and how many vectors it holds at most.
        """
        self._scratch = scratch
        self._embedder_of = embedder_of
        self._options = options
        self._data_dir = data_dir
        self._index = index

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Read, parse, write and embed a sample, and scale it up.

        Raises:
            NotFound, InvalidInput, Unreadable: The source cannot be read.
        """
        library = Library(str(context.payload["library"]))
        source = str(context.payload["source"])
        name = str(context.payload["name"] or source_name(source))
        task = BulkTask(library, name, self._options)
        sample = _sample(task, source, context)
        drafts = sample.drafts
        write_s, disk = self._write(library, drafts)
        context.checkpoint()
        embedder = self._embedder(library)
        embed_s = _embedding_s(embedder, drafts) if embedder else None
        dimension = embedder.identity.dimension if embedder else 384
        scale = 1 / sample.share if sample.share else 1.0
        chunks = round(scale * sum(len(draft.chunks) for draft in drafts))
        workers = workers_for(open_articles(source), os.cpu_count() or 1)
        index, kind = self._index, self._index.store_of(library)
        cap = index.most_vectors(library)
        in_store = min(chunks, cap) * stored_bytes(kind, dimension)
        cached = min(chunks, cap) if min(chunks, cap) <= index.vector_cache_vectors else 0
        vectors_disk = chunks * catalog_vector_bytes(dimension) + in_store
        text_disk = round(scale * disk)
        free = shutil.disk_usage(self._data_dir).free
        plan = BulkPlan(
            source=source,
            name=name,
            sampled_articles=sample.articles,
            sampled_share=sample.share,
            articles=round(scale * sample.articles),
            documents=round(scale * len(drafts)),
            chunks=chunks,
            text_s=round(
                scale
                * max(
                    write_s, sample.prepare_s / workers if workers else write_s + sample.prepare_s
                ),
                1,
            ),
            workers=workers,
            vectors_s=None if embed_s is None else round(chunks * embed_s, 1),
            text_disk_bytes=text_disk,
            vectors_disk_bytes=vectors_disk,
            free_disk_bytes=free,
            memory_bytes=in_store + cached * 5 * dimension,  # float32 and int8
            dense_cap=cap,
            vector_store=kind,
            advised_vector_store=index.advised_store(library, chunks),
            fits=text_disk + vectors_disk < 0.9 * free,
        )
        return asdict(plan)

    def _embedder(self, library: Library) -> Embedder | None:
        try:
            return self._embedder_of(library)
        except DocuMindError:  # no key, no model: the plan for text stands without
            return None

    def _write(self, library: Library, drafts: list[DocumentDraft]) -> tuple[float, int]:
        """Write the sample to a temporary index; return seconds and bytes on disk.

        Without the bytes of an empty index.
        """
        with self._scratch() as scratch:
            before = scratch.disk_bytes()
            started = time.perf_counter()
            for start in range(0, len(drafts), BATCH_ARTICLES):
                scratch.writer.store(drafts[start : start + BATCH_ARTICLES])
            scratch.writer.settle(library)
            return time.perf_counter() - started, max(0, scratch.disk_bytes() - before)


def _sample(task: BulkTask, source: str, context: JobContext) -> _Sample:
    """Read the beginning of a source until the sample's time or size is reached."""
    stream = open_articles(source)
    deadline = time.perf_counter() + SAMPLE_S
    prepared: list[Prepared] = []
    articles, prepare_s, whole = 0, 0.0, False
    iterator: Iterator[Article] = iter(stream)
    while articles < SAMPLE_ARTICLES and time.perf_counter() < deadline:
        group = list(islice(iterator, 64))
        if not group:
            whole = True
            break
        started = time.perf_counter()
        prepared += prepare(task, group)
        prepare_s += time.perf_counter() - started
        articles += len(group)
        context.progress(articles, None, "articles")
        context.checkpoint()
    share = 1.0 if whole else stream.position() or None if isinstance(stream, Positioned) else None
    return _Sample(articles, share, prepared, prepare_s)


def _embedding_s(embedder: Embedder, drafts: list[DocumentDraft]) -> float | None:
    """Return embedding's seconds per chunk, from chunks spread over the sample."""
    texts = [draft.text[span.start : span.end] for draft in drafts for span in draft.chunks]
    texts = texts[:: max(1, len(texts) // _EMBEDDED_SAMPLE)][:_EMBEDDED_SAMPLE]
    counts = embedder.count_tokens(texts)
    texts = [
        text
        for text, tokens in zip(texts, counts, strict=True)
        if tokens <= embedder.identity.max_tokens
    ]
    if not texts:
        return None
    embedder.embed_passages(texts[:1])  # the first call loads the model
    started = time.perf_counter()
    embedder.embed_passages(texts)
    return (time.perf_counter() - started) / len(texts)
