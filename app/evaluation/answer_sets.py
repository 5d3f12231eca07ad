"""Score answers against answer sets."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.core.text import words
from app.core.types import Answer, Question
from app.evaluation.answer_cases import AnswerCase
from app.evaluation.judge import Judge
from app.evaluation.metrics import percentile

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
