"""Run bulk jobs: index a dump, and join requests to the job under way."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.errors import Conflict, DocuMindError
from app.core.ports import Embedder
from app.core.types import (
    Article,
    DocumentDraft,
    Job,
    LedgerSummary,
    Library,
    from_json,
    json_values,
)
from app.ingest.bulk import (
    BATCH_ARTICLES,
    BulkIndexer,
    BulkTask,
    MissingPolicy,
    Positioned,
    Prepared,
    prepare,
)
from app.ingest.options import IngestOptions
from app.ingest.sources.dumps import FirstArticles, is_markup, open_articles, source_name
from app.jobs.runner import JobContext, JobRunner, per_library
from app.storage.catalog.documents import Catalog
from app.storage.options import IndexOptions, stored_bytes

if TYPE_CHECKING:
    from app.storage.store import IndexStore

BULK = "bulk"
AUTOMATIC_BACKFILL_CHUNKS = 20_000
"""A library that lacks at most this many vectors gets them without being asked: a few minutes on
two cores. Beyond, they are a decision, `documind bulk embed`: all of English Wikipedia would
keep a laptop busy for weeks."""


@dataclass(frozen=True, slots=True)
class BulkPayload:
    """One run over a source."""

    library: Library
    source: str
    """Absolute path on this machine, or `hub:owner/name`."""
    name: str
    """What the source is called in the ledger."""
    workers: int | None = None
    """Processes that parse; 0 parses in the server's own, None chooses (`workers_for`)."""
    missing: MissingPolicy = "remove"
    articles: int | None = None
    """At most this many articles, from the beginning; None takes all."""


def workers_for(articles: Iterable[Article], cores: int) -> int:
    """Return how many processes should parse a source.

    Storing takes about as long as parsing wikitext and four times as long as cutting clean text,
    and shares the cores with it (evaluation/reports/bulk.md). Sending clean text between processes
    costs half of what it saves, so it begins at four cores.
    """
    return max(1, cores - 1) if is_markup(articles) else max(0, cores // 2 - 1)


def account(summary: LedgerSummary) -> dict[str, object]:
    """Return a ledger's account as JSON values; `articles` is the sum of the rest."""
    return {"articles": summary.articles, **asdict(summary)}


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkIndexJob:
    """Handler of `bulk`; it reads the source again and skips what the ledger holds."""

    indexer: BulkIndexer
    catalog: Catalog
    options: IngestOptions
    later: Callable[[Library], object]
    """Asks for the vectors of a small library."""

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Index, then report the source's counts; all is durable and found by words on return.

        Raises:
            NotFound: The source is gone.
            Unreadable: The source cannot be read on.
            Conflict: The source lacks most of what is known under its name; nothing was removed.
            Cancelled: Paused, cancelled or shutting down; what was written stays.
            Superseded: The library was cleared since.
        """
        payload = from_json(BulkPayload, context.payload)
        cores = os.cpu_count() or 1
        articles = open_articles(payload.source, cores)
        workers = workers_for(articles, cores) if payload.workers is None else payload.workers

        def progress(read: int, position: float | None) -> None:
            # The total is what the source would hold if the rest were like the part read so far, by
            # bytes.
            whole = max(read, round(read / position)) if position else None
            context.step(read, whole, "articles")

        summary = self.indexer.run(
            BulkTask(payload.library, payload.name, self.options, context.job_id),
            articles if payload.articles is None else FirstArticles(articles, payload.articles),
            workers=workers,
            missing=payload.missing,
            progress=progress,
            cancel=context.cancel,
        )
        counts = self.catalog.counts(payload.library)
        if 0 < counts.chunks - counts.embedded <= AUTOMATIC_BACKFILL_CHUNKS:
            self.later(payload.library)
        return {"library": payload.library.value, "name": payload.name, "ledger": account(summary)}


class BulkService:
    """Accepts requests for bulk runs, joins an equal one, refuses a different one; thread-safe."""

    def __init__(self, runner: JobRunner, index: BulkIndexJob, plan: BulkPlanJob) -> None:
        self._runner = runner
        self._lock = threading.Lock()
        runner.register(BULK, index, lane="background", exclusive=per_library)
        runner.register(BULK_PLAN, plan, lane="background")

    def request(self, payload: BulkPayload) -> Job:
        """Start a run, or join or resume the one of the same library, name and source.

        Raises:
            NotFound: There is no such source.
            InvalidInput: It is of no kind that can be read.
            Unreadable: It does not begin like a dump.
            Conflict: Another run fills this library.
        """
        name = payload.library.value
        with self._lock:
            for job in self._runner.unfinished(BULK, payload.library):
                there = from_json(BulkPayload, job.payload)
                if replace(there, workers=payload.workers) != payload:
                    raise Conflict(
                        f"job {job.id} indexes {there.source!r} as {there.name!r} into {name!r}"
                        f" ({job.state}): wait for it, or end it with: documind bulk cancel"
                        f" --library {name}"
                    )
                return self._runner.resume(job.id) if job.state == "paused" else job
            return self._runner.submit(BULK, json_values(payload), unit="articles")


# Estimate a bulk run's time, disk and memory from a timed sample.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPlanJob:
    embedder_of: Callable[[Library], Embedder | None]
    """None while it cannot be had."""
    options: IngestOptions
    data_dir: Path
    """Whose disk has to hold all."""
    index: IndexOptions

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        library = Library(str(context.payload["library"]))
        source = str(context.payload["source"])
        name = str(context.payload["name"] or source_name(source))
        task = BulkTask(library, name, self.options)
        sample = _sample(task, source, context)
        drafts = sample.drafts
        write_s, disk = self._write(library, drafts)
        context.checkpoint()
        embedder = None
        with suppress(DocuMindError):  # no key, no model: the plan for text stands without
            embedder = self.embedder_of(library)
        embed_s = _embedding_s(embedder, drafts) if embedder else None
        dimension = embedder.identity.dimension if embedder else 384
        scale = 1 / sample.share if sample.share else 1.0
        chunks = round(scale * sum(len(draft.chunks) for draft in drafts))
        workers = workers_for(open_articles(source), os.cpu_count() or 1)
        index, kind = self.index, self.index.store_of(library)
        cap = index.most_vectors(library)
        in_store = min(chunks, cap) * stored_bytes(kind, dimension)
        cached = min(chunks, cap) if min(chunks, cap) <= index.vector_cache_vectors else 0
        vectors_disk = chunks * catalog_vector_bytes(dimension) + in_store
        text_disk = round(scale * disk)
        free = shutil.disk_usage(self.data_dir).free
        prepare_s = sample.prepare_s / workers if workers else write_s + sample.prepare_s
        text_s = max(write_s, prepare_s)
        plan = BulkPlan(
            source=source,
            name=name,
            sampled_articles=sample.articles,
            sampled_share=sample.share,
            articles=round(scale * sample.articles),
            documents=round(scale * len(drafts)),
            chunks=chunks,
            text_s=round(scale * text_s, 1),
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

    def _write(self, library: Library, drafts: list[DocumentDraft]) -> tuple[float, int]:
        """Write the sample to an empty index; return seconds and the bytes that it added."""
        with self._scratch() as scratch:
            before = _disk_bytes(scratch)
            started = time.perf_counter()
            for start in range(0, len(drafts), BATCH_ARTICLES):
                scratch.writer.store(drafts[start : start + BATCH_ARTICLES])
            scratch.writer.flush(library)
            return time.perf_counter() - started, max(0, _disk_bytes(scratch) - before)

    @contextmanager
    def _scratch(self) -> Iterator[IndexStore]:
        """Yield an empty index on the data's disk, so that measurements fit it."""
        from app.storage.store import IndexStore  # noqa: PLC0415  # heavy, for plans alone

        with tempfile.TemporaryDirectory(prefix="plan-", dir=self.index.data_dir) as directory:
            there = Path(directory)
            options = replace(
                self.index,
                data_dir=there,
                chroma_dir=there / "chroma",
                database_url="",
                search_url="",
                originals_url="",
            )
            with IndexStore(options, vector_store="off") as store:
                yield store


def _disk_bytes(store: IndexStore) -> int:
    store.database.checkpoint()
    return sum(path.stat().st_size for path in store.options.data_dir.rglob("*") if path.is_file())


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
        context.step(articles, None, "articles")
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
