"""Run one evaluation from request to report; resumable between questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.errors import InvalidInput
from app.core.types import Library, Question
from app.evaluation.answers import Ask, Judge, answers_experiment, ask_case
from app.evaluation.arms import Arm, Chunking, EvaluationBody
from app.evaluation.collections import (
    Collection,
    from_cases,
    from_datasets,
    from_library,
    from_path,
    with_texts,
)
from app.evaluation.metrics import RESAMPLES
from app.evaluation.report import (
    EvaluationReport,
    Experiment,
    ReportProvenance,
    report_of,
    settings_hash,
)
from app.evaluation.runner import (
    ArmSearch,
    OutcomeLog,
    QuestionOutcome,
    RankedPassages,
    RetrieverSearch,
    run,
)

if TYPE_CHECKING:  # it opens stores, which takes long to import
    from app.evaluation.workshop import SearchableIndex, Watch, Workshop


class PlaceSearch:
    """Searches a place by the retriever for the baseline strategy, by the use case for others."""

    def __init__(self, place: SearchableIndex, degraded: set[str]) -> None:
        """Search a place; arms whose strategy is degraded for want of a model are named there."""
        self._place = place
        self._direct = RetrieverSearch(place.retriever_of, place.library, place.passage_of)
        self._asks: dict[str, Ask] = {}
        self._degraded = degraded

    def __call__(self, arm: Arm, question: str, top_k: int) -> RankedPassages:
        if arm.strategy == "baseline":
            return self._direct(arm, question, top_k)
        ask = self._asks.get(arm.name) or self._asks.setdefault(arm.name, self._place.ask_of(arm))
        start = time.perf_counter()
        answer = ask(
            Question(
                question,
                self._place.library.value,
                strategy=arm.strategy,
                fusion=arm.fusion,
                retrieve_only=True,
                top_k=top_k,
            )
        )
        ms = (time.perf_counter() - start) * 1000
        if any(notice.code == "strategy_degraded" for notice in answer.notices):
            self._degraded.add(arm.name)
        return RankedPassages.of(
            (evidence.hit.passage for evidence in answer.evidence),
            ms,
            answer.trace,
            answer.confidence,
            self._place.passage_of,
        )


@dataclass(frozen=True, slots=True)
class Session:
    """A run over a workshop."""

    workshop: Workshop
    git_sha: str
    judge: Judge | None = None
    """Judges answers where that is asked for; None when no model is there."""
    resamples: int = RESAMPLES

    def run(self, request: EvaluationBody, log_path: Path, watch: Watch) -> EvaluationReport:
        """Ask everything that an earlier run has not asked, and return the report.

        Outcomes are kept at `log_path` until then; `watch` is told after each question.

        Raises:
            InvalidInput: The request cannot be met: no such folder, an empty library, no
                cross-encoder.
            Cancelled: The watch said so.
        """
        request.check()
        if "cross_encoder" in request.axes.rerank and self.workshop.reranker is None:
            raise InvalidInput(
                "rerank cross_encoder needs CROSS_ENCODER_DIR, a directory with a cross-encoder's"
                " ONNX files"
            )
        arms = request.arms(self.workshop.options)
        log = OutcomeLog(log_path)
        if request.kind == "answers":
            return self._answers(request, arms, log, watch)
        if request.indexed_apart or request.axes.chunk_size or request.axes.chunker:
            return self._indexed(request, arms, log, watch)
        return self._live(request, arms, log, watch)

    # --- searches

    def _live(
        self, request: EvaluationBody, arms: Sequence[Arm], log: OutcomeLog, watch: Watch
    ) -> EvaluationReport:
        """Search a library as it is."""
        place = self.workshop.live(_library(request))
        degraded: set[str] = set()
        search = PlaceSearch(place, degraded)
        experiment = self._run(request, self._of_library(request, place), arms, search, log, watch)
        return self._report(request, experiment, place.fingerprint, place.models, degraded)

    def _indexed(
        self, request: EvaluationBody, arms: Sequence[Arm], log: OutcomeLog, watch: Watch
    ) -> EvaluationReport:
        """Search passages that are indexed for the time of the run, one index at a time."""
        if request.collection is not None:
            collection = from_path(Path(request.collection))
        elif request.dataset is not None:
            collection = from_datasets(request.dataset)
        else:
            place = self.workshop.live(_library(request))
            collection = with_texts(
                self._of_library(request, place), place.store.catalog, place.library
            )
        arms = sorted(
            arms, key=lambda arm: (arm.chunking.size or 0, arm.chunking.chunker or "")
        )  # one index after the other
        degraded: set[str] = set()
        open_: dict[Chunking, PlaceSearch] = {}
        with ExitStack() as stack:

            def search(arm: Arm, question: str, top_k: int) -> RankedPassages:
                if arm.chunking not in open_:
                    open_.clear()
                    stack.close()
                    place = stack.enter_context(
                        self.workshop.indexed(
                            collection,
                            arm.chunking,
                            watch,
                            keep_vectors=request.indexed_apart,  # one's own texts leave nothing
                        )
                    )
                    open_[arm.chunking] = PlaceSearch(place, degraded)
                return open_[arm.chunking](arm, question, top_k)

            experiment = self._run(request, collection, arms, search, log, watch)
        made = [
            self.workshop.made_with(chunking)
            for chunking in dict.fromkeys(arm.chunking for arm in arms)
        ]
        fingerprint = ", ".join(name for name, _ in made)
        return self._report(request, experiment, fingerprint, made[0][1], degraded)

    def _of_library(self, request: EvaluationBody, place: SearchableIndex) -> Collection:
        if request.cases:
            return from_cases(request.cases, place.store.catalog, place.library)
        return from_library(
            place.store.catalog,
            place.store.lexical,
            place.library,
            questions=request.questions,
            seed=request.seed,
        )

    def _run(
        self,
        request: EvaluationBody,
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
        counted = _counting(watch, len(arms) * len(judged.questions))

        def remembered(arm: Arm, question: str, top_k: int) -> RankedPassages:
            known = log.outcome(
                arm.name, question, lambda: QuestionOutcome(search(arm, question, top_k))
            )
            counted()
            return known.found

        return run(
            judged,
            arms,
            remembered,
            baseline=request.baseline(arms),
            seed=request.seed,
            top_k=request.top_k,
            resamples=self.resamples,
        )

    # --- answers

    def _answers(
        self, request: EvaluationBody, arms: Sequence[Arm], log: OutcomeLog, watch: Watch
    ) -> EvaluationReport:
        """Ask an answer set under each strategy."""
        cases = request.cases[: request.questions]
        places = {library: self.workshop.live(library) for library in Library}
        judge = self.judge if request.judge else None
        place = places[Library.PUBLIC]
        counted = _counting(watch, len(arms) * len(cases))
        outcomes: list[list[QuestionOutcome]] = []
        for arm in arms:
            ask = place.ask_of(arm)
            as_asked = Question("", "public", strategy=arm.strategy)
            row = []
            for number, case in enumerate(cases, start=1):
                row.append(
                    log.outcome(
                        arm.name,
                        f"{number} {case.question}",
                        partial(ask_case, case, ask, judge=judge, ask_as=as_asked),
                    )
                )
                counted()
            outcomes.append(row)
        experiment = answers_experiment(
            "answers",
            cases,
            arms,
            outcomes,
            seed=request.seed,
            documents=sum(
                place.store.catalog.counts(library).documents for library, place in places.items()
            ),
            resamples=self.resamples,
        )
        fingerprint = ", ".join(
            f"{library.value} {place.fingerprint}" for library, place in places.items()
        )
        models = {
            name: digest for place in places.values() for name, digest in place.models.items()
        }
        missed = request.judge and judge is None
        return self._report(
            request,
            experiment,
            fingerprint,
            models,
            set(),
            ["No model was there to judge the answers."] if missed else (),
        )

    def _report(
        self,
        request: EvaluationBody,
        experiment: Experiment,
        fingerprint: str,
        models: Mapping[str, str],
        degraded: set[str],
        remarks: Sequence[str] = (),
    ) -> EvaluationReport:
        made = ReportProvenance(
            self.git_sha, settings_hash([experiment]), fingerprint, dict(models), request.seed
        )
        said = []
        if degraded:
            said.append(
                f"{', '.join(sorted(degraded))}: no model was there, so the baseline searched."
            )
        if request.kind != "answers" and not request.cases and not request.indexed_apart:
            said.append(
                "The questions are the telling words of single sentences of your own documents"
                " (known items)."
                " They compare settings; they do not say how good a search is."
            )
        return report_of(
            TITLES[request.kind].format(experiment.shown.collection),
            made,
            [experiment],
            [*said, *remarks],
        )


def _counting(watch: Watch, total: int) -> Callable[[], None]:
    """Return what is called after each question; the watch is told."""
    done = count(1)
    watch(0, total, "questions")
    return lambda: watch(next(done), total, "questions")


def _library(request: EvaluationBody) -> Library:
    return Library(request.library or Library.PUBLIC)


TITLES = {"retrieval": "Retrieval: {}", "ablation": "Ablation: {}", "answers": "Answers"}
