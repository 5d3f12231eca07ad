"""Check the model host for commands that run before a server."""

from __future__ import annotations

from app.providers.minilm import MiniLmEmbedder
from app.providers.ollama import OllamaHost
from app.providers.ollama_embedder import OllamaEmbedder
from app.providers.ollama_watch import OllamaWatch
from app.providers.options import SUGGESTED_MODEL
from app.providers.selection import NO_PREFERENCES, automatic_model
from app.providers.twin import TwinComparison, compare
from app.settings import Settings


def ollama_host(settings: Settings) -> OllamaHost:
    """Return the configured Ollama host; nothing is sent yet.

    Raises:
        InvalidInput: OLLAMA_BASE_URL cannot be read.
    """
    options = settings.providers()
    return OllamaHost(
        options.ollama_base_url,
        connect_timeout_s=options.ollama_connect_timeout_s,
        read_timeout_s=options.ollama_timeout_s,
    )


def needs_ollama(settings: Settings) -> bool:
    """Return whether Ollama may answer or embed under this configuration."""
    return not {"auto", "ollama"}.isdisjoint({settings.llm_provider, settings.embedding_provider})


def wanted_models(settings: Settings, host: OllamaHost) -> tuple[str, ...]:
    """Return the Ollama models of the configuration, each once.

    Where LLM_MODEL names none, a chat model that the host has, else the one to fetch.
    """
    options = settings.providers()
    wanted: list[str] = []
    if options.llm_provider in {"auto", "ollama"}:
        found = options.llm_model or automatic_model(options, OllamaWatch(host), NO_PREFERENCES)[0]
        wanted += [found or SUGGESTED_MODEL, options.helper_model]
    if options.embedding_provider in {"auto", "ollama"}:
        wanted.append(options.embedding_model)
    return tuple(dict.fromkeys(name for name in wanted if name))


def embedders_compared(settings: Settings, host: OllamaHost) -> TwinComparison:
    """Compare the embedded model with Ollama's configured one: vectors and speed.

    Raises:
        ProviderError: The host failed, or its model cannot embed.
    """
    options = settings.providers()
    embedded = MiniLmEmbedder(options.model_cache_dir, threads=options.model_threads)
    return compare(embedded, OllamaEmbedder(host, options.embedding_model))
