"""Turn answers of several strategies into an experiment, like searches.

Reports, dashboard and page show both alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.evaluation.answer_cases import AnswerCase
from app.evaluation.answer_sets import CaseOutcome
from app.evaluation.arms import Arm
from app.evaluation.metrics import overlap_with
from app.evaluation.outcomes import QuestionOutcome, Values
from app.evaluation.report import ANSWER
from app.evaluation.runner import ArmResult, Experiment, RankedPassages
from app.evaluation.statistics import RESAMPLES, bootstrap_interval, compare

RIGHT = "right"
"""Everything that a case asks for holds: intent, expected document, expected words, refusal
where it is out of scope."""
MEASURES = (
    RIGHT,
    "intent accuracy",
    "recall",
    "answer accuracy",
    "citation precision",
    "keyword coverage",
    "out-of-scope refusal",
    "wrong refusal",
    "faithfulness",
    "judged faithful",
)
"""In the order of the report; a measure that no case asks for is left out."""


def outcome_of(row: CaseOutcome) -> QuestionOutcome:
    """Return an answer's measures and its text followed by its passages."""
    answer = row.answer
    asks = row.case.intent == "question" and not row.case.oos
    wanted = [
        row.intent_right,
        row.recalled,
        row.correct,
        row.refused if row.case.oos else None,
        not row.refused if asks else None,
    ]
    values: dict[str, float | bool | None] = {
        RIGHT: all(value for value in wanted if value is not None),
        "intent accuracy": row.intent_right,
        "recall": row.recalled,
        "answer accuracy": row.correct,
        "citation precision": row.citation_precision,
        "keyword coverage": row.keyword_coverage,
        "out-of-scope refusal": row.refused if row.case.oos else None,
        "wrong refusal": row.refused if asks else None,
        "faithfulness": row.faithfulness,
        "judged faithful": row.judged,
    }
    stages: dict[str, float] = {}
    for stage in answer.trace.stages:
        stages[stage.name] = stages.get(stage.name, 0.0) + stage.ms
    best = {
        e.hit.passage.document.doc_id: e.hit.passage.chunk.text for e in reversed(answer.evidence)
    }
    passages = (ANSWER, *reversed(best))
    found = RankedPassages(
        passages, (answer.text, *reversed(best.values())), row.ms, stages, answer.confidence
    )
    return QuestionOutcome(
        found, {name: None if value is None else float(value) for name, value in values.items()}
    )


def experiment_of(
    name: str,
    cases: Sequence[AnswerCase],
    arms: Sequence[Arm],
    outcomes: Sequence[Sequence[QuestionOutcome]],
    *,
    seed: int,
    documents: int,
    resamples: int = RESAMPLES,
) -> Experiment:
    """Return the experiment of each arm's answers; the first arm is the baseline.

    Args:
        name: Of the set.
        cases: What was asked.
        arms: Strategies.
        outcomes: By arm, in the order of the cases.
        seed: Of all resampling.
        documents: In the libraries, for the report.
        resamples: Of intervals and tests.
    """
    ids = [f"case-{number}" for number in range(1, len(cases) + 1)]
    results = []
    for arm, row in zip(arms, outcomes, strict=True):
        own = dict(zip(ids, row, strict=True))
        values = {measure: _column(own, measure) for measure in MEASURES}
        values = {measure: column for measure, column in values.items() if column}
        intervals = {
            measure: bootstrap_interval(
                np.array(list(column.values())), seed=seed, resamples=resamples
            )
            for measure, column in values.items()
        }
        overlaps = [
            overlap_with(one.found.passages, first.found.passages)
            for one, first in zip(row, outcomes[0], strict=True)
        ]
        found = {question: outcome.found for question, outcome in own.items()}
        results.append(
            ArmResult(arm, found, values, intervals, None, sum(overlaps) / len(overlaps))
        )
    comparisons = compare(
        arms[0].name, {r.arm.name: r.values[RIGHT] for r in results}, seed=seed, resamples=resamples
    )
    texts = {question: case.question for question, case in zip(ids, cases, strict=True)}
    return Experiment(name, texts, documents, arms[0].name, RIGHT, tuple(results), comparisons)


def _column(own: dict[str, QuestionOutcome], measure: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for question, outcome in own.items():
        values: Values = outcome.values
        value = values.get(measure)
        if value is not None:
            found[question] = value
    return found
