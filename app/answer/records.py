"""Answers as JSON: the one place that knows the field names of a reply.

The API sends these models, and the answer store keeps them. Parts that have
no other name in JSON (sentences, citations, notices, traces) are the value objects themselves.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field

from app.answer.passage_records import JsonRecord, Source
from app.core.types import (
    Answer,
    AnswerStatus,
    ContextTrace,
    Disagreement,
    Mode,
    Notice,
    Quote,
    Scope,
    Sentence,
    StageTrace,
    Strategy,
    TraceItem,
    TraceLevel,
    TraceReport,
    Usage,
)


class TraceStage(JsonRecord):
    """One step of a question."""

    name: str
    ms: float
    """Milliseconds."""
    n_in: int = Field(alias="in")
    """Candidates before the step."""
    n_out: int = Field(alias="out")
    """Candidates after the step."""
    items: tuple[TraceItem, ...] | None = Field(None, exclude_if=lambda items: items is None)
    """Each candidate after the step, with trace: full."""

    @classmethod
    def of(cls, stage: StageTrace, *, full: bool) -> Self:
        """Return the record of a step."""
        return cls(
            name=stage.name,
            ms=stage.ms,
            n_in=stage.n_in,
            n_out=stage.n_out,
            items=stage.items if full else None,
        )


class AnswerTrace(JsonRecord):
    """The steps that led to the answer."""

    stages: tuple[TraceStage, ...]
    llm_calls: int
    context: ContextTrace | None
    disagreements: tuple[Disagreement, ...]

    @classmethod
    def of(cls, report: TraceReport, level: TraceLevel) -> Self | None:
        """Return the record of a trace, None for level `none`."""
        if level == "none":
            return None
        return cls(
            stages=tuple(TraceStage.of(stage, full=level == "full") for stage in report.stages),
            llm_calls=report.llm_calls,
            context=report.context,
            disagreements=report.disagreements,
        )


class AnswerRecord(JsonRecord):
    """An answer whose every citation can be checked."""

    answer_id: str
    conversation_id: str | None
    answer: str
    """Markdown with [n]; empty when retrieve_only."""
    status: AnswerStatus
    generator: str
    embedder: str
    library: Scope
    query_mode: Mode
    retrieval_strategy: Strategy
    """The strategy that searched."""
    rewritten_query: str | None
    confidence: float = Field(ge=0, le=1)
    """Calibrated probability that the answer is supported."""
    notices: tuple[Notice, ...]
    sources: tuple[Source, ...]
    sentences: tuple[Sentence, ...]
    quote: Quote | None = None
    """The quoting answer, where a model was to answer and there is one."""
    model_text: str | None = None
    """What is kept of the model's own words; null where no model spoke."""
    trace: AnswerTrace | None
    usage: Usage

    @classmethod
    def of(cls, answer: Answer, trace: TraceLevel | None = None, **more: object) -> Self:
        """Return the record of a final answer.

        Args:
            answer: The final answer of a stream.
            trace: How much of the trace to show; None takes the level the question asked for.
            more: The fields that a subclass adds.
        """
        values: dict[str, object] = {
            "answer_id": answer.answer_id,
            "conversation_id": answer.conversation_id,
            "answer": answer.text,
            "status": answer.status,
            "generator": answer.generator,
            "embedder": answer.embedder,
            "library": answer.question.library,
            "query_mode": answer.question.mode,
            "retrieval_strategy": answer.strategy,
            "rewritten_query": answer.rewritten_query,
            "confidence": round(answer.confidence, 4),
            "notices": answer.notices,
            "sources": tuple(Source.of(evidence) for evidence in answer.evidence),
            "sentences": answer.sentences,
            "quote": answer.quote,
            "model_text": answer.model_text,
            "trace": AnswerTrace.of(answer.trace, trace or answer.question.trace),
            "usage": answer.usage,
        }
        values.update(more)
        return cls.trusted(values)
