"""Vectors from hosts that speak OpenAI's protocol."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from app.core.cancel import CancelToken
from app.core.types import EmbedderIdentity, FloatArray
from app.providers.embedding_checks import checked_rows, refuse_long
from app.providers.json_fields import Fields
from app.providers.ollama_models import embedding_traits
from app.providers.openai_compatible import HostedEndpoint
from app.providers.presets import HOSTED_DIGEST
from app.providers.retries import with_retries
from app.providers.token_estimate import over_estimate

BATCH = 64
"""Texts per call; all presets take at least 100."""
MAX_TOKENS = 2048
"""The smallest window among the presets' embedding models (gemini-embedding-001), in tokens."""


class OpenAICompatibleEmbedder:
    """Embedder on `/embeddings`; thread-safe.

    Provider and model name replace a digest, which the protocol lacks.
    """

    def __init__(
        self, endpoint: HostedEndpoint, model: str, *, dimension: int | None = None
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            endpoint: Host and key.
            model: Name at the host.
            dimension: What vectors must have, when known (a library's fingerprint).
        """
        self._endpoint, self._model, self._dimension = endpoint, model, dimension
        self._traits = embedding_traits(model)
        self._identity: EmbedderIdentity | None = None
        self._lock = threading.Lock()

    @property
    def identity(self) -> EmbedderIdentity:
        """Dimension confirmed with one vector; asked once.

        Raises:
            ProviderError: The host failed.
        """
        with self._lock:
            if self._identity is None:
                endpoint, traits = self._endpoint, self._traits
                dimension = self._embed(["dimension"], self._dimension).shape[1]
                digest = f"{HOSTED_DIGEST}{endpoint.provider}:{self._model}"
                window = min(traits.max_tokens or MAX_TOKENS, MAX_TOKENS)
                self._identity = EmbedderIdentity(
                    endpoint.provider,
                    self._model,
                    digest,
                    dimension,
                    window,
                    traits.query_prefix,
                    traits.passage_prefix,
                )
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
            rows[at : at + BATCH] = self._embed(batch, identity.dimension)
        return rows

    def embed_query(self, text: str) -> FloatArray:
        """Return float32 `[dim]` of L2 norm 1; a long question is cut.

        Hosts refuse long questions.

        Raises:
            ProviderError: The host failed.
        """
        identity = self.identity
        question = self._traits.query_prefix + text
        while over_estimate(question) > identity.max_tokens:
            question = question[: len(question) * 3 // 4]
        row: FloatArray = self._embed([question], identity.dimension)[0]
        return row

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return an over-estimate with special tokens and prefix; no local tokenizer."""
        return [over_estimate(self._traits.passage_prefix + text) for text in texts]

    def _embed(self, texts: list[str], dimension: int | None) -> FloatArray:
        body = {"model": self._model, "input": [text if text.strip() else "." for text in texts]}

        def call() -> Fields:
            reply = self._endpoint.http.call("POST", "/embeddings", body)
            if reply.status != 200:
                retry_after = reply.headers.get("Retry-After")
                raise self._endpoint.translated(
                    reply.status, reply.text, self._model, retry_after, embedding=True
                )
            return Fields(reply.json(self._endpoint.name), self._endpoint.name)

        items = with_retries(call, CancelToken()).children("data")
        ordered = sorted(items, key=lambda item: item.count("index") or 0)
        vectors = [item.raw("embedding") for item in ordered]
        return checked_rows(
            vectors, len(texts), dimension, host=self._endpoint.name, model=self._model
        )
