"""The jobs that bring documents in: uploads, samples and papers of arXiv."""

from __future__ import annotations

from app.bootstrap.libraries import Libraries
from app.bootstrap.models import Models
from app.index.store import IndexStore
from app.ingest.sources.samples import bundled
from app.jobs.arxiv import ArxivJob
from app.jobs.kinds import ARXIV, SAMPLES, register_ingest, request_backfill
from app.jobs.queue import per_library
from app.jobs.runner import JobRunner
from app.jobs.samples import SamplesJob


def register_collecting(jobs: JobRunner, store: IndexStore, libraries: Libraries, models: Models) -> None:
    """Register the jobs that read documents into a library."""
    register_ingest(
        jobs,
        pipeline_of=lambda library: libraries.wired(library).pipeline,
        backfill_of=libraries.backfill,
        catalog=store.catalog,
        originals=store.writer,
        jobs=store.jobs,
    )
    samples = SamplesJob(
        root=bundled(),
        pipeline_of=lambda library: libraries.wired(library).pipeline,
        backfill_of=libraries.backfill,
        catalog=store.catalog,
        writer=store.writer,
        later=lambda library: request_backfill(jobs, library),
    )
    jobs.register(SAMPLES, samples, exclusive=per_library)
    arxiv = ArxivJob(
        client=models.arxiv(),
        catalog=store.catalog,
        pipeline_of=lambda library: libraries.wired(library).pipeline,
        backfill_of=libraries.backfill,
        later=lambda library: request_backfill(jobs, library),
    )
    jobs.register(ARXIV, arxiv, lane="network")
