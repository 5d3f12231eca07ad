"""Choose the embedder of each library while hosts come and go."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import cast

from app.bootstrap.embedded import EmbeddedModels
from app.bootstrap.endpoints import Endpoints
from app.core.ports import Embedder
from app.core.types import EmbeddingState, Fingerprint, Library
from app.providers.multilingual import CURE, is_installed
from app.providers.ollama import OllamaHost
from app.providers.ollama_embedder import OllamaEmbedder
from app.providers.ollama_watch import OllamaWatch
from app.providers.openai_embedder import OpenAICompatibleEmbedder
from app.providers.options import EmbeddingProviderName, ProviderOptions
from app.providers.selection import EmbedderChoice, better_embedder, choose_embedder
from app.providers.timely import TimelyEmbedder

logger = logging.getLogger(__name__)


class Embedders:
    """Makes each embedder that `app.providers.selection` chooses once; thread-safe."""

    def __init__(
        self,
        options: ProviderOptions,
        ollama: OllamaHost,
        watch: OllamaWatch,
        endpoints: Endpoints,
        embedded: EmbeddedModels,
    ) -> None:
        """Prepare; no model is loaded and no host asked before it is needed.

        Args:
            options: Hosts and names.
            ollama: The host of Ollama's models.
            watch: Knows whether it answers and what it has.
            endpoints: The hosted providers.
            embedded: The model that needs no host.
        """
        self._options = options
        self._ollama = ollama
        self._watch = watch
        self._endpoints = endpoints
        self._embedded = embedded
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str, int | None], Embedder] = {}
        self._timely: dict[int, Embedder] = {}
        """By the identity of the embedder that asks a host."""
        self._told: set[str] = set()

    def for_questions(self, embedder: Embedder) -> Embedder:
        """Return an embedder that a question can wait for: QUERY_EMBED_TIMEOUT_S at most."""
        with self._lock:
            return self._timely.get(id(embedder), embedder)

    def of(self, library: Library, fingerprint: Fingerprint | None) -> Embedder | None:
        """Return a library's embedder by fingerprint; None while it is unavailable.

        Its host lacks the model or does not respond, or its package is gone.

        Raises:
            InvalidInput: A hosted provider is configured without a model.
        """
        choice = choose_embedder(self._options, self._watch, fingerprint, library)
        self._tell(choice)
        if choice.provider == "minilm":
            return self._embedded.sentence_embedder
        if choice.provider == "multilingual":
            return self._embedded.multilingual if is_installed() else None
        if choice.provider == "ollama" and not self._watch.status().has(choice.model):
            return None
        dimension = fingerprint.dimension if fingerprint else None
        with self._lock:
            key = (choice.provider, choice.model, dimension)
            if key not in self._made:
                made = self._made[key] = self._make_embedder(choice, dimension)
                timeout_s = self._options.query_embed_timeout_s
                self._timely[id(made)] = TimelyEmbedder(made, timeout_s, self._watch.forget)
            return self._made[key]

    def state(self, library: Library, fingerprint: Fingerprint | None) -> EmbeddingState:
        """Return a library's embedder and whether it responds; runs no model.

        Raises:
            InvalidInput: A hosted provider is configured without a model.
        """
        choice = choose_embedder(self._options, self._watch, fingerprint, library)
        name = f"{choice.provider}:{choice.model}"
        if choice.provider == "multilingual" and not is_installed():
            return EmbeddingState(
                name, reachable=False, detail=f"the model is not installed; {CURE}"
            )
        status = self._watch.status() if choice.provider == "ollama" else None
        if status is None or status.has(choice.model):
            return EmbeddingState(name, reachable=True)
        if not status.reachable:
            return EmbeddingState(
                name,
                reachable=False,
                detail=f"{status.trouble}; start it: documind up, or: ollama serve",
            )
        return EmbeddingState(
            name,
            reachable=False,
            detail=f"Ollama does not have the model; run: ollama pull {choice.model}",
        )

    def better(self, library: Library, fingerprint: Fingerprint) -> EmbedderChoice | None:
        """Return the configured, available embedder if a library has another.

        Raises:
            InvalidInput: A hosted provider is configured without a model.
        """
        return better_embedder(self._options, self._watch, fingerprint, library)

    def named(self, library: Library, provider: str | None, model: str | None) -> Embedder:
        """Return an embedder by name for a re-embedding; defaults are as configured.

        Raises:
            ModelNotInstalled: Ollama does not have the model, or its package is not installed.
            ProviderError: Its host is away.
            InvalidInput: A hosted provider without a model.
        """
        options = self._options
        if provider is not None:
            options = replace(options, embedding_provider=cast("EmbeddingProviderName", provider))
        elif model is not None and options.embedding_provider == "auto":
            options = replace(
                options, embedding_provider="ollama"
            )  # the only one of the automatic two that has models to name
        if model is not None:
            options = replace(options, embedding_model=model)
        choice = choose_embedder(options, self._watch, None, library)
        if choice.provider == "minilm":
            return self._embedded.sentence_embedder
        if choice.provider == "multilingual":
            return self._embedded.multilingual
        return self._make_embedder(choice, None)

    def _make_embedder(self, choice: EmbedderChoice, dimension: int | None) -> Embedder:
        if choice.provider == "ollama":
            return OllamaEmbedder(
                self._ollama,
                choice.model,
                keep_alive=self._options.ollama_keep_alive,
                dimension=dimension,
            )
        return OpenAICompatibleEmbedder(
            self._endpoints.of(choice.provider), choice.model, dimension=dimension
        )

    def _tell(self, choice: EmbedderChoice) -> None:
        """Log a notice of a choice once."""
        if choice.notice and choice.notice not in self._told:
            self._told.add(choice.notice)
            logger.warning("%s", choice.notice)
