"""Run bulk jobs: index a dump, and join requests to the job under way."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import cast

from app.core.errors import Conflict
from app.core.ports import Catalog
from app.core.types import Article, Job, LedgerSummary, Library
from app.ingest.bulk import BulkIndexer, BulkOptions, MissingPolicy
from app.ingest.bulk_work import BulkTask
from app.ingest.options import IngestOptions
from app.ingest.sources.articles import (
    FirstArticles,
    is_markup,
    is_part,
    open_articles,
    source_name,
)
from app.jobs.board import is_finished
from app.jobs.context import JobContext
from app.jobs.runner import JobRunner

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

    def to_json(self) -> dict[str, object]:
        """Return the payload as JSON values."""
        return {**asdict(self), "library": self.library.value}

    @classmethod
    def from_json(cls, payload: Mapping[str, object]) -> BulkPayload:
        """Return the payload of a job."""
        return cls(
            Library(str(payload["library"])),
            str(payload["source"]),
            str(payload["name"]),
            cast("int | None", payload["workers"]),
            cast("MissingPolicy", payload["missing"]),
            cast("int | None", payload.get("articles")),
        )


def workers_for(articles: Iterable[Article], cores: int) -> int:
    """Return how many processes should parse a source.

    Storing takes about as long as parsing wikitext and four times as long as cutting clean text,
    and shares the cores with it (evaluation/reports/bulk.md). Sending clean text between processes
    costs half of what it saves, so it begins at four cores.
    """
    return max(1, cores - 1) if is_markup(articles) else max(0, cores // 2 - 1)


def account(summary: LedgerSummary) -> dict[str, object]:
    """Return a ledger's account as JSON values; `articles` is the sum of the rest."""
    return {
        "articles": summary.articles,
        "indexed": summary.indexed,
        "redirects": summary.redirects,
        "skipped": dict(summary.skipped),
    }


class BulkIndexJob:
    """Handler of `bulk`; resumes by reading its source again.

    It skips what the ledger holds in the same revision.
    """

    def __init__(
        self,
        *,
        indexer: BulkIndexer,
        catalog: Catalog,
        options: IngestOptions,
        later: Callable[[Library], object],
    ) -> None:
        """Take the parts the job needs.

        Args:
            indexer: Takes articles into the index.
            catalog: Says how many vectors are missing afterwards.
            options: How articles are chunked.
            later: Asks for the vectors of a small library.
        """
        self._indexer = indexer
        self._catalog = catalog
        self._options = options
        self._later = later

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Index, then report the source's counts; everything is durable and searchable.

        Lexical search finds it on return.

        Raises:
            NotFound: The source is gone.
            Unreadable: The source cannot be read on.
            Conflict: The source lacks most of what is known under its name; nothing was removed.
            Cancelled: Paused, cancelled or shutting down; what was written stays.
        """
        payload = BulkPayload.from_json(context.payload)
        cores = os.cpu_count() or 1
        articles = open_articles(payload.source, cores)
        workers = workers_for(articles, cores) if payload.workers is None else payload.workers

        def progress(read: int, position: float | None) -> None:
            # The total is what the source would hold if the rest were like the part read so far, by
            # bytes.
            context.progress(
                read, max(read, round(read / position)) if position else None, "articles"
            )
            context.checkpoint()

        summary = self._indexer.run(
            BulkTask(payload.library, payload.name, self._options),
            articles if payload.articles is None else FirstArticles(articles, payload.articles),
            BulkOptions(workers, payload.missing),
            progress=progress,
            cancel=context.cancel,
        )
        counts = self._catalog.counts(payload.library)
        if 0 < counts.chunks - counts.embedded <= AUTOMATIC_BACKFILL_CHUNKS:
            self._later(payload.library)
        return {"library": payload.library.value, "name": payload.name, "ledger": account(summary)}


class BulkService:
    """Accepts requests for bulk runs; thread-safe.

    An equal request joins the run under way; a different one is refused.
    """

    def __init__(self, runner: JobRunner) -> None:
        """Keep the runner."""
        self._runner = runner
        self._lock = threading.Lock()

    def request(
        self,
        library: Library,
        source: str,
        *,
        name: str = "",
        workers: int | None = None,
        missing: MissingPolicy | None = None,
        articles: int | None = None,
    ) -> Job:
        """Start a run, or join or resume the existing one.

        It has the same library, name and source.

        Args:
            library: Where articles go.
            source: Absolute path on this machine, or `hub:owner/name`.
            name: What the source is called in the ledger; empty asks the source.
            workers: Processes that parse; 0 parses in the server's own, None chooses by source and
                cores.
            missing: What becomes of articles that the source lacks; None keeps them for a part of a
                dump, else removes.
            articles: At most this many, from the beginning; None takes all.

        Raises:
            NotFound: There is no such source.
            InvalidInput: It is of no kind that can be read.
            Unreadable: It does not begin like a dump.
            Conflict: Another run fills this library.
        """
        whole = articles is None and not is_part(source)
        missing = missing or ("remove" if whole else "keep")
        payload = BulkPayload(
            library, source, name or source_name(source), workers, missing, articles
        )
        with self._lock:
            for job in self._runner.list(1000):
                if job.kind != BULK or is_finished(job) or job.payload["library"] != library.value:
                    continue
                there = BulkPayload.from_json(job.payload)
                if replace(there, workers=workers) != payload:
                    raise Conflict(
                        f"job {job.id} indexes {there.source!r} as {there.name!r} into"
                        f" {library.value!r} ({job.state}):"
                        " wait for it, or end it with: documind bulk cancel --library"
                        f" {library.value}"
                    )
                return self._runner.resume(job.id) if job.state == "paused" else job
            return self._runner.submit(BULK, payload.to_json(), unit="articles")


def bulk_under_way(runner: JobRunner, library: Library) -> bool:
    """Return whether a run that fills this library has not ended."""
    return any(
        job.kind == BULK and job.payload["library"] == library.value and not is_finished(job)
        for job in runner.list(1000)
    )
