"""Embed what a library lacks: the backfill job, and one run for other jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from app.core.errors import FingerprintMismatch, ProviderUnreachable
from app.core.ports import Catalog
from app.core.types import Library
from app.ingest.embedding import BackfillReport, VectorBackfill
from app.ingest.embedding_run import ChunkFailure
from app.jobs.context import JobContext

MOST_LOGGED = 100
"""Chunks without a vector that a job over a whole library names; its report counts all."""


class BackfillJob:
    """Handler of `backfill`: vectors for every chunk of a library that has none."""

    def __init__(
        self, backfill_of: Callable[[Library], VectorBackfill | None], catalog: Catalog
    ) -> None:
        """Take the parts the job needs."""
        self._backfill_of = backfill_of
        self._catalog = catalog

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Embed until nothing is pending.

        Raises:
            Cancelled: Paused, cancelled or shutting down; the vectors so far are kept.
            ProviderError: The embedder does not answer.
        """
        library = Library(str(context.payload["library"]))
        limit = cast("int | None", context.payload.get("limit"))
        counts = self._catalog.counts(library)
        before = counts.embedded
        total = counts.chunks if limit is None else min(counts.chunks, before + limit)

        def progress(done: int) -> None:
            context.progress(before + done, total, "chunks")
            context.checkpoint()

        def coded(done: int, of: int) -> None:
            context.progress(done, of, "passages coded")
            context.checkpoint()

        def run(backfill: VectorBackfill) -> BackfillReport:
            return backfill.run(
                library,
                progress=progress,
                cancel=context.cancel,
                order=str(context.payload.get("order", "id")),
                limit=limit,
                workers=cast("int", context.payload.get("workers", 1)),
                code_progress=coded,
            )

        context.progress(before, total, "chunks")
        report = run_backfill(self._backfill_of, library, run)
        log_failures(context, report.failed[:MOST_LOGGED])
        return {"library": library.value, "embedded": report.embedded, "failed": len(report.failed)}


def run_backfill(
    backfill_of: Callable[[Library], VectorBackfill | None],
    library: Library,
    run: Callable[[VectorBackfill], BackfillReport],
) -> BackfillReport:
    """Run a library's backfill; again with the new embedder after a re-embedding.

    Raises:
        ProviderUnreachable: The library's embedder is unavailable.
        FingerprintMismatch: The library holds vectors made otherwise.
    """
    for again in (True, False):
        backfill = backfill_of(library)
        if backfill is None:
            break
        try:
            return run(backfill)
        except FingerprintMismatch:
            if not again:
                raise
    raise ProviderUnreachable(
        f"no embedder is available for library {library.value!r}; see documind doctor"
    )


def log_failures(context: JobContext, failures: Sequence[ChunkFailure]) -> None:
    """Log the chunks that the embedder refuses as errors of a job."""
    for failure in failures:
        context.error(
            f"{failure.code}: chunk {failure.chunk_id} of {failure.doc_id} has no vector:"
            f" {failure.reason}"
        )
