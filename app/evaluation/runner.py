"""Run arms over a collection and keep what each did with each question."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence, ValuesView
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from pydantic import TypeAdapter

from app.core.trace import Trace
from app.core.types import Library, Passage, TraceReport
from app.evaluation.arms import Arm
from app.evaluation.collections import Collection
from app.evaluation.metrics import (
    MEASURES,
    RESAMPLES,
    bootstrap_interval,
    compare,
    grounded,
    overlap_with,
    per_question,
    percentile,
)
from app.evaluation.report import SEPARATOR, ArmTimings, Experiment, ReportArm, ReportExperiment
from app.retrieval.pipeline import Retriever
from app.retrieval.request import SearchRequest

DOCUMENTS = "unique documents"
"""A measure besides those of relevance: how many documents the passages are of."""


@dataclass(frozen=True, slots=True)
class RankedPassages:
    """One arm's result for one question."""

    passages: tuple[str, ...]
    """Ids as the collection knows them, best first, each once."""
    texts: tuple[str, ...]
    """The passages' texts, in the same order."""
    ms: float
    """How long the search took, in milliseconds."""
    stages_ms: Mapping[str, float]
    """The same by step."""
    confidence: float = 0.0

    @classmethod
    def of(
        cls,
        passages: Iterable[Passage],
        ms: float,
        trace: TraceReport,
        confidence: float,
        passage_of: Mapping[str, str] | None = None,
    ) -> RankedPassages:
        """Return passages judged by document: the best one of each, with the steps' times."""
        best: dict[str, str] = {}
        for passage in passages:
            doc_id = passage.document.doc_id
            best.setdefault((passage_of or {}).get(doc_id, doc_id), passage.chunk.text)
        stages: dict[str, float] = {}
        for stage in trace.stages:
            stages[stage.name] = stages.get(stage.name, 0.0) + stage.ms
        return cls(tuple(best), tuple(best.values()), ms, stages, confidence)


@dataclass(frozen=True, slots=True)
class RetrieverSearch:
    """Asks the retriever in this process; chunks are judged by document."""

    retriever_of: Callable[[Arm], Retriever]
    library: Library
    passage_of: Mapping[str, str]
    _retrievers: dict[Arm, Retriever] = field(default_factory=dict)

    def __call__(self, arm: Arm, question: str, top_k: int) -> RankedPassages:
        retriever = self._retrievers.get(arm) or self._retrievers.setdefault(
            arm, self.retriever_of(arm)
        )
        trace = Trace()
        request = SearchRequest(question, self.library, top_k=top_k, keep_weak=True)
        start = time.perf_counter()
        retrieval = retriever.retrieve(request, trace)
        ms = (time.perf_counter() - start) * 1000
        return RankedPassages.of(
            (hit.passage for hit in retrieval.hits),
            ms,
            trace.report(),
            retrieval.confidence,
            self.passage_of,
        )


ArmSearch = Callable[[Arm, str, int], RankedPassages]
"""Returns at most so many passages for a question under an arm's settings."""


def run(
    collection: Collection,
    arms: Sequence[Arm],
    search: ArmSearch,
    *,
    baseline: str,
    seed: int,
    top_k: int = 10,
    measures: Sequence[str] = MEASURES,
    resamples: int = RESAMPLES,
    progress: Callable[[str], None] = lambda _: None,
) -> Experiment:
    """Ask every judged question under every arm and compare the arms with the baseline.

    The first measure decides the comparisons. `progress` is told about each arm that is done.

    Raises:
        ValueError: The baseline is not among the arms.
    """
    answers = {question.id: question.answers for question in collection.questions}
    found: dict[str, dict[str, RankedPassages]] = {}
    for arm in arms:
        found[arm.name] = {
            question.id: search(arm, question.text, arm.top_k or top_k)
            for question in collection.questions
        }
        progress(f"{collection.name}: {arm.name}, {len(found[arm.name])} questions")
    if baseline not in found:
        raise ValueError(
            f"no arm {baseline!r} to compare with; there are {', '.join(map(repr, found))}"
        )
    values = {}
    for name, own in found.items():
        values[name] = per_question(
            {q: f.passages for q, f in own.items()}, collection.relevance, measures
        )
        values[name][DOCUMENTS] = {q: float(len(set(f.passages))) for q, f in own.items()}
    return experiment_of(
        collection.name,
        {question.id: question.text for question in collection.questions},
        arms,
        found,
        values,
        measure=measures[0],
        baseline=baseline,
        documents=collection.size,
        seed=seed,
        resamples=resamples,
        answers={q: strings for q, strings in answers.items() if strings},
        relevant={
            q: tuple(p for p, grade in collection.relevance.get(q, {}).items() if grade > 0)
            for q in answers
        },
    )


def experiment_of(
    name: str,
    questions: Mapping[str, str],
    arms: Sequence[Arm],
    found: Mapping[str, dict[str, RankedPassages]],
    values: Mapping[str, Mapping[str, Mapping[str, float]]],
    *,
    measure: str,
    baseline: str,
    documents: int,
    seed: int,
    resamples: int = RESAMPLES,
    answers: Mapping[str, Sequence[str]] | None = None,
    relevant: Mapping[str, tuple[str, ...]] | None = None,
) -> Experiment:
    """Compare the arms with the baseline by what each found; `measure` decides.

    All is by question id: `questions` are texts, in order; `found` and `values` are by arm first;
    `answers` are strings, any of which in the passages answers; `relevant` are passages.
    """
    reported = []
    for arm in arms:
        own = found[arm.name]
        intervals = {
            m: bootstrap_interval(
                np.fromiter(v.values(), dtype=np.float64), seed=seed, resamples=resamples
            )
            for m, v in values[arm.name].items()
        }
        overlaps = [overlap_with(f.passages, found[baseline][q].passages) for q, f in own.items()]
        right = [grounded(own[q].texts, strings) for q, strings in (answers or {}).items()]
        reported.append(
            ReportArm(
                name=arm.name,
                settings=asdict(arm),
                measures=intervals,
                grounded_rate=sum(right) / len(right) if right else None,
                overlap_with_baseline=sum(overlaps) / max(len(overlaps), 1),
                per_question=dict(values[arm.name][measure]),
            )
        )
    by_arm = {arm.name: arm.per_question for arm in reported}
    previews: dict[str, str] = {}
    shown = ReportExperiment(
        collection=name,
        questions=len(questions),
        passages=documents,
        baseline=baseline,
        measure=measure,
        arms=reported,
        comparisons=list(compare(baseline, by_arm, seed=seed, resamples=resamples)),
        question_texts=dict(questions),
        relevant={question: list(passages) for question, passages in (relevant or {}).items()},
        found={
            arm.name: {
                question: _previewed(one, (arm.name, question), previews)
                for question, one in found[arm.name].items()
            }
            for arm in arms
        },
        previews=previews,
    )
    return Experiment(shown, {arm.name: _times(found[arm.name].values()) for arm in arms})


_SHOWN, _PREVIEW = 5, 240  # passages per question and arm that are shown, characters of each


def _previewed(
    found: RankedPassages, where: tuple[str, str], previews: dict[str, str]
) -> list[str]:
    """Return names of the passages; the first ones' beginnings are in `previews`, each once."""
    names: list[str] = []
    for rank, (passage, text) in enumerate(
        zip(found.passages[:_SHOWN], found.texts[:_SHOWN], strict=True), start=1
    ):
        short = text[:_PREVIEW] + ("…" if len(text) > _PREVIEW else "")
        name = passage
        if previews.setdefault(passage, short) != short:
            name = SEPARATOR.join((passage, *where, str(rank)))
            previews[name] = short
        names.append(name)
    return [*names, *found.passages[_SHOWN:]]


def _times(found: ValuesView[RankedPassages]) -> ArmTimings:
    """Return percentiles of the searches, and the median time of each step."""
    stages = dict.fromkeys(stage for one in found for stage in one.stages_ms)
    ms = [one.ms for one in found]
    return ArmTimings(
        p50_ms=percentile(ms, 0.5),
        p95_ms=percentile(ms, 0.95),
        stages_p50_ms={
            stage: percentile([one.stages_ms.get(stage, 0.0) for one in found], 0.5)
            for stage in stages
        },
    )


# Store outcomes question by question, so an interrupted run continues.

T = TypeVar("T")
Values = dict[str, float | None]


class KeptRows(Generic[T]):
    """Dataclasses in an append-only file of JSON lines; a torn last line is dropped."""

    def __init__(self, path: Path, of: type[T]) -> None:
        self._path, self._adapter = path, TypeAdapter(of)
        self.rows: list[T] = []
        if path.is_file():
            whole = path.read_bytes()
            whole = whole[: whole.rfind(b"\n") + 1]
            self.rows = [self._adapter.validate_json(line) for line in whole.splitlines()]
            path.write_bytes(whole)

    def add(self, row: T) -> None:
        self.rows.append(row)
        with self._path.open("ab") as file:
            file.write(self._adapter.dump_json(row) + b"\n")


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """One arm's result for one question. `values` are measures known only when asking (answers)."""

    found: RankedPassages
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Kept(QuestionOutcome):
    arm: str = ""
    question: str = ""


class OutcomeLog:
    """Outcomes that are kept in a file; what is torn is asked again."""

    def __init__(self, path: Path) -> None:
        self._kept = KeptRows(path, _Kept)
        self._known = {
            (row.arm, row.question): QuestionOutcome(row.found, row.values)
            for row in self._kept.rows
        }

    def __len__(self) -> int:
        return len(self._known)

    def outcome(
        self, arm: str, question: str, ask: Callable[[], QuestionOutcome]
    ) -> QuestionOutcome:
        """Return what is known of a question under an arm; ask and keep what is not."""
        known = self._known.get((arm, question))
        if known is None:
            known = self._known[arm, question] = ask()
            self._kept.add(_Kept(known.found, known.values, arm, question))
        return known
