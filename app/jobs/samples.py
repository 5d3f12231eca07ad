"""The samples job: the bundled documents into both libraries, or out of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from app.core.errors import NotFound, ProviderError
from app.core.ports import Catalog, IndexWriter
from app.core.types import IngestOutcome, JobFile, Library
from app.ingest.embedding import VectorBackfill
from app.ingest.pipeline import IngestPipeline
from app.ingest.sources.samples import SampleDocuments
from app.jobs.context import JobContext
from app.jobs.payloads import IngestReport, counted


class SamplesJob:
    """Handler of `samples`. Running it again changes nothing.

    `purge: true` removes old samples first.
    """

    def __init__(
        self,
        *,
        root: Path,
        pipeline_of: Callable[[Library], IngestPipeline],
        backfill_of: Callable[[Library], VectorBackfill | None],
        catalog: Catalog,
        writer: IndexWriter,
        later: Callable[[Library], object],
    ) -> None:
        """Take the parts the job needs.

        Args:
            root: Folder with `public/` and `papers/`.
            pipeline_of: The path of a file into a library.
            backfill_of: The embedder of a library now; None if it is unavailable.
            catalog: Finds old samples.
            writer: Removes them.
            later: Asks for a backfill when vectors cannot be made now.
        """
        self._root = root
        self._pipeline_of = pipeline_of
        self._backfill_of = backfill_of
        self._catalog = catalog
        self._writer = writer
        self._later = later

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Make the samples live, then give them vectors; reports their outcomes.

        Raises:
            NotFound: The documents were not installed.
            Cancelled: Asked to stop.
        """
        if context.payload.get("purge") is True:
            remove_samples(self._catalog, self._writer)
        samples = {
            library: list(SampleDocuments(library, self._root))
            for library in (Library.PUBLIC, Library.PAPERS)
        }
        context.files(
            JobFile(raw.filename, "queued", 0.0) for raws in samples.values() for raw in raws
        )
        total = sum(map(len, samples.values()))
        outcomes: list[IngestOutcome] = []
        for library, raws in samples.items():
            before = len(outcomes)

            def progress(index: int, file: JobFile, before: int = before) -> None:
                context.file(before + index, file.state, file.progress)
                context.progress(before + index, total, "files")

            outcomes += self._pipeline_of(library).ingest(
                library, raws, progress=progress, cancel=context.cancel
            )
            context.progress(len(outcomes), total, "files")
        context.publish(IngestReport(tuple(outcomes), "text").to_json())
        done: list[IngestOutcome] = []
        for library, raws in samples.items():
            self._embed(context, library)
            done += counted(self._catalog, library, outcomes[len(done) : len(done) + len(raws)])
        return IngestReport(tuple(done), "vectors").to_json()

    def _embed(self, context: JobContext, library: Library) -> None:
        backfill = self._backfill_of(library)
        try:
            if backfill is not None:
                backfill.run(library, cancel=context.cancel)
                return
            reason = "no embedder is available"
        except ProviderError as error:
            reason = error.message
        context.error(
            f"vectors_missing: the samples of {library.value} are found by words; vectors follow"
            f" later ({reason})"
        )
        self._later(library)


def remove_samples(catalog: Catalog, writer: IndexWriter) -> dict[Library, int]:
    """Remove every sample document and nothing else; return counts by library."""
    removed: dict[Library, int] = {}
    for library in Library:
        cursor: str | None = None
        names: list[str] = []
        while True:
            page, cursor = catalog.documents(library, cursor=cursor, limit=500)
            names += [document.doc_id for document in page if document.is_sample]
            if cursor is None or len(names) == catalog.counts(library).samples:
                break
        removed[library] = 0
        for name in names:
            with suppress(NotFound):  # deleted by another request before
                writer.delete(library, name)
                removed[library] += 1
    return removed
