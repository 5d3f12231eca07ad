"""The arXiv job: a paper by its id into `papers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from app.core.errors import ProviderError, Superseded
from app.core.ports import Catalog
from app.core.types import JobFile, Library
from app.ingest.embedding import VectorBackfill
from app.ingest.pipeline import IngestPipeline
from app.jobs.context import JobContext
from app.jobs.payloads import IngestReport, counted
from app.providers.arxiv import ArxivClient


class ArxivJob:
    """Handler of `arxiv`; a second run fetches again, equal bytes change nothing."""

    def __init__(
        self,
        *,
        client: ArxivClient,
        pipeline_of: Callable[[Library], IngestPipeline],
        backfill_of: Callable[[Library], VectorBackfill | None],
        catalog: Catalog,
        later: Callable[[Library], object],
    ) -> None:
        """Take the parts the job needs.

        Args:
            client: Fetches one paper at a time.
            pipeline_of: The path of a file into a library.
            backfill_of: The embedder of a library now; None if it is unavailable.
            catalog: Says how many vectors the paper has in the end.
            later: Asks for a backfill when vectors cannot be made now.
        """
        self._client = client
        self._pipeline_of = pipeline_of
        self._backfill_of = backfill_of
        self._catalog = catalog
        self._later = later

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Fetch, make live, embed, report.

        Raises:
            InvalidInput: This is no arXiv id.
            NotFound: arXiv has no such paper.
            ProviderError: The host is away or sends something else.
            Cancelled: Asked to stop.
            Superseded: The paper was deleted after it was asked for.
        """
        arxiv_id = str(context.payload["arxiv_id"])
        context.files([JobFile(f"{arxiv_id}.pdf", "running", 0.0)])
        paper = self._client.fetch(arxiv_id, context.cancel)
        document = replace(paper.document, metadata=paper.metadata, job_id=context.job_id)
        outcomes = tuple(
            self._pipeline_of(Library.PAPERS).ingest(
                Library.PAPERS, [document], cancel=context.cancel
            )
        )
        if outcomes[0].code == Superseded.code:
            raise Superseded(outcomes[0].reason or "deleted after it was accepted")
        context.file(0, "failed" if outcomes[0].status == "failed" else "done", 1.0)
        context.publish(IngestReport(outcomes, "text").to_json())
        backfill = self._backfill_of(Library.PAPERS)
        try:
            if backfill is None:
                self._later(Library.PAPERS)
            elif outcomes[0].doc_id is not None:
                backfill.run(Library.PAPERS, cancel=context.cancel, doc_ids=[outcomes[0].doc_id])
        except ProviderError as error:
            context.error(
                "vectors_missing: the paper is found by words; vectors follow later"
                f" ({error.message})"
            )
            self._later(Library.PAPERS)
        context.progress(1, 1, "files")
        return IngestReport(
            tuple(counted(self._catalog, Library.PAPERS, outcomes)), "vectors"
        ).to_json()
