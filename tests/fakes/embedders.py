"""Embedders without a model: deterministic vectors that are near when texts share words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from app.core.errors import PassageTooLong
from app.core.text import tokenise
from app.core.types import EmbedderIdentity, FloatArray
from app.core.vectors import l2_normalise

_PIECE = re.compile(r"\w{1,8}|[^\w\s]")  # about what a word-piece tokenizer makes of English


class HashEmbedder:
    """Bag of hashed stems: cosine is high when two texts share words, the same on every machine and run."""

    def __init__(
        self,
        dimension: int = 64,
        *,
        max_tokens: int = 256,
        model: str = "hash",
        languages: frozenset[str] = frozenset(),
    ) -> None:
        self._identity = EmbedderIdentity(
            provider="fake",
            model=model,
            digest=f"{model}-{dimension}",
            dimension=dimension,
            max_tokens=max_tokens,
            languages=languages,
        )
        self._columns: dict[str, tuple[int, float]] = {}
        self.embedded: list[str] = []
        """Every passage embedded so far, in order."""

    @property
    def identity(self) -> EmbedderIdentity:
        return self._identity

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        for text, tokens in zip(texts, self.count_tokens(texts), strict=True):
            if tokens > self._identity.max_tokens:
                raise PassageTooLong(
                    f"text {text[:40]!r} has {tokens} tokens; {self._identity.max_tokens} fit"
                )
        self.embedded.extend(texts)
        return self._rows(texts)

    def embed_query(self, text: str) -> FloatArray:
        row: FloatArray = self._rows([text])[0]
        return row

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [2 + len(_PIECE.findall(text)) for text in texts]

    def _rows(self, texts: Sequence[str]) -> FloatArray:
        rows = np.zeros((len(texts), self._identity.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for token in tokenise(text) or [text]:
                column, sign = self._column(token)
                row[column] += sign
            if not row.any():  # signs cancelled out
                row[0] = 1.0
        return l2_normalise(rows)

    def _column(self, token: str) -> tuple[int, float]:
        found = self._columns.get(token)
        if found is None:
            digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
            found = (
                int.from_bytes(digest[:4], "big") % self._identity.dimension,
                1.0 if digest[4] & 1 else -1.0,
            )
            self._columns[token] = found
        return found
