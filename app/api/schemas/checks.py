"""Checks of texts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from app.answer.second_opinion import MOST_JUDGED
from app.api.schemas.base import Reply, Request
from app.core.types import (
    CheckedSentence,
    CheckReport,
    Finding,
    LibraryName,
    Scope,
    SecondVerdict,
    Verdict,
)

MOST_CHARACTERS = 500_000
"""Of a text to check, and of one to check it against."""
_Text = Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS)]


class CheckRequest(Request):
    """A text to check, sentence by sentence."""

    text: _Text
    library: Scope | None = Field(
        None,
        description="null: DEFAULT_LIBRARY; with `against`: where to look for a better source of"
        " sentences that it does not hold, null: nowhere",
    )
    against: _Text | None = Field(
        None, description="check the sentences against this text instead of a library"
    )
    judge: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None,
        description=f"ask this model for a second verdict on each of at most {MOST_JUDGED}"
        " sentences",
    )


class FileText(Reply):
    """The text of a file."""

    filename: str
    text: str


class CheckCitation(Reply):
    """Characters [start, end) of a document's revision, or of the text `against`."""

    library: LibraryName | None
    doc_id: str | None
    title: str | None
    revision: int | None
    start: int
    end: int
    quote: str
    support: float = Field(ge=0, le=1)

    @staticmethod
    def of(finding: Finding) -> CheckCitation:
        """Return a finding as a reply."""
        return CheckCitation.model_validate(
            {name: getattr(finding, name) for name in CheckCitation.model_fields}
        )


class CheckSentence(Reply):
    """A sentence of the text and what was found for it, the best first."""

    text: str
    start: int
    end: int
    verdict: Verdict
    support: float = Field(
        ge=0, le=1, description="of the deciding place; from 0.5 only where it is supported"
    )
    citations: list[CheckCitation]
    better: CheckCitation | None = Field(
        description="a place of the library that supports it, where `against` does not"
    )
    judged: SecondVerdict | None = Field(
        description="the model's verdict, where `judge` named one and its reply was clear"
    )

    @staticmethod
    def of(sentence: CheckedSentence) -> CheckSentence:
        """Return a checked sentence as a reply."""
        return CheckSentence(
            text=sentence.text,
            start=sentence.start,
            end=sentence.end,
            verdict=sentence.verdict,
            support=sentence.support,
            citations=[CheckCitation.of(finding) for finding in sentence.findings],
            better=CheckCitation.of(sentence.better) if sentence.better else None,
            judged=sentence.judged,
        )


class CheckCounts(Reply):
    """Sentences by verdict."""

    supported: int
    weak: int
    contradicted: int
    not_found: int
    no_claim: int


class CheckResponse(Reply):
    """A checked text."""

    sentences: list[CheckSentence]
    counts: CheckCounts
    judge: str | None = Field(description="provider:model that was asked too")
    judge_failed: str | None = Field(
        description="why it was asked no further; sentences after that have no `judged`"
    )

    @staticmethod
    def of(report: CheckReport) -> CheckResponse:
        """Return a report as a reply."""
        sentences = [CheckSentence.of(sentence) for sentence in report.sentences]
        return CheckResponse(
            sentences=sentences,
            counts=CheckCounts.model_validate(report.counts),
            judge=report.judge,
            judge_failed=report.judge_failed,
        )
