"""A passage encoder without a model: sentences and tokens are hashed words, so that what shares words is near."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from app.core.sentences import sentence_spans
from app.core.text import tokenise
from app.core.types import TOKEN_BITS, EmbedderIdentity, FloatArray, PassageCode, QuestionCode
from tests.fakes.embedders import HashEmbedder


class HashEncoder:
    """Codes of hashed stems; the embedder's own when their dimension is 384."""

    def __init__(self, embedder: HashEmbedder) -> None:
        self._embedder = embedder
        self.encoded: list[str] = []

    @property
    def identity(self) -> EmbedderIdentity:
        return self._embedder.identity

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._embedder.count_tokens(texts)

    def embed_and_encode(self, texts: Sequence[str]) -> tuple[FloatArray, list[PassageCode]]:
        return self._embedder.embed_passages(texts), [self._code(text) for text in texts]

    def encode(self, texts: Sequence[str]) -> list[PassageCode]:
        self.encoded.extend(texts)
        return [self._code(text) for text in texts]

    def encode_question(self, text: str) -> QuestionCode:
        stems = tokenise(text) or [""]
        signs = np.stack(
            [
                np.unpackbits(np.frombuffer(_bits(stem), dtype=np.uint8)).astype(np.float32) * 2 - 1
                for stem in stems
            ]
        )
        return QuestionCode(
            self._embedder.embed_query(text),
            signs / np.float32(TOKEN_BITS**0.5),
            tuple(stems),
            (1,) * len(stems),
        )

    def _code(self, text: str) -> PassageCode:
        sentences = [text[start:end] for start, end in sentence_spans(text)] or [text]
        rows = np.stack([self._embedder.embed_query(sentence) for sentence in sentences[:32]])
        return PassageCode(
            np.rint(rows * 127).astype(np.int8).tobytes(),
            b"".join(_bits(stem) for stem in tokenise(text) or [""]),
        )


def _bits(stem: str) -> bytes:
    return hashlib.shake_128(stem.encode()).digest(TOKEN_BITS // 8)
