"""The configuration, the options that each room takes of it, and what a start checks of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.answer.options import AnswerOptions, MannerOptions
from app.core.errors import ExtraMissing, InvalidInput
from app.core.ids import default_data_dir, is_loopback
from app.core.types import (
    CheckBy,
    DefaultLibrary,
    EmbeddedModel,
    EmbeddedStore,
    EvidenceKind,
    Fusion,
    Library,
    Ocr,
    OcrEngine,
    PromptKind,
    Reasoning,
    Rerank,
)
from app.generation.prompt.prompts import GenerationOptions
from app.ingest.options import IngestOptions, find_engine
from app.jobs.runner import LANES, JobOptions, Lane
from app.models.multilingual import CURE, is_installed
from app.models.options import (
    PRESETS,
    EmbeddingProviderName,
    HostedOptions,
    ProviderName,
    ProviderOptions,
    ZoteroOptions,
)
from app.retrieval.request import RetrievalOptions
from app.storage.options import STORE_BYTES, IndexOptions

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

START_PATIENCE_S = 60.0
"""How long a start waits for database, engine and object store: those that start with it, on one
machine or in one chart, take some tens of seconds. What lasts longer is a wrong setting."""

# The defaults of settings that a room's options have too.
_INDEX = IndexOptions(Path(), Path())
_INGEST, _RETRIEVAL, _GENERATION = IngestOptions(), RetrievalOptions(), GenerationOptions()
_HOSTS, _ANSWER, _MANNER = ProviderOptions(), AnswerOptions(), MannerOptions()
T = TypeVar("T", bound="DataclassInstance")
NOTHING: Mapping[str, str] = MappingProxyType({})


def setting(default: object, description: str, **bounds: Any) -> Any:  # as `Field`
    """Return the field of a setting: its default, what it is, its bounds."""
    return Field(default, description=description, **bounds)


_OPENAI = frozenset({"openai", "openai_compatible"})
OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "hosted_url": "openai_base_url",
        "hosted_key": "openai_api_key",
        "hosted_model": "openai_model",
        "documind_git_sha": "docmind_git_sha",
    }
)
"""Settings that are read by a second name where the first is not set."""


class Settings(BaseSettings):
    """All settings, from the environment and `.env` in the working directory.

    Each field is a variable of the same name in upper case; a method gives a room its options.
    """

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        extra="ignore",
        frozen=True,
        env_ignore_empty=True,
    )

    api_host: str = setting("127.0.0.1", "address to listen on")
    api_port: int = setting(8001, "port to listen on", ge=1, le=65535)
    data_dir: Path = Field(
        default_factory=default_data_dir,
        description="everything the server keeps; empty: ./var in a checkout or with a catalog in"
        " it, else the user's data folder",
    )
    chroma_persist_dir: Path | None = setting(
        None, "directory of the Chroma store; empty: DATA_DIR/chroma"
    )
    originals_url: str = setting(
        "",
        "s3://BUCKET/PREFIX?endpoint=http://HOST:PORT that keeps uploaded files (extra `shared`;"
        " keys: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY); empty: a directory in DATA_DIR",
    )
    originals_cache_mb: int = setting(
        2048, "files of the object store kept on this machine, the last used, MB", ge=1
    )
    database_url: str = setting(
        "",
        "postgresql://USER:PASSWORD@HOST/DATABASE that holds the catalog of several servers"
        " (extra `shared`; with SEARCH_URL); empty: SQLite in DATA_DIR",
        repr=False,
    )
    search_url: str = setting(
        "",
        "http://HOST:6333 of a Qdrant for vectors and words (extra `shared`; with"
        " DATABASE_URL), nodes with commas; empty: DATA_DIR",
    )
    search_api_key: str = setting("", "key that the search engine asks for", repr=False)
    search_replicas: int = setting(
        _INDEX.search_replicas,
        "copies of every point in the search engine, made with a collection; with 2 any one node"
        " may be away",
        ge=1,
    )
    search_shards: int = setting(
        _INDEX.search_shards,
        "shards of a new collection in the search engine, which cannot be split later; 0: twice the"
        " nodes, at least 6",
        ge=0,
    )
    job_lanes: Annotated[tuple[Lane, ...], NoDecode] = setting(
        LANES,
        "lanes of jobs that this process works in, comma-separated; none: other"
        " processes do (documind work; needs SEARCH_URL)",
    )
    default_library: DefaultLibrary = setting(
        "auto",
        "library of a question that names none; `auto`: the one that holds your own"
        " documents, both if both do, else the samples in papers. What needs one library, such as"
        " an upload, then takes public",
    )
    app_env: Literal["development", "staging", "production"] = setting(
        "development", "development, staging or production, which adds HSTS; diagnostics shows it"
    )

    # models
    ollama_base_url: str = setting(
        _HOSTS.ollama_base_url,
        "Ollama's address; of several, separated by commas, the first that answers",
    )
    llm_provider: ProviderName = setting(
        _HOSTS.llm_provider,
        "who answers: auto, ollama, extractive, openai_compatible (any server of OpenAI's protocol"
        " at HOSTED_URL), openai, groq, google, mistral or anthropic",
    )
    llm_model: str = setting(
        "",
        "model that answers; empty: a chat model that Ollama has (the chosen one, else"
        " the best tested, else the largest of up to 8 billion parameters that fits memory)",
    )
    helper_model: str = setting(
        "", "model for rewrites, summaries and sub-queries; empty: the one that answers"
    )
    embedding_provider: EmbeddingProviderName = setting(
        _HOSTS.embedding_provider,
        "who embeds; auto: Ollama where it has EMBEDDING_MODEL, else the embedded model",
    )
    embedding_model: str = setting(_HOSTS.embedding_model, "embedding model on the provider")
    embedded_model: EmbeddedModel = setting(
        "minilm",
        "model that embeds in the server itself: minilm (English) or multilingual (the"
        " extra multilingual)",
    )
    reader: bool = setting(
        _HOSTS.reader,
        "read the likeliest sentences with the question with a small model in the server itself;"
        " false: words and vectors alone choose what is quoted",
    )
    public_embedded_model: EmbeddedModel | None = setting(
        None, "the same for public; empty: EMBEDDED_MODEL"
    )
    papers_embedded_model: EmbeddedModel | None = setting(
        None, "the same for papers; empty: EMBEDDED_MODEL"
    )
    hosted_url: str = setting(
        "",
        "address of the host that LLM_PROVIDER or EMBEDDING_PROVIDER names; empty: the provider's"
        " own; OPENAI_BASE_URL is read too",
    )
    hosted_key: str = setting("", "its key; OPENAI_API_KEY is read too", repr=False)
    hosted_model: str = setting("", "its model that answers; OPENAI_MODEL is read too")
    ollama_request_timeout_sec: float = setting(
        _HOSTS.ollama_timeout_s, "seconds a model call may be silent", gt=0
    )
    ollama_keep_alive: str = setting(
        _HOSTS.ollama_keep_alive, "how long Ollama keeps a model loaded"
    )
    llm_num_ctx: int = setting(
        _HOSTS.num_ctx, "context window in tokens, clamped to the model", ge=512
    )
    llm_max_tokens: int = setting(
        _GENERATION.max_tokens,
        "longest answer in tokens; unset, 256 with the compact prompt",
        ge=16,
    )
    llm_temperature: float = setting(
        _GENERATION.temperature,
        "sampling temperature; unset, a packaged prompt may have one of its own",
        ge=0,
        le=2,
    )
    max_model_calls: int = setting(_HOSTS.max_model_calls, "model calls at once", ge=1)

    # ingest
    chunk_size: int = setting(
        _INGEST.chunk_size, "ceiling of a chunk in characters", ge=100, le=8000
    )
    chunk_overlap: int = setting(
        _INGEST.chunk_overlap, "characters shared by neighbouring chunks", ge=0
    )
    max_file_size_mb: int = setting(50, "largest upload in MiB", ge=1)
    ocr: Ocr = setting(
        _INGEST.ocr,
        "pages whose text is recognised in the background: auto (pictures of text, and fonts that"
        " name other characters than they show), off, always (every page)",
    )
    ocr_engine: OcrEngine = setting(
        "auto",
        "what recognises it: auto (rapidocr, the extra `ocr`, else the program tesseract),"
        " rapidocr or tesseract",
    )
    ocr_languages: str = setting(
        _INGEST.ocr_languages,
        "languages of tesseract, as deu+eng; empty: all that are installed",
        pattern=r"^([a-zA-Z_]+(\+[a-zA-Z_]+)*)?$",
    )
    arxiv_base_url: str = setting(_HOSTS.arxiv_base_url, "arXiv host for fetch-arxiv")
    zotero_url: str = setting(
        "",
        "address of Zotero on this machine; empty: http://127.0.0.1:23119, or zotero.org for"
        " ZOTERO_LIBRARY",
    )
    zotero_library: str = setting(
        "",
        "library of zotero.org that is followed in the place of the program: users/ID or groups/ID",
        pattern=r"^((users|groups)/[0-9]{1,12})?$",
    )
    zotero_api_key: str = setting(
        "", "key that zotero.org gave out for it, which may read", repr=False
    )
    samples: bool = setting(True, "index the sample documents once when both libraries are empty")
    seed_sample_docs: bool = setting(
        False, "purge and re-seed the samples when SAMPLE_CORPUS_VERSION changes"
    )
    sample_corpus_version: str = setting("2", "marker for SEED_SAMPLE_DOCS")

    # retrieval
    top_k_results: int = setting(
        _RETRIEVAL.top_k, "passages for an answer when the request names no top_k", ge=1, le=50
    )
    relevance_threshold: float = setting(
        _RETRIEVAL.relevance_threshold, "cosine distance cutoff of papers (arm dense)", ge=0, le=2
    )
    public_relevance_threshold: float = setting(
        _RETRIEVAL.public_relevance_threshold,
        "cosine distance cutoff of public (arm dense)",
        ge=0,
        le=2,
    )
    keyword_rerank_weight: float = setting(
        _RETRIEVAL.keyword_rerank_weight,
        "weight of keyword overlap in papers (arm dense)",
        ge=0,
        le=1,
    )
    public_keyword_rerank_weight: float = setting(
        _RETRIEVAL.public_keyword_rerank_weight,
        "weight of keyword overlap in public (arm dense)",
        ge=0,
        le=1,
    )
    enable_fallback_retrieval: bool | None = setting(
        _RETRIEVAL.enable_fallback,
        "hand a model the nearest passages when none passes the cutoff; empty: to models from 3"
        " billion parameters on, and hosted ones",
    )
    fallback_top_n: int = setting(_RETRIEVAL.fallback_top_n, "passages of the fallback", ge=1)
    fusion: Fusion = setting(_RETRIEVAL.fusion, "relative_score, rrf, dense or lexical")
    rerank: Rerank = setting(
        _RETRIEVAL.rerank,
        "order of the best passages: auto (late where a library has codes), none, late, mmr or"
        " cross_encoder (the built-in reader)",
    )
    late_interaction_max_chunks: int = setting(
        _INGEST.late_interaction_max_chunks,
        "chunks up to which a library keeps codes for late interaction, 16 bytes a token; 0: off",
        ge=0,
    )
    embed_on_query_budget_ms: float = setting(
        _RETRIEVAL.embed_on_query_budget_ms,
        "milliseconds a question may spend embedding candidates without a vector",
        ge=0,
    )
    query_embed_timeout_s: float = setting(
        _HOSTS.query_embed_timeout_s,
        "seconds a question waits for its vector; then it is searched by words",
        gt=0,
    )
    max_dense_vectors: int = setting(
        0,
        f"vectors that dense search finds; 0: a quarter of RAM, at {STORE_BYTES['chroma']:,} bytes"
        f" each in chroma and {STORE_BYTES['faiss']} in faiss",
        ge=0,
    )
    vector_cache_vectors: int = setting(
        _INDEX.vector_cache_vectors,
        "vectors up to which a library is searched in memory; 0: the store answers all",
        ge=0,
    )
    vector_store: EmbeddedStore = setting(
        _INDEX.public_store,
        "store of vectors: chroma, or faiss for millions (codes in memory; the extra large)",
    )
    public_vector_store: EmbeddedStore | None = setting(
        None, "store of public's vectors; empty: VECTOR_STORE"
    )
    papers_vector_store: EmbeddedStore | None = setting(
        None, "store of papers' vectors; empty: VECTOR_STORE"
    )
    chroma_store_text: bool = setting(
        _INDEX.chroma_store_text,
        "keep title and text in Chroma's rows too, for tools that read the store; rows that are"
        " there get them by the next fill",
    )
    chroma_collection_name: str = setting(
        _INDEX.collection_papers, "Chroma collection of papers", min_length=3
    )
    chroma_collection_public: str = setting(
        _INDEX.collection_public, "Chroma collection of public", min_length=3
    )

    # answers
    reasoning: Reasoning = setting(
        _GENERATION.reasoning,
        "how a model is told to work where the mode's prompt sets none: grounded, cot,"
        " react or self_ask",
    )
    flare_active_retrieval: bool = setting(
        _ANSWER.flare_active_retrieval, "use flare where a request names no strategy"
    )
    flare_draft_max_context_chars: int = setting(
        _ANSWER.flare_draft_max_context_chars, "characters of context for the flare draft", ge=500
    )
    memory_strategy: Literal["summary_buffer", "buffer", "none"] = setting(
        _ANSWER.memory_strategy, "how conversations are remembered"
    )
    memory_buffer_size: int = setting(
        _ANSWER.memory_buffer_size, "exchanges kept word for word", ge=0
    )
    memory_token_budget: int = setting(
        _ANSWER.memory_token_budget, "tokens of memory in a prompt", ge=0
    )
    first_token_target_s: float = setting(
        _MANNER.first_token_target_s,
        "seconds without a first word after which the page says what is waited for",
        gt=0,
    )
    reading_s: float = setting(
        _MANNER.reading_s,
        "seconds a model may read evidence, at its measured speed; at least 600 tokens",
        gt=0,
    )
    model_prompts: PromptKind = setting(
        _MANNER.prompts, "auto, compact or full: how a model is told what to do"
    )
    evidence: EvidenceKind = setting(
        _MANNER.evidence, "auto, short or full: how much a model is handed"
    )
    prompts_dir: Path | None = setting(
        None, "overlay for the prompts, file by file; empty: the packaged ones"
    )
    strict: bool = setting(
        _ANSWER.strict,
        "show no sentence of a model that the check does not call supported; a request can ask"
        " for it too",
    )
    check_by: CheckBy = setting(
        _ANSWER.check_by,
        "who decides whether a sentence is supported: reader, model (a decision model of Ollama,"
        " else the chat model, asked yes or no), or both (it is where both say so);"
        " `documind models test` rates a chat model at it",
    )
    refusal_language: Literal["en", "question"] = setting(
        _ANSWER.refusal_language,
        "language of the refusal: en, or question for that of the question",
    )
    store_answers: Literal["off", "hash", "full"] = setting(
        _ANSWER.store_answers, "what is kept of answers"
    )
    answer_retention_days: int = setting(
        _ANSWER.answer_retention_days, "days answers are kept; 0: forever", ge=0
    )

    # edge
    api_key: str = setting("", "key that /api/v1, /v1 and /mcp ask for; empty: none", repr=False)
    allow_insecure_bind: bool = setting(False, "listen beyond loopback without a key")
    allow_settings: bool = setting(
        True,
        "models, hosts and keys can be changed on the page and over HTTP; false: only by this file"
        " and by commands on the server's machine",
    )
    trusted_hosts: Annotated[tuple[str, ...], NoDecode] = setting(
        (), "Host names allowed besides the loopback ones, comma-separated"
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode] = setting(
        ("http://localhost:3002", "http://localhost:5173"),
        "web origins that may call the API, comma-separated",
    )
    cors_allow_all: bool = setting(False, "any web origin, for development")
    forwarded_allow_ips: str = setting("", "proxy addresses whose forwarded headers are believed")
    root_path: str = setting("", "path prefix behind a proxy")
    disable_openapi: bool = setting(False, "no /docs, /redoc, /openapi.json")
    enable_response_gzip: bool = setting(True, "gzip replies from 1 kB, never event streams")
    thread_pool_size: int = setting(128, "threads for requests", ge=4)
    max_streams: int = setting(64, "answers streaming at once", ge=1)
    rate_limit_per_minute: int = setting(0, "requests a minute per client; 0: off", ge=0)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting(
        "INFO", "least severe log line"
    )
    log_json: bool = setting(False, "log lines as JSON")
    otel_exporter_otlp_endpoint: str = setting(
        "",
        "OpenTelemetry collector that gets traces (OTLP over HTTP, like"
        " http://127.0.0.1:4318); empty: none",
    )
    documind_git_sha: str = setting("", "commit shown by diagnostics; DOCMIND_GIT_SHA is read too")
    documind_crash_at: int = setting(
        0, "for crash tests: end the process at the n-th write step; 0: never", ge=0
    )

    @model_validator(mode="before")
    @classmethod
    def _split_lists(cls, values: object) -> object:
        if isinstance(values, dict):
            if values.get("job_lanes") == "none":
                values["job_lanes"] = ()
            for name in ("trusted_hosts", "cors_origins", "job_lanes"):
                if isinstance(values.get(name), str):
                    values[name] = tuple(
                        part.strip() for part in values[name].split(",") if part.strip()
                    )
        return values

    @model_validator(mode="before")
    @classmethod
    def _read_other_names(cls, values: object) -> object:
        """Read second names; a vendor's own names are gone, and it gets no key of OpenAI's."""
        if not isinstance(values, dict):
            return values
        given = {name.lower(): value for name, value in os.environ.items() if value} | values
        named = (str(values.get(f"{role}_provider")) for role in ("llm", "embedding"))
        vendors = sorted(set(named) & set(PRESETS) - _OPENAI)
        for name, other in OTHER_NAMES.items():
            if values.get(name):
                continue
            of_vendors = [other.replace("openai", vendor) for vendor in vendors]
            if other.startswith("openai") and vendors:
                if gone := [one for one in of_vendors if one in given]:
                    raise ValueError(f"{gone[0].upper()} is gone: set {name.upper()} instead")
            elif other in given:
                values[name] = given[other]
        return values

    @field_validator("rerank", mode="before")
    @classmethod
    def _removed_order(cls, rerank: object) -> object:
        if rerank == "sentences":
            raise ValueError("RERANK=sentences is gone: use late, which finds more for less work")
        return rerank

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.chunk_overlap >= self.chunk_size:
            raise ValueError(
                f"CHUNK_OVERLAP ({self.chunk_overlap}) must be less than CHUNK_SIZE"
                f" ({self.chunk_size})"
            )
        if self.rerank == "cross_encoder" and not self.reader:
            raise ValueError("RERANK=cross_encoder needs the reader, which READER=false leaves out")
        hosts = {self.llm_provider, self.embedding_provider} & set(PRESETS)
        if len(hosts) > 1 and not hosts <= _OPENAI:
            raise ValueError(
                f"LLM_PROVIDER={self.llm_provider} and EMBEDDING_PROVIDER={self.embedding_provider}"
                " are two hosts, and HOSTED_URL and HOSTED_KEY are of one: name the same one, or"
                " embed with ollama, minilm or multilingual"
            )
        return self

    @property
    def library(self) -> Library:
        """The library of a request that needs one and names none."""
        return Library.PUBLIC if self.default_library == "auto" else Library(self.default_library)

    @property
    def is_shared(self) -> bool:
        return bool(self.database_url and self.search_url)

    @property
    def start_patience_s(self) -> float:
        """Return how long a start waits for what the settings name and does not answer, seconds."""
        return START_PATIENCE_S if self.is_shared else 0.0

    @property
    def chroma_dir(self) -> Path:
        return self.chroma_persist_dir or self.data_dir / "chroma"

    @property
    def embedded_models(self) -> Mapping[Library, EmbeddedModel]:
        """What embeds each library where no host does."""
        return {
            Library.PUBLIC: self.public_embedded_model or self.embedded_model,
            Library.PAPERS: self.papers_embedded_model or self.embedded_model,
        }

    def _options(self, kind: type[T], renamed: Mapping[str, str] = NOTHING, **given: object) -> T:
        """Return a room's options: settings of the same or another name, and what is given."""
        names = {field.name: renamed.get(field.name, field.name) for field in fields(kind)}
        known = type(self).model_fields
        taken = {name: getattr(self, of) for name, of in names.items() if of in known}
        return kind(**{**taken, **given})

    def ingest(self) -> IngestOptions:
        return self._options(
            IngestOptions,
            max_file_bytes=self.max_file_size_mb * 2**20,
            ocr_engine=find_engine(self.ocr_engine),
        )

    def index(self) -> IndexOptions:
        """Return the options of storage.

        Raises:
            InvalidInput: A search engine is named without a database, or a database without one.
        """
        if self.search_url and not self.database_url:
            raise InvalidInput(
                "SEARCH_URL needs DATABASE_URL: an engine serves a catalog in PostgreSQL"
            )
        if self.database_url and not self.search_url:
            raise InvalidInput(
                "DATABASE_URL needs SEARCH_URL: name a Qdrant, which is filled from the catalog at"
                " the start; or leave PostgreSQL: run `documind export` with the release before"
                " this one, and `documind import` without DATABASE_URL"
            )
        return self._options(
            IndexOptions,
            {
                "collection_papers": "chroma_collection_name",
                "collection_public": "chroma_collection_public",
            },
            chroma_dir=self.chroma_dir,
            originals_cache_bytes=self.originals_cache_mb * 2**20,
            max_file_bytes=self.max_file_size_mb * 2**20,
            # The engine answers: no rows in memory that other servers would have to follow.
            vector_cache_vectors=0 if self.search_url else self.vector_cache_vectors,
            papers_store=self.papers_vector_store or self.vector_store,
            public_store=self.public_vector_store or self.vector_store,
            dense_memory_bytes=0 if self.max_dense_vectors else max(1, _memory_bytes() // 4),
        )

    def retrieval(self) -> RetrievalOptions:
        return self._options(
            RetrievalOptions,
            {"top_k": "top_k_results", "enable_fallback": "enable_fallback_retrieval"},
        )

    def generation(self) -> GenerationOptions:
        names = {"max_tokens": "llm_max_tokens", "temperature": "llm_temperature"}
        explicit = [name for name, of in names.items() if of in self.model_fields_set]
        return self._options(
            GenerationOptions, names, explicit=tuple(sorted(explicit, reverse=True))
        )

    def providers(self) -> ProviderOptions:
        # A key goes to the host that is named; where none is, to one of OpenAI's protocol.
        named = {self.llm_provider, self.embedding_provider} & set(PRESETS)
        host = HostedOptions(self.hosted_url, self.hosted_key, self.hosted_model)
        return self._options(
            ProviderOptions,
            {"ollama_timeout_s": "ollama_request_timeout_sec", "num_ctx": "llm_num_ctx"},
            embedded_model=self.embedded_models,
            ollama_base_url=self.ollama_base_url.rstrip("/"),
            memory_bytes=_memory_bytes(),
            hosted=dict.fromkeys(named - _OPENAI or _OPENAI, host),
            chosen_host_file=self.data_dir / "hosted.json",
            arxiv_base_url=self.arxiv_base_url.rstrip("/"),
        )

    def zotero(self) -> ZoteroOptions:
        return self._options(ZoteroOptions, max_file_bytes=self.max_file_size_mb * 2**20)

    def answer(self) -> AnswerOptions:
        manner = self._options(MannerOptions, {"prompts": "model_prompts"})
        return self._options(AnswerOptions, manner=manner)

    def jobs(self) -> JobOptions:
        """Return the options of the job runner.

        Raises:
            InvalidInput: A server that is alone would leave jobs undone.
        """
        if not self.is_shared and set(self.job_lanes) != set(LANES):
            raise InvalidInput(
                "JOB_LANES leaves jobs undone: only with DATABASE_URL and SEARCH_URL can another"
                " process do them"
            )
        return JobOptions(lanes=self.job_lanes)


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


_PREFIXES = tuple(
    "API_ CHROMA_ DATABASE_ HOSTED_ OLLAMA_ LLM_ EMBEDDING_ EMBED_ CHUNK_ RELEVANCE_ PUBLIC_"
    " KEYWORD_ FALLBACK_ FLARE_ MEMORY_ PROMPTS_ STORE_ ANSWER_ ARXIV_ SEED_SAMPLE SAMPLE"
    " TRUSTED_ CORS_ EMBEDDED_ PAPERS_EMBEDDED DOCUMIND_ DOCMIND_ MAX_DENSE MAX_FILE"
    " MAX_STREAMS MAX_MODEL CROSS_ENCODER RATE_LIMIT THREAD_POOL VECTOR_ PAPERS_VECTOR"
    " SEARCH_ JOB_ ZOTERO_".split()
)
_ALIKE = 0.9
"""Similarity of a misspelt name with its setting (`difflib`, [0, 1]): one or two letters of ten."""
_FOREIGN = frozenset(
    "OLLAMA_HOST OLLAMA_MODELS OLLAMA_NUM_PARALLEL OLLAMA_MAX_LOADED_MODELS OLLAMA_CONTEXT_LENGTH"
    " OLLAMA_ORIGINS".split()
)


def names_of(field: str) -> list[str]:
    """Return a setting's name, then its other one if it has one; in lower case."""
    return [field, *([OTHER_NAMES[field]] if field in OTHER_NAMES else [])]


def check_start(settings: Settings) -> None:
    """Refuse to listen beyond this machine without a key, and a model that is not installed.

    Raises:
        InvalidInput: No API_KEY on an address that others can reach.
        ExtraMissing: EMBEDDED_MODEL without its package.
    """
    wanted = {*settings.embedded_models.values(), settings.embedding_provider}
    if "multilingual" in wanted and not is_installed():
        raise ExtraMissing(
            f"EMBEDDED_MODEL=multilingual asks for a model that is not installed; {CURE}"
        )
    if (
        not is_loopback(settings.api_host)
        and not settings.api_key
        and not settings.allow_insecure_bind
    ):
        raise InvalidInput(
            f"API_HOST {settings.api_host!r} can be reached from other machines and no API_KEY is"
            " set: set API_KEY, or ALLOW_INSECURE_BIND=true if something in front of the server"
            " asks for one"
        )


def lanes_of(text: str) -> tuple[Lane, ...]:
    """Return the lanes that a text names, with commas between them.

    Raises:
        InvalidInput: It names none, or one that does not exist.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    lanes = tuple(lane for lane in LANES if lane in names)
    if not lanes or set(names) - set(lanes):
        raise InvalidInput(f"lanes {text!r} must be some of {', '.join(LANES)}")
    return lanes


def check_work(settings: Settings) -> None:
    """Refuse a worker that has no server to work for, or nothing to do.

    Raises:
        InvalidInput: DATABASE_URL, SEARCH_URL or JOB_LANES is missing.
    """
    named = (("DATABASE_URL", settings.database_url), ("SEARCH_URL", settings.search_url))
    if missing := [name for name, value in named if not value]:
        raise InvalidInput(
            f"documind work needs {' and '.join(missing)}: it runs jobs of servers that share a"
            " database and a search engine"
        )
    if not settings.job_lanes:
        raise InvalidInput("JOB_LANES=none leaves nothing to do: name lanes, or use --lanes")


def unknown_names(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return environment names that look like ours but are no setting. For a warning at start."""
    ours = {name.upper() for field in Settings.model_fields for name in names_of(field)}
    known = ours | _FOREIGN | {"DOCUMIND_CLI_URL"}
    names = os.environ if environment is None else environment
    return sorted(
        name
        for name in names
        if name not in known
        and name != "API_URL"
        and (
            name.startswith(_PREFIXES)
            or ("_" in name and get_close_matches(name, known, 1, _ALIKE))
        )
    )
