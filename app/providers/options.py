"""Options of model hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from app.core.types import EmbeddedModel, Library

ProviderName = Literal[
    "auto",
    "ollama",
    "extractive",
    "openai_compatible",
    "openai",
    "groq",
    "google",
    "mistral",
    "anthropic",
]
EmbeddingProviderName = Literal[
    "auto", "ollama", "minilm", "multilingual", "openai_compatible", "openai", "google", "mistral"
]


SUGGESTED_MODEL = "llama3.2"
"""What is fetched where a host has no chat model: reads well and fits eight gigabytes."""


@dataclass(frozen=True, slots=True)
class HostedOptions:
    """An OpenAI-compatible endpoint; an empty key sends no Authorization header."""

    base_url: str = ""
    api_key: str = field(default="", repr=False)
    model: str = ""


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """Models that answer and embed, and access to their hosts. Seconds."""

    llm_provider: ProviderName = "auto"
    llm_model: str = ""
    """Empty: a chat model that Ollama has."""
    helper_model: str = ""
    embedding_provider: EmbeddingProviderName = "auto"
    embedding_model: str = "nomic-embed-text"
    embedded_model: Mapping[Library, EmbeddedModel] = field(default_factory=dict)
    """What embeds an empty library where no host does; MiniLM where none is named."""
    ollama_base_url: str = "http://127.0.0.1:11434"
    ollama_timeout_s: float = 300.0
    ollama_connect_timeout_s: float = 3.0
    query_embed_timeout_s: float = 2.5
    """Longest wait for the vector of a question."""
    ollama_keep_alive: str = "30m"
    num_ctx: int = 8192
    max_model_calls: int = 4
    memory_bytes: int = 0
    """Of this machine; 0: unknown."""
    hosted: dict[str, HostedOptions] = field(default_factory=dict)
    """By provider name."""
    cross_encoder_dir: Path | None = None
    model_threads: int = 0
    """ONNX Runtime threads; 0: one per core."""
    model_cache_dir: Path | None = None
    """Where built ONNX graphs are kept; None keeps them in memory only."""
    arxiv_base_url: str = "https://export.arxiv.org"
    arxiv_max_bytes: int = 50 * 1024 * 1024
    arxiv_interval_s: float = 3.0
