"""Names that everything shares."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
"""float32; `[dim]` for one vector, `[n, dim]` for rows. Embeddings have L2 norm 1."""


class Library(StrEnum):
    """A library that can be written."""

    PUBLIC = "public"
    PAPERS = "papers"


SAMPLE_PREFIX = "sample_"
"""What ids of the documents that came with the program begin with; no other document's id does."""

LibraryName = Literal["public", "papers"]
"""The values of `Library`, where a literal is needed."""
Scope = Literal[LibraryName, "all"]
DefaultLibrary = Literal["auto", LibraryName]
"""Values of DEFAULT_LIBRARY; `auto` asks the library that holds a person's own documents."""
FileType = Literal[
    "pdf",
    "docx",
    "odt",
    "pptx",
    "xlsx",
    "xls",
    "ods",
    "odp",
    "odg",
    "csv",
    "html",
    "markdown",
    "rtf",
    "epub",
    "email",
    "mbox",
    "msg",
    "mhtml",
    "cards",
    "ipynb",
    "subtitles",
    "json",
    "yaml",
    "xml",
    "rst",
    "asciidoc",
    "org",
    "latex",
    "code",
    "png",
    "jpeg",
    "tiff",
    "webp",
    "text",
]
"""Formats of files that are read; `app.ingest.parsers.formats` says how."""
DocumentType = Literal[FileType, "wikitext"]
"""Formats of documents: of files, and of articles in dumps."""
Ocr = Literal["auto", "off", "always"]
"""Pages whose text is recognised: those that have no legible text, none, all."""
OcrEngine = Literal["auto", "rapidocr", "tesseract"]
EmbeddedStore = Literal["chroma", "faiss"]
"""Stores of vectors in DATA_DIR: a graph of whole rows, or lists of codes (the extra `large`)."""
StoreKind = Literal[EmbeddedStore, "qdrant"]
"""Stores of vectors; the last is a search engine's (SEARCH_URL, the extra `shared`)."""

Fusion = Literal["relative_score", "rrf", "dense", "lexical"]
Mode = Literal["general", "compare", "methodology", "datasets", "reproduce", "summary"]
Strategy = Literal["baseline", "hyde", "multi_query", "flare"]
Reasoning = Literal["grounded", "cot", "react", "self_ask"]
Rerank = Literal["auto", "none", "late", "mmr", "cross_encoder"]
Band = Literal["strong", "partial", "weak"]
Verdict = Literal["supported", "unsure", "contradicted", "not_found", "no_claim"]
"""Of a sentence of an answer or of a text that is checked.

`supported`: a place of a source says it. `unsure`: a place may say it. `contradicted`: a place says
otherwise. `not_found`: no place says it or denies it. `no_claim`: headings, table heads, code,
questions, lead-ins and, in an answer, an echo of the question, which nothing can hold or deny."""
SecondVerdict = Literal["supported", "not_supported"]
"""What a model says that was asked too."""
CheckBy = Literal["reader", "model", "both"]
"""Who decides whether a sentence is supported."""
EmbeddedModel = Literal["minilm", "multilingual"]
"""Embedding models that run in the server itself."""
CitedBy = Literal["model", "engine"]
EvidenceKind = Literal["auto", "short", "full"]
"""How much of the passages a model is handed: the sentences that bear on the question, or whole
passages."""
PromptKind = Literal["auto", "compact", "full"]
"""How a model is told what to do: in a few words, or with the whole contract."""
AnswerStatus = Literal["answered", "abstained", "chitchat", "conversation", "retrieved"]
WaitsFor = Literal["reading", "loading", "queue", "silent"]
"""Why a model has said nothing yet: it reads its prompt, is being loaded, answers another question
first, or its host does not respond."""
TraceLevel = Literal["none", "summary", "full"]
Role = Literal["system", "user", "assistant"]
NoticeCode = Literal[
    "fallback_used",
    "strategy_degraded",
    "vectors_missing",
    "index_rebuilding",
    "search_degraded",
    "context_cut",
    "answer_cut",
    "library_empty",
    "filter_matched_nothing",
    "injection_flagged",
    "embedder_unavailable",
    "language_differs",
    "better_embedder",
    "bands_not_calibrated",
    "generator_unavailable",
    "hosted_provider",
    "quoted_instead",
    "withheld",
    "mode_needs_model",
    "document_unclear",
    "subject_missing",
    "instructions_unused",
    "cutoff_overruled",
]
