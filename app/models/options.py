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
class ZoteroOptions:
    """Which Zotero is followed."""

    zotero_url: str = ""
    """Empty: the usual one of the program, or of zotero.org."""
    zotero_library: str = ""
    """Of zotero.org, `users/ID` or `groups/ID`; empty: those of the program on this machine."""
    zotero_api_key: str = field(default="", repr=False)
    max_file_bytes: int = 50 * 2**20


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
    ollama_timeout_s: float = 300
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
    chosen_host_file: Path | None = None
    """Where the host that was chosen on the page is kept."""
    reader: bool = True
    """Whether sentences are read with the question."""
    model_threads: int = 0
    """ONNX Runtime threads; 0: one per core."""
    arxiv_base_url: str = "https://export.arxiv.org"
    arxiv_max_bytes: int = 50 * 1024 * 1024
    arxiv_interval_s: float = 3.0


# Hosted providers that speak OpenAI's protocol: data.

HOSTED_DIGEST = "hosted:"
"""Start of a hosted embedder's digest (`hosted:provider:model`), by which a fingerprint tells
where its vectors came from."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One provider's differences from the others."""

    name: str
    """As people know it."""
    base_url: str
    max_tokens_field: str = "max_tokens"
    usage_on_request: bool = True
    """False where the stream carries usage unasked and refuses `stream_options`."""
    logprobs: bool = False
    embedding_model: str = ""
    """Default embedding model; empty where the provider has none."""


PRESETS: dict[str, Preset] = {
    # platform.openai.com/docs/api-reference
    "openai": Preset(
        "OpenAI",
        "https://api.openai.com/v1",
        "max_completion_tokens",
        logprobs=True,
        embedding_model="text-embedding-3-small",
    ),
    # any server of the same protocol, at HOSTED_URL
    "openai_compatible": Preset(
        "the OpenAI-compatible server", "http://127.0.0.1:8000/v1", logprobs=True
    ),
    # console.groq.com/docs/openai
    "groq": Preset("Groq", "https://api.groq.com/openai/v1", "max_completion_tokens"),
    # ai.google.dev/gemini-api/docs/openai
    "google": Preset(
        "Google",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        embedding_model="gemini-embedding-001",
    ),
    # docs.mistral.ai/api
    "mistral": Preset(
        "Mistral",
        "https://api.mistral.ai/v1",
        usage_on_request=False,
        embedding_model="mistral-embed",
    ),
    # docs.anthropic.com/en/api/openai-sdk
    "anthropic": Preset("Anthropic", "https://api.anthropic.com/v1"),
}
