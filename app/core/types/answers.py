"""Questions, answers, and the events of a stream."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.types.prompts import Message, Usage
from app.core.types.retrieval import Evidence, Filters, Notice
from app.core.types.traces import TraceReport
from app.core.types.vocabulary import (
    AnswerStatus,
    CitedBy,
    EvidenceKind,
    Fusion,
    Mode,
    Reasoning,
    Rerank,
    Scope,
    Strategy,
    TraceLevel,
    Verdict,
    WaitsFor,
)


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote of evidence `n`: `document_text[start:end] == quote` in its revision.

    `support` is in [0, 1].
    """

    n: int
    start: int
    end: int
    quote: str
    support: float
    cited_by: CitedBy = "engine"
    """Who wrote the mark: the model, or the engine that knows what supports the sentence."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the answer, at `answer[answer_start:answer_end]`, with support."""

    text: str
    answer_start: int
    answer_end: int
    verdict: Verdict
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A query as the use case gets it; the edge has validated ranges."""

    text: str
    library: Scope
    mode: Mode = "general"
    strategy: Strategy = "baseline"
    retrieve_only: bool = False
    top_k: int | None = None
    filters: Filters = Filters()
    history: tuple[Message, ...] = ()
    conversation_id: str | None = None
    fusion: Fusion | None = None
    rerank: Rerank | None = None
    """None: as configured."""
    reasoning: Reasoning | None = None
    """How a model is told to work; None: as the mode's prompt says, else as configured."""
    model: str | None = None
    trace: TraceLevel = "summary"
    fallback: bool | None = None
    """Hand a model the nearest passages where none passes the cutoff; None: as configured."""
    evidence: EvidenceKind | None = None
    """How much a model is handed; None: as configured."""
    wishes: str = ""
    """What a client's system message asks for; a model reads it, quotes cannot follow it."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Sentences quoted from documents, with citations; no model wrote them."""

    text: str
    sentences: tuple[Sentence, ...]
    leads: bool
    """The answer begins with it; otherwise a model speaks alone and the quote stands by."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a question. Abstained answers carry no evidence."""

    answer_id: str
    text: str
    status: AnswerStatus
    question: Question
    generator: str
    embedder: str
    strategy: Strategy = "baseline"
    """The strategy that searched: the question's, or `baseline` where that was degraded or not
    needed."""
    evidence: tuple[Evidence, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    notices: tuple[Notice, ...] = ()
    rewritten_query: str | None = None
    confidence: float = 0.0
    """Calibrated probability in [0, 1] that the answer is supported."""
    trace: TraceReport = TraceReport()
    usage: Usage = Usage()
    conversation_id: str | None = None
    quote: Quote | None = None
    """What the documents say word for word, where a model was to answer; None where nothing was
    quoted."""
    model_text: str | None = None
    """What is kept of a model's own words; None where no model spoke."""


@dataclass(frozen=True, slots=True)
class MetaEvent:
    """First event: who answers, and as what id."""

    answer_id: str
    generator: str
    embedder: str
    conversation_id: str | None


@dataclass(frozen=True, slots=True)
class SourcesEvent:
    """The evidence, sent before the first token.

    Sent again if another search found other passages. Numbers keep their meaning.
    """

    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class QuoteEvent:
    """The documents' quotes, sent before any model is asked."""

    quote: Quote


@dataclass(frozen=True, slots=True)
class ReadingEvent:
    """A model starts to read its prompt: about `tokens` tokens, about `seconds`.

    `seconds` is None without a measurement. Sent again where the first word is late.
    """

    model: str
    tokens: int
    seconds: float | None
    part: int = 1
    """Of `parts`, from 1: a long document is read part by part."""
    parts: int = 1
    waits_for: WaitsFor | None = None
    """What is waited for, once FIRST_TOKEN_TARGET_S have passed without a word."""


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """Provisional text; the final event carries the guarded one."""

    text: str


@dataclass(frozen=True, slots=True)
class FinalEvent:
    """Last event of a stream that did not fail."""

    answer: Answer


AnswerEvent = MetaEvent | SourcesEvent | QuoteEvent | ReadingEvent | TokenEvent | FinalEvent
