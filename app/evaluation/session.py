"""Run one evaluation from request to report; resumable between questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
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
from app.evaluation.degraded import Degraded
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

    def __init__(self, place: SearchableIndex, degraded: Degraded) -> None:
        """Search a place; where a strategy gives way to the baseline it is counted."""
        self._place = place
        self._direct = RetrieverSearch(place.retriever_of, place.library, place.passage_of)
        self._asks: dict[str, Ask] = {}
        self._degraded = degraded

    def __call__(self, arm: Arm, question: str, top_k: int) -> RankedPassages:
        if arm.strategy == "baseline":
            return self._direct(arm, question, top_k)
        ask = self._asks.get(arm.name) or self._asks.setdefault(arm.name, self._place.ask_of(arm))
        start = time.perf_counter()
        asked = Question(question, self._place.library.value, strategy=arm.strategy)
        answer = ask(replace(asked, fusion=arm.fusion, retrieve_only=True, top_k=top_k))
        ms = (time.perf_counter() - start) * 1000
        self._degraded.note(arm.name, ((one.code, one.message) for one in answer.notices))
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
            InvalidInput: The request cannot be met: no such folder, an empty library.
            Cancelled: The watch said so.
        """
        request.check()
        arms = request.arms(self.workshop.options)
        going = _Run(self, request, arms, OutcomeLog(log_path), watch)
        if request.kind == "answers":
            return going.answers()
        if request.indexed_apart or request.axes.chunk_size or request.axes.chunker:
            return going.indexed()
        return going.live()


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of a session."""

    session: Session
    request: EvaluationBody
    arms: Sequence[Arm]
    log: OutcomeLog
    watch: Watch
    degraded: Degraded = field(default_factory=Degraded)

    @property
    def workshop(self) -> Workshop:
        return self.session.workshop

    # --- searches

    def live(self) -> EvaluationReport:
        """Search a library as it is."""
        place = self.workshop.live(Library(self.request.library or Library.PUBLIC))
        search = PlaceSearch(place, self.degraded)
        experiment = self._experiment(self._of_library(place), self.arms, search)
        return self._report(experiment, place.fingerprint, place.models)

    def indexed(self) -> EvaluationReport:
        """Search passages that are indexed for the time of the run, one index at a time."""
        request = self.request
        if request.collection is not None:
            collection = from_path(Path(request.collection))
        elif request.dataset is not None:
            collection = from_datasets(request.dataset)
        else:
            own = self.workshop.live(Library(request.library or Library.PUBLIC))
            collection = with_texts(self._of_library(own), own.store.catalog, own.library)
        arms = sorted(
            self.arms, key=lambda arm: (arm.chunking.size or 0, arm.chunking.chunker or "")
        )  # one index after the other
        kept = request.indexed_apart  # one's own texts leave nothing
        open_: dict[Chunking, PlaceSearch] = {}
        with ExitStack() as stack:

            def search(arm: Arm, question: str, top_k: int) -> RankedPassages:
                if arm.chunking not in open_:
                    open_.clear()
                    stack.close()
                    place = stack.enter_context(
                        self.workshop.indexed(
                            collection, arm.chunking, self.watch, keep_vectors=kept
                        )
                    )
                    open_[arm.chunking] = PlaceSearch(place, self.degraded)
                return open_[arm.chunking](arm, question, top_k)

            experiment = self._experiment(collection, arms, search)
        cuts = dict.fromkeys(arm.chunking for arm in arms)
        made = [self.workshop.made_with(chunking) for chunking in cuts]
        return self._report(experiment, ", ".join(name for name, _ in made), made[0][1])

    def _of_library(self, place: SearchableIndex) -> Collection:
        request, catalog, library = self.request, place.store.catalog, place.library
        if request.cases:
            return from_cases(request.cases, catalog, library)
        lexical = place.store.lexical
        return from_library(
            catalog, lexical, library, questions=request.questions, seed=request.seed
        )

    def _experiment(
        self, collection: Collection, arms: Sequence[Arm], search: ArmSearch
    ) -> Experiment:
        request, judged = self.request, collection.judged()
        if request.half != "all":
            judged = judged.half(request.half)
        judged = judged.sample(request.questions, request.seed)
        if not judged.questions:
            raise InvalidInput(
                f"{collection.name!r} has no question with a relevant passage; add documents or"
                " name another set"
            )
        counted = self._counting(len(judged.questions))

        def remembered(arm: Arm, question: str, top_k: int) -> RankedPassages:
            known = self.log.outcome(
                arm.name, question, lambda: QuestionOutcome(search(arm, question, top_k))
            )
            counted()
            return known.found

        return run(
            judged, arms, remembered, baseline=request.baseline(arms), seed=request.seed,
            top_k=request.top_k, resamples=self.session.resamples,
        )  # fmt: skip

    def _counting(self, questions: int) -> Callable[[], None]:
        """Return what is called after each question; the watch is told."""
        done, total = count(1), len(self.arms) * questions
        self.watch(0, total, "questions")
        return lambda: self.watch(next(done), total, "questions")

    # --- answers

    def answers(self) -> EvaluationReport:
        """Ask an answer set under each strategy."""
        cases = self.request.cases[: self.request.questions]
        places = {library: self.workshop.live(library) for library in Library}
        judge = self.session.judge if self.request.judge else None
        place = places[Library.PUBLIC]
        counted = self._counting(len(cases))
        outcomes: list[list[QuestionOutcome]] = []
        for arm in self.arms:
            ask = place.ask_of(arm)
            as_asked = Question("", "public", strategy=arm.strategy)
            row = []
            for number, case in enumerate(cases, start=1):
                asking = partial(ask_case, case, ask, judge=judge, ask_as=as_asked)
                row.append(self.log.outcome(arm.name, f"{number} {case.question}", asking))
                counted()
            outcomes.append(row)
        counts = [place.store.catalog.counts(library).documents for library in Library]
        experiment = answers_experiment(
            "answers", cases, self.arms, outcomes, seed=self.request.seed, documents=sum(counts),
            resamples=self.session.resamples,
        )  # fmt: skip
        made = [f"{library.value} {place.fingerprint}" for library, place in places.items()]
        models = {
            name: digest for place in places.values() for name, digest in place.models.items()
        }
        missed = self.request.judge and judge is None
        remarks = ["No model was there to judge the answers."] if missed else []
        return self._report(experiment, ", ".join(made), models, remarks)

    def _report(
        self,
        experiment: Experiment,
        fingerprint: str,
        models: Mapping[str, str],
        remarks: Sequence[str] = (),
    ) -> EvaluationReport:
        request, settings = self.request, settings_hash([experiment])
        made = ReportProvenance(
            self.session.git_sha, settings, fingerprint, dict(models), request.seed
        )
        said = self.degraded.remarks()
        if request.kind != "answers" and not request.cases and not request.indexed_apart:
            said.append(
                "The questions are the telling words of single sentences of your own documents"
                " (known items)."
                " They compare settings; they do not say how good a search is."
            )
        title = TITLES[request.kind].format(experiment.shown.collection)
        return report_of(title, made, [experiment], [*said, *remarks])


TITLES = {"retrieval": "Retrieval: {}", "ablation": "Ablation: {}", "answers": "Answers"}
