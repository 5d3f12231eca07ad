"""Define the JSON shapes of `QueryResponse` that `records` makes."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class SignalsRecord(TypedDict):
    """Values of each retrieval step for a passage; null if a step did not see it."""

    dense: float | None
    bm25: float | None
    overlap: float | None
    sentence: float | None


class SourceRecord(TypedDict):
    """One numbered passage; offsets are code points of that revision's text."""

    n: int
    doc_id: str
    duplicate_of: str | None
    revision: int
    library: str
    title: str
    sample: bool
    authors: list[str]
    year: int | None
    section: str
    page: int | None
    chunk_index: int
    start: int
    end: int
    distance: float | None
    similarity: float | None
    band: str | None
    score: float
    signals: SignalsRecord
    preview: str
    source_url: str | None
    view_url: str
    licence: str | None
    flags: list[str]


class CitationRecord(TypedDict):
    """Characters `document_text[start:end]`, and their support in [0, 1]."""

    n: int
    start: int
    end: int
    quote: str
    support: float
    cited_by: str


class SentenceRecord(TypedDict):
    """A sentence of the answer at `answer[answer_start:answer_end]`."""

    text: str
    answer_start: int
    answer_end: int
    verdict: str
    citations: list[CitationRecord]


class QuoteRecord(TypedDict):
    """Quotes of the documents, word for word; `leads`: the answer starts with them."""

    text: str
    sentences: list[SentenceRecord]
    leads: bool


class NoticeRecord(TypedDict):
    """Something a user must know."""

    code: str
    message: str


StageRecord = TypedDict("StageRecord", {"name": str, "ms": float, "in": int, "out": int})
"""One step: its name, milliseconds, candidates in and out."""


class ItemRecord(TypedDict):
    """One candidate after a step."""

    chunk: int
    rank: int
    score: float
    kept: bool
    reason: str


class FullStageRecord(StageRecord):
    """A step with each candidate's fate (full trace)."""

    items: list[ItemRecord]


class ContextRecord(TypedDict):
    """Tokens of the context window: allowed, planned, seen; and evidence numbers.

    Evidence is used, trimmed or dropped.
    """

    budget: int
    planned: int
    seen: int | None
    used: list[int]
    trimmed: list[int]
    dropped: list[int]
    prompts: str
    evidence: str
    why: str


class FiguresRecord(TypedDict):
    """The figures of a sentence of source `n`, and where in its document that stands."""

    n: int
    start: int
    end: int
    values: list[float]


class DisagreementRecord(TypedDict):
    """A paper and the encyclopedia give different figures for the same thing."""

    paper: FiguresRecord
    article: FiguresRecord


class TraceRecord(TypedDict):
    """The steps that led to the answer."""

    stages: list[StageRecord] | list[FullStageRecord]
    llm_calls: int
    context: ContextRecord | None
    disagreements: list[DisagreementRecord]


class UsageRecord(TypedDict):
    """Token counts as the provider reports them."""

    prompt_tokens: int | None
    completion_tokens: int | None


class AnswerRecord(TypedDict):
    """QueryResponse without `request_id`, which only the edge knows."""

    answer_id: str
    conversation_id: str | None
    answer: str
    status: str
    generator: str
    embedder: str
    library: str
    query_mode: str
    retrieval_strategy: str
    rewritten_query: str | None
    confidence: float
    notices: list[NoticeRecord]
    sources: list[SourceRecord]
    sentences: list[SentenceRecord]
    quote: QuoteRecord | None
    model_text: str | None
    trace: TraceRecord | None
    usage: UsageRecord


class FiltersRecord(TypedDict):
    """Conditions on passages, as in QueryRequest."""

    section: list[str]
    doc_ids: list[str]
    year_from: int | None
    year_to: int | None
    author: str | None
    type: list[str]


class MessageRecord(TypedDict):
    """One turn of the history that came with a question."""

    role: str
    content: str


class QuestionRecord(TypedDict):
    """QueryRequest as it was asked, with defaults filled in."""

    question: str
    library: str
    query_mode: str
    retrieval_strategy: str
    retrieve_only: bool
    top_k: int | None
    filters: FiltersRecord
    history: list[MessageRecord]
    fusion: str | None
    rerank: NotRequired[str | None]
    """Absent, like `reasoning`, from answers of before there was a choice."""
    reasoning: NotRequired[str | None]
    model: str | None
    fallback: bool | None
    evidence: str | None


class StoredAnswer(AnswerRecord):
    """A stored answer: the full-trace record, the question, and its settings."""

    asked: QuestionRecord
    settings: dict[str, str]
    at: str
    kept: str
    """`full`, or `hash` when texts were replaced by their SHA-256."""
