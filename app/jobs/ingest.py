"""The ingest job: accepted files become live documents, then get their vectors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Self, cast

from app.core.cancel import CancelToken
from app.core.errors import (
    Busy,
    Cancelled,
    DiskFull,
    FingerprintMismatch,
    InputError,
    NotFound,
    OriginalsAway,
    ProviderError,
    ProviderUnreachable,
    StorageError,
    Superseded,
    error_classes,
)
from app.core.ports import Parser
from app.core.types import (
    Document,
    IngestOutcome,
    Job,
    JobFile,
    Library,
    Listing,
    Metadata,
    RawDocument,
    from_json,
    json_values,
)
from app.ingest.embedding import BackfillReport, ChunkFailure, VectorBackfill
from app.ingest.parsers.listings import may_list
from app.ingest.pipeline import PARSER_EDITION, IngestPipeline, waits_for_ocr
from app.ingest.sources.folders import SampleDocuments
from app.jobs.payloads import IngestPayload, IngestReport, counted, pending_originals, report_of
from app.jobs.runner import JobContext, JobRunner

if TYPE_CHECKING:
    from app.storage.catalog.documents import Catalog
    from app.storage.catalog.folders import SyncClaims
    from app.storage.queue import JobQueue
    from app.storage.writer import CatalogIndexWriter

# Embed what a library lacks: the backfill job, and one run for other jobs.

BACKFILL = "backfill"
MOST_LOGGED = 100
"""Chunks without a vector that a job over a whole library names; its report counts all."""


def request_backfill(runner: JobRunner, library: Library) -> Job:
    """Request a library's missing vectors; at most one waits, and it is retried."""
    payload = {"library": library.value, "retry": True}
    return runner.submit(BACKFILL, payload, unit="chunks", coalesce=True)


@dataclass(frozen=True, slots=True)
class Collecting:
    """What brings documents into libraries, and asks for the vectors that must wait."""

    runner: JobRunner
    catalog: Catalog
    writer: CatalogIndexWriter
    pipeline_of: Callable[[Library], IngestPipeline]
    backfill_of: Callable[[Library], VectorBackfill | None]
    """The embedder of a library now; None if it is unavailable."""
    shared: bool = False
    """Originals are in a directory that servers and workers should share."""

    def original(self, sha256: str) -> Path:
        """Return where the bytes of a hash are.

        Raises:
            OriginalsAway: Another process accepted them, in a directory of its own.
        """
        path = self.writer.original_path(sha256)
        if self.shared and not path.exists():
            raise OriginalsAway(
                f"an upload was kept by another process: {str(path)!r} is not here. Servers and"
                " workers need one ORIGINALS_URL, or one directory DATA_DIR/originals"
            )
        return path

    def later(self, library: Library) -> None:
        request_backfill(self.runner, library)

    def done(self, library: Library, outcomes: Sequence[IngestOutcome]) -> Mapping[str, object]:
        """Return the report of a job whose documents have their vectors by now, as JSON values."""
        return json_values(IngestReport("vectors", tuple(counted(self.catalog, library, outcomes))))


@dataclass(frozen=True, slots=True)
class BackfillJob:
    """Handler of `backfill`: vectors for every chunk of a library that has none."""

    parts: Collecting

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        library = Library(str(context.payload["library"]))
        limit = cast("int | None", context.payload.get("limit"))
        counts = self.parts.catalog.counts(library)
        before = counts.embedded
        total = counts.chunks if limit is None else min(counts.chunks, before + limit)

        def run(backfill: VectorBackfill) -> BackfillReport:
            return backfill.run(
                library,
                progress=lambda done: context.step(before + done, total, "chunks"),
                cancel=context.cancel,
                order=str(context.payload.get("order", "id")),
                limit=limit,
                workers=cast("int", context.payload.get("workers", 1)),
                code_progress=lambda done, of: context.step(done, of, "passages coded"),
            )

        context.progress(before, total, "chunks")
        report = run_backfill(self.parts.backfill_of, library, run)
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
    for failure in failures:
        context.error(
            f"{failure.code}: chunk {failure.chunk_id} of {failure.doc_id} has no vector:"
            f" {failure.reason}"
        )


# Embed the documents of one job.


class Embedding:
    """Embeds the documents of one job before other pending chunks of the library.

    `add` leaves them to a thread. Leaving the context waits for it; an error that leaves the block
    lets the running round end and begins no other.
    """

    def __init__(self, parts: Collecting, context: JobContext, library: Library) -> None:
        self._parts = parts
        self._context = context
        self._library = library
        self.total: int | None = None
        """Chunks of all documents, once every file was read: from then on vectors are the job's
        progress."""
        self._done = 0
        self._put_off = self._failed = False
        self._waiting: SimpleQueue[str] = SimpleQueue()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="embedding")
        self._rounds: list[Future[None]] = []

    def add(self, doc_ids: Sequence[str]) -> None:
        """Queue documents; returns at once."""
        for doc_id in doc_ids:
            self._waiting.put(doc_id)
        self._rounds.append(self._pool.submit(self._round))

    def _round(self) -> None:
        """Embed what has gathered, unless an earlier round failed."""
        doc_ids = [self._waiting.get() for _ in range(self._waiting.qsize())]
        if doc_ids and not self._failed:
            self._failed = True  # and stays so where the work raises
            self.run(list(dict.fromkeys(doc_ids)))
            self._failed = False

    def finish(self) -> None:
        """Wait until everything queued is done.

        Raises:
            BaseException: What a round raised; the documents after that were not tried.
        """
        for one in self._rounds:
            one.result()

    def run(self, doc_ids: Sequence[str] | None = None) -> None:
        """Embed pending chunks, of some documents or of all, now.

        A failing host defers them and all later ones: they are the backfill's work, when it is
        possible again. The documents are acknowledged and found by words.
        """
        if self._put_off:
            return
        try:
            report = run_backfill(
                self._parts.backfill_of,
                self._library,
                lambda backfill: backfill.run(
                    self._library, progress=self._tell, cancel=self._context.cancel, doc_ids=doc_ids
                ),
            )
        except (ProviderError, DiskFull, FingerprintMismatch) as error:
            self._put_off = True
            told = f"{error.code}: the documents are found by words"
            if isinstance(error, FingerprintMismatch):
                self._context.error(f"{told} only: {error.message}")
            else:
                self._context.error(f"{told}; their vectors follow later ({error.message})")
                self._parts.later(self._library)
            return
        self._done += report.embedded + len(report.failed)
        log_failures(self._context, report.failed)

    def _tell(self, done: int) -> None:
        if self.total is not None:
            self._context.progress(self._done + done, self.total, "chunks")
        self._context.give_way()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown(cancel_futures=kind is not None)


_MOMENTARY = {
    kind.code: kind
    for kind in error_classes().values()
    if kind.retryable or issubclass(kind, StorageError)
}
"""By code: errors that say nothing about the file that met them."""


@dataclass(frozen=True, slots=True)
class IngestJob:
    """Handler of `ingest`; safe to repeat, since what is done is found unchanged."""

    parts: Collecting
    jobs: JobQueue
    """Which other uploads still need the same bytes."""

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Make the files live, report, and again once all have vectors, begun with the first files.

        Raises:
            Cancelled: Paused, cancelled or shutting down.
            Superseded: All files were deleted after they were accepted.
            StorageError: A file could not be stored now, and the sender left; else it is
                reported per file. The job is tried again.
        """
        payload = from_json(IngestPayload, context.payload)
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
        with Embedding(self.parts, context, payload.library) as embedding:
            outcomes = self._merge(context, self._make_live(context, payload, embedding.add))
            both = zip(payload.files, outcomes, strict=True)
            refused = {file.sha256 for file, outcome in both if outcome.status == "failed"}
            self._discard(context, refused)  # nothing of refused files stays behind
            context.publish(json_values(IngestReport("text", outcomes)))
            embedding.total = sum(
                outcome.receipt.chunks for outcome in outcomes if outcome.receipt is not None
            )
            # All once more: an interrupted run may have written documents and not embedded them.
            changed = [outcome for outcome in outcomes if outcome.status != "unchanged"]
            embedding.add([outcome.doc_id for outcome in changed if outcome.doc_id is not None])
            embedding.finish()
        # A document that was deleted while its vectors were made left its bytes to this job, which
        # needed them until now.
        self._discard(context, {file.sha256 for file in payload.files})
        return self.parts.done(payload.library, outcomes)

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
            else:
                context.give_way()

        outcomes = self.parts.pipeline_of(payload.library).ingest(
            payload.library,
            (
                RawDocument(
                    file.source_key,
                    file.filename,
                    self.parts.original(file.sha256),
                    job_id=context.job_id,
                    labels=file.labels,
                )
                for file in payload.files
            ),
            progress=progress,
            written=written,
            cancel=context.cancel,
        )
        if outcomes and all(outcome.code == Superseded.code for outcome in outcomes):
            raise Superseded(outcomes[0].reason or "deleted or replaced after it was accepted")
        if context.cancel.cancelled and any(outcome.status == "failed" for outcome in outcomes):
            raise Cancelled("stopped: what a file failed with then is no verdict on it")
        for outcome in outcomes if payload.retry else ():
            if (error := _MOMENTARY.get(outcome.code or "")) is not None:
                raise error(outcome.reason or "it could not be stored")
        return outcomes

    def _merge(
        self, context: JobContext, outcomes: Sequence[IngestOutcome]
    ) -> tuple[IngestOutcome, ...]:
        """Return outcomes as the first run saw them: its documents are not `unchanged`."""
        before = report_of(context.previous)
        if before is None or len(before.documents) != len(outcomes):
            return tuple(outcomes)
        return tuple(
            old if new.status == "unchanged" and old.status != "failed" else new
            for old, new in zip(before.documents, outcomes, strict=True)
        )

    def _discard(self, context: JobContext, unneeded: set[str]) -> None:
        """Remove bytes that no document and no waiting upload refers to."""
        if unneeded:
            needed = pending_originals(
                [job for job in self.jobs.unfinished() if job.id != context.job_id]
            )
            for sha256 in unneeded - needed:
                self.parts.writer.delete_original(sha256)


REREAD = "reread"
_REREAD_AT_ONCE = 16
_COUNTED = 100_000
"""Documents at most that the progress counts before it begins."""


def request_rereading(runner: JobRunner, catalog: Catalog) -> None:
    """Ask for every library whose documents an older release has read, once after an update."""
    for library in Library:
        if catalog.counts(library).documents and catalog.read_as(library) != PARSER_EDITION:
            runner.submit(REREAD, {"library": library.value}, unit="documents", coalesce=True)


@dataclass(frozen=True, slots=True)
class ReparseJob:
    """Handler of `reread`: documents are read again from their bytes by this release's parsers.

    Until then the texts that are there serve; citations of old revisions keep their places. A
    document that cannot be read any more stays as it is.
    """

    parts: Collecting

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        library = Library(str(context.payload["library"]))
        catalog, pipeline = self.parts.catalog, self.parts.pipeline_of(library)
        left = len(catalog.read_before(library, PARSER_EDITION, _COUNTED))
        counts = {"read": 0, "failed": 0}
        unplaced = 0
        after = ""
        while batch := catalog.read_before(library, PARSER_EDITION, _REREAD_AT_ONCE, after):
            after = batch[-1].doc_id
            raws = [
                raw_again(one, self.parts.original(one.sha256), context.job_id) for one in batch
            ]
            outcomes = pipeline.ingest(library, raws, cancel=context.cancel)
            for document, outcome in zip(batch, outcomes, strict=True):
                if outcome.code == Superseded.code:
                    continue  # deleted or replaced while it was read
                failed = outcome.status == "failed"
                counts["failed" if failed else "read"] += 1
                if failed:
                    context.error(f"{document.filename!r} stays as it is: {outcome.reason}")
                elif outcome.unplaced:
                    context.error(f"{document.filename!r}: {outcome.reason}")
                    unplaced += outcome.unplaced
            context.step(sum(counts.values()), max(left, sum(counts.values())), "documents")
        pipeline.writer.note_read(library, PARSER_EDITION)
        if counts["read"]:
            self.parts.later(library)
        return {"library": library.value, **counts, "unplaced": unplaced}


OCR = "ocr"


def request_ocr(runner: JobRunner, library: Library, doc_id: str, sha256: str) -> None:
    """Ask for the text of a document's pages that are pictures, once for the same bytes."""
    payload = {"library": library.value, "doc_id": doc_id, "sha256": sha256, "retry": True}
    if all(job.payload != payload for job in runner.unfinished(OCR, library)):
        runner.submit(OCR, payload, unit="pages")


@dataclass(frozen=True, slots=True)
class OcrJob:
    """Handler of `ocr`: pages that are pictures are recognised, then the document is read again.

    A page's words are durable as soon as they are known, so that a second run goes on behind them.
    Until the end the text without them serves. A page that cannot be recognised stays unread.
    """

    parts: Collecting
    recogniser: Parser

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        library = Library(str(context.payload["library"]))
        writer, pipeline = self.parts.writer, self.parts.pipeline_of(library)
        document = self._document(context, library)
        path = self.parts.original(document.sha256)
        context.files([JobFile(document.filename, "running", 0.0)])
        known = writer.page_words(document.sha256)
        unread = pipeline.parser.parse(path, document.filename, words=known).unread
        total, failed = len(known) + len(unread), list[InputError]()
        for done, page in enumerate(unread, start=len(known)):
            context.progress(done, total, "pages")
            context.file(0, "running", done / total)
            context.checkpoint()
            try:
                words = self.recogniser.page_words(path, page, context.cancel)
            except InputError as error:
                context.error(f"page {page} of {document.filename!r} has no text: {error.message}")
                failed.append(error)
                continue
            self._document(context, library)  # else the page is of bytes that are gone
            writer.keep_words(document.sha256, [words])
        if failed and len(failed) == total:
            raise failed[-1]
        # A run that was interrupted may have read the document and not embedded it.
        waits = bool(unread) or waits_for_ocr(document.flags)
        again = replace(raw_again(document, path, context.job_id), again=waits)
        outcomes = pipeline.ingest(library, [again], cancel=context.cancel)
        if outcomes[0].code == Superseded.code:
            raise Superseded(outcomes[0].reason or "deleted or replaced")
        context.file(0, "failed" if outcomes[0].status == "failed" else "done", 1.0)
        context.progress(total, total, "pages")
        Embedding(self.parts, context, library).run([document.doc_id])
        return self.parts.done(library, outcomes)

    def _document(self, context: JobContext, library: Library) -> Document:
        """Return the document as it is now.

        Raises:
            Superseded: It is deleted, or has other bytes.
        """
        with suppress(NotFound):
            document = self.parts.catalog.document(library, str(context.payload["doc_id"]))
            if document.sha256 == context.payload["sha256"]:
                return document
        raise Superseded("the document was deleted or replaced before its pages were read")


def raw_again(document: Document, path: Path, job_id: str) -> RawDocument:
    """Return a live document as a source that is read again from its bytes."""
    known = Metadata(document.title, document.authors, document.year, document.arxiv_id)
    return RawDocument(
        document.source_key,
        document.filename,
        path,
        source_url=document.source_url,
        licence=document.licence,
        doc_id=document.doc_id,
        metadata=known if document.arxiv_id else None,  # arXiv knows them better than the page
        job_id=job_id,
        reread=True,
    )


# The jobs that fetch: a paper of arXiv by its id, a page of the web by its address, or the pages
# that a feed or a sitemap lists.

MOST_LISTED = 50
"""Pages fetched of one feed or sitemap, and sitemaps read of a list of them: the first ones."""
_OF_ONE_PAGE = (InputError, ProviderError, NotFound, Busy)


@dataclass(frozen=True, slots=True)
class FetchJob:
    """Handler of `arxiv` and `fetch`; a second run fetches again, equal bytes change nothing."""

    parts: Collecting
    fetch: Callable[[str, CancelToken], RawDocument]
    apart_s: float = 1.0
    """Rest between two pages that are listed."""

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        library = Library(str(context.payload.get("library", Library.PAPERS)))
        what = str(context.payload.get("url") or context.payload["arxiv_id"])
        context.files([JobFile(what, "running", 0.0)])
        first = self.fetch(what, context.cancel)
        if listed := self._listed(library, first, context.cancel):
            outcomes = self._each(context, library, listed)
        else:
            outcomes = [self._ingest(context, library, first)]
            if outcomes[0].code == Superseded.code:
                raise Superseded(outcomes[0].reason or "deleted or replaced after it was accepted")
            context.file(0, "failed" if outcomes[0].status == "failed" else "done", 1.0)
        context.publish(json_values(IngestReport("text", tuple(outcomes))))
        if found := [one.doc_id for one in outcomes if one.doc_id is not None]:
            Embedding(self.parts, context, library).run(found)
        context.progress(len(outcomes), len(outcomes), "files")
        return self.parts.done(library, outcomes)

    def _ingest(
        self, context: JobContext, library: Library, document: RawDocument
    ) -> IngestOutcome:
        own, pipeline = replace(document, job_id=context.job_id), self.parts.pipeline_of(library)
        (outcome,) = pipeline.ingest(library, [own], cancel=context.cancel)
        return outcome

    def _listed(self, library: Library, first: RawDocument, cancel: CancelToken) -> list[str]:
        """Return the pages that a feed or sitemap lists, also those of sitemaps in it."""
        listing = self._addresses(library, first)
        if not listing.of_sitemaps:
            return list(listing.addresses[:MOST_LISTED])
        pages: dict[str, None] = {}
        for address in listing.addresses[:MOST_LISTED]:
            if len(pages) >= MOST_LISTED or cancel.wait(self.apart_s):
                break
            with suppress(*_OF_ONE_PAGE):  # one that fails holds no other up
                inner = self._addresses(library, self.fetch(address, cancel))
                pages |= dict.fromkeys(() if inner.of_sitemaps else inner.addresses)
        return list(pages)[:MOST_LISTED]

    def _addresses(self, library: Library, document: RawDocument) -> Listing:
        content = document.content
        if not isinstance(content, bytes) or not may_list(content):
            return Listing()
        base = document.source_url or document.source_key
        return self.parts.pipeline_of(library).parser.addresses(content, base)

    def _each(
        self, context: JobContext, library: Library, addresses: Sequence[str]
    ) -> list[IngestOutcome]:
        """Fetch and ingest pages one after the other; one that fails holds no other up."""
        context.files(JobFile(address, "queued", 0.0) for address in addresses)
        outcomes: list[IngestOutcome] = []
        for at, address in enumerate(addresses):
            if at:
                context.cancel.wait(self.apart_s)
            context.cancel.raise_if_cancelled()
            context.give_way()
            context.file(at, "running", 0.0)
            try:
                outcome = self._ingest(context, library, self.fetch(address, context.cancel))
            except _OF_ONE_PAGE as error:
                outcome = IngestOutcome(
                    address, None, "failed", reason=error.message, code=error.code
                )
            outcomes.append(outcome)
            context.file(at, "failed" if outcome.status == "failed" else "done", 1.0)
            context.progress(at + 1, len(addresses), "files")
        return outcomes


# The samples job: the bundled documents into both libraries, or out of them.


@dataclass(frozen=True, slots=True)
class SamplesJob:
    """Handler of `samples`, safe to repeat; `purge: true` removes samples that are no more."""

    parts: Collecting
    root: Path
    """Folder with `public/` and `papers/`."""

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        samples = {
            library: [
                replace(raw, job_id=context.job_id) for raw in SampleDocuments(library, self.root)
            ]
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

            outcomes += self.parts.pipeline_of(library).ingest(
                library, raws, progress=progress, cancel=context.cancel
            )
            context.progress(len(outcomes), total, "files")
        if context.payload.get("purge") is True:
            here = {raw.source_key for raws in samples.values() for raw in raws}
            remove_samples(self.parts.catalog, self.parts.writer, keep=here)
        context.publish(json_values(IngestReport("text", tuple(outcomes))))
        done: list[IngestOutcome] = []
        for library, raws in samples.items():
            Embedding(self.parts, context, library).run()
            done += counted(
                self.parts.catalog, library, outcomes[len(done) : len(done) + len(raws)]
            )
        return json_values(IngestReport("vectors", tuple(done)))


def remove_samples(
    catalog: Catalog, writer: CatalogIndexWriter, keep: Collection[str] = ()
) -> dict[Library, int]:
    """Remove every sample document but those to keep, by id, and nothing else.

    Returns:
        Counts by library.
    """
    removed: dict[Library, int] = {}
    for library in Library:
        held = (one.doc_id for one in catalog.every_document(library) if one.sample)
        names = list(islice(held, catalog.counts(library).samples))
        removed[library] = 0
        for name in names:
            if name in keep:
                continue
            with suppress(NotFound):  # deleted by another request before
                writer.delete(library, name)
                removed[library] += 1
    return removed


def remove_claimed(
    claims: SyncClaims,
    writer: CatalogIndexWriter,
    library: Library,
    folder: str,
    source_keys: Sequence[str],
) -> list[str]:
    """Remove documents that a folder's sync sent; return their source keys, ignore any other."""
    held = claims.held(library, folder)
    removed = []
    for key in source_keys:
        if key in held:
            with suppress(NotFound):  # removed by another request just now
                writer.delete(library, held[key])
                removed.append(key)
    return removed
