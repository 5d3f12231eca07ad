"""Evaluate a model's test: counts, the chosen prompt, and advice."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Literal

from app.core.types import ModelFindings

Prompts = Literal["compact", "full"]
EVIDENCE: Mapping[Prompts, Literal["short", "full"]] = {"compact": "short", "full": "full"}
"""Each prompt is tested with the evidence that it is made for."""
_WORTH = 2
"""Questions by which the slower prompt must be better to be taken: one may be chance."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The outcome of one question with one prompt."""

    prompts: Prompts
    question: int
    """Its place among the built-in questions, from 0."""
    right: bool
    """By the model's own words; a question without an answer: it was refused."""
    absent: bool
    """The passages do not hold the answer."""
    refused: bool
    cited: bool
    """Some of the model's words are supported and carry a mark that holds."""
    own_marks: bool
    """The model wrote such a mark itself; otherwise the engine did."""
    stopped: Literal["loop", "leak"] | None
    prompt_tokens: int | None
    """As the host counts them, else as they were estimated; None where the model was not asked."""
    first_word_s: float | None
    """None where the model was not asked or wrote nothing."""
    whole_s: float


@dataclass(frozen=True, slots=True)
class Counts:
    """Outcomes of all questions with one prompt; median times in seconds."""

    asked: int
    right: int
    cited: int
    own_marks: int
    refused_rightly: int
    refused_wrongly: int
    loops: int
    leaks: int
    prompt_tokens: float | None
    first_word_s: float | None
    whole_s: float


@dataclass(frozen=True, slots=True)
class TestReport:
    """The findings of one model's test."""

    __test__ = False  # no test case, although its name begins like one

    model: str
    """`provider:model`."""
    questions: int
    quotes_right: int
    """Questions that the quoted sentences alone answer, or rightly do not."""
    prompts: Mapping[Prompts, Counts]
    reading_tokens_s: float | None
    writing_tokens_s: float | None
    budget_tokens: int
    """Evidence to hand over at most from now on."""
    budget_s: float | None
    """Seconds that this host takes to read it; the first word comes after that."""


def counted(replies: Sequence[ModelReply]) -> Counts:
    """Return the counts of replies to one prompt; at least one."""
    tokens = [one.prompt_tokens for one in replies if one.prompt_tokens is not None]
    waits = [one.first_word_s for one in replies if one.first_word_s is not None]
    return Counts(
        asked=len(replies),
        right=sum(one.right for one in replies),
        cited=sum(one.cited for one in replies),
        own_marks=sum(one.own_marks for one in replies),
        refused_rightly=sum(one.refused and one.absent for one in replies),
        refused_wrongly=sum(one.refused and not one.absent for one in replies),
        loops=sum(one.stopped == "loop" for one in replies),
        leaks=sum(one.stopped == "leak" for one in replies),
        prompt_tokens=median(tokens) if tokens else None,
        first_word_s=round(median(waits), 2) if waits else None,
        whole_s=round(median(one.whole_s for one in replies), 2),
    )


def better_prompt(prompts: Mapping[Prompts, Counts]) -> Prompts:
    """Return the better prompt: compact, unless the full one clearly wins."""
    return "full" if prompts["full"].right >= prompts["compact"].right + _WORTH else "compact"


def findings_of(report: TestReport, at: str) -> ModelFindings:
    """Return what is kept of a test.

    Args:
        report: Its counts.
        at: When it ended, UTC ISO 8601.
    """
    taken = better_prompt(report.prompts)
    as_good = report.prompts[taken].right >= report.quotes_right
    line = f"{_line(report, taken)}; quotes alone {report.quotes_right} of {report.questions}"
    then = "its answers stand alone" if as_good else "its words stand below the quotes"
    return ModelFindings(
        taken, EVIDENCE[taken], as_good, f"{line}; {then}", at, json.dumps(asdict(report))
    )


def right_share(findings: ModelFindings) -> float:
    """Return the share of a test's questions that the model had right, in [0, 1]."""
    return _kept(findings)[0] / max(1, int(json.loads(findings.report)["questions"]))


def compared(tests: Sequence[tuple[str, ModelFindings]]) -> str:
    """Return a line that compares tested models and quotes; empty without a test."""
    if not tests:
        return ""
    found = sorted((_kept(findings) for _, findings in tests), key=lambda one: -one[0])
    best = max(tests, key=lambda test: _kept(test[1])[0])
    quotes = _kept(best[1])[2]
    lines = "; ".join(line for _, line, _ in found)
    if best[1].as_good_as_quotes:
        end = f"{best[0]} is as good as the quotes and answers alone"
    else:
        end = "no model is as good as the quotes, which come first in its answers"
    return f"{lines}; quotes alone {quotes}: {end}"


def _kept(findings: ModelFindings) -> tuple[int, str, str]:
    """Return how many were right, the line of the model, and what the quotes had."""
    report = json.loads(findings.report)
    counts = report["prompts"][findings.prompts]
    told = f"{report['quotes_right']} of {report['questions']}"
    line = _words(
        report["model"],
        counts["right"],
        report["questions"],
        findings.prompts,
        counts["first_word_s"],
    )
    return int(counts["right"]), line, told


def _line(report: TestReport, taken: Prompts) -> str:
    counts = report.prompts[taken]
    return _words(report.model, counts.right, report.questions, taken, counts.first_word_s)


def _words(model: str, right: int, asked: int, prompts: str, first_word_s: float | None) -> str:
    waits = "" if first_word_s is None else f", first word after {first_word_s:.1f} s"
    return f"{model}: {right} of {asked} with {prompts}{waits}"
