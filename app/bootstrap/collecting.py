"""The jobs that bring documents in: uploads, samples and papers of arXiv."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.bootstrap.libraries import Libraries
from app.core.errors import OriginalsAway
from app.index.store import IndexStore
from app.ingest.sources.samples import bundled
from app.jobs.arxiv import ArxivJob
from app.jobs.ingest import OriginalFiles
from app.jobs.kinds import ARXIV, SAMPLES, register_ingest, request_backfill
from app.jobs.registry import per_library
from app.jobs.runner import JobRunner
from app.jobs.samples import SamplesJob
from app.providers.arxiv import ArxivClient
from app.settings import Settings


@dataclass(frozen=True, slots=True)
class _SharedDirectory:
    """Originals in a directory that servers and workers should share."""

    originals: OriginalFiles

    def original_path(self, sha256: str) -> Path:
        """Return where the bytes of a hash are.

        Raises:
            OriginalsAway: Another process accepted them, in a directory of its own.
        """
        path = self.originals.original_path(sha256)
        if not path.exists():
            raise OriginalsAway(
                f"an upload was kept by another process: {str(path)!r} is not here. Servers and"
                " workers need one ORIGINALS_URL, or one directory DATA_DIR/originals"
            )
        return path

    def delete_original(self, sha256: str) -> None:
        """Remove bytes that no document refers to."""
        self.originals.delete_original(sha256)


def register_collecting(
    jobs: JobRunner, store: IndexStore, libraries: Libraries, settings: Settings
) -> None:
    """Register the jobs that read documents into a library."""
    hosts, alone = settings.providers(), settings.originals_url or not settings.is_shared
    register_ingest(
        jobs,
        pipeline_of=lambda library: libraries.wired(library).pipeline,
        backfill_of=libraries.backfill,
        catalog=store.catalog,
        originals=store.writer if alone else _SharedDirectory(store.writer),
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
