"""Embed passages on several hosts of one model at once."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from app.core.errors import DocuMindError
from app.core.ports import Embedder
from app.core.types import EmbedderIdentity, FloatArray

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 32
"""Passages that a host is given at a time at most."""

SMALL = 8
"""So few passages are not worth a second host."""

REST_S = 60.0
"""How long a host that failed is left alone, seconds."""


class SpreadEmbedder:
    """An embedder whose passages other hosts with the same model embed too; thread-safe.

    Each host takes the next passages when it has done its last, so a slow one takes fewer. What a
    host fails at is done by the first; questions are the first's alone.
    """

    def __init__(
        self, first: Embedder, others: Sequence[Embedder], *, rest_s: float = REST_S
    ) -> None:
        """Spread passages over `first` and `others`; nothing is sent yet.

        Args:
            first: Whose vectors count: a host with another model is not used.
            others: Hosts that help.
            rest_s: How long one that failed is left alone, seconds.
        """
        self._first = first
        self._others = list(others)
        self._rest_s = rest_s
        self._rests_until = [0.0] * len(others)
        self._lock = threading.Lock()

    @property
    def identity(self) -> EmbedderIdentity:
        """The first host's own."""
        return self._first.identity

    def embed_query(self, text: str) -> FloatArray:
        """Return float32 `[dim]` of L2 norm 1, from the first host."""
        return self._first.embed_query(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return token counts as the first host's model makes them."""
        return self._first.count_tokens(texts)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return float32 `[n, dim]`, rows of L2 norm 1, in the order of `texts`.

        Raises:
            PassageTooLong: A text may be longer than the model reads.
            ProviderError: The first host failed.
        """
        if len(texts) <= SMALL:
            return self._first.embed_passages(texts)
        identity = self.identity
        helpers = [at for at in range(len(self._others)) if self._helps(at, identity)]
        rows = np.empty((len(texts), identity.dimension), np.float32)
        size = min(MOST_AT_ONCE, -(-len(texts) // (2 * (1 + len(helpers)))))
        todo = deque(range(0, len(texts), size))
        failed: deque[int] = deque()

        def work(embedder: Embedder, at: int) -> None:
            rows[at : at + size] = embedder.embed_passages(texts[at : at + size])

        def help_with(helper: int) -> None:
            while (at := _next(todo)) is not None:
                try:
                    work(self._others[helper], at)
                except DocuMindError as exc:
                    failed.append(at)
                    self._let_rest(helper, exc.message)
                    return

        with ThreadPoolExecutor(max(1, len(helpers)), "embed-host") as pool:
            helping = [pool.submit(help_with, helper) for helper in helpers]
            try:
                while (at := _next(todo)) is not None:
                    work(self._first, at)
            finally:
                todo.clear()  # of a call that fails nothing more is asked
            for one in helping:
                one.result()
        for at in failed:
            work(self._first, at)
        return rows

    def _helps(self, helper: int, identity: EmbedderIdentity) -> bool:
        if time.monotonic() < self._rests_until[helper]:
            return False
        try:
            theirs = self._others[helper].identity
        except DocuMindError as exc:
            self._let_rest(helper, exc.message)
            return False
        if theirs.digest != identity.digest:
            self._let_rest(helper, f"its model {identity.model!r} is another one")
            return False
        return True

    def _let_rest(self, helper: int, why: str) -> None:
        with self._lock:
            self._rests_until[helper] = time.monotonic() + self._rest_s
        logger.warning(
            "host %d of OLLAMA_EMBED_URLS embeds nothing for %.0f s: %s",
            helper + 1,
            self._rest_s,
            why,
        )


def _next(todo: deque[int]) -> int | None:
    try:
        return todo.popleft()
    except IndexError:
        return None
