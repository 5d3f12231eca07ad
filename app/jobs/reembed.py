"""Re-embed a library: new vectors next to the old, compare, then swap or not."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, cast

from app.core.errors import Conflict
from app.core.ports import Catalog, Embedder
from app.core.types import Fingerprint, Job, Library, Scope
from app.evaluation.answer_sets import AnswerCase
from app.evaluation.comparison import Judgement, RankingCase, Search, automatic_set, from_answer_set, judge
from app.index.maintenance.reembedding import Reembedding
from app.ingest.embedding import BackfillReport, VectorBackfill
from app.ingest.options import IngestOptions
from app.jobs.board import is_finished
from app.jobs.context import JobContext
from app.jobs.runner import JobRunner

REEMBED = "reembed"

SEED = 20_260_101
"""Of the automatic questions and of the test: a run that is resumed asks the same."""

CATCH_UP_ROUNDS = 5
"""Rounds of embedding new documents before the swap; the backfill embeds later ones after it."""

_SWAPPING = "swapping_to"
"""In what a run has published: the build that is about to serve."""

Action = Literal["start", "rollback", "discard"]
QuestionSet = Literal["yours", "automatic", "none"]


@dataclass(frozen=True, slots=True)
class ReembedPayload:
    """The request."""

    library: Library
    action: Action = "start"
    provider: str | None = None
    """Who embeds; None is what is configured."""
    model: str | None = None
    force: bool = False
    """Swap even when fewer passages are found."""
    questions: tuple[AnswerCase, ...] = ()
    """The user's own; empty makes some of the library's sentences and titles."""

    def to_json(self) -> dict[str, object]:
        """Return the payload as JSON values; a host that is away is tried again."""
        return {**asdict(self), "library": self.library.value, "retry": True}

    @classmethod
    def from_json(cls, payload: Mapping[str, object]) -> ReembedPayload:
        """Return the payload of a job."""
        rows = cast("Sequence[Mapping[str, object]]", payload["questions"])
        return cls(
            Library(str(payload["library"])),
            cast("Action", payload["action"]),
            cast("str | None", payload["provider"]),
            cast("str | None", payload["model"]),
            bool(payload["force"]),
            tuple(_case(row) for row in rows),
        )


def _case(row: Mapping[str, object]) -> AnswerCase:
    def strings(name: str) -> tuple[str, ...]:
        return tuple(cast("Sequence[str]", row[name]))

    return AnswerCase(
        str(row["question"]),
        cast("Scope", row["library"]),
        str(row["intent"]),
        strings("expected_substrings"),
        strings("keywords"),
        strings("expected_docs"),
        bool(row["oos"]),
    )


def request_reembed(runner: JobRunner, payload: ReembedPayload) -> Job:
    """Start a re-embedding, or join or resume the same one.

    Raises:
        Conflict: Another one of this library has not ended.
    """
    wanted = json.loads(json.dumps(payload.to_json()))
    for job in runner.list(1000):
        if job.kind != REEMBED or is_finished(job) or job.payload["library"] != payload.library.value:
            continue
        if json.loads(json.dumps(dict(job.payload))) != wanted:
            raise Conflict(
                f"job {job.id} re-embeds library {payload.library.value!r} ({job.state}): wait for it or cancel it first"
            )
        return runner.resume(job.id) if job.state == "paused" else job
    return runner.submit(REEMBED, wanted, unit="chunks")


@dataclass(frozen=True, slots=True)
class Target:
    """The embedder to use for a library."""

    embedder: Embedder
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """The outcome of a re-embedding."""

    library: str
    outcome: Literal["swapped", "kept", "rolled_back", "discarded"]
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
    question_set: QuestionSet = "none"
    comparison: Judgement | None = None


class ReembedJob:
    """Handler of `reembed`; after a crash it continues with the missing vectors."""

    def __init__(
        self,
        *,
        reembedding: Reembedding,
        catalog: Catalog,
        options: IngestOptions,
        target_of: Callable[[str | None, str | None], Target],
        live_embedder: Callable[[Library], Embedder | None],
        searcher: Callable[[Library, int, Embedder, bool], Search],
        later: Callable[[Library], object],
    ) -> None:
        """Take the parts the job needs.

        Args:
            reembedding: The builds.
            catalog: The truth, read.
            options: How batches are embedded.
            target_of: The embedder of a provider and model.
            live_embedder: The embedder of questions for the present vectors; None if unavailable.
            searcher: A search over one build with its embedder; True ranks by distance alone.
            later: Asks for the vectors that are still missing.
        """
        self._work = reembedding
        self._catalog = catalog
        self._options = options
        self._target_of = target_of
        self._live_embedder = live_embedder
        self._searcher = searcher
        self._later = later

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Do what the payload asks.

        Raises:
            Cancelled: Paused, cancelled or shutting down; the vectors so far are kept.
            ProviderError: The new model's host failed; tried again, nothing is lost.
            Conflict: The library is embedded that way already, or there is nothing to go back to.
            DiskFull: No space; the old vectors serve on.
        """
        payload = ReembedPayload.from_json(context.payload)
        stop = threading.Event()
        context.cancel.on_cancel(stop.set)
        if (report := self._swapped_before(context, payload.library)) is not None:
            self._after_swap(payload.library, stop)
            return report
        actions = {"start": self._start, "rollback": self._roll_back, "discard": self._discard}
        return asdict(actions[payload.action](context, payload, stop))

    def _announce(self, context: JobContext, report: ReembedReport, number: int) -> None:
        """Store that build `number` is about to serve.

        An interrupted run must not swap again.
        """
        context.publish({**asdict(report), _SWAPPING: number})

    def _swapped_before(self, context: JobContext, library: Library) -> dict[str, object] | None:
        """Return an earlier run's report if it was cut short after its swap, else None."""
        report = dict(context.previous or {})
        number = report.pop(_SWAPPING, None)
        live = self._work.builds.of(library, "live")
        return report if number is not None and live is not None and live.number == number else None

    def _start(self, context: JobContext, payload: ReembedPayload, stop: threading.Event) -> ReembedReport:
        library = payload.library
        target = self._target_of(payload.provider, payload.model)
        live = self._work.builds.of(library, "live")
        staged = self._work.begin(library, target.fingerprint)
        before, after = live.fingerprint.embedding_model if live else None, target.fingerprint.embedding_model
        report = self._embed(context, library, staged.number, target.embedder)
        with self._work.beside(library, staged.number, stop) as complete:
            context.checkpoint()
            if not complete:
                context.cancel.raise_if_cancelled()
            old = self._live_embedder(library) if live else None
            judgement: Judgement | None = None
            asked: QuestionSet = "none"
            if live is None or old is None:
                doubt = "the old vectors cannot be searched now, so there was nothing to compare with"
            else:
                cases, asked = self._questions(payload)
                plain = asked == "automatic"
                context.progress(0, len(cases), "questions")
                judgement = judge(
                    cases,
                    self._searcher(library, live.number, old, plain),
                    self._searcher(library, staged.number, target.embedder, plain),
                    seed=SEED,
                    progress=lambda done: self._asked(context, done),
                )
                doubt = judgement.reason
            found = ReembedReport(
                library.value, "swapped", before, after, doubt, report.embedded, len(report.failed), 0, asked, judgement
            )
            if judgement is not None and judgement.worse and not payload.force:
                cure = (
                    f"the old ones serve on; to take the new ones all the same: documind reembed --library {library.value} --force"
                )
                return replace(found, outcome="kept", after=before, reason=f"{doubt}; {cure}")
            for _ in range(CATCH_UP_ROUNDS):
                if not self._embed(context, library, staged.number, target.embedder, quiet=True).embedded:
                    break
            self._announce(context, found, staged.number)
            self._work.swap(library, staged.number)
        self._after_swap(library, stop)
        return found

    def _asked(self, context: JobContext, done: int) -> None:
        context.progress(done)
        context.checkpoint()

    def _questions(self, payload: ReembedPayload) -> tuple[list[RankingCase], QuestionSet]:
        if payload.questions:
            return from_answer_set(payload.questions, payload.library), "yours"
        return automatic_set(self._catalog, payload.library, seed=SEED), "automatic"

    def _embed(
        self, context: JobContext, library: Library, number: int, embedder: Embedder, *, quiet: bool = False
    ) -> BackfillReport:
        missing = 0 if quiet else self._work.missing(library, number)

        def progress(done: int) -> None:
            if not quiet:
                context.progress(done, max(missing, done), "chunks")
            context.checkpoint()

        backfill = VectorBackfill(self._work.view(number), embedder, self._options)
        report = backfill.run(library, progress=progress, cancel=context.cancel)
        for failure in report.failed[: 0 if quiet else 100]:
            context.error(f"{failure.code}: chunk {failure.chunk_id} of {failure.doc_id} has no vector: {failure.reason}")
        return report

    def _after_swap(self, library: Library, stop: threading.Event) -> None:
        self._work.complete(library, stop)
        counts = self._catalog.counts(library)
        if counts.embedded < counts.chunks:
            self._later(library)

    def _roll_back(self, context: JobContext, payload: ReembedPayload, stop: threading.Event) -> ReembedReport:
        context.checkpoint()
        library = payload.library
        live, previous = self._work.builds.of(library, "live"), self._work.builds.of(library, "previous")
        before, after = (build.fingerprint.embedding_model if build else None for build in (live, previous))
        report = ReembedReport(library.value, "rolled_back", before, after, f"the vectors of {after!r} serve again")
        if previous is not None:
            self._announce(context, report, previous.number)
        self._work.revert(library, stop)
        self._after_swap(library, stop)
        return report

    def _discard(self, context: JobContext, payload: ReembedPayload, stop: threading.Event) -> ReembedReport:
        del stop
        context.checkpoint()
        live = self._work.builds.of(payload.library, "live")
        removed = self._work.discard(payload.library)
        model = live.fingerprint.embedding_model if live else None
        reason = "vectors that do not serve were removed; documind purge gives their space back"
        return ReembedReport(payload.library.value, "discarded", model, model, reason, removed_vectors=removed)
