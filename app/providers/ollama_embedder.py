"""Vectors from an Ollama host."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from app.core.cancel import CancelToken
from app.core.errors import ModelNotInstalled, ProviderBadResponse
from app.core.types import EmbedderIdentity, FloatArray
from app.providers.embedding_checks import checked_rows, refuse_long
from app.providers.json_fields import Fields
from app.providers.ollama import OllamaHost
from app.providers.ollama_listing import same_model
from app.providers.ollama_models import embedding_traits
from app.providers.retries import with_retries
from app.providers.token_estimate import over_estimate

BATCH = 32
"""Texts per call. The host embeds one after the other, so batches only save HTTP overhead
(docs/facts/ollama.md)."""
MAX_WINDOW = 2048
"""Window we ask for at most, in tokens: encoder models cannot split a text over batches, whose
default size this is."""
_DEFAULT_WINDOW = 512
"""For hosts that do not tell a model's window; the smallest of the common models'."""


class OllamaEmbedder:
    """Embedder on `/api/embed`; thread-safe.

    The first identity or vector contacts the host.
    """

    def __init__(
        self, host: OllamaHost, model: str, *, keep_alive: str = "30m", dimension: int | None = None
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            host: Where the model is.
            model: Name as `ollama list` shows it.
            keep_alive: How long the host keeps the model in memory after a call, as a Go duration.
            dimension: What vectors must have, when known (a library's fingerprint); None takes what
                comes first.
        """
        self._host, self._model, self._keep_alive, self._dimension = (
            host,
            model,
            keep_alive,
            dimension,
        )
        self._traits = embedding_traits(model)
        self._identity: EmbedderIdentity | None = None
        self._lock = threading.Lock()

    @property
    def identity(self) -> EmbedderIdentity:
        """Return the host's digest, window and dimension; asked once.

        One vector confirms them.

        Raises:
            ModelNotInstalled: The host does not have the model.
            ProviderBadResponse: The model cannot embed, or its vectors have another dimension than
                the library's.
            ProviderError: The host failed.
        """
        with self._lock:
            if self._identity is None:
                self._identity = self._ask_identity()
            return self._identity

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return float32 `[n, dim]`, rows of L2 norm 1, in order.

        Raises:
            PassageTooLong: A text may be longer than the window; or the host found it to be.
            ProviderError: The host failed.
        """
        identity = self.identity
        refuse_long(texts, self.count_tokens(texts), self._model, identity.max_tokens)
        rows = np.empty((len(texts), identity.dimension), dtype=np.float32)
        for at in range(0, len(texts), BATCH):
            batch = [self._traits.passage_prefix + text for text in texts[at : at + BATCH]]
            rows[at : at + BATCH] = self._embed(batch, identity.max_tokens, identity.dimension)
        return rows

    def embed_query(self, text: str) -> FloatArray:
        """Return float32 `[dim]` of L2 norm 1; the host cuts an over-long question.

        Raises:
            ProviderError: The host failed.
        """
        identity = self.identity
        row: FloatArray = self._embed(
            [self._traits.query_prefix + text],
            identity.max_tokens,
            identity.dimension,
            truncate=True,
        )[0]
        return row

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return an over-estimate with special tokens and prefix; no local tokenizer."""
        prefix = self._traits.passage_prefix
        return [over_estimate(prefix + text) for text in texts]

    def _ask_identity(self) -> EmbedderIdentity:
        details = self._host.details(self._model)
        if not details.embeds:
            raise ProviderBadResponse(
                f"model {self._model!r} cannot embed; choose an embedding model such as"
                " 'nomic-embed-text'"
            )
        digest = next(
            (row.digest for row in self._host.models() if same_model(row.name, self._model)), None
        )
        if digest is None:
            raise ModelNotInstalled(
                f"model {self._model!r} is not installed; run: ollama pull {self._model}"
            )
        stated = [
            tokens
            for tokens in (self._traits.max_tokens, details.context_tokens, details.configured_ctx)
            if tokens
        ]
        window = min([*stated, MAX_WINDOW]) if stated else _DEFAULT_WINDOW
        # some models have dense layers after the pooling, so only a vector tells the dimension
        dimension = self._embed(["dimension"], window, self._dimension).shape[1]
        traits = self._traits
        return EmbedderIdentity(
            "ollama",
            self._model,
            digest,
            dimension,
            window,
            traits.query_prefix,
            traits.passage_prefix,
        )

    def _embed(
        self, texts: list[str], window: int, dimension: int | None, *, truncate: bool = False
    ) -> FloatArray:
        body = {
            "model": self._model,
            "input": [
                text if text.strip() else "." for text in texts
            ],  # tokenizers without specials refuse an empty text
            "truncate": truncate,
            "keep_alive": self._keep_alive,
            "options": {"num_ctx": window},  # always the same, or the host loads the model again
        }

        def call() -> Fields:
            return self._host.check(
                self._host.http.call("POST", "/api/embed", body), self._model, embedding=True
            )

        reply = with_retries(call, CancelToken())
        return checked_rows(
            reply.raw("embeddings"), len(texts), dimension, host=self._host.name, model=self._model
        )
