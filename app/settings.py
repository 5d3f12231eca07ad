"""The configuration, and the options that each part takes of it.

`variables` reads the environment, here its values become the frozen options of the layers below,
and `checks` looks at the whole at start.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.answer.models import AnswerOptions, MannerOptions
from app.core.errors import ExtraMissing, InvalidInput
from app.core.ids import default_data_dir, is_loopback
from app.core.types import (
    DefaultLibrary,
    EmbeddedModel,
    EmbeddedStore,
    EvidenceKind,
    Fusion,
    Library,
    PromptKind,
    Reasoning,
    Rerank,
)
from app.generation.prompts import GenerationOptions
from app.ingest.names import IngestOptions
from app.jobs.runner import LANES, JobOptions, Lane
from app.models.multilingual import CURE, is_installed
from app.models.options import EmbeddingProviderName, HostedOptions, ProviderName, ProviderOptions
from app.retrieval.request import RetrievalOptions
from app.storage.options import IndexOptions

# Read the variables that say where the server listens and keeps things.


class PlaceVariables(BaseSettings):
    """Addresses and directories."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        extra="ignore",
        frozen=True,
        env_ignore_empty=True,
    )

    api_host: str = Field("127.0.0.1", description="address to listen on")
    api_port: int = Field(8001, ge=1, le=65535, description="port to listen on")
    data_dir: Path = Field(
        default_factory=default_data_dir,
        description="everything the server keeps; empty: ./var in a checkout or with a catalog in"
        " it, else the user's data folder",
    )
    chroma_persist_dir: Path | None = Field(
        None, description="directory of the Chroma store; empty: DATA_DIR/chroma"
    )
    originals_url: str = Field(
        "",
        description="s3://BUCKET/PREFIX?endpoint=http://HOST:PORT that keeps uploaded files (extra"
        " `shared`; keys: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY); empty: a directory in"
        " DATA_DIR",
    )
    originals_cache_mb: int = Field(
        2048, ge=1, description="files of the object store kept on this machine, the last used, MB"
    )
    database_url: str = Field(
        "",
        repr=False,
        description="postgresql://USER:PASSWORD@HOST/DATABASE that holds the catalog (extra"
        " `shared`); empty: SQLite in DATA_DIR",
    )
    search_url: str = Field(
        "",
        description="http://HOST:6333 of a Qdrant for vectors and words (extra `shared`), nodes"
        " with commas; empty: DATA_DIR",
    )
    search_api_key: str = Field("", repr=False, description="key that the search engine asks for")
    search_replicas: int = Field(
        1, ge=1, description="copies of every point in the search engine, made with a collection"
    )
    job_lanes: Annotated[tuple[Lane, ...], NoDecode] = Field(
        LANES,
        description="lanes of jobs that this process works in, comma-separated; none: other"
        " processes do (documind work; needs SEARCH_URL)",
    )
    default_library: DefaultLibrary = Field(
        "auto",
        description="library of a question that names none; `auto`: the one that holds your own"
        " documents, both if both do, else the samples in papers. What needs one library, such as"
        " an upload, then takes public",
    )
    app_env: Literal["development", "staging", "production"] = Field(
        "development",
        description="development, staging or production, which adds HSTS; diagnostics shows it",
    )


# Read the environment; each field is a variable of the same name in upper case.

HOSTED = ("openai", "groq", "google", "mistral", "anthropic")


class Variables(PlaceVariables):
    """All variables, from the environment and `.env` in the working directory."""

    # models
    ollama_base_url: str = Field(
        "http://127.0.0.1:11434",
        description="Ollama's address; of several, separated by commas, the first that answers",
    )
    llm_provider: ProviderName = Field(
        "auto",
        description="who answers: auto, ollama, extractive, openai_compatible or a hosted name",
    )
    llm_model: str = Field(
        "",
        description="model that answers; empty: a chat model that Ollama has (the chosen one, else"
        " the best tested, else the largest of up to 8 billion parameters that fits memory)",
    )
    helper_model: str = Field(
        "", description="model for rewrites, summaries and sub-queries; empty: the one that answers"
    )
    embedding_provider: EmbeddingProviderName = Field(
        "auto",
        description="who embeds; auto: Ollama where it has EMBEDDING_MODEL, else the embedded"
        " model",
    )
    embedding_model: str = Field("nomic-embed-text", description="embedding model on the provider")
    embedded_model: EmbeddedModel = Field(
        "minilm",
        description="model that embeds in the server itself: minilm (English) or multilingual (the"
        " extra multilingual)",
    )
    public_embedded_model: EmbeddedModel | None = Field(
        None, description="the same for public; empty: EMBEDDED_MODEL"
    )
    papers_embedded_model: EmbeddedModel | None = Field(
        None, description="the same for papers; empty: EMBEDDED_MODEL"
    )
    openai_base_url: str = Field(
        "", description="address of an OpenAI-compatible server; empty: the provider's own"
    )
    openai_api_key: str = Field("", repr=False, description="key for openai or openai_compatible")
    openai_model: str = Field("", description="model for openai or openai_compatible")
    groq_api_key: str = Field("", repr=False, description="key for groq")
    groq_model: str = Field("", description="model for groq")
    google_api_key: str = Field("", repr=False, description="key for google")
    google_model: str = Field("", description="model for google")
    mistral_api_key: str = Field("", repr=False, description="key for mistral")
    mistral_model: str = Field("", description="model for mistral")
    anthropic_api_key: str = Field("", repr=False, description="key for anthropic")
    anthropic_model: str = Field("", description="model for anthropic")
    ollama_request_timeout_sec: float = Field(
        300, gt=0, description="seconds a model call may be silent"
    )
    ollama_keep_alive: str = Field("30m", description="how long Ollama keeps a model loaded")
    llm_num_ctx: int = Field(
        8192, ge=512, description="context window in tokens, clamped to the model"
    )
    llm_max_tokens: int = Field(
        1024, ge=16, description="longest answer in tokens; unset, 256 with the compact prompt"
    )
    llm_temperature: float = Field(
        0.2,
        ge=0,
        le=2,
        description="sampling temperature; unset, a packaged prompt may have one of its own",
    )
    max_model_calls: int = Field(4, ge=1, description="model calls at once")
    cross_encoder_dir: Path | None = Field(
        None, description="directory of a local cross-encoder; empty: off"
    )

    # ingest
    chunk_size: int = Field(1000, ge=100, le=8000, description="ceiling of a chunk in characters")
    chunk_overlap: int = Field(150, ge=0, description="characters shared by neighbouring chunks")
    max_file_size_mb: int = Field(50, ge=1, description="largest upload in MiB")
    arxiv_base_url: str = Field(
        "https://export.arxiv.org", description="arXiv host for fetch-arxiv"
    )
    samples: bool = Field(
        True, description="index the sample documents once when both libraries are empty"
    )
    seed_sample_docs: bool = Field(
        False, description="purge and re-seed the samples when SAMPLE_CORPUS_VERSION changes"
    )
    sample_corpus_version: str = Field("2", description="marker for SEED_SAMPLE_DOCS")

    # retrieval
    top_k_results: int = Field(
        5, ge=1, le=50, description="passages for an answer when the request names no top_k"
    )
    relevance_threshold: float = Field(
        0.65, ge=0, le=2, description="cosine distance cutoff of papers (arm dense)"
    )
    public_relevance_threshold: float = Field(
        0.65, ge=0, le=2, description="cosine distance cutoff of public (arm dense)"
    )
    keyword_rerank_weight: float = Field(
        0.15, ge=0, le=1, description="weight of keyword overlap in papers (arm dense)"
    )
    public_keyword_rerank_weight: float = Field(
        0.15, ge=0, le=1, description="weight of keyword overlap in public (arm dense)"
    )
    enable_fallback_retrieval: bool = Field(
        False, description="hand a model the nearest passages when none passes the cutoff"
    )
    fallback_top_n: int = Field(3, ge=1, description="passages of the fallback")
    fusion: Fusion = Field("relative_score", description="relative_score, rrf, dense or lexical")
    rerank: Rerank = Field(
        "auto",
        description="order of the best passages: auto (cross_encoder where CROSS_ENCODER_DIR is"
        " set, else late), none, late, mmr or cross_encoder",
    )
    late_interaction_max_chunks: int = Field(
        100_000,
        ge=0,
        description="chunks up to which a library keeps codes for late interaction, 5 KB each; 0:"
        " off",
    )
    embed_on_query_budget_ms: float = Field(
        25,
        ge=0,
        description="milliseconds a question may spend embedding candidates without a vector",
    )
    query_embed_timeout_s: float = Field(
        2.5,
        gt=0,
        description="seconds a question waits for its vector; then it is searched by words",
    )
    max_dense_vectors: int = Field(
        0,
        ge=0,
        description="vectors that dense search finds; 0: a quarter of RAM, at 2,048 bytes each in"
        " chroma and 120 in faiss",
    )
    vector_cache_vectors: int = Field(
        100_000,
        ge=0,
        description="vectors up to which a library is searched in memory, 2 KB each; 0: the store"
        " answers all",
    )
    vector_store: EmbeddedStore = Field(
        "chroma",
        description="store of vectors: chroma (2 KB a vector in memory) or faiss (70 bytes; the"
        " extra large)",
    )
    public_vector_store: EmbeddedStore | None = Field(
        None, description="store of public's vectors; empty: VECTOR_STORE"
    )
    papers_vector_store: EmbeddedStore | None = Field(
        None, description="store of papers' vectors; empty: VECTOR_STORE"
    )
    chroma_store_text: bool = Field(
        False,
        description="keep title and text in Chroma's rows too, for tools that read the store;"
        " rows that are there get them by the next fill",
    )
    chroma_collection_name: str = Field(
        "papers", min_length=3, description="Chroma collection of papers"
    )
    chroma_collection_public: str = Field(
        "public", min_length=3, description="Chroma collection of public"
    )

    # answers
    reasoning: Reasoning = Field(
        "grounded",
        description="how a model is told to work where the mode's prompt sets none: grounded, cot,"
        " react or self_ask",
    )
    grounding_min_similarity: float = Field(
        0.4,
        ge=0,
        le=1,
        description="probability from which a passage is about a sentence that it does not say",
    )
    flare_active_retrieval: bool = Field(
        False, description="use flare where a request names no strategy"
    )
    flare_draft_max_context_chars: int = Field(
        6000, ge=500, description="characters of context for the flare draft"
    )
    memory_strategy: Literal["summary_buffer", "buffer", "none"] = Field(
        "summary_buffer", description="how conversations are remembered"
    )
    memory_buffer_size: int = Field(4, ge=0, description="exchanges kept word for word")
    memory_token_budget: int = Field(2000, ge=0, description="tokens of memory in a prompt")
    first_token_target_s: float = Field(
        3, gt=0, description="seconds a model may read before its first word"
    )
    model_prompts: PromptKind = Field(
        "auto", description="auto, compact or full: how a model is told what to do"
    )
    evidence: EvidenceKind = Field(
        "auto", description="auto, short or full: how much a model is handed"
    )
    prompts_dir: Path | None = Field(
        None, description="overlay for the prompts, file by file; empty: the packaged ones"
    )
    refusal_language: Literal["en", "question"] = Field(
        "en", description="language of the refusal: en, or question for that of the question"
    )
    store_answers: Literal["off", "hash", "full"] = Field(
        "full", description="what is kept of answers"
    )
    answer_retention_days: int = Field(0, ge=0, description="days answers are kept; 0: for ever")

    # edge
    api_key: str = Field(
        "", repr=False, description="key that /api/v1, /v1 and /mcp ask for; empty: none"
    )
    allow_insecure_bind: bool = Field(False, description="listen beyond loopback without a key")
    trusted_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Host names allowed besides the loopback ones, comma-separated"
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        ("http://localhost:3002", "http://localhost:5173"),
        description="web origins that may call the API, comma-separated",
    )
    cors_allow_all: bool = Field(False, description="any web origin, for development")
    forwarded_allow_ips: str = Field(
        "", description="proxy addresses whose forwarded headers are believed"
    )
    root_path: str = Field("", description="path prefix behind a proxy")
    disable_openapi: bool = Field(False, description="no /docs, /redoc, /openapi.json")
    enable_response_gzip: bool = Field(
        True, description="gzip replies from 1 kB, never event streams"
    )
    thread_pool_size: int = Field(128, ge=4, description="threads for requests")
    max_streams: int = Field(64, ge=1, description="answers streaming at once")
    rate_limit_per_minute: int = Field(0, ge=0, description="requests a minute per client; 0: off")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="least severe log line"
    )
    log_json: bool = Field(False, description="log lines as JSON")
    otel_exporter_otlp_endpoint: str = Field(
        "",
        description="OpenTelemetry collector that gets traces (OTLP over HTTP, like"
        " http://127.0.0.1:4318); empty: none",
    )
    documind_git_sha: str = Field(
        "", description="commit shown by diagnostics; DOCMIND_GIT_SHA is read too"
    )
    documind_crash_at: int = Field(
        0, ge=0, description="for crash tests: end the process at the n-th write step; 0: never"
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
            if not values.get("documind_git_sha") and os.environ.get("DOCMIND_GIT_SHA"):
                values["documind_git_sha"] = os.environ["DOCMIND_GIT_SHA"]
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
        if self.rerank == "cross_encoder" and self.cross_encoder_dir is None:
            raise ValueError(
                "RERANK=cross_encoder needs CROSS_ENCODER_DIR, the directory of a local"
                " cross-encoder"
            )
        return self


class Settings(Variables):
    """All configuration, from the environment and `.env` in the working directory."""

    @property
    def library(self) -> Library:
        """The library of a request that needs one and names none."""
        return Library.PUBLIC if self.default_library == "auto" else Library(self.default_library)

    @property
    def is_shared(self) -> bool:
        """Return whether other processes may use the same data."""
        return bool(self.database_url and self.search_url)

    @property
    def chroma_dir(self) -> Path:
        """Return the directory of Chroma's store."""
        return self.chroma_persist_dir or self.data_dir / "chroma"

    @property
    def embedded_models(self) -> Mapping[Library, EmbeddedModel]:
        """What embeds each library where no host does."""
        return {
            Library.PUBLIC: self.public_embedded_model or self.embedded_model,
            Library.PAPERS: self.papers_embedded_model or self.embedded_model,
        }

    def ingest(self) -> IngestOptions:
        return IngestOptions(
            chunk_size=self.chunk_size,
            chunk_overlap=self.chunk_overlap,
            max_file_bytes=self.max_file_size_mb * 1024 * 1024,
            late_interaction_max_chunks=self.late_interaction_max_chunks,
        )

    def index(self) -> IndexOptions:
        """Return the options of storage.

        Raises:
            InvalidInput: A search engine is named, but no database that goes with it.
        """
        if self.search_url and not self.database_url:
            raise InvalidInput(
                "SEARCH_URL needs DATABASE_URL: an engine serves a catalog in PostgreSQL"
            )
        return IndexOptions(
            data_dir=self.data_dir,
            chroma_dir=self.chroma_dir,
            chroma_store_text=self.chroma_store_text,
            originals_url=self.originals_url,
            originals_cache_bytes=self.originals_cache_mb * 1024 * 1024,
            database_url=self.database_url,
            search_url=self.search_url,
            search_api_key=self.search_api_key,
            search_replicas=self.search_replicas,
            max_file_bytes=self.max_file_size_mb * 1024 * 1024,
            collection_papers=self.chroma_collection_name,
            collection_public=self.chroma_collection_public,
            # The engine answers: no rows in memory that other servers would have to follow.
            vector_cache_vectors=0 if self.search_url else self.vector_cache_vectors,
            papers_store=self.papers_vector_store or self.vector_store,
            public_store=self.public_vector_store or self.vector_store,
            max_dense_vectors=self.max_dense_vectors,
            dense_memory_bytes=0 if self.max_dense_vectors else max(1, _memory_bytes() // 4),
        )

    def retrieval(self) -> RetrievalOptions:
        return RetrievalOptions(
            top_k=self.top_k_results,
            fusion=self.fusion,
            rerank=self.rerank,
            relevance_threshold=self.relevance_threshold,
            public_relevance_threshold=self.public_relevance_threshold,
            keyword_rerank_weight=self.keyword_rerank_weight,
            public_keyword_rerank_weight=self.public_keyword_rerank_weight,
            enable_fallback=self.enable_fallback_retrieval,
            fallback_top_n=self.fallback_top_n,
            embed_on_query_budget_ms=self.embed_on_query_budget_ms,
        )

    def generation(self) -> GenerationOptions:
        return GenerationOptions(
            prompts_dir=self.prompts_dir,
            max_tokens=self.llm_max_tokens,
            temperature=self.llm_temperature,
            reasoning=self.reasoning,
            grounding_min_similarity=self.grounding_min_similarity,
            explicit=tuple(
                name
                for name in ("temperature", "max_tokens")
                if f"llm_{name}" in self.model_fields_set
            ),
        )

    def providers(self) -> ProviderOptions:
        """Return the options of model hosts."""
        hosted = {
            name: HostedOptions(
                api_key=getattr(self, f"{name}_api_key"), model=getattr(self, f"{name}_model")
            )
            for name in HOSTED
        }
        hosted["openai"] = HostedOptions(
            self.openai_base_url, self.openai_api_key, self.openai_model
        )
        hosted["openai_compatible"] = hosted["openai"]
        return ProviderOptions(
            llm_provider=self.llm_provider,
            llm_model=self.llm_model,
            helper_model=self.helper_model,
            embedding_provider=self.embedding_provider,
            embedding_model=self.embedding_model,
            embedded_model=self.embedded_models,
            ollama_base_url=self.ollama_base_url.rstrip("/"),
            ollama_timeout_s=self.ollama_request_timeout_sec,
            query_embed_timeout_s=self.query_embed_timeout_s,
            ollama_keep_alive=self.ollama_keep_alive,
            num_ctx=self.llm_num_ctx,
            max_model_calls=self.max_model_calls,
            memory_bytes=_memory_bytes(),
            hosted=hosted,
            cross_encoder_dir=self.cross_encoder_dir,
            model_cache_dir=self.data_dir / "models",
            arxiv_base_url=self.arxiv_base_url.rstrip("/"),
        )

    def answer(self) -> AnswerOptions:
        """Return the options of the query use case."""
        return AnswerOptions(
            flare_active_retrieval=self.flare_active_retrieval,
            flare_draft_max_context_chars=self.flare_draft_max_context_chars,
            memory_strategy=self.memory_strategy,
            memory_buffer_size=self.memory_buffer_size,
            memory_token_budget=self.memory_token_budget,
            refusal_language=self.refusal_language,
            store_answers=self.store_answers,
            answer_retention_days=self.answer_retention_days,
            manner=MannerOptions(self.model_prompts, self.evidence, self.first_token_target_s),
        )

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


# Check the configuration at start: where the server listens, and misspelt names.

_PREFIXES = tuple(
    "API_ CHROMA_ DATABASE_ OLLAMA_ LLM_ EMBEDDING_ EMBED_ CHUNK_ RELEVANCE_ PUBLIC_ KEYWORD_"
    " FALLBACK_ FLARE_ MEMORY_ PROMPTS_ STORE_"
    " ANSWER_ ARXIV_ SEED_SAMPLE SAMPLE TRUSTED_"
    " CORS_ EMBEDDED_ PAPERS_EMBEDDED DOCUMIND_ DOCMIND_ MAX_DENSE MAX_FILE MAX_STREAMS MAX_MODEL"
    " CROSS_ENCODER RATE_LIMIT"
    " THREAD_POOL VECTOR_ PAPERS_VECTOR SEARCH_ JOB_".split()
)
_ALIKE = 0.9
"""Similarity of a misspelt name with its setting (`difflib`, [0, 1]): one or two letters of ten."""
_FOREIGN = frozenset(
    {
        "OLLAMA_HOST",
        "OLLAMA_MODELS",
        "OLLAMA_NUM_PARALLEL",
        "OLLAMA_MAX_LOADED_MODELS",
        "OLLAMA_CONTEXT_LENGTH",
        "OLLAMA_ORIGINS",
    }
)


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
            " set:"
            " set API_KEY, or ALLOW_INSECURE_BIND=true if something in front of the server asks"
            " for one"
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
    """Return environment names that look like ours but are no setting.

    For a warning at start.
    """
    known = (
        {name.upper() for name in Settings.model_fields}
        | _FOREIGN
        | {"DOCMIND_GIT_SHA", "DOCUMIND_CLI_URL"}
    )
    names = os.environ if environment is None else environment
    return sorted(
        name
        for name in names
        if name not in known
        and name != "API_URL"
        and (name.startswith(_PREFIXES) or _resembles(name, known))
    )


def _resembles(name: str, known: Collection[str]) -> bool:
    """Return whether a name is a setting's but for a slip of the fingers."""
    return "_" in name and bool(get_close_matches(name, known, 1, _ALIKE))
