"""Embed without using all cores, for vectors that are not urgent."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from app.core.ports import Embedder
from app.core.types import EmbedderIdentity, FloatArray


class PacedEmbedder:
    """An embedder with a limit of concurrent callers; others wait; thread-safe.

    An answer's sentences are embedded when its last word is out already, while others still read
    theirs: with every core at work on that, each of their tokens would have to wait for one
    (docs/decisions/0081). A caller's turn is all its texts: to hand over between texts wakes a
    thread for each, and keeps the interpreter for as long as that takes.
    """

    def __init__(self, embedder: Embedder, at_once: int) -> None:
        """Bind an embedder that takes one core a call.

        Args:
            embedder: Does the work.
            at_once: Callers at once, at least 1.
        """
        self._embedder = embedder
        self._turns = threading.BoundedSemaphore(max(1, at_once))

    @property
    def identity(self) -> EmbedderIdentity:
        """The embedder's own."""
        return self._embedder.identity

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return float32 `[n, dim]`, rows of L2 norm 1, in the order of `texts`.

        Raises:
            PassageTooLong: A text has more tokens than the model reads.
        """
        with self._turns:
            return self._embedder.embed_passages(texts)

    def embed_query(self, text: str) -> FloatArray:
        """Return float32 `[dim]` of L2 norm 1; a question does not wait for its turn."""
        return self._embedder.embed_query(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return token counts as the embedder makes them."""
        return self._embedder.count_tokens(texts)
