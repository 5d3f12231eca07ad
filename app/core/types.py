"""Value objects of the domain, all frozen.

Glossary
    library     one of two shelves, `public` (encyclopedia) and `papers` (a person's own); queries may span `all`.
    document    one source (file, article, paper) under a stable `doc_id`; its text may have several revisions.
    revision    one text of a document, numbered from 1; the newest acknowledged one is live, older ones keep resolving citations.
    chunk       a half-open span of a revision's text, the unit that is indexed. Its text is always `document_text[start:end]`.
    passage     a chunk joined with its document: what retrieval hands on.
    hit         a passage with the signals that ranked it.
    evidence    a numbered hit that an answer may cite as `[n]`.
    citation    a claim that `document_text[start:end]` supports a sentence; the quote is exactly those characters.
    answer      Markdown text with `[n]` marks, its sentences, citations and how it came to be.
    strategy    how questions become searches: baseline, hyde, multi_query, flare.
    mode        what the answer is for: general, compare, methodology, datasets, reproduce.
    notice      something a user must know, with a fixed code; never text glued to an answer.

Offsets are Unicode code points, half-open, into the text of one revision. Distances are cosine distances in [0, 2]; similarity is
`1 - distance`. Times are UTC ISO 8601 strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
"""float32; `[dim]` for one vector, `[n, dim]` for rows. Embeddings have L2 norm 1."""


class Library(StrEnum):
    """A shelf that can be written."""

    PUBLIC = "public"
    PAPERS = "papers"


Scope = Literal["public", "papers", "all"]
Fusion = Literal["relative_score", "rrf", "dense", "lexical"]
Mode = Literal["general", "compare", "methodology", "datasets", "reproduce"]
Strategy = Literal["baseline", "flare", "hyde", "multi_query"]
Band = Literal["strong", "partial", "weak"]
Verdict = Literal["supported", "weak", "unsupported"]
AnswerStatus = Literal["answered", "abstained", "chitchat", "conversation", "retrieved"]
TraceLevel = Literal["none", "summary", "full"]
Role = Literal["system", "user", "assistant"]
NoticeCode = Literal[
    "fallback_used",
    "strategy_degraded",
    "vectors_missing",
    "index_rebuilding",
    "context_cut",
    "library_empty",
    "filter_matched_nothing",
    "injection_flagged",
    "embedder_unavailable",
    "generator_unavailable",
    "hosted_provider",
]

# --- ingest -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RawDocument:
    """One source before parsing: bytes in memory or on disk, and where they came from."""

    source_key: str
    """Identity within a library: file name, relative path, arXiv id without version, wiki page id, `sample_<stem>`."""
    filename: str
    """Display name; data, never a path."""
    content: bytes | Path
    source_url: str | None = None
    licence: str | None = None
    doc_id: str | None = None
    """Fixed id (samples only); None derives it from library and source key."""
    metadata: Metadata | None = None
    """What the source itself says (arXiv); None takes what the text shows."""


@dataclass(frozen=True, slots=True)
class Article:
    """One page of an encyclopedia dump, before its markup is parsed."""

    key: str
    """The page's own id in the source; stable across dumps."""
    revision: str
    """The source's revision id or a content hash; changes whenever the text does."""
    title: str
    markup: Literal["wikitext", "html", "text"]
    source: str
    url: str | None = None
    licence: str | None = None
    redirect_to: str | None = None
    """Target title of a redirect; its source holds no prose."""
    namespace: int = 0
    """MediaWiki namespace number; 0 holds articles."""


ArticleState = Literal["indexed", "redirect", "skipped"]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What became of one article of a bulk source."""

    article: str
    revision: str
    state: ArticleState
    reason: str = ""
    """Why it was skipped; empty otherwise."""


@dataclass(frozen=True, slots=True)
class LedgerSummary:
    """A source's account: `articles` is always the sum of the others."""

    indexed: int
    redirects: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Counts by reason."""

    @property
    def articles(self) -> int:
        """Pages of the source that were seen."""
        return self.indexed + self.redirects + sum(self.skipped.values())


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Characters `[start, end)` of the text stand on page `number` (from 1)."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading's own characters `[start, end)`; its section runs to the next heading of the same or a higher level."""

    start: int
    end: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known about a document besides its text; every field is correctable."""

    title: str
    authors: tuple[str, ...] = ()
    year: int | None = None
    arxiv_id: str | None = None


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """Plain text with the structure that was found in it. NFC, newline line ends, no NUL or lone surrogates."""

    text: str
    media_type: str
    pages: tuple[PageSpan, ...] = ()
    headings: tuple[Heading, ...] = ()
    title: str | None = None
    authors: tuple[str, ...] = ()
    year: int | None = None
    warnings: tuple[str, ...] = ()
    stripped_characters: int = 0
    """Invisible and tag characters removed while parsing (hidden-instruction carriers)."""


@dataclass(frozen=True, slots=True)
class PageText:
    """The stored text of one page and a half-open span within it, to be found on the page again."""

    number: int
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PageBoxes:
    """Where a span stands on a page: rectangles (x0, y0, x1, y1) in PDF points, origin top left, one per line."""

    page: int
    width: float
    height: float
    rects: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True, slots=True)
class ChunkSpan:
    """Where a chunk lies in its revision, before it has an id."""

    ordinal: int
    start: int
    end: int
    section: str
    """Normalised section name, `body` when none was found."""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a document's characters; `covered_characters` counts non-blank ones inside chunks."""

    pages: int
    characters: int
    covered_characters: int
    chunks: int
    vectors: int


@dataclass(frozen=True, slots=True)
class IngestOutcome:
    """What happened to one file of an ingest."""

    filename: str
    doc_id: str | None
    status: Literal["indexed", "unchanged", "replaced", "failed"]
    reason: str | None = None
    code: str | None = None
    """The error code when failed (see core.errors)."""
    duplicate_of: str | None = None
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True)
class DocumentDraft:
    """A parsed and chunked document, ready to be written as a revision."""

    library: Library
    doc_id: str
    source_key: str
    filename: str
    sha256: str
    """Of the original bytes; for bulk text, of the text."""
    type: str
    text: str
    metadata: Metadata
    chunks: tuple[ChunkSpan, ...]
    pages: tuple[PageSpan, ...] = ()
    source_url: str | None = None
    licence: str | None = None
    flags: tuple[str, ...] = ()
    has_original: bool = False
    source_revision: str | None = None
    """The source's own revision id (wiki revision), to skip unchanged articles of a newer dump."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a draft became in the catalog."""

    doc_id: str
    revision: int
    status: Literal["indexed", "unchanged", "replaced"]
    duplicate_of: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """What a deletion removed, by kind."""

    doc_id: str
    chunks: int
    vectors: int
    originals: int
    quotes_blanked: int
    purged: bool


# --- stored -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Document:
    """A live document as lists and sources show it."""

    doc_id: str
    library: Library
    source_key: str
    revision: int
    sha256: str
    title: str
    authors: tuple[str, ...]
    year: int | None
    type: str
    """Short media kind: pdf, docx, html, markdown, text, wikitext."""
    state: Literal["live", "deleted"]
    characters: int
    pages: int
    chunks: int
    embedded: int
    duplicate_of: str | None
    source_url: str | None
    licence: str | None
    added_at: str
    updated_at: str
    filename: str = ""
    arxiv_id: str | None = None
    has_original: bool = False
    flags: tuple[str, ...] = ()
    """Findings at ingest that a reader should see, for example `injection`, `stripped:12`."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stored chunk of one revision."""

    chunk_id: int
    doc_id: str
    library: Library
    revision: int
    ordinal: int
    start: int
    end: int
    section: str
    page: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A live chunk joined with its document."""

    chunk: Chunk
    document: Document


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Exactly the characters `[start, end)` of a revision, and the length of the whole text."""

    text: str
    start: int
    end: int
    length: int
    revision: int


@dataclass(frozen=True, slots=True)
class LibraryCounts:
    """Counts from the catalog; `embedded` chunks have a stored vector."""

    documents: int
    chunks: int
    embedded: int
    bytes: int
    by_type: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a library's vectors and lexical index were made with; equal fingerprints are interchangeable."""

    embedding_model: str
    model_digest: str
    dimension: int
    query_prefix: str
    passage_prefix: str
    chunker: str
    analyzer: str


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Who made a vector. `max_tokens` is the longest passage the model reads whole."""

    provider: str
    model: str
    digest: str
    dimension: int
    max_tokens: int
    query_prefix: str = ""
    passage_prefix: str = ""


# --- retrieval --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on passages; empty fields do not filter. All given fields must hold; values within one are alternatives."""

    sections: tuple[str, ...] = ()
    doc_ids: tuple[str, ...] = ()
    year_from: int | None = None
    year_to: int | None = None
    author: str | None = None
    """Case-insensitive substring of any author's name."""
    types: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """True when at least one condition is set."""
        return bool(
            self.sections or self.doc_ids or self.types or self.author or self.year_from is not None or self.year_to is not None
        )


@dataclass(frozen=True, slots=True)
class Scored:
    """A chunk id and a raw score of one leg: cosine distance (lower is better) or BM25 (higher is better)."""

    chunk_id: int
    score: float


@dataclass(frozen=True, slots=True)
class Signals:
    """What each step knew of a hit; None where a step did not see it."""

    dense: float | None = None
    """Cosine distance, [0, 2]."""
    bm25: float | None = None
    overlap: float | None = None
    """Idf-weighted share of the question's words found in the passage, [0, 1]."""
    sentence: float | None = None
    """Cosine similarity of the best sentence, [-1, 1]."""
    rerank: float | None = None
    """Cross-encoder logit, unbounded."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked passage; `score` orders hits of one search, higher is better."""

    passage: Passage
    score: float
    signals: Signals = Signals()
    band: Band | None = None
    fallback: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """A hit with its number in the answer, from 1."""

    n: int
    hit: Hit


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a user must know; `code` is from the fixed list of the API."""

    code: NoticeCode
    message: str


# --- answers ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation or prompt."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a generator gets. Generators that speak to a model send `messages`; the extractive one reads question and evidence."""

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
    """Token counts as the provider reports them; None when it does not."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of generated text. The last one of a stream has `finish` set and may have empty text and usage."""

    text: str
    logprob: float | None = None
    finish: Literal["stop", "length"] | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Citation:
    """`document_text[start:end] == quote` in the cited revision of evidence `n`; support in [0, 1]."""

    n: int
    start: int
    end: int
    quote: str
    support: float


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the answer at `answer[answer_start:answer_end]` with what supports it."""

    text: str
    answer_start: int
    answer_end: int
    verdict: Verdict
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True)
class StageTrace:
    """One step of a question: its name, duration, how many candidates went in and came out, and (full trace) each one's fate."""

    name: str
    ms: float
    n_in: int
    n_out: int
    items: tuple[TraceItem, ...] = ()


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
    """How the context window was used, in tokens; `used`, `trimmed`, `dropped` list evidence numbers."""

    budget: int
    planned: int
    seen: int | None
    used: tuple[int, ...] = ()
    trimmed: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one sentence that the other side does not have: `document_text[start:end]` in the revision of evidence `n`."""

    n: int
    start: int
    end: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A sentence of a paper and one of the encyclopedia that give different figures for the same thing."""

    paper: Figures
    article: Figures


@dataclass(frozen=True, slots=True)
class TraceReport:
    """Everything recorded while answering."""

    stages: tuple[StageTrace, ...] = ()
    llm_calls: int = 0
    context: ContextTrace | None = None
    disagreements: tuple[Disagreement, ...] = ()
    """Found where a question spans both libraries."""


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
    model: str | None = None
    trace: TraceLevel = "summary"


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a question; see API.md, QueryResponse. Abstained answers carry no evidence."""

    answer_id: str
    text: str
    status: AnswerStatus
    question: Question
    generator: str
    embedder: str
    strategy: Strategy = "baseline"
    """The strategy that searched: the question's, or `baseline` where that was degraded or not needed."""
    evidence: tuple[Evidence, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    notices: tuple[Notice, ...] = ()
    rewritten_query: str | None = None
    confidence: float = 0.0
    """Calibrated probability in [0, 1] that the answer is supported."""
    trace: TraceReport = TraceReport()
    usage: Usage = Usage()
    conversation_id: str | None = None


@dataclass(frozen=True, slots=True)
class MetaEvent:
    """First event: who answers, and as what id."""

    answer_id: str
    generator: str
    embedder: str
    conversation_id: str | None


@dataclass(frozen=True, slots=True)
class SourcesEvent:
    """The evidence, before the first token."""

    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """Provisional text; the final event carries the guarded one."""

    text: str


@dataclass(frozen=True, slots=True)
class FinalEvent:
    """Last event of a stream that did not fail."""

    answer: Answer


AnswerEvent = MetaEvent | SourcesEvent | TokenEvent | FinalEvent

# --- jobs -------------------------------------------------------------------------------------------------------------------------

JobState = Literal["queued", "running", "paused", "done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class JobFile:
    """Progress of one file within a job; `progress` in [0, 1]."""

    filename: str
    state: Literal["queued", "running", "done", "failed"]
    progress: float


@dataclass(frozen=True, slots=True)
class Job:
    """A persistent piece of long work. `payload` and `result` are JSON values; `eta_s` in seconds."""

    id: str
    kind: str
    state: JobState
    done: int
    total: int | None
    unit: str
    eta_s: float | None
    errors: tuple[str, ...]
    files: tuple[JobFile, ...]
    payload: Mapping[str, object]
    result: Mapping[str, object] | None
    created_at: str
    updated_at: str


# --- status -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostStatus:
    """A host that models run on, and whether it answers."""

    name: str
    url: str
    reachable: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """How the parts of a running server are; counts and change numbers, no model call."""

    hosts: tuple[HostStatus, ...] = ()
    watermarks: Mapping[str, int] = field(default_factory=dict)
    """`library:projection` -> last change applied; `catalog` -> newest change there is."""
    builds: Mapping[str, str] = field(default_factory=dict)
    """Library -> its live build, or what is happening to it (`rebuilding 40 %`)."""


@dataclass(frozen=True, slots=True)
class ModelReport:
    """Models of the host that runs here: what is there, in memory, and used for what."""

    installed: tuple[tuple[str, int | None], ...] = ()
    """Name and bytes on disk."""
    loaded: tuple[str, ...] = ()
    in_use: Mapping[str, str] = field(default_factory=dict)
    """Purpose (`answers`, `helper`, `embeds`) -> `provider:model`."""
    fit: bool | None = None
    """Whether the answering and the embedding model stay in memory together; None when that cannot be told."""
