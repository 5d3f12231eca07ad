"""Score answers against answer sets."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.core.cancel import CancelToken
from app.core.ports import Generator
from app.core.text import words
from app.core.types import Answer, Prompt, Question
from app.evaluation.arms import Arm
from app.evaluation.cases import AnswerCase
from app.evaluation.metrics import RESAMPLES, bootstrap_interval, compare, overlap_with, percentile
from app.evaluation.report import ANSWER
from app.evaluation.runner import ArmResult, Experiment, QuestionOutcome, RankedPassages, Values
from app.generation.prompts import PromptLibrary

# Let a model judge whether an answer follows from its sources.


@dataclass(frozen=True, slots=True)
class Judge:
    """A model that counts which statements of an answer its sources support."""

    generator: Generator
    prompts: PromptLibrary

    def share_supported(self, answer: Answer) -> float | None:
        """Return the share of supported statements in [0, 1], or None.

        None if the model does not reply as asked or counts none.

        Raises:
            ProviderError: The model host failed.
        """
        fence = secrets.token_hex(8)  # a passage cannot close a fence that it cannot guess
        context = "\n\n".join(
            f'<passage-{fence} n="{e.n}">\n{e.hit.passage.chunk.text}\n</passage-{fence}>'
            for e in answer.evidence
        )
        task = self.prompts.task(
            "judge_faithfulness", context=context, fence=fence, answer=answer.text
        )
        prompt = Prompt(task.messages, temperature=task.temperature, max_tokens=task.max_tokens)
        said = "".join(token.text for token in self.generator.stream(prompt, CancelToken()))
        try:
            verdict = json.loads(said[said.index("{") : said.rindex("}") + 1])
            statements, supported = int(verdict["statements"]), int(verdict["supported"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None
        return min(max(supported / statements, 0.0), 1.0) if statements > 0 else None


NGRAM = 3
"""Words of an n-gram in `faithfulness`: long enough that chance does not match, short enough to
survive a changed word."""


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The scores of one question; None where the case does not ask for it."""

    case: AnswerCase
    answer: Answer
    intent_right: bool
    recalled: bool | None
    """An expected document is among the sources."""
    correct: bool | None
    """An expected string is in the answer."""
    citation_precision: float | None
    """Share of citations that point at an expected document."""
    keyword_coverage: float | None
    refused: bool
    faithfulness: float | None
    """Share of the answer's word trigrams that stand in its sources."""
    judged: float | None
    """Share of statements that a model finds supported; None without a judge or an answer."""
    ms: float


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """All outcomes, and their means over the cases that asked."""

    outcomes: tuple[CaseOutcome, ...]

    def rates(self) -> dict[str, float]:
        """Return every measure's mean by name, latency in milliseconds.

        Measures that no case asks for are absent.
        """
        rows = self.outcomes
        columns: dict[str, list[float | bool | None]] = {
            "intent_accuracy": [row.intent_right for row in rows],
            "recall": [row.recalled for row in rows],
            "answer_accuracy": [row.correct for row in rows],
            "citation_precision": [row.citation_precision for row in rows],
            "keyword_coverage": [row.keyword_coverage for row in rows],
            "out_of_scope_refusal": [row.refused for row in rows if row.case.oos],
            "wrong_refusal": [
                row.refused for row in rows if not row.case.oos and row.case.intent == "question"
            ],
            "faithfulness": [row.faithfulness for row in rows],
            "judged_faithful": [row.judged for row in rows],
        }
        means = {
            name: [float(value) for value in values if value is not None]
            for name, values in columns.items()
        }
        rates = {name: sum(values) / len(values) for name, values in means.items() if values}
        times = [row.ms for row in rows]
        return rates | {"p50_ms": percentile(times, 0.5), "p95_ms": percentile(times, 0.95)}


def evaluate(
    cases: Sequence[AnswerCase],
    ask: Callable[[Question], Answer],
    *,
    judge: Judge | None = None,
    ask_as: Question | None = None,
) -> AnswerReport:
    """Ask every question and compare the answers with what the cases expect.

    Args:
        cases: What to ask.
        ask: Who answers; `RAGService.answer` or a client of a server.
        judge: Says whether answers follow from their sources; None leaves the judging out.
        ask_as: Mode, strategy and the like for every question; its text and library are replaced.
    """
    return AnswerReport(tuple(_outcome(case, ask, judge, ask_as) for case in cases))


def _outcome(
    case: AnswerCase,
    ask: Callable[[Question], Answer],
    judge: Judge | None,
    ask_as: Question | None,
) -> CaseOutcome:
    question = (
        replace(ask_as, text=case.question, library=case.library)
        if ask_as
        else Question(case.question, case.library)
    )
    start = time.perf_counter()
    answer = ask(question)
    ms = (time.perf_counter() - start) * 1000
    answered = answer.status == "answered"
    cited = [
        _names(answer, citation.n)
        for sentence in answer.sentences
        for citation in sentence.citations
    ]
    expected = set(case.expected_docs)
    text = answer.text.casefold()
    asks = case.intent == "question" and not case.oos
    return CaseOutcome(
        case,
        answer,
        intent_right=(answer.status == "chitchat") == (case.intent == "chitchat"),
        recalled=any(expected & _names(answer, e.n) for e in answer.evidence)
        if asks and expected
        else None,
        correct=any(part.casefold() in text for part in case.expected_substrings)
        if asks and case.expected_substrings
        else None,
        citation_precision=sum(bool(expected & names) for names in cited) / len(cited)
        if cited and expected
        else None,
        keyword_coverage=sum(k.casefold() in text for k in case.keywords) / len(case.keywords)
        if case.keywords
        else None,
        refused=answer.status == "abstained",
        faithfulness=faithfulness(answer) if answered else None,
        judged=judge.share_supported(answer) if judge is not None and answered else None,
        ms=ms,
    )


def _names(answer: Answer, n: int) -> set[str]:
    """Return the names of evidence n's document: its id, file name, source key."""
    for evidence in answer.evidence:
        if evidence.n == n:
            document = evidence.hit.passage.document
            return {document.doc_id, document.filename, document.source_key}
    return set()


def faithfulness(answer: Answer) -> float:
    """Return the share of the answer's word trigrams that its sources hold, [0, 1].

    1 for an answer too short to have a trigram. Citation marks are left out. A paraphrase scores
    low without being wrong: read it together with the judge's.

    References:
        Extractive fragment density, Grusky, Naaman, Artzi: Newsroom, NAACL 2018, simplified to
            trigrams.
    """
    grams = _ngrams(_without_marks(answer.text))
    known: set[tuple[str, ...]] = set().union(
        *(_ngrams(e.hit.passage.chunk.text) for e in answer.evidence)
    )
    return len(grams & known) / len(grams) if grams else 1.0


def _ngrams(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    return {tuple(found[at : at + NGRAM]) for at in range(len(found) - NGRAM + 1)}


def _without_marks(text: str) -> str:
    kept = []
    for part in text.split("["):
        number, closed, rest = part.partition("]")
        kept.append(rest if closed and number.isdigit() else part)
    return " ".join(kept)


# Turn answers of several strategies into an experiment, like searches.

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
