"""Compare clean-text indexing with bare tantivy and with the catalog's writer.

Rounds are interleaved.
"""

from __future__ import annotations

import gc
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tantivy

from app.core.types import Article, DocumentDraft, Library
from app.ingest.bulk import BATCH_ARTICLES, BulkIndexer, BulkOptions, BulkTask, prepare
from app.ingest.names import IngestOptions
from app.jobs.bulk import workers_for
from app.storage.catalog.revisions import RevisionBatch
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.catalog.texts import TextCodec
from app.storage.files.durable import Steps
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.words.query import (
    ANALYZER,
    BODY,
    CHUNK_ID,
    DOC,
    DOC_ID,
    SECTION_NAME,
    TITLE,
    TYPE,
    build_analyzer,
    build_schema,
)
from app.storage.words.writer import GROUP_CHUNKS
from evaluation.benchmarks.bulk.growth import CHUNKS_PER_ARTICLE, TextPool

DISTURBED = 0.1
TASK = BulkTask(Library.PUBLIC, "bench", IngestOptions())


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the clock and of processors, child processes included."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Throughput:
    """Medians over the rounds; shares of the speed of others, above 1 is faster."""

    chunks: int
    rounds: int
    product: Cost
    tantivy: Cost
    """Durable as often as the product: a commit for each of its transactions."""
    tantivy_grouped: Cost
    """A commit for each of the product's groups of words: tantivy loses more to a crash than the
    product, which loses no row."""
    catalog: Cost
    share_of_tantivy: float
    share_of_grouped: float
    share_of_tantivy_cpu: float
    share_of_slower: float
    chunks_per_s: float
    others_share: float | None
    """Share of processor time that other processes used, [0, 1], None if unknown; over DISTURBED,
    shares by the clock say nothing."""

    def highest_share(self, cores: int) -> float:
        """Return the share of bare tantivy's speed at full use of all cores."""
        return self.tantivy.wall_s / (self.product.cpu_s / cores)


def measure(chunks: int, rounds: int) -> Throughput:
    """Index about `chunks` chunks in each way, `rounds` times in turn."""
    articles = list(TextPool().articles(round(chunks / CHUNKS_PER_ARTICLE)))
    drafts = [item.draft for item in prepare(TASK, articles) if item.draft is not None]
    count = sum(len(draft.chunks) for draft in drafts)
    ways: dict[str, Callable[[Path], None]] = {
        "product": lambda path: _product(path, articles),
        "tantivy": lambda path: _tantivy(path, drafts, 1),
        "tantivy_grouped": lambda path: _tantivy(path, drafts, GROUP_CHUNKS),
        "catalog": lambda path: _catalog(path, drafts),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    gc.collect()
    gc.freeze()  # what all sides are given is no garbage of any of them
    busy_before, own_before = _busy_s(), _cpu_s()
    for _ in range(rounds):
        for name, way in ways.items():
            # A merge that was left to itself may write a file more while the folder goes.
            with tempfile.TemporaryDirectory(
                prefix="documind-bench-", ignore_cleanup_errors=True
            ) as directory:
                costs[name].append(_cost(way, Path(directory)))

    busy_s, own_s = _busy_s() - busy_before, _cpu_s() - own_before

    def share(other: Callable[[int], float], own: Callable[[int], float]) -> float:
        return statistics.median(other(i) / own(i) for i in range(rounds))

    return Throughput(
        chunks=count,
        rounds=rounds,
        product=_median(costs["product"]),
        tantivy=_median(costs["tantivy"]),
        tantivy_grouped=_median(costs["tantivy_grouped"]),
        catalog=_median(costs["catalog"]),
        share_of_tantivy=share(
            lambda i: costs["tantivy"][i].wall_s, lambda i: costs["product"][i].wall_s
        ),
        share_of_grouped=share(
            lambda i: costs["tantivy_grouped"][i].wall_s, lambda i: costs["product"][i].wall_s
        ),
        share_of_tantivy_cpu=share(
            lambda i: costs["tantivy"][i].cpu_s, lambda i: costs["product"][i].cpu_s
        ),
        share_of_slower=share(
            lambda i: max(costs["tantivy"][i].wall_s, costs["catalog"][i].wall_s),
            lambda i: costs["product"][i].wall_s,
        ),
        chunks_per_s=count / _median(costs["product"]).wall_s,
        others_share=max(0.0, 1 - own_s / busy_s) if busy_s else None,
    )


def _product(path: Path, articles: Sequence[Article]) -> None:
    with IndexStore(IndexOptions(path, path / "chroma"), vector_store="off") as store:
        options = BulkOptions(workers_for(articles, os.cpu_count() or 1))
        BulkIndexer(store.writer, store.ledger).run(TASK, articles, options)


def _tantivy(path: Path, drafts: Sequence[DocumentDraft], group_chunks: int) -> None:
    """Write the same, already cut chunks with the same schema, threads and heap.

    The same analyzer too.

    A commit follows the batch that makes `group_chunks` full. It ends like the product with the
    last commit: merges that still run then are left to themselves.
    """
    options = IndexOptions(path, path)
    schema = build_schema()
    index = tantivy.Index(schema, path=str(path))
    index.register_tokenizer(ANALYZER, build_analyzer())
    writer = index.writer(options.tantivy_heap_bytes, min(4, os.cpu_count() or 1))
    number = committed = 0
    for start in range(0, len(drafts), BATCH_ARTICLES):
        for doc, draft in enumerate(drafts[start : start + BATCH_ARTICLES], start + 1):
            fixed = {DOC: doc, DOC_ID: draft.doc_id, TYPE: draft.type, TITLE: draft.metadata.title}
            for span in draft.chunks:
                number += 1
                fields = {
                    CHUNK_ID: number,
                    SECTION_NAME: span.section,
                    BODY: draft.text[span.start : span.end],
                    **fixed,
                }
                writer.add_document(tantivy.Document.from_dict(fields, schema))
        if number - committed >= group_chunks or start + BATCH_ARTICLES >= len(drafts):
            writer.commit()
            index.reload()
            committed = number


def _catalog(path: Path, drafts: Sequence[DocumentDraft]) -> None:
    """Write the same revisions and nothing else, one transaction a batch."""
    database, codec = SqliteDatabase(path / "catalog.sqlite3", Steps()), TextCodec()
    for start in range(0, len(drafts), BATCH_ARTICLES):
        batch = drafts[start : start + BATCH_ARTICLES]
        with database.write("documents") as sql:
            RevisionBatch(sql, database.dialect, codec.pack).write(batch)
    database.close()


def _cost(way: Callable[[Path], None], path: Path) -> Cost:
    started, cpu = time.perf_counter(), _cpu_s()
    way(path)
    return Cost(time.perf_counter() - started, _cpu_s() - cpu)


def _cpu_s() -> float:
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def _busy_s() -> float:
    """Return the processor time of all users since boot; 0.0 if unknown."""
    try:
        numbers = [
            int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        ]
    except OSError:
        return 0.0
    user, nice, system, _idle, _waiting, irq, softirq, steal = numbers
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.wall_s for cost in costs),
        statistics.median(cost.cpu_s for cost in costs),
    )
