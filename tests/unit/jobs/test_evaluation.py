"""The evaluation job when the model host goes away in the middle."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from app.core.errors import ProviderTimeout
from app.evaluation.arms import EvaluationBody
from app.evaluation.report import EvaluationReport, ReportArchive, ReportProvenance, report_of
from app.evaluation.runner import OutcomeLog, QuestionOutcome, RankedPassages
from app.evaluation.workshop import Watch
from app.jobs.maintenance import EvaluationService
from app.jobs.runner import JobOptions, JobRunner
from tests.fakes.job_queue import OwnQueue


class FlakySession:
    """Asks two questions; the host is away at the second one, once."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def run(self, request: EvaluationBody, log_path: Path, watch: Watch) -> EvaluationReport:
        log = OutcomeLog(log_path)
        for number, question in enumerate(("one", "two"), start=1):
            log.outcome("arm", question, partial(self._ask, question))
            watch(number, 2, "questions")
        return report_of("Toy", ReportProvenance("s", "h", "f", {}, request.seed), ())

    def _ask(self, question: str) -> QuestionOutcome:
        self.asked.append(question)
        if self.asked == ["one", "two"]:
            raise ProviderTimeout("the host did not answer")
        return QuestionOutcome(RankedPassages((), (), 1.0, {}))


def test_a_host_that_is_away_for_a_while_costs_a_wait_not_the_run(tmp_path: Path) -> None:
    session = FlakySession()
    runner = JobRunner(OwnQueue(), JobOptions(retry_s=0.01))
    service = EvaluationService(runner, lambda: session, ReportArchive(tmp_path))  # type: ignore[arg-type,return-value]  # a fake
    runner.start()
    try:
        job = runner.wait(service.start(EvaluationBody()).id, 20)
    finally:
        runner.close()
    assert job.state == "done", job
    assert session.asked == ["one", "two", "two"]
    assert [entry.id for entry in service.reports.list()] == [job.id]
