"""Questions, answers, and the events of a stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal, NamedTuple, Self, get_args

from app.core.documents import Document, Heading, Passage
from app.core.labels import Condition, fold
from app.core.serialization import DESCRIBED, INTERNAL, PUBLIC
from app.core.vocabulary import (
    AnswerStatus,
    Band,
    CheckBy,
    CitedBy,
    EvidenceKind,
    Fusion,
    LibraryName,
    Mode,
    NoticeCode,
    Reasoning,
    Rerank,
    Role,
    Scope,
    SecondVerdict,
    Strategy,
    TraceLevel,
    Verdict,
    WaitsFor,
)

REFUSAL = "I don't have enough information in the provided documents to answer that."
"""The one sentence of an answer that has no evidence; part of the contract with clients."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on passages; empty fields do not filter.

    All given fields must hold; values within one are alternatives.
    """

    __pydantic_config__ = PUBLIC
    sections: tuple[str, ...] = field(default=(), metadata={"alias": "section"})
    doc_ids: tuple[str, ...] = ()
    exclude_doc_ids: tuple[str, ...] = ()
    """Documents that are left out."""
    year_from: int | None = None
    year_to: int | None = None
    author: str | None = None
    """Case-insensitive substring of any author's name."""
    types: tuple[str, ...] = field(default=(), metadata={"alias": "type"})
    tags: tuple[str, ...] = ()
    metadata: tuple[Condition, ...] = ()
    """All of them must hold. As KEY=VALUE, or KEY=FROM..TO."""

    def over(self, saved: Filters) -> Filters:
        """Return both; a field that is given here counts, what is asked of metadata adds up."""
        asked = {name: getattr(self, name) for name in _FIELDS}
        asked["metadata"] = (*saved.metadata, *self.metadata)
        return replace(saved, **{name: it for name, it in asked.items() if it not in ((), None)})

    @property
    def labels(self) -> tuple[tuple[str, ...], tuple[Condition, ...]]:
        """Return what is asked of tags, as they compare, and of own metadata."""
        return tuple(sorted({fold(tag) for tag in self.tags})), self.metadata

    def __bool__(self) -> bool:
        return self != _NO_FILTERS


_NO_FILTERS = Filters()
_FIELDS = [each.name for each in fields(Filters)]


class Scored(NamedTuple):
    """A chunk id and a leg's raw score.

    Cosine distance (lower is better) or BM25 (higher is better).
    """

    chunk_id: int
    score: float


@dataclass(frozen=True, slots=True)
class Signals:
    """Values of each step for a hit; None if a step did not see it."""

    __pydantic_config__ = PUBLIC
    dense: float | None = None
    """Cosine distance, [0, 2]."""
    bm25: float | None = None
    overlap: float | None = None
    """Idf-weighted share of the question's words found in the passage, [0, 1]."""
    sentence: float | None = None
    """Cosine similarity of the best sentence, [-1, 1]."""
    rerank: float | None = None
    """Logit of the reader, unbounded; with `rerank` cross_encoder."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked passage; `score` orders hits of one search, higher is better."""

    passage: Passage
    score: float
    signals: Signals = Signals()
    band: Band | None = None
    fallback: bool = False
    closeness: float | None = None
    """Mean of cosine similarity, on MiniLM's scale, and overlap, [-0.5, 1]; None unless a search
    ranked it. Comparable between libraries and embedders."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A hit with its number in the answer, from 1."""

    n: int
    hit: Hit
    headings: tuple[Heading, ...] = ()
    """Those above the passage, outermost first, then those within it; places in the document."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a user must know; `code` is from the fixed list of the API."""

    code: NoticeCode
    message: str


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation or prompt."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """The input of a generator.

    Model generators send `messages`; the extractive one reads question and evidence.
    """

    messages: tuple[Message, ...]
    question: str = ""
    evidence: tuple[Evidence, ...] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    logprobs: bool = False
    json_schema: Mapping[str, object] | None = None
    model: str | None = None
    """Overrides the generator's model for this call."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts and durations of one call, as the provider reports them.

    None if it does not. Durations in seconds.
    """

    __pydantic_config__ = PUBLIC
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_seconds: float | None = None
    """Reading the prompt; for hosts that do not say, from the request to the first token, so
    loading and queueing count."""
    completion_seconds: float | None = None
    """Writing the answer; for hosts that do not say, from the first token to the end."""
    load_seconds: float | None = None
    """Loading the model and waiting for it, which `prompt_seconds` of a host that says so leaves
    out."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of generated text.

    The last one of a stream has `finish` set; its text may be empty.
    """

    text: str
    logprob: float | None = None
    finish: Literal["stop", "length"] | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class StageTrace:
    """A step of a question: duration, candidates in and out.

    A full trace also has the outcome of each candidate.
    """

    __pydantic_config__ = PUBLIC
    name: str
    ms: float
    """Milliseconds."""
    n_in: int = field(metadata={"alias": "in"})
    """Candidates before the step."""
    n_out: int = field(metadata={"alias": "out"})
    """Candidates after the step."""
    items: tuple[TraceItem, ...] | None = field(
        default=None, metadata={"exclude_if": lambda items: items is None}
    )
    """Each candidate after the step, with trace: full."""


@dataclass(frozen=True, slots=True)
class TraceItem:
    """One candidate after a step."""

    chunk: int
    rank: int
    score: float
    kept: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ContextTrace:
    """Use of the context window in tokens.

    `used`, `trimmed` and `dropped` list evidence numbers.
    """

    __pydantic_config__ = PUBLIC
    budget: int
    planned: int
    seen: int | None
    used: tuple[int, ...] = ()
    trimmed: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    prompts: str = "full"
    """How the model was told what to do: `compact` or `full`."""
    evidence: str = "full"
    """What it was handed: `short` (sentences) or `full` (whole passages)."""
    why: str = ""
    """Why so much was handed over and not more."""


@dataclass(frozen=True, slots=True)
class TraceReport:
    """The steps that led to the answer."""

    __pydantic_config__ = PUBLIC
    stages: tuple[StageTrace, ...] = ()
    llm_calls: int = 0
    context: ContextTrace | None = None

    def at(self, level: TraceLevel) -> TraceReport | None:
        """Return what a level shows: all, no candidates, or None."""
        if level == "summary":
            return replace(self, stages=tuple(replace(one, items=None) for one in self.stages))
        return self if level == "full" else None


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote of evidence `n`: `document_text[start:end] == quote` in its revision.

    `support` is in [0, 1].
    """

    __pydantic_config__ = DESCRIBED
    n: int
    start: int
    end: int
    quote: str
    support: float
    cited_by: CitedBy = "engine"
    """Who wrote the mark: the model, or the engine that knows what supports the sentence."""


@dataclass(frozen=True, slots=True)
class Stance:
    """How a text stands to a claim: probabilities in [0, 1] that sum to 1."""

    supported: float
    contradicted: float
    not_stated: float


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
    """A request with its defaults; the edge has validated ranges."""

    __pydantic_config__ = PUBLIC
    text: str = field(metadata={"alias": "question"})
    library: Scope
    mode: Mode = field(default="general", metadata={"alias": "query_mode"})
    strategy: Strategy = field(default="baseline", metadata={"alias": "retrieval_strategy"})
    retrieve_only: bool = False
    top_k: int | None = None
    filters: Filters = field(default_factory=Filters)
    history: tuple[Message, ...] = ()
    conversation_id: str | None = field(default=None, metadata=INTERNAL)
    replaces: str | None = field(default=None, metadata=INTERNAL)
    """Id of the conversation's answer whose question this one is, changed: a branch next to it."""
    begun: str = field(default="", metadata=INTERNAL)
    """Where an answer was cut: what it said, from which a model goes on."""
    fusion: Fusion | None = None
    rerank: Rerank | None = None
    """None: as configured."""
    reasoning: Reasoning | None = None
    """How a model is told to work; None: as the mode's prompt says, else as configured."""
    model: str | None = None
    trace: TraceLevel = field(default="summary", metadata=INTERNAL)
    fallback: bool | None = None
    """Hand a model the nearest passages where none passes the cutoff; None: as configured."""
    evidence: EvidenceKind | None = None
    """How much a model is handed; None: as configured."""
    strict: bool = False
    """Show no sentence of a model that is not supported."""
    wishes: str = field(default="", metadata=INTERNAL)
    """What a client's system message asks for; a model reads it, quotes cannot follow it."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Sentences quoted from documents, with citations; no model wrote them."""

    __pydantic_config__ = PUBLIC
    text: str
    sentences: tuple[Sentence, ...]
    leads: bool
    """The answer begins with it; otherwise a model speaks alone and the quote stands by."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """A place of a document that comes nearest to a question that was refused."""

    passage: Passage
    start: int
    """First character, in the document."""
    end: int
    """One past the last."""

    @property
    def quote(self) -> str:
        """The document's own characters."""
        chunk = self.passage.chunk
        return chunk.text[self.start - chunk.start : self.end - chunk.start]


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
    """What is kept of a model's own words; None where no model spoke.

    Of one that began to repeat a quoted sentence it is that sentence.
    """
    nearest: tuple[Nearest, ...] = ()
    """Places that come nearest, best first, where the question was refused."""

    @property
    def documents(self) -> tuple[Document, ...]:
        """Documents that the evidence is of, each once."""
        return tuple(dict.fromkeys(item.hit.passage.document for item in self.evidence))


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


_SHARE = {"ge": 0, "le": 1}


@dataclass(frozen=True, slots=True)
class Finding:
    """Characters [start, end) of a document's revision, or of the text `against`."""

    __pydantic_config__ = PUBLIC
    start: int
    end: int
    quote: str
    support: float = field(metadata=_SHARE)
    """Probability that they hold the sentence."""
    library: LibraryName | None
    """With `doc_id`, `title` and `revision` null when the text is none of a library."""
    doc_id: str | None
    title: str | None
    revision: int | None


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of the text and what was found for it, the best first."""

    __pydantic_config__ = PUBLIC
    text: str
    start: int
    end: int
    verdict: Verdict
    support: float = field(metadata=_SHARE)
    """Of the deciding place; from 0.5 only where it is supported."""
    citations: tuple[Finding, ...]
    better: Finding | None
    """A place of the library that supports it, where `against` does not."""
    by_reader: Verdict
    """The reader's own verdict, where a model decides (`check_by`)."""
    judged: SecondVerdict | None
    """The model's verdict, where one was asked and its reply was clear."""
    cites: tuple[int, ...]
    """Places in `references` that it cites; those found are what it is held against first."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An entry of the text's list of references, characters [start, end), as `papers` has it."""

    __pydantic_config__ = PUBLIC
    text: str
    start: int
    end: int
    label: str
    """Its number or key in the text; empty: it is cited by name and year."""
    state: Literal["found", "differs", "not_there"]
    doc_id: str | None
    """With `title` null where it is not there."""
    title: str | None
    differs: tuple[str, ...]
    """What the document has otherwise: `year 2017`, `author Ann Baker`, `title ...`."""


@dataclass(frozen=True, slots=True)
class CheckCounts:
    """Sentences by verdict."""

    supported: int
    unsure: int
    contradicted: int
    not_found: int
    no_claim: int

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Self:
        """Count sentences by their verdicts."""
        counts = Counter(verdicts)
        return cls(**{verdict: counts[verdict] for verdict in get_args(Verdict)})


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A checked text, sentence by sentence, in order."""

    __pydantic_config__ = PUBLIC
    sentences: tuple[CheckedSentence, ...]
    counts: CheckCounts
    check_by: CheckBy
    """Who decided about the verdicts; `both`: what is supported is so by both."""
    judge: str | None
    """`provider:model` that was asked too."""
    judge_failed: str | None
    """Why it was asked no further; sentences after that have no `judged`."""
    references: tuple[Reference, ...]
    """Of the text's own list, where it is held against `papers`."""
