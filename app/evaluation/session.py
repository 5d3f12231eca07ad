"""Run one evaluation from request to report; resumable between questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from app.core.errors import InvalidInput
from app.core.types import Library, Question
from app.evaluation.answer_cases import AnswerCase
from app.evaluation.answer_report import experiment_of, outcome_of
from app.evaluation.answer_sets import evaluate
from app.evaluation.arms import Arm
from app.evaluation.collections import Collection, from_datasets, from_path
from app.evaluation.judge import Judge
from app.evaluation.outcomes import OutcomeLog, QuestionOutcome, Remembered
from app.evaluation.own_documents import from_cases, from_library, with_texts
from app.evaluation.report import Provenance, Report, settings_hash
from app.evaluation.request import EvaluationRequest
from app.evaluation.runner import ArmSearch, Experiment, run
from app.evaluation.statistics import RESAMPLES
from app.evaluation.workshop import BenchSearch, PlaceSearch, SearchableIndex, Workshop


class Watch(Protocol):
    """The caller that waits for a run."""

    def __call__(self, done: int, total: int, unit: str) -> None:
        """Be told how far it is; may raise Cancelled, after which the run can go on later."""
        ...


@dataclass(frozen=True, slots=True)
class Session:
    """A run over a workshop."""

    workshop: Workshop
    git_sha: str
    judge: Judge | None = None
    """Judges answers where that is asked for; None when no model is there."""
    resamples: int = RESAMPLES

    def run(self, request: EvaluationRequest, log_path: Path, watch: Watch) -> Report:
        """Ask everything that an earlier run has not asked, and return the report.

        Args:
            request: What to compare.
            log_path: Where outcomes are kept until the report is made.
            watch: Told after each question.

        Raises:
            InvalidInput: The request cannot be met: no such folder, an empty library, no
                cross-encoder.
            Cancelled: The watch said so.
        """
        request.check()
        if "cross_encoder" in request.axes.rerank and not self.workshop.has_cross_encoder:
            raise InvalidInput(
                "rerank cross_encoder needs CROSS_ENCODER_DIR, a directory with a cross-encoder's"
                " ONNX files"
            )
        arms = request.arms(self.workshop.options)
        log = OutcomeLog(log_path)
        if request.kind == "answers":
            return self._answers(request, arms, log, watch)
        if request.collection is None and request.dataset is None and not request.axes.cuts_anew:
            return self._live(request, arms, log, watch)
        return self._indexed(request, arms, log, watch)

    # --- searches

    def _live(
        self, request: EvaluationRequest, arms: Sequence[Arm], log: OutcomeLog, watch: Watch
    ) -> Report:
        """Search a library as it is."""
        place = self.workshop.live(request.library)
        collection = self._of_library(request, place)
        search = PlaceSearch(place)
        experiment = self._run(request, collection, arms, search, log, watch)
        return self._report(request, experiment, place.fingerprint, place.models, search.degraded)

    def _indexed(
        self, request: EvaluationRequest, arms: Sequence[Arm], log: OutcomeLog, watch: Watch
    ) -> Report:
        """Search passages that are indexed for the time of the run."""
        if request.collection is not None:
            collection = from_path(Path(request.collection))
        elif request.dataset is not None:
            collection = from_datasets(request.dataset)
        else:
            place = self.workshop.live(request.library)
            collection = with_texts(
                self._of_library(request, place), place.catalog, request.library
            )
        arms = sorted(
            arms, key=lambda arm: (arm.chunking.size or 0, arm.chunking.chunker or "")
        )  # one index after the other

        def step(what: str, done: int, total: int) -> None:
            watch(done, total, what)

        public = (
            request.collection is not None or request.dataset is not None
        )  # one's own texts leave nothing behind
        with BenchSearch(self.workshop, collection, step, keep_vectors=public) as search:
            experiment = self._run(request, collection, arms, search, log, watch)
            made = [
                self.workshop.made_with(chunking)
                for chunking in dict.fromkeys(arm.chunking for arm in arms)
            ]
            return self._report(
                request,
                experiment,
                ", ".join(name for name, _ in made),
                made[0][1],
                search.degraded,
            )

    def _of_library(self, request: EvaluationRequest, place: SearchableIndex) -> Collection:
        if request.cases:
            return from_cases(request.cases, place.catalog, request.library)
        return from_library(
            place.catalog,
            place.lexical,
            request.library,
            questions=request.questions,
            seed=request.seed,
        )

    def _run(
        self,
        request: EvaluationRequest,
        collection: Collection,
        arms: Sequence[Arm],
        search: ArmSearch,
        log: OutcomeLog,
        watch: Watch,
    ) -> Experiment:
        judged = collection.judged()
        if request.half != "all":
            judged = judged.half(request.half)
        judged = judged.sample(request.questions, request.seed)
        if not judged.questions:
            raise InvalidInput(
                f"{collection.name!r} has no question with a relevant passage; add documents or"
                " name another set"
            )
        total, done = len(arms) * len(judged.questions), 0

        def asked() -> None:
            nonlocal done
            done += 1
            watch(done, total, "questions")

        watch(0, total, "questions")
        return run(
            judged,
            arms,
            Remembered(search, log, asked),
            baseline=request.baseline(arms),
            seed=request.seed,
            top_k=request.top_k,
            resamples=self.resamples,
        )

    # --- answers

    def _answers(
        self, request: EvaluationRequest, arms: Sequence[Arm], log: OutcomeLog, watch: Watch
    ) -> Report:
        """Ask an answer set under each strategy."""
        cases = request.cases[: request.questions]
        places = {library: self.workshop.live(library) for library in Library}
        judge = self.judge if request.judge else None
        outcomes = self._asked(cases, arms, places[Library.PUBLIC], judge, log, watch)
        documents = sum(
            place.catalog.counts(library).documents for library, place in places.items()
        )
        experiment = experiment_of(
            "answers",
            cases,
            arms,
            outcomes,
            seed=request.seed,
            documents=documents,
            resamples=self.resamples,
        )
        fingerprint = ", ".join(
            f"{library.value} {place.fingerprint}" for library, place in places.items()
        )
        models = {
            name: digest for place in places.values() for name, digest in place.models.items()
        }
        report = self._report(request, experiment, fingerprint, models, set())
        if request.judge and judge is None:
            report = replace(
                report, remarks=(*report.remarks, "No model was there to judge the answers.")
            )
        return report

    def _asked(
        self,
        cases: Sequence[AnswerCase],
        arms: Sequence[Arm],
        place: SearchableIndex,
        judge: Judge | None,
        log: OutcomeLog,
        watch: Watch,
    ) -> list[list[QuestionOutcome]]:
        """Return every case's outcome under every arm; logged ones are not asked again."""
        total, done = len(arms) * len(cases), 0
        outcomes: list[list[QuestionOutcome]] = []
        watch(0, total, "questions")
        for arm in arms:
            ask, row = place.ask_of(arm), []
            for number, case in enumerate(cases, start=1):
                key = f"{number} {case.question}"
                known = log.get(arm.name, key)
                if known is None:
                    as_asked = Question("", "public", strategy=arm.strategy)
                    known = outcome_of(
                        evaluate([case], ask, judge=judge, ask_as=as_asked).outcomes[0]
                    )
                    log.add(arm.name, key, known)
                row.append(known)
                done += 1
                watch(done, total, "questions")
            outcomes.append(row)
        return outcomes

    def _report(
        self,
        request: EvaluationRequest,
        experiment: Experiment,
        fingerprint: str,
        models: Mapping[str, str],
        degraded: set[str],
    ) -> Report:
        """Return the report with what it was made from."""
        made = Provenance(
            self.git_sha, settings_hash([experiment]), fingerprint, dict(models), request.seed
        )
        remarks = []
        if degraded:
            remarks.append(
                f"{', '.join(sorted(degraded))}: no model was there, so the baseline searched."
            )
        if request.kind != "answers" and not (
            request.cases or request.collection or request.dataset
        ):
            remarks.append(
                "The questions are the telling words of single sentences of your own documents"
                " (known items)."
                " They compare settings; they do not say how good a search is."
            )
        return Report(
            TITLES[request.kind].format(experiment.collection), made, (experiment,), tuple(remarks)
        )


TITLES = {"retrieval": "Retrieval: {}", "ablation": "Ablation: {}", "answers": "Answers"}
