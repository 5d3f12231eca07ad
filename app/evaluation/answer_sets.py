"""Score answers against answer sets: questions and what a good answer holds."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from app.core.cancel import CancelToken
from app.core.errors import InvalidInput
from app.core.ports import Generator
from app.core.text import words
from app.core.types import Answer, Prompt, Question, Scope
from app.evaluation.metrics import percentile
from app.generation.prompts import PromptLibrary

NGRAM = 3
"""Words of an n-gram in `faithfulness`: long enough that chance does not match, short enough to survive a changed word."""


@dataclass(frozen=True, slots=True)
class AnswerCase:
    """One line of an answer set."""

    question: str
    library: Scope
    intent: str
    """`question` or `chitchat`."""
    expected_substrings: tuple[str, ...] = ()
    """Any of them in the answer makes it right."""
    keywords: tuple[str, ...] = ()
    expected_docs: tuple[str, ...] = ()
    """doc_ids or file names that should be among the sources."""
    oos: bool = False
    """Out of scope: the right answer is a refusal."""


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
            "wrong_refusal": [row.refused for row in rows if not row.case.oos and row.case.intent == "question"],
            "faithfulness": [row.faithfulness for row in rows],
            "judged_faithful": [row.judged for row in rows],
        }
        means = {name: [float(value) for value in values if value is not None] for name, values in columns.items()}
        rates = {name: sum(values) / len(values) for name, values in means.items() if values}
        times = [row.ms for row in rows]
        return rates | {"p50_ms": percentile(times, 0.5), "p95_ms": percentile(times, 0.95)}


def load(path: Path) -> list[AnswerCase]:
    """Read an answer set in JSON Lines.

    Fields: question, library, intent, expected_substrings, keywords, expected_docs, oos.

    Raises:
        InvalidInput: The file is missing, or a line lacks a field, has an unknown one, or one of the wrong kind.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as exc:
        raise InvalidInput(f"{path.name!r} cannot be read; an answer set is a file of JSON Lines") from exc
    return [_case(line, f"line {number} of {path.name!r}") for number, line in enumerate(lines, start=1) if line.strip()]


def _case(line: str, where: str) -> AnswerCase:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as exc:
        raise InvalidInput(f"{where} is not JSON: {exc}") from exc
    return case_of(row, where)


def case_of(row: object, where: str) -> AnswerCase:
    """Return the case of a JSON object; `where` says in messages what was read.

    Raises:
        InvalidInput: A field is missing, unknown or of the wrong kind.
    """
    fields = {"question", "library", "intent", "expected_substrings", "keywords", "expected_docs", "oos"}
    if not isinstance(row, Mapping) or not {"question", "library"} <= set(row) <= fields:
        raise InvalidInput(f"{where} must be an object with question, library and none but {', '.join(sorted(fields))}")
    if row["library"] not in get_args(Scope):
        raise InvalidInput(f"{where} names the library {row['library']!r}; use one of {', '.join(get_args(Scope))}")
    lists = {name: row.get(name, []) for name in ("expected_substrings", "keywords", "expected_docs")}
    for name, values in lists.items():
        if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
            raise InvalidInput(f"{where}: {name} must be a list of strings, got {values!r}")
    return AnswerCase(
        str(row["question"]),
        row["library"],
        str(row.get("intent", "question")),
        oos=bool(row.get("oos", False)),
        **{name: tuple(values) for name, values in lists.items()},
    )


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


def _outcome(case: AnswerCase, ask: Callable[[Question], Answer], judge: Judge | None, ask_as: Question | None) -> CaseOutcome:
    question = replace(ask_as, text=case.question, library=case.library) if ask_as else Question(case.question, case.library)
    start = time.perf_counter()
    answer = ask(question)
    ms = (time.perf_counter() - start) * 1000
    answered = answer.status == "answered"
    cited = [_names(answer, citation.n) for sentence in answer.sentences for citation in sentence.citations]
    expected = set(case.expected_docs)
    text = answer.text.casefold()
    asks = case.intent == "question" and not case.oos
    return CaseOutcome(
        case,
        answer,
        intent_right=(answer.status == "chitchat") == (case.intent == "chitchat"),
        recalled=any(expected & _names(answer, e.n) for e in answer.evidence) if asks and expected else None,
        correct=any(part.casefold() in text for part in case.expected_substrings) if asks and case.expected_substrings else None,
        citation_precision=sum(bool(expected & names) for names in cited) / len(cited) if cited and expected else None,
        keyword_coverage=sum(k.casefold() in text for k in case.keywords) / len(case.keywords) if case.keywords else None,
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
        Extractive fragment density, Grusky, Naaman, Artzi: Newsroom, NAACL 2018, simplified to trigrams.
    """
    grams = _ngrams(_without_marks(answer.text))
    known: set[tuple[str, ...]] = set().union(*(_ngrams(e.hit.passage.chunk.text) for e in answer.evidence))
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
            f'<passage-{fence} n="{e.n}">\n{e.hit.passage.chunk.text}\n</passage-{fence}>' for e in answer.evidence
        )
        task = self.prompts.task("judge_faithfulness", context=context, fence=fence, answer=answer.text)
        prompt = Prompt(task.messages, temperature=task.temperature, max_tokens=task.max_tokens)
        said = "".join(token.text for token in self.generator.stream(prompt, CancelToken()))
        try:
            verdict = json.loads(said[said.index("{") : said.rindex("}") + 1])
            statements, supported = int(verdict["statements"]), int(verdict["supported"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None
        return min(max(supported / statements, 0.0), 1.0) if statements > 0 else None
