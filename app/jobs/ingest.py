"""The ingest job: accepted files become live documents, then get their vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.core.errors import Cancelled, DiskFull, FingerprintMismatch, ProviderError, Superseded
from app.core.ports import Catalog, JobStore
from app.core.types import IngestOutcome, JobFile, Library, RawDocument
from app.ingest.embedding import VectorBackfill
from app.ingest.pipeline import IngestPipeline
from app.jobs.backfill import log_failures, run_backfill
from app.jobs.batch_worker import BatchWorker
from app.jobs.context import JobContext
from app.jobs.payloads import IngestPayload, IngestReport, counted, pending_originals


class OriginalFiles(Protocol):
    """Stores accepted bytes."""

    def original_path(self, sha256: str) -> Path:
        """Return where the bytes of a hash are."""
        ...

    def delete_original(self, sha256: str) -> None:
        """Remove bytes that no document refers to."""
        ...


class IngestJob:
    """Handler of `ingest`; safe to repeat.

    Live documents are unchanged, embedded chunks are not pending.
    """

    def __init__(
        self,
        *,
        pipeline_of: Callable[[Library], IngestPipeline],
        backfill_of: Callable[[Library], VectorBackfill | None],
        catalog: Catalog,
        originals: OriginalFiles,
        jobs: JobStore,
        later: Callable[[Library], object],
    ) -> None:
        """Take the parts the job needs.

        Args:
            pipeline_of: The path of a file into a library.
            backfill_of: The embedder of a library now; None if it is unavailable.
            catalog: Counts of vectors for the receipts.
            originals: Where accepted bytes are.
            jobs: Which other uploads still need the same bytes.
            later: Asks for a backfill of a library when its vectors cannot be made now.
        """
        self._pipeline_of = pipeline_of
        self._backfill_of = backfill_of
        self._catalog = catalog
        self._originals = originals
        self._jobs = jobs
        self._later = later

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Make the files live, report, and report again once all have vectors.

        Embedding begins with the first files.

        Raises:
            Cancelled: Paused, cancelled or shutting down.
            Superseded: All files were deleted after they were accepted.
            DiskFull: No space; a retried job goes on later, another one reports it per file.
        """
        payload = IngestPayload.from_json(context.payload)
        try:
            return self._run(context, payload)
        except Exception as error:
            again = payload.retry or isinstance(error, Cancelled)
            again &= not isinstance(error, Superseded)
            # Stopped, it may run elsewhere by now, on the same bytes.
            if not again and not context.cancel.cancelled:  # the sender is told; nothing stays
                self._discard(context, {file.sha256 for file in payload.files})
            raise

    def _run(self, context: JobContext, payload: IngestPayload) -> Mapping[str, object]:
        vectors = _Vectors(self._backfill_of, self._later, context, payload.library)
        with BatchWorker(vectors.embed) as batch_worker:
            outcomes = self._merge(context, self._make_live(context, payload, batch_worker.add))
            self._discard_failed(context, payload, outcomes)
            context.publish(IngestReport(outcomes, "text").to_json())
            vectors.total = sum(
                outcome.receipt.chunks for outcome in outcomes if outcome.receipt is not None
            )
            # All once more: an interrupted run may have written documents and not embedded them.
            changed = [outcome for outcome in outcomes if outcome.status != "unchanged"]
            batch_worker.add([outcome.doc_id for outcome in changed if outcome.doc_id is not None])
            batch_worker.finish()
        # A document that was deleted while its vectors were made left its bytes to this job, which
        # needed them until now.
        self._discard(context, {file.sha256 for file in payload.files})
        return IngestReport(
            tuple(counted(self._catalog, payload.library, outcomes)), "vectors"
        ).to_json()

    def _make_live(
        self, context: JobContext, payload: IngestPayload, written: Callable[[Sequence[str]], None]
    ) -> list[IngestOutcome]:
        context.files(JobFile(file.filename, "queued", 0.0) for file in payload.files)
        finished = 0

        def progress(index: int, file: JobFile) -> None:
            nonlocal finished
            context.file(index, file.state, file.progress)
            if file.state in {"done", "failed"}:
                finished += 1
                context.progress(finished, len(payload.files), "files")

        outcomes = self._pipeline_of(payload.library).ingest(
            payload.library,
            self._documents(payload, context.job_id),
            progress=progress,
            written=written,
            cancel=context.cancel,
        )
        if outcomes and all(outcome.code == Superseded.code for outcome in outcomes):
            raise Superseded(outcomes[0].reason or "deleted after it was accepted")
        full = next((outcome for outcome in outcomes if outcome.code == DiskFull.code), None)
        if full is not None and payload.retry:
            raise DiskFull(full.reason or "no space")
        return outcomes

    def _documents(self, payload: IngestPayload, job_id: str) -> Iterator[RawDocument]:
        for file in payload.files:
            path = self._originals.original_path(file.sha256)
            yield RawDocument(file.source_key, file.filename, path, job_id=job_id)

    def _merge(
        self, context: JobContext, outcomes: Sequence[IngestOutcome]
    ) -> tuple[IngestOutcome, ...]:
        """Return outcomes as the first run saw them.

        Documents an interrupted run indexed are not `unchanged` to the sender.
        """
        before = IngestReport.from_json(context.previous)
        if before is None or len(before.outcomes) != len(outcomes):
            return tuple(outcomes)
        return tuple(
            old if new.status == "unchanged" and old.status != "failed" else new
            for old, new in zip(before.outcomes, outcomes, strict=True)
        )

    def _discard_failed(
        self, context: JobContext, payload: IngestPayload, outcomes: Sequence[IngestOutcome]
    ) -> None:
        """Remove the bytes of refused files: nothing of them stays behind."""
        failed = {
            file.sha256
            for file, outcome in zip(payload.files, outcomes, strict=True)
            if outcome.status == "failed"
        }
        self._discard(context, failed)

    def _discard(self, context: JobContext, unneeded: set[str]) -> None:
        """Remove bytes that no document and no waiting upload refers to."""
        if unneeded:
            needed = pending_originals(
                [job for job in self._jobs.unfinished() if job.id != context.job_id]
            )
            for sha256 in unneeded - needed:
                self._originals.delete_original(sha256)


@dataclass(slots=True)
class _Vectors:
    """Embeds the documents of one job before other pending chunks of the library."""

    backfill_of: Callable[[Library], VectorBackfill | None]
    later: Callable[[Library], object]
    context: JobContext
    library: Library
    total: int | None = None
    """Chunks of all documents, once every file was read: from then on vectors are the job's
    progress."""
    _done: int = 0
    _put_off: bool = False

    def embed(self, doc_ids: Sequence[str]) -> None:
        """Embed pending chunks of some documents; a failing host defers all later ones."""
        if self._put_off:
            return
        try:
            report = run_backfill(
                self.backfill_of,
                self.library,
                lambda backfill: backfill.run(
                    self.library,
                    progress=self._tell,
                    cancel=self.context.cancel,
                    doc_ids=list(dict.fromkeys(doc_ids)),
                ),
            )
        except (ProviderError, DiskFull) as error:
            # The documents are acknowledged and found by words: their vectors are the backfill's
            # work, when it is possible again.
            self._put_off = True
            self.context.error(
                f"{error.code}: the documents are found by words; their vectors follow later"
                f" ({error.message})"
            )
            self.later(self.library)
            return
        except FingerprintMismatch as error:
            self._put_off = True
            self.context.error(
                f"{error.code}: the documents are found by words only: {error.message}"
            )
            return
        self._done += report.embedded + len(report.failed)
        log_failures(self.context, report.failed)

    def _tell(self, done: int) -> None:
        if self.total is not None:
            self.context.progress(self._done + done, self.total, "chunks")
