"""Models and the bulk account."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints

from app.answer.model_advice import compared
from app.api.schemas.base import Reply, Request
from app.core.types import ModelFindings

ModelName = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]*$")
]


class ModelOnDisk(Reply):
    """A model on Ollama's disk."""

    name: str
    size_bytes: int | None
    chats: bool = Field(description="writes answers; false: it embeds")


class PromptCounts(Reply):
    """Outcomes of the built-in questions with one prompt; median times in seconds."""

    asked: int
    right: int = Field(
        description="right by the model's own words; a question without an answer is refused"
    )
    cited: int = Field(
        description="some of the model's words are supported and carry a mark that holds"
    )
    own_marks: int = Field(description="the model wrote such a mark itself")
    refused_rightly: int
    refused_wrongly: int
    loops: int
    leaks: int
    prompt_tokens: float | None
    first_word_s: float | None
    whole_s: float


class ModelTest(Reply):
    """The findings of one model's test."""

    model: str = Field(description="provider:model")
    prompts: Literal["compact", "full"] = Field(description="prompt to use from now on")
    evidence: Literal["short", "full"] = Field(description="amount of evidence to use from now on")
    as_good_as_quotes: bool = Field(
        description="its own words were right at least as often as the quotes alone; it speaks"
        " alone"
    )
    advice: str
    at: str = Field(description="when it was tested, UTC ISO 8601")
    questions: int
    quotes_right: int = Field(
        description="questions that the quotes alone answer, or rightly refuse"
    )
    counts: dict[str, PromptCounts] = Field(description="by prompt: compact, full")
    reading_tokens_s: float | None
    writing_tokens_s: float | None
    budget_tokens: int = Field(description="most evidence it gets")
    budget_s: float | None = Field(description="seconds this host needs to read it")

    @classmethod
    def of(cls, model: str, found: ModelFindings) -> Self:
        """Return the public form."""
        report = json.loads(found.report)
        return cls(
            model=model,
            prompts=found.prompts,
            evidence=found.evidence,
            as_good_as_quotes=found.as_good_as_quotes,
            advice=found.advice,
            at=found.at,
            counts=report.pop("prompts"),
            **{name: report[name] for name in report if name != "model"},
        )


class ModelTests(Reply):
    """All tested models, newest first."""

    tests: list[ModelTest]
    advice: str = Field(
        description="one line that compares them with each other and the quotes; empty without a"
        " test"
    )

    @classmethod
    def of(cls, found: Sequence[tuple[str, ModelFindings]]) -> Self:
        """Return the public form."""
        return cls(tests=[ModelTest.of(model, one) for model, one in found], advice=compared(found))


class ModelList(Reply):
    """Models of the Ollama host, and what is in use."""

    installed: list[ModelOnDisk]
    loaded: list[str] = Field(description="in memory now")
    in_use: dict[str, str] = Field(description="answers, helper, embeds -> provider:model")
    decided_by: Literal["environment", "choice", "server"] = Field(
        description="who decided which model answers; only without `environment` can one be chosen"
    )
    why: str = Field(
        description="why this model answers; without one, why none does, and what to do"
    )
    fit: bool | None = Field(
        description="whether the answering and the embedding model stay in memory together; null:"
        " unknown"
    )
    tests: list[ModelTest] = Field(description="results of model tests, newest first")


class PullRequest(Request):
    """Which model."""

    model: ModelName


class ChoiceRequest(Request):
    """Which model answers from now on."""

    model: ModelName | None = Field(description="null: the server decides")


class TestRequest(Request):
    """Which model to test."""

    __test__ = False  # no test case

    model: ModelName | None = Field(default=None, description="null: the configured model")
