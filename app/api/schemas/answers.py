"""Answers, as replies."""

from __future__ import annotations

from pydantic import Field

from app.api.schemas.base import Reply, ScopeName, WebLink
from app.core.types import AnswerStatus, Band, CitedBy, Mode, NoticeCode, Strategy, Verdict


class Signals(Reply):
    """Values of each retrieval step for a passage; null if a step did not see it."""

    dense: float | None = Field(description="cosine distance, 0 to 2")
    bm25: float | None
    overlap: float | None = Field(description="idf-weighted share of the question's words, 0 to 1")
    sentence: float | None = Field(description="cosine similarity of the best sentence")


class Source(Reply):
    """A numbered passage of a stored revision."""

    n: int
    doc_id: str
    duplicate_of: str | None
    revision: int
    library: str
    title: str
    sample: bool = Field(False, description="the document came with the program")
    authors: list[str]
    year: int | None
    section: str
    page: int | None
    chunk_index: int
    start: int = Field(description="first character, in Unicode code points")
    end: int = Field(description="one past the last character")
    distance: float | None
    similarity: float | None
    band: Band | None
    score: float = Field(description="order of this answer's sources; higher is better, not comparable between questions")
    signals: Signals
    preview: str
    source_url: WebLink
    view_url: str
    licence: str | None
    flags: list[str] = Field(
        default_factory=list,
        description="findings about the whole document that a reader should see; not in older stored answers",
    )


class Citation(Reply):
    """Exactly the characters [start, end) of source n's revision."""

    n: int
    start: int
    end: int
    quote: str
    support: float = Field(ge=0, le=1)
    cited_by: CitedBy = Field("engine", description="who wrote the mark: the model, or the engine that checks it")


class Sentence(Reply):
    """A sentence of the answer and what supports it."""

    text: str
    answer_start: int
    answer_end: int
    verdict: Verdict
    citations: list[Citation]


class Quote(Reply):
    """Sentences of the documents, word for word, found before any model was asked."""

    text: str
    sentences: list[Sentence]
    leads: bool = Field(description="the answer begins with it; otherwise the model speaks alone")


class Notice(Reply):
    """Something the reader must know."""

    code: NoticeCode
    message: str


class TraceCandidate(Reply):
    """One candidate after a step."""

    chunk: int
    rank: int
    score: float
    kept: bool
    reason: str


class TraceStage(Reply):
    """One step: milliseconds, candidates in and out."""

    name: str
    ms: float
    n_in: int = Field(alias="in")
    n_out: int = Field(alias="out")
    items: list[TraceCandidate] | None = Field(None, description="with trace: full")


class TraceContext(Reply):
    """Use of the context window in tokens, and which sources went in."""

    budget: int
    planned: int
    seen: int | None
    used: list[int]
    trimmed: list[int]
    dropped: list[int]
    prompts: str = Field("full", description="compact or full: the prompt of the model")
    evidence: str = Field("full", description="short or full: sentences or whole passages")
    why: str = Field("", description="reason for the amount of evidence")


class Figures(Reply):
    """The figures of a sentence of source `n`, and where in its document that stands."""

    n: int
    start: int
    end: int
    values: list[float]


class Disagreement(Reply):
    """A paper and the encyclopedia give different figures for the same thing."""

    paper: Figures
    article: Figures


class Trace(Reply):
    """The steps that led to the answer."""

    stages: list[TraceStage]
    llm_calls: int
    context: TraceContext | None
    disagreements: list[Disagreement]


class Usage(Reply):
    """Tokens as the provider counts them; null where it does not."""

    prompt_tokens: int | None
    completion_tokens: int | None


class QueryResponse(Reply):
    """An answer whose every citation can be checked."""

    answer_id: str
    conversation_id: str | None
    answer: str = Field(description="Markdown with [n]; empty when retrieve_only")
    status: AnswerStatus
    generator: str
    embedder: str
    library: ScopeName
    query_mode: Mode
    retrieval_strategy: Strategy
    rewritten_query: str | None
    confidence: float = Field(ge=0, le=1, description="calibrated probability that the answer is supported")
    notices: list[Notice]
    sources: list[Source]
    sentences: list[Sentence]
    quote: Quote | None = Field(None, description="the quoted answer, if a model was to answer and a quote exists")
    model_text: str | None = Field(None, description="the outcome of the model's own words; null without a model")
    trace: Trace | None
    usage: Usage
    request_id: str
