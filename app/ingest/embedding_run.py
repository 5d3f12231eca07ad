"""Embed the batches of one run; set aside the texts that the embedder refuses."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.errors import DocuMindError, InputError, PassageTooLong, ProviderBadResponse
from app.core.ports import Embedder, PassageEncoder
from app.core.types import Chunk, FloatArray, PassageCode
from app.core.vectors import l2_normalise
from app.ingest.chunking import halves

_HOPELESS = 8
"""This many refusals before the first success mean that the host is broken, not the texts."""


@dataclass(frozen=True, slots=True)
class ChunkFailure:
    """A chunk that the embedder refuses even alone; it stays findable by its words."""

    chunk_id: int
    doc_id: str
    code: str
    reason: str


Embedded = tuple[Chunk, FloatArray]


class EmbeddingRun:
    """State of a run: failing texts, and whether over-long ones occur; thread-safe."""

    def __init__(self, embedder: Embedder, encoder: PassageEncoder | None) -> None:
        self._embedder = embedder
        self._encoder = encoder
        self._made: dict[int, PassageCode] = {}
        self._max_tokens = embedder.identity.max_tokens
        self._counts_first = False
        self._lock = threading.Lock()
        self.embedded = 0
        self.failed: dict[int, ChunkFailure] = {}

    def embed(self, chunks: Sequence[Chunk]) -> list[Embedded]:
        """Return rows of norm 1 for every chunk that can have one."""
        if self._counts_first:
            return self._embed_counted(chunks)
        try:
            rows = self._vectors(chunks)
        except PassageTooLong:
            # Chunks of uploads were bounded when they were cut. These were not (bulk text), so
            # count from now on.
            self._counts_first = True
            return self._embed_counted(chunks)
        except (InputError, ProviderBadResponse) as exc:
            return self._bisect(chunks, exc)
        return self._keep(chunks, rows)

    def _embed_counted(self, chunks: Sequence[Chunk]) -> list[Embedded]:
        counts = self._embedder.count_tokens([chunk.text for chunk in chunks])
        fitting = [
            chunk
            for chunk, tokens in zip(chunks, counts, strict=True)
            if tokens <= self._max_tokens
        ]
        long = [
            chunk for chunk, tokens in zip(chunks, counts, strict=True) if tokens > self._max_tokens
        ]
        return self._embed_fitting(fitting) + [
            pair for chunk in long for pair in self._embed_long(chunk)
        ]

    def _embed_fitting(self, chunks: Sequence[Chunk]) -> list[Embedded]:
        if not chunks:
            return []
        try:
            rows = self._vectors(chunks)
        except (InputError, ProviderBadResponse) as exc:
            return self._bisect(chunks, exc)
        return self._keep(chunks, rows)

    def _vectors(self, chunks: Sequence[Chunk]) -> FloatArray:
        """Embed chunks; with codes where the same run gives them."""
        texts = [chunk.text for chunk in chunks]
        if self._encoder is None:
            return self._embedder.embed_passages(texts)
        rows, codes = self._encoder.embed_and_encode(texts)
        with self._lock:
            self._made.update(zip((chunk.chunk_id for chunk in chunks), codes, strict=True))
        return rows

    def take_codes(self, chunk_ids: Sequence[int]) -> dict[int, PassageCode]:
        """Return the codes that were made of these chunks, and forget them."""
        with self._lock:
            return {
                chunk_id: self._made.pop(chunk_id)
                for chunk_id in chunk_ids
                if chunk_id in self._made
            }

    def _embed_long(self, chunk: Chunk) -> list[Embedded]:
        try:
            rows = self._embedder.embed_passages(self._windows(chunk.text))
        except (InputError, ProviderBadResponse) as exc:
            return self._give_up(chunk, exc)
        return self._keep([chunk], l2_normalise(rows.mean(axis=0, keepdims=True)))

    def _windows(self, text: str) -> list[str]:
        """Cut a text at sentences until every part fits."""
        todo, fitting = [text], list[str]()
        while todo:
            counts = self._embedder.count_tokens(todo)
            again: list[str] = []
            for part, tokens in zip(todo, counts, strict=True):
                if tokens <= self._max_tokens or len(part) < 2:
                    fitting.append(part)
                else:
                    again += [part[start:end] for start, end in halves(part, 0, len(part))]
            todo = again
        return fitting

    def _bisect(self, chunks: Sequence[Chunk], error: DocuMindError) -> list[Embedded]:
        if len(chunks) == 1:
            return self._give_up(chunks[0], error)
        middle = len(chunks) // 2
        return self._embed_fitting(chunks[:middle]) + self._embed_fitting(chunks[middle:])

    def _give_up(self, chunk: Chunk, error: DocuMindError) -> list[Embedded]:
        if (
            not self.embedded
            and len(self.failed) + 1 >= _HOPELESS
            and isinstance(error, ProviderBadResponse)
        ):
            raise error
        self.failed[chunk.chunk_id] = ChunkFailure(
            chunk.chunk_id, chunk.doc_id, error.code, error.message
        )
        return []

    def _keep(self, chunks: Sequence[Chunk], rows: FloatArray) -> list[Embedded]:
        with self._lock:
            self.embedded += len(chunks)
        return list(zip(chunks, rows, strict=True))
