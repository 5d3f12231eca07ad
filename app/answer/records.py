"""Turn answers into JSON values: the one place with `QueryResponse`'s fields.

The HTTP edge renders these records, the answer store keeps them, replay reads them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote_plus

from app.answer.record_types import (
    AnswerRecord,
    CitationRecord,
    ContextRecord,
    DisagreementRecord,
    FiguresRecord,
    FiltersRecord,
    FullStageRecord,
    ItemRecord,
    MessageRecord,
    NoticeRecord,
    QuestionRecord,
    QuoteRecord,
    SentenceRecord,
    SignalsRecord,
    SourceRecord,
    StageRecord,
    StoredAnswer,
    TraceRecord,
    UsageRecord,
)
from app.core.links import web_link
from app.core.types import (
    Answer,
    Citation,
    ContextTrace,
    Disagreement,
    Evidence,
    Figures,
    Filters,
    Message,
    Notice,
    Question,
    Quote,
    Sentence,
    StageTrace,
    TraceLevel,
    TraceReport,
)

PREVIEW_CHARACTERS = 1000
"""A chunk of the default size is shown whole, so that a client can judge the evidence without a second request."""


def to_record(answer: Answer, trace: TraceLevel | None = None) -> AnswerRecord:
    """Return the answer in the shape of QueryResponse, JSON values only.

    Args:
        answer: The final answer of a stream.
        trace: How much of the trace to show; None takes the level the question asked for.
    """
    return AnswerRecord(
        answer_id=answer.answer_id,
        conversation_id=answer.conversation_id,
        answer=answer.text,
        status=answer.status,
        generator=answer.generator,
        embedder=answer.embedder,
        library=answer.question.library,
        query_mode=answer.question.mode,
        retrieval_strategy=answer.strategy,
        rewritten_query=answer.rewritten_query,
        confidence=round(answer.confidence, 4),
        notices=[notice_record(notice) for notice in answer.notices],
        sources=[source_record(evidence) for evidence in answer.evidence],
        sentences=[_sentence(sentence) for sentence in answer.sentences],
        quote=None if answer.quote is None else quote_record(answer.quote),
        model_text=answer.model_text,
        trace=_trace(answer.trace, trace or answer.question.trace),
        usage=UsageRecord(prompt_tokens=answer.usage.prompt_tokens, completion_tokens=answer.usage.completion_tokens),
    )


def to_stored(answer: Answer, settings: Mapping[str, str], at: str) -> StoredAnswer:
    """Return everything that replay and a later reader need.

    Args:
        answer: The final answer.
        settings: Names and values of what can change an answer besides the documents.
        at: When it was answered, UTC ISO 8601.
    """
    return StoredAnswer(**to_record(answer, "full"), asked=_question(answer.question), settings=dict(settings), at=at, kept="full")


def source_record(evidence: Evidence) -> SourceRecord:
    """Return one source as the API lists it."""
    hit = evidence.hit
    chunk, document, signals = hit.passage.chunk, hit.passage.document, hit.signals
    return SourceRecord(
        n=evidence.n,
        doc_id=document.doc_id,
        duplicate_of=document.duplicate_of,
        revision=chunk.revision,
        library=chunk.library.value,
        title=document.title,
        sample=document.is_sample,
        authors=list(document.authors),
        year=document.year,
        section=chunk.section,
        page=chunk.page,
        chunk_index=chunk.ordinal,
        start=chunk.start,
        end=chunk.end,
        distance=_rounded(signals.dense),
        similarity=None if signals.dense is None else _rounded(1.0 - signals.dense),
        band=hit.band,
        score=round(hit.score, 6),
        signals=SignalsRecord(
            dense=_rounded(signals.dense),
            bm25=_rounded(signals.bm25),
            overlap=_rounded(signals.overlap),
            sentence=_rounded(signals.sentence),
        ),
        preview=_preview(chunk.text),
        source_url=web_link(document.source_url),
        view_url=view_url(evidence),
        licence=document.licence,
        flags=list(document.flags),
    )


def quote_record(quote: Quote) -> QuoteRecord:
    """Return what the documents say, as the API lists it."""
    return QuoteRecord(text=quote.text, sentences=[_sentence(one) for one in quote.sentences], leads=quote.leads)


def view_url(evidence: Evidence) -> str:
    """Return our page's address of the highlighted passage, relative to the root."""
    chunk = evidence.hit.passage.chunk
    where = f"library={chunk.library.value}&doc={quote_plus(chunk.doc_id)}&revision={chunk.revision}"
    return f"/?{where}&start={chunk.start}&end={chunk.end}"


def notice_record(notice: Notice) -> NoticeRecord:
    """Return one notice as the API lists it."""
    return NoticeRecord(code=notice.code, message=notice.message)


def filters_from(record: FiltersRecord) -> Filters:
    """Return the filters that a stored question was asked with."""
    return Filters(
        sections=tuple(record["section"]),
        doc_ids=tuple(record["doc_ids"]),
        year_from=record["year_from"],
        year_to=record["year_to"],
        author=record["author"],
        types=tuple(record["type"]),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 6)


def _preview(text: str) -> str:
    """Return a passage's beginning, cut at a word, with an ellipsis if cut."""
    if len(text) <= PREVIEW_CHARACTERS:
        return text
    cut = text[:PREVIEW_CHARACTERS]
    head = cut.rsplit(maxsplit=1)[0] if cut[-1:].strip() and text[PREVIEW_CHARACTERS].strip() else cut
    return f"{head.rstrip()}\u2026"


def _sentence(sentence: Sentence) -> SentenceRecord:
    return SentenceRecord(
        text=sentence.text,
        answer_start=sentence.answer_start,
        answer_end=sentence.answer_end,
        verdict=sentence.verdict,
        citations=[_citation(citation) for citation in sentence.citations],
    )


def _citation(citation: Citation) -> CitationRecord:
    return CitationRecord(
        n=citation.n,
        start=citation.start,
        end=citation.end,
        quote=citation.quote,
        support=round(citation.support, 4),
        cited_by=citation.cited_by,
    )


def _trace(report: TraceReport, level: TraceLevel) -> TraceRecord | None:
    if level == "none":
        return None
    stages: list[StageRecord] | list[FullStageRecord]
    stages = [_full_stage(stage) for stage in report.stages] if level == "full" else [_stage(stage) for stage in report.stages]
    return TraceRecord(
        stages=stages,
        llm_calls=report.llm_calls,
        context=_context(report.context),
        disagreements=[_disagreement(pair) for pair in report.disagreements],
    )


def _stage(stage: StageTrace) -> StageRecord:
    return {"name": stage.name, "ms": stage.ms, "in": stage.n_in, "out": stage.n_out}


def _full_stage(stage: StageTrace) -> FullStageRecord:
    items = [
        ItemRecord(chunk=item.chunk, rank=item.rank, score=round(item.score, 6), kept=item.kept, reason=item.reason)
        for item in stage.items
    ]
    return {**_stage(stage), "items": items}


def _context(context: ContextTrace | None) -> ContextRecord | None:
    if context is None:
        return None
    return ContextRecord(
        budget=context.budget,
        planned=context.planned,
        seen=context.seen,
        used=list(context.used),
        trimmed=list(context.trimmed),
        dropped=list(context.dropped),
        prompts=context.prompts,
        evidence=context.evidence,
        why=context.why,
    )


def _disagreement(pair: Disagreement) -> DisagreementRecord:
    return DisagreementRecord(paper=_figures(pair.paper), article=_figures(pair.article))


def _figures(figures: Figures) -> FiguresRecord:
    return FiguresRecord(n=figures.n, start=figures.start, end=figures.end, values=list(figures.values))


def _question(question: Question) -> QuestionRecord:
    filters = question.filters
    return QuestionRecord(
        question=question.text,
        library=question.library,
        query_mode=question.mode,
        retrieval_strategy=question.strategy,
        retrieve_only=question.retrieve_only,
        top_k=question.top_k,
        filters=FiltersRecord(
            section=list(filters.sections),
            doc_ids=list(filters.doc_ids),
            year_from=filters.year_from,
            year_to=filters.year_to,
            author=filters.author,
            type=list(filters.types),
        ),
        history=[_message(message) for message in question.history],
        fusion=question.fusion,
        rerank=question.rerank,
        reasoning=question.reasoning,
        model=question.model,
        fallback=question.fallback,
        evidence=question.evidence,
    )


def _message(message: Message) -> MessageRecord:
    return MessageRecord(role=message.role, content=message.content)
