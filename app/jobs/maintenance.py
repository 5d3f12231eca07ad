"""Maintain stores of a running server: check, export, import, back up, purge.

Paths are on the server's machine.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from app.answer.model_test import ModelReply, ModelTester
from app.core.cancel import CancelToken
from app.core.errors import NotFound, StorageError
from app.core.types import Job, Library, ModelFindings
from app.evaluation.arms import EvaluationBody
from app.evaluation.report import ReportArchive
from app.evaluation.session import Session
from app.generation.flags.injection import inspect
from app.jobs.kinds import BACKUP, EVALUATION, EXPORT, FSCK, IMPORT, MODEL_TEST, PURGE
from app.jobs.runner import JobContext, JobRunner, per_library
from app.models.ollama import PullProgress
from app.storage.catalog.models import ModelStore

if TYPE_CHECKING:
    from app.storage.store import IndexStore

Record = Mapping[str, object]


PURGE_AFTER_S = 60.0
"""Seconds after the last deletion until a library's files are rewritten; deleting 20 papers
costs one purge."""

PURGE_SMALL_CHUNKS = 20_000
"""Up to here a purge takes seconds. A larger library waits PURGE_LARGE_AFTER_S, or for `documind
purge`."""

PURGE_LARGE_AFTER_S = 3_600.0
"""Seconds without a further deletion until a large library is purged: all of its text is indexed
again."""


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Handlers; each may run again: files appear when they are whole, imports add up."""

    store: IndexStore
    reports: ReportArchive
    """Of evaluations; they quote passages."""
    later: Callable[[Library], object]
    """Requests the vectors that a library lacks."""

    def register(self, runner: JobRunner) -> None:
        """Register the kinds; they run in the background and give way to interactive work."""
        runner.register(EXPORT, self.export, lane="background")
        for kind, work in (
            (FSCK, self.fsck),
            (IMPORT, self.load),
            (BACKUP, self.backup),
            (PURGE, self.purge),
        ):
            runner.register(kind, work, lane="background", exclusive=per_library)

    def fsck(self, context: JobContext) -> Record:
        context.checkpoint()
        return self.store.fsck.run().record()

    def export(self, context: JobContext) -> Record:
        library, target = Library(str(context.payload["library"])), _path(context)
        report = self.store.bundler.export(library, target, context.step)
        return {**asdict(report), "path": str(target)}

    def load(self, context: JobContext) -> Record:
        named = context.payload.get("library")
        library = None if named is None else Library(str(named))
        loaded = self.store.bundler.load(
            _path(context), library, context.step, inspect, context.job_id
        )
        report = asdict(loaded)
        if report["chunks"] != report["vectors"]:
            self.later(Library(str(report["library"])))
        return report

    def backup(self, context: JobContext) -> Record:
        return asdict(self.store.backup(_path(context), context.step))

    def purge(self, context: JobContext) -> Record:
        context.checkpoint()
        purged = asdict(self.store.purger.run())
        return {**purged, "report_passages": self.reports.forget(self._alive)}

    def _alive(self, doc_id: str) -> bool:
        for library in Library:
            with suppress(NotFound):
                self.store.catalog.document(library, doc_id)
                return True
        return False

    def end_grace(self) -> int:
        """Remove deleted documents and conversations whose grace is over; return how many."""
        return self.store.writer.purge_due() + self.store.conversations.delete_due()

    def purge_is_due(self) -> bool:
        """Return whether bytes of deleted documents are old enough to purge."""
        now = datetime.now(UTC)
        for library in Library:
            if (at := self.store.writer.deleted_at(library)) is None:
                continue
            small = self.store.catalog.counts(library).chunks <= PURGE_SMALL_CHUNKS
            wait_s = PURGE_AFTER_S if small else PURGE_LARGE_AFTER_S
            if (now - datetime.fromisoformat(at)).total_seconds() >= wait_s:
                return True
        return False


def _path(context: JobContext) -> Path:
    return Path(str(context.payload["path"]))


# End the grace of deletions, and purge deleted bytes, without a request.

logger = logging.getLogger(__name__)

LOOK_EVERY_S, LOOK_SHARED_S = 10.0, 60.0
"""How often deletions are looked at; one indexed query per library. Where servers share a catalog,
each also looks so often at what embeds the libraries: 14 statements a server."""

PURGE_APART_S = 600.0
"""Shortest time between two automatic purges, so that one that fails (a full disk) is not
repeated without end."""


@dataclass(frozen=True, slots=True)
class Housekeeper:
    """Looks now and then whether deletions are to be made final."""

    maintenance: Maintenance
    runner: JobRunner
    look_every_s: float = LOOK_EVERY_S

    def look_for_s(self) -> float:
        return PURGE_APART_S if self.look() else self.look_every_s

    def look(self) -> bool:
        """End what is due, in one process a period; return whether a purge was asked for."""
        try:
            if not self.runner.acquire_interval("housekeeping", self.look_every_s):
                return False
            self.maintenance.end_grace()
            due = self.maintenance.purge_is_due() and self.runner.acquire_interval(
                "purge", PURGE_APART_S
            )
            if due:
                request_purge(self.runner)
        except StorageError as error:
            logger.warning(
                "deletions could not be looked after; trying again: %s",
                error.message,
                exc_info=None if error.retryable else error,
            )
            return False
        return due


def request_purge(runner: JobRunner) -> Job:
    return next(runner.unfinished(PURGE), None) or runner.submit(PURGE, {}, coalesce=True)


# Jobs about models: one into Ollama, and the test of one.


@dataclass(frozen=True, slots=True)
class PullJob:
    """Handler of `pull`; resumes an interrupted pull."""

    pull: Callable[[str, CancelToken], Iterable[PullProgress]]

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        model = str(context.payload["model"])
        status = ""
        for step in self.pull(model, context.cancel):
            status = step.status
            if step.total:
                context.progress(step.completed or 0, step.total, "bytes")
        return {"model": model, "status": status}


@dataclass(frozen=True, slots=True)
class ModelTestService:
    """Starts tests of models, runs them as jobs, and returns their findings."""

    runner: JobRunner
    tester: ModelTester
    store: ModelStore

    def __post_init__(self) -> None:
        self.runner.register(MODEL_TEST, self.run, lane="network", exclusive=lambda _: MODEL_TEST)

    def start(self, model: str | None) -> Job:
        """Accept a test; the same one that is under way is joined.

        Raises:
            ModelNotInstalled: The host does not have the model.
            InvalidInput: No model answers here.
            DiskFull: The job could not be written down.
        """
        self.tester.choice(model)
        return self.runner.submit(MODEL_TEST, {"model": model}, unit="questions", coalesce=True)

    def results(self) -> Sequence[tuple[str, ModelFindings]]:
        return self.store.tested()

    def run(self, context: JobContext) -> Record:
        """Test the model of the payload; ask only what a run that was cut short had not asked."""
        wanted = cast("str | None", context.payload["model"])
        digest = self.tester.choice(wanted)[0].profile.digest
        before = context.previous or {}
        rows = cast(
            "Sequence[Mapping[str, object]]",
            before.get("replies", ()) if before.get("digest") == digest else (),
        )

        def watch(replies: Sequence[ModelReply], asked: int, total: int) -> None:
            context.publish({"digest": digest, "replies": [asdict(one) for one in replies]})
            context.step(asked, total, "questions")

        # as `watch` wrote them
        done = [ModelReply(**row) for row in rows]  # type: ignore[arg-type]
        return {"digest": digest, **asdict(self.tester.run(wanted, context.cancel, done, watch))}


@dataclass(frozen=True, slots=True)
class EvaluationService:
    """Starts evaluations, runs them as jobs, and finds their reports."""

    runner: JobRunner
    session_of: Callable[[], Session]
    reports: ReportArchive

    def __post_init__(self) -> None:
        self.runner.register(
            EVALUATION, self.run, lane="background", exclusive=lambda _: EVALUATION
        )

    def start(self, request: EvaluationBody) -> Job:
        """Accept a run.

        Raises:
            InvalidInput: The request makes no sense.
            DiskFull: The job could not be written down.
        """
        request.check()
        # a model host that goes away for a while costs a wait, not the run: what was asked is kept
        return self.runner.submit(EVALUATION, {**asdict(request), "retry": True}, unit="questions")

    def run(self, context: JobContext) -> Record:
        """Run the request of the payload; ask only what a run that was stopped had not asked."""
        asked: dict[str, Any] = {**context.payload}
        del asked["retry"]
        request = EvaluationBody(**asked)
        context.checkpoint()
        outcomes = self.reports.outcomes(context.job_id)
        report = self.session_of().run(request, outcomes, context.step)
        made = datetime.now(UTC).isoformat(timespec="milliseconds")
        return asdict(
            self.reports.save(context.job_id, report, made, own_documents=not request.indexed_apart)
        )
