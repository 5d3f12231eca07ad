"""Value objects of the domain, all frozen.

Glossary
    library     `public` (encyclopedia) and `papers` (a person's own); queries may span `all`.
    document    one source (file, article, paper) under a stable `doc_id`; its text may have several
    revisions. revision    one text of a document, numbered from 1; the newest acknowledged one is
    live, older ones keep resolving citations. chunk       a half-open span of a revision's text,
    the unit that is indexed. Its text is always `document_text[start:end]`. passage     a chunk
    joined with its document: what retrieval hands on. hit         a passage with the signals that
    ranked it. evidence    a numbered hit that an answer may cite as `[n]`. finding     characters
    of a text that bear on a sentence which someone checks. citation    a claim that
    `document_text[start:end]` supports a sentence; the quote is exactly those characters. answer
    Markdown text with `[n]` marks, its sentences, citations and how it came to be. strategy    how
    questions become searches: baseline, hyde, multi_query, flare. mode        what the answer is
    for: general, compare, methodology, datasets, reproduce. notice      something a user must know,
    with a fixed code; never text glued to an answer.

Offsets are Unicode code points, half-open, into the text of one revision. Distances are cosine
distances in [0, 2]; similarity is `1 - distance`. Times are UTC ISO 8601 strings.
"""

from __future__ import annotations

from app.core.types.answers import (
    Answer,
    AnswerEvent,
    Citation,
    FinalEvent,
    MetaEvent,
    Question,
    Quote,
    QuoteEvent,
    ReadingEvent,
    Sentence,
    SourcesEvent,
    TokenEvent,
)
from app.core.types.articles import Article, ArticleState, LedgerEntry, LedgerPage, LedgerSummary
from app.core.types.checks import CheckedSentence, CheckReport, Finding
from app.core.types.codes import (
    CODES_VERSION,
    MAX_SENTENCES,
    MAX_TOKENS,
    STATE_DIMENSION,
    TOKEN_BITS,
    PassageCode,
    QuestionCode,
)
from app.core.types.documents import (
    ChunkSpan,
    DeleteResult,
    DocumentDraft,
    Heading,
    IngestOutcome,
    Metadata,
    PageBoxes,
    PageSpan,
    PageText,
    ParsedDocument,
    RawDocument,
    Receipt,
    WriteResult,
)
from app.core.types.jobs import Job, JobFile, JobState
from app.core.types.models import ModelFindings, ModelProfile, ModelSpeed, bare_name
from app.core.types.prompts import Message, Prompt, Token, Usage
from app.core.types.retrieval import Evidence, Filters, Hit, Notice, Scored, Signals
from app.core.types.status import EmbeddingState, HostStatus, ModelReport, ServiceStatus
from app.core.types.stored import (
    Chunk,
    Document,
    EmbedderIdentity,
    Fingerprint,
    LibraryCounts,
    Passage,
    TextSpan,
)
from app.core.types.traces import (
    ContextTrace,
    Disagreement,
    Figures,
    StageTrace,
    TraceItem,
    TraceReport,
)
from app.core.types.vocabulary import (
    SAMPLE_PREFIX,
    AnswerStatus,
    Band,
    CitedBy,
    DefaultLibrary,
    DocumentType,
    EmbeddedModel,
    EmbeddedStore,
    EvidenceKind,
    FileType,
    FloatArray,
    Fusion,
    Library,
    LibraryName,
    Mode,
    NoticeCode,
    PromptKind,
    Reasoning,
    Rerank,
    Role,
    Scope,
    SecondVerdict,
    StoreKind,
    Strategy,
    TraceLevel,
    Verdict,
    WaitsFor,
)

__all__ = [
    "CODES_VERSION",
    "MAX_SENTENCES",
    "MAX_TOKENS",
    "SAMPLE_PREFIX",
    "STATE_DIMENSION",
    "TOKEN_BITS",
    "Answer",
    "AnswerEvent",
    "AnswerStatus",
    "Article",
    "ArticleState",
    "Band",
    "CheckReport",
    "CheckedSentence",
    "Chunk",
    "ChunkSpan",
    "Citation",
    "CitedBy",
    "ContextTrace",
    "DefaultLibrary",
    "DeleteResult",
    "Disagreement",
    "Document",
    "DocumentDraft",
    "DocumentType",
    "EmbeddedModel",
    "EmbeddedStore",
    "EmbedderIdentity",
    "EmbeddingState",
    "Evidence",
    "EvidenceKind",
    "Figures",
    "FileType",
    "Filters",
    "FinalEvent",
    "Finding",
    "Fingerprint",
    "FloatArray",
    "Fusion",
    "Heading",
    "Hit",
    "HostStatus",
    "IngestOutcome",
    "Job",
    "JobFile",
    "JobState",
    "LedgerEntry",
    "LedgerPage",
    "LedgerSummary",
    "Library",
    "LibraryCounts",
    "LibraryName",
    "Message",
    "MetaEvent",
    "Metadata",
    "Mode",
    "ModelFindings",
    "ModelProfile",
    "ModelReport",
    "ModelSpeed",
    "Notice",
    "NoticeCode",
    "PageBoxes",
    "PageSpan",
    "PageText",
    "ParsedDocument",
    "Passage",
    "PassageCode",
    "Prompt",
    "PromptKind",
    "Question",
    "QuestionCode",
    "Quote",
    "QuoteEvent",
    "RawDocument",
    "ReadingEvent",
    "Reasoning",
    "Receipt",
    "Rerank",
    "Role",
    "Scope",
    "Scored",
    "SecondVerdict",
    "Sentence",
    "ServiceStatus",
    "Signals",
    "SourcesEvent",
    "StageTrace",
    "StoreKind",
    "Strategy",
    "TextSpan",
    "Token",
    "TokenEvent",
    "TraceItem",
    "TraceLevel",
    "TraceReport",
    "Usage",
    "Verdict",
    "WaitsFor",
    "WriteResult",
    "bare_name",
]
