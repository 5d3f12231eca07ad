"""Score answers against answer sets."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.core.cancel import CancelToken
from app.core.ports import Generator
from app.core.text import words
from app.core.types import Answer, Question
from app.evaluation.arms import Arm
from app.evaluation.cases import CaseBody
from app.evaluation.metrics import RESAMPLES
from app.evaluation.report import ANSWER, Experiment
from app.evaluation.runner import QuestionOutcome, RankedPassages, experiment_of
from app.generation.check.citations import MARK
from app.generation.prompt.prompts import PromptLibrary


@dataclass(frozen=True, slots=True)
class Judge:
    """A model that counts which statements of an answer its sources support."""

    generator: Generator
    prompts: PromptLibrary

    def share_supported(self, answer: Answer) -> float | None:
        """Return the share of supported statements in [0, 1]; None without a clear reply or any.

        Raises:
            ProviderError: The model host failed.
        """
        fence = secrets.token_hex(8)  # a passage cannot close a fence that it cannot guess
        context = "\n\n".join(
            f'<passage-{fence} n="{e.n}">\n{e.hit.passage.chunk.text}\n</passage-{fence}>'
            for e in answer.evidence
        )
        prompt = self.prompts.task(
            "judge_faithfulness", context=context, fence=fence, answer=answer.text
        )
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

Ask = Callable[[Question], Answer]


def ask_case(
    case: CaseBody, ask: Ask, *, judge: Judge | None = None, ask_as: Question | None = None
) -> QuestionOutcome:
    """Ask a case's question; return the measures that it asks for, the others None.

    The passages are the answer itself, then its documents. `ask` is `RAGService.answer` or a client
    of a server. Of `ask_as` text and library are replaced; mode, strategy and the like count.
    """
    question = replace(ask_as or Question("", "public"), text=case.question, library=case.library)
    start = time.perf_counter()
    answer = ask(question)
    ms = (time.perf_counter() - start) * 1000
    answered, refused = answer.status == "answered", answer.status == "abstained"
    cited = [
        _names(answer, citation.n)
        for sentence in answer.sentences
        for citation in sentence.citations
    ]
    expected = set(case.expected_docs)
    text = answer.text.casefold()
    asks = case.intent == "question" and not case.oos
    intent_right = (answer.status == "chitchat") == (case.intent == "chitchat")
    recalled = correct = precision = coverage = None
    if asks and expected:
        recalled = any(expected & _names(answer, e.n) for e in answer.evidence)
    if asks and case.expected_substrings:
        correct = any(part.casefold() in text for part in case.expected_substrings)
    if cited and expected:
        precision = sum(bool(expected & names) for names in cited) / len(cited)
    if case.keywords:
        coverage = sum(k.casefold() in text for k in case.keywords) / len(case.keywords)
    refusal = refused if case.oos else None
    held = (intent_right, recalled, correct, refusal, not refused if asks else None)
    values: tuple[float | None, ...] = (
        all(value for value in held if value is not None),
        intent_right,
        recalled,
        correct,
        precision,
        coverage,
        refusal,
        refused if asks else None,
        faithfulness(answer) if answered else None,
        judge.share_supported(answer) if judge is not None and answered else None,
    )
    passages = [evidence.hit.passage for evidence in answer.evidence]
    found = RankedPassages.of(passages, ms, answer.trace, answer.confidence)
    found = replace(found, passages=(ANSWER, *found.passages), texts=(answer.text, *found.texts))
    named = zip(MEASURES, values, strict=True)
    return QuestionOutcome(
        found, {measure: None if value is None else float(value) for measure, value in named}
    )


def answers_experiment(
    name: str,
    cases: Sequence[CaseBody],
    arms: Sequence[Arm],
    outcomes: Sequence[Sequence[QuestionOutcome]],
    *,
    seed: int,
    documents: int,
    resamples: int = RESAMPLES,
) -> Experiment:
    """Return the experiment of each arm's answers; the first arm is the baseline."""
    ids = [f"case-{number}" for number in range(1, len(cases) + 1)]
    found: dict[str, dict[str, RankedPassages]] = {}
    values: dict[str, dict[str, dict[str, float]]] = {}
    for arm, row in zip(arms, outcomes, strict=True):
        found[arm.name] = {q: outcome.found for q, outcome in zip(ids, row, strict=True)}
        columns = {
            measure: {
                q: value
                for q, outcome in zip(ids, row, strict=True)
                if (value := outcome.values.get(measure)) is not None
            }
            for measure in MEASURES
        }
        values[arm.name] = {measure: column for measure, column in columns.items() if column}
    return experiment_of(
        name,
        {q: case.question for q, case in zip(ids, cases, strict=True)},
        arms,
        found,
        values,
        measure=RIGHT,
        baseline=arms[0].name,
        documents=documents,
        seed=seed,
        resamples=resamples,
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
    grams = _ngrams(MARK.sub(" ", answer.text))
    known: set[tuple[str, ...]] = set().union(
        *(_ngrams(e.hit.passage.chunk.text) for e in answer.evidence)
    )
    return len(grams & known) / len(grams) if grams else 1.0


def _ngrams(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    return {tuple(found[at : at + NGRAM]) for at in range(len(found) - NGRAM + 1)}
