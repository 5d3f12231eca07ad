"""The jobs that bring documents in: uploads, samples and papers of arXiv."""

from __future__ import annotations

from app.bootstrap.libraries import Libraries
from app.index.store import IndexStore
from app.ingest.sources.samples import bundled
from app.jobs.arxiv import ArxivJob
from app.jobs.kinds import ARXIV, SAMPLES, register_ingest, request_backfill
from app.jobs.registry import per_library
from app.jobs.runner import JobRunner
from app.jobs.samples import SamplesJob
from app.providers.arxiv import ArxivClient
from app.providers.options import ProviderOptions


def register_collecting(
    jobs: JobRunner, store: IndexStore, libraries: Libraries, hosts: ProviderOptions
) -> None:
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
        client=ArxivClient(
            hosts.arxiv_base_url, max_bytes=hosts.arxiv_max_bytes, interval_s=hosts.arxiv_interval_s
        ),
        catalog=store.catalog,
        pipeline_of=lambda library: libraries.wired(library).pipeline,
        backfill_of=libraries.backfill,
        later=lambda library: request_backfill(jobs, library),
    )
    jobs.register(ARXIV, arxiv, lane="network")
