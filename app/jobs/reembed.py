"""Re-embed a library: new vectors next to the old, then swap; and calibrate an embedder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Literal

import numpy as np
from pydantic.dataclasses import dataclass as checked

from app.core.errors import Conflict, InvalidInput, NotFound, PassageTooLong, ProviderUnreachable
from app.core.ports import Embedder
from app.core.sentences import sentence_spans
from app.core.text import words
from app.core.types import Fingerprint, Job, Library, from_json, json_values
from app.evaluation.collections import MOST_DOCUMENTS
from app.ingest.embedding import BackfillReport, VectorBackfill, fingerprint_of
from app.ingest.options import IngestOptions
from app.jobs.ingest import MOST_LOGGED, log_failures
from app.jobs.runner import JobContext, JobRunner
from app.retrieval.candidates import Floats
from app.retrieval.request import RetrievalOptions
from app.retrieval.scoring import Calibrations, equated
from app.storage.catalog.documents import Catalog
from app.storage.maintenance.reembedding import Reembedding

# Ask for a re-embedding: its payload, and one job a library at a time.

REEMBED = "reembed"

Action = Literal["start", "rollback", "discard"]


@checked(frozen=True)
class ReembedPayload:
    library: Library
    action: Action = "start"
    provider: str | None = None
    """Who embeds; None is what is configured."""
    model: str | None = None


def request_reembed(runner: JobRunner, payload: ReembedPayload) -> Job:
    """Start a re-embedding, or join or resume the same one.

    Raises:
        Conflict: Another one of this library has not ended.
    """
    for job in runner.unfinished(REEMBED, payload.library):
        if from_json(ReembedPayload, job.payload) != payload:
            raise Conflict(
                f"job {job.id} re-embeds library {payload.library.value!r} ({job.state}): wait for"
                " it or cancel it first"
            )
        return runner.resume(job.id) if job.state == "paused" else job
    return runner.submit(REEMBED, {**json_values(payload), "retry": True}, unit="chunks")


CATCH_UP_ROUNDS = 5
"""Rounds of embedding new documents before the swap; the backfill embeds later ones after it."""

_SWAPPING = "swapping_to"
"""In what a run has published: the build that is about to serve."""


@dataclass(frozen=True, slots=True)
class ReembedReport:
    library: str
    outcome: Literal["swapped", "rolled_back", "discarded"]
    before: str | None
    """The embedding model of the old build; None when there was none."""
    after: str | None
    """The one of the build that serves now."""
    reason: str
    embedded: int = 0
    """Chunks embedded by this run; a resumed one goes on with the rest."""
    failed: int = 0
    """Chunks that the new model refuses; they are found by words."""
    removed_vectors: int = 0


def _announce(context: JobContext, report: ReembedReport, number: int) -> None:
    """Store that build `number` is about to serve, so that no later run swaps again."""
    context.publish({**asdict(report), _SWAPPING: number})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedJob:
    """Handler of `reembed`; after a crash it continues with the missing vectors."""

    reembedding: Reembedding
    catalog: Catalog
    options: IngestOptions
    embedder_named: Callable[[Library, str | None, str | None], Embedder]
    """The embedder of a library by provider and model."""
    later: Callable[[Library], object]

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Do what the payload asks.

        Raises:
            Cancelled: Paused, cancelled or shutting down; the vectors so far are kept.
            ProviderError: The new model's host failed; tried again, nothing is lost.
            Conflict: The library is embedded that way already, or there is nothing to go back to.
            DiskFull: No space; the old vectors serve on.
        """
        payload = from_json(ReembedPayload, context.payload)
        stop = threading.Event()
        context.cancel.on_cancel(stop.set)
        report = dict(context.previous or {})
        number = report.pop(_SWAPPING, None)
        live = self.reembedding.builds.of(payload.library, "live")
        if number is not None and live is not None and live.number == number:
            self._after_swap(payload.library, stop)  # an earlier run was cut short after its swap
            return report
        actions = {"start": self._start, "rollback": self._roll_back, "discard": self._discard}
        return asdict(actions[payload.action](context, payload, stop))

    def _start(
        self, context: JobContext, payload: ReembedPayload, stop: threading.Event
    ) -> ReembedReport:
        library = payload.library
        target = self.embedder_named(payload.library, payload.provider, payload.model)
        live = self.reembedding.builds.of(library, "live")
        staged = self.reembedding.begin(library, fingerprint_of(target.identity, self.options))
        done = self._embed(context, library, staged.number, target)
        model, back = target.identity.model, ""
        if live is not None:
            back = f"; to go back, run: documind reembed --library {library.value} --rollback"
        report = ReembedReport(
            library.value,
            "swapped",
            live.fingerprint.embedding_model if live else None,
            model,
            f"the vectors of {model!r} serve now{back}",
            embedded=done.embedded,
            failed=len(done.failed),
        )
        with self.reembedding.beside(library, staged.number, stop) as complete:
            context.checkpoint()
            if not complete:
                context.cancel.raise_if_cancelled()
            for _ in range(CATCH_UP_ROUNDS):  # documents that came meanwhile
                if not self._embed(context, library, staged.number, target, quiet=True).embedded:
                    break
            _announce(context, report, staged.number)
            self.reembedding.swap(library, staged.number)
        self._after_swap(library, stop)
        return report

    def _embed(
        self,
        context: JobContext,
        library: Library,
        number: int,
        embedder: Embedder,
        *,
        quiet: bool = False,
    ) -> BackfillReport:
        missing = 0 if quiet else self.reembedding.missing(library, number)

        def progress(done: int) -> None:
            if not quiet:
                context.progress(done, max(missing, done), "chunks")
            context.checkpoint()

        backfill = VectorBackfill(self.reembedding.writer, embedder, self.options, build=number)
        report = backfill.run(library, progress=progress, cancel=context.cancel)
        if not quiet:
            log_failures(context, report.failed[:MOST_LOGGED])
        return report

    def _after_swap(self, library: Library, stop: threading.Event) -> None:
        self.reembedding.complete(library, stop)
        counts = self.catalog.counts(library)
        if counts.embedded < counts.chunks:
            self.later(library)

    def _roll_back(
        self, context: JobContext, payload: ReembedPayload, stop: threading.Event
    ) -> ReembedReport:
        context.checkpoint()
        library = payload.library
        builds = self.reembedding.builds
        live, previous = builds.of(library, "live"), builds.of(library, "previous")
        before, after = (
            build.fingerprint.embedding_model if build else None for build in (live, previous)
        )
        report = ReembedReport(
            library.value, "rolled_back", before, after, f"the vectors of {after!r} serve again"
        )
        if previous is not None:
            _announce(context, report, previous.number)
        self.reembedding.revert(library, stop)
        self._after_swap(library, stop)
        return report

    def _discard(
        self, context: JobContext, payload: ReembedPayload, stop: threading.Event
    ) -> ReembedReport:
        del stop
        context.checkpoint()
        live = self.reembedding.builds.of(payload.library, "live")
        removed = self.reembedding.delete_others(payload.library)
        model = live.fingerprint.embedding_model if live else None
        reason = "vectors that do not serve were removed; documind purge gives their space back"
        return ReembedReport(
            payload.library.value, "discarded", model, model, reason, removed_vectors=removed
        )


# Calibrate a library's embedder from the library's own sentences.

CALIBRATION_SEED = 20_260_102
PAIRS = 200
"""Sentences asked: the median of so many is known to about 0.02 of a similarity."""
_SENTENCE_WORDS = range(6, 41)
"""Of a sentence that asks something."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateJob:
    """Handler of `calibrate`. Running it again makes the same row again."""

    catalog: Catalog
    calibrations: Calibrations
    options: RetrievalOptions
    """Thresholds on the scale of the reference."""
    made_with: Callable[[Library], Fingerprint | None]
    embedder_of: Callable[[Library], Embedder | None]
    reference: Callable[[], Embedder]
    """The embedder that the thresholds were measured with."""

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Embed pairs with both embedders, compare, and keep the row.

        Raises:
            InvalidInput: The library is empty or has too few sentences.
            ProviderError: The embedder does not answer.
            Cancelled: Asked to stop; nothing is kept.
        """
        library = Library(str(context.payload["library"]))
        fingerprint, embedder = self.made_with(library), self.embedder_of(library)
        if fingerprint is None:
            raise InvalidInput(
                f"library {library.value!r} has no vectors; add documents to it first"
            )
        if embedder is None:
            raise ProviderUnreachable(
                f"the embedder of library {library.value!r} is away; see documind doctor"
            )
        known, others = pairs_of(self.catalog, library)
        context.progress(0, 2 * (len(known) + len(others)), "pairs")
        measured: list[Floats] = []
        done = 0
        for by in (embedder, self.reference()):
            for pairs in (known, others):
                measured.append(_similarities(by, pairs, context))
                done += len(pairs)
                context.progress(done)
        near, far, base_near, base_far = measured
        try:
            row = equated(self.options, near, far, base_near, base_far)
        except InvalidInput as error:
            if context.payload.get("automatic") is not True:
                raise
            return {"library": library.value, "calibrated": False, "reason": error.message}
        self.calibrations.keep(fingerprint, row)
        return {
            "library": library.value,
            "calibrated": True,
            "embedding_model": fingerprint.embedding_model,
            "pairs": len(known),
            **row.values(),
        }


def pairs_of(catalog: Catalog, library: Library) -> tuple[list[Pair], list[Pair]]:
    """Return sentences with their passage, and with a passage of another document."""
    rng = np.random.default_rng(CALIBRATION_SEED)
    listed = islice(catalog.every_document(library), MOST_DOCUMENTS)
    documents = [document for document in listed if document.duplicate_of is None]
    chosen = [documents[at] for at in rng.permutation(len(documents))[:PAIRS].tolist()]
    share = -(-PAIRS // max(1, len(chosen)))
    known: list[Pair] = []
    owners: list[str] = []
    for document in chosen:
        try:
            chunks = catalog.chunks(library, document.doc_id)
        except NotFound:  # deleted after it was listed
            continue
        texts = {chunk.chunk_id: chunk.text for chunk in chunks}
        sentences = [
            (text, chunk.chunk_id)
            for chunk in chunks
            for start, end in sentence_spans(chunk.text)
            if len(words(text := " ".join(chunk.text[start:end].split()))) in _SENTENCE_WORDS
        ]
        for pick in rng.permutation(len(sentences))[:share].tolist():
            sentence, chunk_id = sentences[pick]
            known.append((sentence, texts[chunk_id]))
            owners.append(document.doc_id)
    others: list[Pair] = []
    for at, (sentence, _) in enumerate(known):
        foreign = [
            row for row in rng.integers(0, len(known), size=8).tolist() if owners[row] != owners[at]
        ]
        if foreign:
            others.append((sentence, known[foreign[0]][1]))
    return known[:PAIRS], others[:PAIRS]


def _similarities(embedder: Embedder, pairs: list[Pair], context: JobContext) -> Floats:
    """Return each pair's cosine similarity, float64 `[n]`, without over-long pairs."""
    found: list[float] = []
    for sentence, passage in pairs:
        context.checkpoint()
        try:
            found.append(
                float(embedder.embed_passages([passage])[0] @ embedder.embed_query(sentence))
            )
        except PassageTooLong:
            continue
    return np.array(found, dtype=np.float64)
