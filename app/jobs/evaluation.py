"""Run evaluations: ask every question under every arm, and store the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime

from app.core.types import Job
from app.evaluation.archive import ReportArchive
from app.evaluation.request import EvaluationRequest
from app.evaluation.session import Session
from app.jobs.context import JobContext
from app.jobs.kinds import EVALUATION
from app.jobs.runner import JobRunner


class EvaluationJob:
    """Handler of `evaluation`; a run that was stopped asks only what it had not asked."""

    def __init__(self, session_of: Callable[[], Session], archive: ReportArchive) -> None:
        """Keep what makes a session, and where reports go."""
        self._session_of = session_of
        self._archive = archive

    def __call__(self, context: JobContext) -> Mapping[str, object]:
        """Run the request of the payload and return the entry of its report.

        Raises:
            InvalidInput: The request cannot be met.
            Cancelled: Paused, cancelled or shut down; outcomes so far are kept.
        """
        request = EvaluationRequest.from_json(context.payload)

        def watch(done: int, total: int, unit: str) -> None:
            context.progress(done, total, unit)
            context.checkpoint()

        context.checkpoint()
        report = self._session_of().run(request, self._archive.outcomes(context.job_id), watch)
        own = request.collection is None and request.dataset is None
        entry = self._archive.save(
            context.job_id,
            report,
            datetime.now(UTC).isoformat(timespec="milliseconds"),
            own_documents=own,
        )
        return asdict(entry)


class EvaluationService:
    """Starts evaluations and finds their reports."""

    def __init__(self, runner: JobRunner, archive: ReportArchive) -> None:
        """Keep the runner and the reports."""
        self._runner = runner
        self.reports = archive

    def start(self, request: EvaluationRequest) -> Job:
        """Accept a run.

        Raises:
            InvalidInput: The request makes no sense.
            DiskFull: The job could not be written down.
        """
        request.check()
        # a model host that goes away for a while costs a wait, not the run: what was asked is kept
        return self._runner.submit(
            EVALUATION, {**request.to_json(), "retry": True}, unit="questions"
        )


def register_evaluation(
    runner: JobRunner, session_of: Callable[[], Session], archive: ReportArchive
) -> EvaluationService:
    """Register `evaluation`, one at a time, in the background; return its service."""
    runner.register(
        EVALUATION,
        EvaluationJob(session_of, archive),
        lane="background",
        exclusive=lambda _: "evaluation",
    )
    return EvaluationService(runner, archive)
