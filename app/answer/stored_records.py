"""Answers as the store keeps them: with the request, the settings and the whole trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, field_validator

from app.answer.passage_records import JsonRecord
from app.answer.records import AnswerRecord
from app.core.types import (
    Answer,
    EvidenceKind,
    Filters,
    Fusion,
    Message,
    Mode,
    Question,
    Reasoning,
    Rerank,
    Scope,
    Strategy,
)


class AskedFilters(JsonRecord):
    """Conditions on passages, as a query gives them."""

    section: tuple[str, ...] = ()
    doc_ids: tuple[str, ...] = ()
    year_from: int | None = None
    year_to: int | None = None
    author: str | None = None
    type: tuple[str, ...] = ()

    @classmethod
    def of(cls, filters: Filters) -> Self:
        """Return the record of filters."""
        return cls(
            section=filters.sections,
            doc_ids=filters.doc_ids,
            year_from=filters.year_from,
            year_to=filters.year_to,
            author=filters.author,
            type=filters.types,
        )

    def filters(self) -> Filters:
        """Return the filters."""
        return Filters(
            self.section, self.doc_ids, self.year_from, self.year_to, self.author, self.type
        )


class AskedQuestion(JsonRecord):
    """A request with its defaults; null for options newer than the answer."""

    question: str
    library: Scope
    query_mode: Mode
    retrieval_strategy: Strategy
    retrieve_only: bool
    top_k: int | None
    filters: AskedFilters
    history: tuple[Message, ...]
    fusion: Fusion | None
    rerank: Rerank | None = None
    reasoning: Reasoning | None = None
    model: str | None
    fallback: bool | None = None
    evidence: EvidenceKind | None = None

    @classmethod
    def of(cls, question: Question) -> Self:
        """Return the record of a question."""
        return cls(
            question=question.text,
            library=question.library,
            query_mode=question.mode,
            retrieval_strategy=question.strategy,
            retrieve_only=question.retrieve_only,
            top_k=question.top_k,
            filters=AskedFilters.of(question.filters),
            history=question.history,
            fusion=question.fusion,
            rerank=question.rerank,
            reasoning=question.reasoning,
            model=question.model,
            fallback=question.fallback,
            evidence=question.evidence,
        )


class StoredRecord(AnswerRecord):
    """An answer as given, with its full trace and request.

    Quotes of deleted documents are blank.
    """

    @field_validator("sentences", mode="before")
    @classmethod
    def _read_older(cls, sentences: object) -> object:
        """Return sentences of answers stored before `not_found` had this name."""
        if not isinstance(sentences, list):
            return sentences
        return [
            {**one, "verdict": "not_found"}
            if isinstance(one, dict) and one.get("verdict") == "unsupported"
            else one
            for one in sentences
        ]

    asked: AskedQuestion
    settings: dict[str, str]
    """What can change an answer besides the documents."""
    at: str
    """When it was answered, UTC ISO 8601."""
    kept: Literal["full", "hash"]
    """hash: texts are replaced by their SHA-256."""
    feedback: dict[str, object] | None = Field(None, exclude_if=lambda feedback: feedback is None)

    @classmethod
    def kept_whole(cls, answer: Answer, settings: Mapping[str, str], at: str) -> Self:
        """Return everything that a later reader needs.

        Args:
            answer: The final answer.
            settings: Names and values of settings that can change an answer.
            at: When it was answered, UTC ISO 8601.
        """
        return cls.of(
            answer,
            "full",
            asked=AskedQuestion.of(answer.question),
            settings=dict(settings),
            at=at,
            kept="full",
        )
