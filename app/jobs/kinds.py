"""The kinds of jobs there are: their names, lanes, and what may not run twice at once."""

from __future__ import annotations

from collections.abc import Callable

from app.core.ports import Catalog, JobStore
from app.core.types import Job, Library
from app.ingest.embedding import VectorBackfill
from app.ingest.pipeline import IngestPipeline
from app.jobs.board import is_finished
from app.jobs.ingest import BackfillJob, IngestJob, Originals
from app.jobs.runner import JobRunner, per_library

INGEST = "ingest"
BACKFILL = "backfill"
SAMPLES = "samples"
ARXIV = "arxiv"
PULL = "pull"
REPLAY = "replay"


def register_ingest(
    runner: JobRunner,
    *,
    pipeline_of: Callable[[Library], IngestPipeline],
    backfill_of: Callable[[Library], VectorBackfill | None],
    catalog: Catalog,
    originals: Originals,
    jobs: JobStore,
) -> None:
    """Register `ingest` and `backfill`.

    Args:
        runner: Where.
        pipeline_of: The path of a file into a library.
        backfill_of: Who embeds for a library now; None when nobody can.
        catalog: The truth, read.
        originals: Where accepted bytes are kept.
        jobs: The store of the runner.
    """

    def later(library: Library) -> Job:
        return request_backfill(runner, library)

    ingest = IngestJob(
        pipeline_of=pipeline_of, backfill_of=backfill_of, catalog=catalog, originals=originals, jobs=jobs, later=later
    )
    runner.register(INGEST, ingest)
    runner.register(BACKFILL, BackfillJob(backfill_of, catalog), lane="background", exclusive=per_library)


def request_backfill(runner: JobRunner, library: Library, order: str = "id") -> Job:
    """Ask for the missing vectors of a library; one request waits at most, and it is retried until the embedder answers."""
    return runner.submit(BACKFILL, {"library": library.value, "order": order, "retry": True}, unit="chunks", coalesce=True)


def resume_backfills(runner: JobRunner, catalog: Catalog) -> None:
    """Ask for the missing vectors of every library that lacks some, after `runner.start()`; a request from before counts."""
    asked = {job.payload.get("library") for job in runner.list(1000) if job.kind == BACKFILL and not is_finished(job)}
    for library in Library:
        counts = catalog.counts(library)
        if counts.embedded < counts.chunks and library.value not in asked:
            request_backfill(runner, library)
