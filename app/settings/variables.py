"""Read the environment; each field is a variable of the same name in upper case.

No other module reads a value from it. Defaults, units and meanings are here; `.env.example` and
docs/configuration.md are checked against this file by tests/unit/test_settings.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import NoDecode

from app.core.types import (
    EmbeddedModel,
    EmbeddedStore,
    EvidenceKind,
    Fusion,
    PromptKind,
    Reasoning,
    Rerank,
)
from app.providers.options import EmbeddingProviderName, ProviderName
from app.settings.places import PlaceVariables

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
