"""Checks of texts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from app.api.schemas.base import Reply, Request
from app.core.types import CheckedSentence, CheckReport, CheckVerdict, Finding, LibraryName, Scope

MOST_CHARACTERS = 500_000
"""Of a text to check, and of one to check it against."""
_Text = Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS)]


class CheckRequest(Request):
    """A text to check, sentence by sentence."""

    text: _Text
    library: Scope | None = Field(
        None, description="null: DEFAULT_LIBRARY; not used with `against`"
    )
    against: _Text | None = Field(
        None, description="check the sentences against this text instead of a library"
    )


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
    verdict: CheckVerdict
    support: float = Field(ge=0, le=1)
    citations: list[CheckCitation]

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
        )


class CheckCounts(Reply):
    """Sentences by verdict."""

    supported: int
    contradicted: int
    not_found: int
    no_claim: int


class CheckResponse(Reply):
    """A checked text."""

    sentences: list[CheckSentence]
    counts: CheckCounts

    @staticmethod
    def of(report: CheckReport) -> CheckResponse:
        """Return a report as a reply."""
        sentences = [CheckSentence.of(sentence) for sentence in report.sentences]
        return CheckResponse(sentences=sentences, counts=CheckCounts.model_validate(report.counts))
