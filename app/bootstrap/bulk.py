"""The bulk jobs, composed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from app.bootstrap.libraries import Libraries
from app.core.ports import IndexWriter
from app.index.options import IndexOptions
from app.index.store import IndexStore
from app.ingest.bulk import BulkIndexer
from app.jobs.bulk import BulkIndexJob, BulkService
from app.jobs.bulk_plan import BulkPlanJob
from app.jobs.kinds import register_bulk, request_backfill
from app.jobs.runner import JobRunner
from app.settings import Settings


@dataclass(frozen=True, slots=True)
class ScratchIndex:
    """An index in a directory that is removed afterwards; a `Scratch`."""

    store: IndexStore

    @property
    def writer(self) -> IndexWriter:
        """Its write side."""
        return self.store.writer

    def disk_bytes(self) -> int:
        """Return what its files take."""
        self.store.database.checkpoint()
        return sum(
            path.stat().st_size for path in self.store.options.data_dir.rglob("*") if path.is_file()
        )


@contextmanager
def scratch_index(options: IndexOptions) -> Iterator[ScratchIndex]:
    """Yield an empty index on the data's disk, so that measurements fit it."""
    with tempfile.TemporaryDirectory(prefix="plan-", dir=options.data_dir) as directory:
        there = Path(directory)
        with IndexStore(
            replace(
                options,
                data_dir=there,
                chroma_dir=there / "chroma",
                database_url="",
                search_url="",
                originals_url="",
            ),
            vector_store="off",
        ) as store:
            yield ScratchIndex(store)


def compose_bulk(
    settings: Settings, store: IndexStore, libraries: Libraries, jobs: JobRunner
) -> BulkService:
    """Register the bulk jobs over an open store."""
    index = BulkIndexJob(
        indexer=BulkIndexer(store.writer, store.ledger),
        catalog=store.catalog,
        options=settings.ingest(),
        later=lambda library: request_backfill(jobs, library),
    )
    plan = BulkPlanJob(
        scratch=lambda: scratch_index(store.options),
        embedder_of=lambda library: libraries.wired(library).embedder,
        options=settings.ingest(),
        data_dir=settings.data_dir,
        index=store.options,
    )
    return register_bulk(jobs, index=index, plan=plan)
