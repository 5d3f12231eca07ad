"""Run one evaluation from request to report; resumable between questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from app.core.errors import InvalidInput
from app.core.ports import Catalog, LexicalIndex
from app.core.types import Answer, Library, Question
from app.evaluation.answers import Judge, evaluate, experiment_of, outcome_of
from app.evaluation.arms import Arm, Chunking, EvaluationRequest
from app.evaluation.cases import AnswerCase
from app.evaluation.collections import (
    Collection,
    from_cases,
    from_datasets,
    from_library,
    from_path,
    with_texts,
)
from app.evaluation.metrics import RESAMPLES
from app.evaluation.report import Provenance, Report, settings_hash
from app.evaluation.runner import (
    ArmSearch,
    Experiment,
    OutcomeLog,
    QuestionOutcome,
    RankedPassages,
    Remembered,
    RetrieverSearch,
    run,
)
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions

# Provide the place of an evaluation: the libraries, or a temporary index.

Ask = Callable[[Question], Answer]
Step = Callable[[str, int, int], None]
"""Told of preparation: what, how many are done, of how many; may raise Cancelled."""


@dataclass(frozen=True, slots=True)
class SearchableIndex:
    """An index that can be searched under any options."""

    library: Library
    catalog: Catalog
    lexical: LexicalIndex
    retriever_of: Callable[[Arm], Retriever]
    """Makes what searches under an arm."""
    ask_of: Callable[[Arm], Ask]
    """Makes the query use case under an arm; nothing that it answers is stored."""
    fingerprint: str
    models: Mapping[str, str]
    """Digest by model name."""
    passage_of: Mapping[str, str] = field(default_factory=dict)
    """Collection id by doc_id; empty where documents are named by their own."""


class Workshop(Protocol):
    """Makes places; `app.bootstrap.evaluation` has the one over adapters."""

    @property
    def options(self) -> RetrievalOptions:
        """The server's own options of retrieval."""
        ...

    @property
    def has_cross_encoder(self) -> bool:
        """Return whether a cross-encoder is configured."""
        ...

    def live(self, library: Library) -> SearchableIndex:
        """Return a library as it is; it is only read."""
        ...

    def made_with(self, chunking: Chunking) -> tuple[str, Mapping[str, str]]:
        """Return the fingerprint of an index cut like this, and digests by model name."""
        ...

    def indexed(
        self, collection: Collection, chunking: Chunking, step: Step, *, keep_vectors: bool
    ) -> AbstractContextManager[SearchableIndex]:
        """Index a collection apart from the libraries; remove the index afterwards.

        Its vectors may be kept for the next run.
        """
        ...


class PlaceSearch:
    """An `ArmSearch` over one place.

    The retriever alone for the baseline strategy, the whole query use case for the others.
    """

    def __init__(self, place: SearchableIndex) -> None:
        self._place = place
        self._direct = RetrieverSearch(place.retriever_of, place.library, place.passage_of)
        self._asks: dict[str, Ask] = {}
        self.degraded: set[str] = set()
        """Names of arms whose strategy was degraded for want of a model."""

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
            self.degraded.add(arm.name)
        best: dict[str, str] = {}
        for evidence in answer.evidence:
            passage = evidence.hit.passage
            name = self._place.passage_of.get(passage.document.doc_id, passage.document.doc_id)
            best.setdefault(name, passage.chunk.text)
        stages: dict[str, float] = {}
        for stage in answer.trace.stages:
            stages[stage.name] = stages.get(stage.name, 0.0) + stage.ms
        return RankedPassages(tuple(best), tuple(best.values()), ms, stages, answer.confidence)


class BenchSearch:
    """An `ArmSearch` over a collection that each arm cuts; one index at a time."""

    def __init__(
        self, workshop: Workshop, collection: Collection, step: Step, *, keep_vectors: bool
    ) -> None:
        self._keep_vectors = keep_vectors
        self._workshop = workshop
        self._collection = collection
        self._step = step
        self._stack = ExitStack()
        self._open: tuple[Chunking, PlaceSearch] | None = None
        self._degraded: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def degraded(self) -> set[str]:
        """Names of arms whose strategy was degraded for want of a model."""
        return self._degraded | (self._open[1].degraded if self._open else set())

    def _at(self, chunking: Chunking) -> PlaceSearch:
        """Return the search of a chunking, indexing it when it is not the open one."""
        if self._open is None or self._open[0] != chunking:
            self._degraded = set(self.degraded)
            self._open = None
            self._stack.close()
            place = self._stack.enter_context(
                self._workshop.indexed(
                    self._collection, chunking, self._step, keep_vectors=self._keep_vectors
                )
            )
            self._open = (chunking, PlaceSearch(place))
        return self._open[1]

    def __call__(self, arm: Arm, question: str, top_k: int) -> RankedPassages:
        return self._at(arm.chunking)(arm, question, top_k)


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
