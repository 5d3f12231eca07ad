"""Define the kinds of jobs: names, lanes, and which must not run together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.ports import Parser
from app.core.types import Job, Library
from app.jobs.bulk import AUTOMATIC_BACKFILL_CHUNKS, BULK
from app.jobs.ingest import (
    BACKFILL,
    OCR,
    REREAD,
    BackfillJob,
    Collecting,
    IngestJob,
    OcrJob,
    ReparseJob,
    request_backfill,
)
from app.jobs.runner import JobRunner, per_library

if TYPE_CHECKING:
    from app.storage.catalog.documents import Catalog
    from app.storage.queue import JobQueue

INGEST = "ingest"
SAMPLES = "samples"
ARXIV = "arxiv"
FETCH = "fetch"
PULL = "pull"
MODEL_TEST = "model_test"
FSCK = "fsck"
EXPORT = "export"
IMPORT = "import"
BACKUP = "backup"
PURGE = "purge"
EVALUATION = "evaluation"
CALIBRATE = "calibrate"


def register_ingest(parts: Collecting, jobs: JobQueue, recogniser: Parser) -> None:
    """Register `ingest`, `reread`, `ocr` and `backfill`; `jobs` is the queue of the runner."""
    parts.runner.register(INGEST, IngestJob(parts, jobs))
    parts.runner.register(REREAD, ReparseJob(parts), lane="background", exclusive=per_library)
    parts.runner.register(
        OCR, OcrJob(parts, recogniser), lane="background", exclusive=lambda _: "one at a time"
    )
    parts.runner.register(BACKFILL, BackfillJob(parts), lane="background", exclusive=per_library)


def resume_backfills(
    runner: JobRunner, catalog: Catalog, lacks_codes: Callable[[Library], bool] = lambda _: False
) -> None:
    """Request vectors of every library that lacks some, after `runner.start()`.

    Also for missing codes. An older request counts. A library that is being filled asks at the end
    of its bulk run; one that lacks many waits for `documind bulk embed`.
    """
    for library in Library:
        counts = catalog.counts(library)
        pending = counts.chunks - counts.embedded
        is_filled = any(any(runner.unfinished(kind, library)) for kind in (BACKFILL, BULK))
        if not counts.chunks or pending > AUTOMATIC_BACKFILL_CHUNKS or is_filled:
            continue
        if pending or lacks_codes(library):
            request_backfill(runner, library)


def request_embedding(
    runner: JobRunner, library: Library, order: str, limit: int | None, workers: int = 1
) -> Job:
    """Ask for vectors in an order of the user's choice.

    The same request again joins or resumes the one that is there; another one takes its place,
    which loses nothing, because what is missing is asked of the catalog.
    """
    payload: dict[str, object] = {
        "library": library.value,
        "order": order,
        "limit": limit,
        "workers": workers,
    }
    for job in runner.unfinished(BACKFILL, library):
        if job.payload == payload:
            return runner.resume(job.id) if job.state == "paused" else job
        runner.cancel(job.id)
    return runner.submit(BACKFILL, payload, unit="chunks")


MARKER = "samples.version"
"""A file of the data directory: which version of the samples was seeded; its presence means that
they were once."""


def seed(
    runner: JobRunner,
    catalog: Catalog,
    marker: Path,
    version: str,
    *,
    on_empty: bool,
    keep_current: bool,
) -> None:
    """Ask for the samples, once when both libraries are empty or when their version changes."""
    seeded = marker.read_text(encoding="utf-8").strip() if marker.exists() else None
    empty = not any(catalog.counts(library).documents for library in Library)
    changed = keep_current and seeded != version
    if changed or (on_empty and seeded is None and empty):
        purge = changed and seeded is not None
        runner.submit(SAMPLES, {"purge": purge}, unit="files", coalesce=True)
        marker.write_text(version + "\n", encoding="utf-8")
