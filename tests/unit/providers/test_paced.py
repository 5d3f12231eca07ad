from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from app.core.types import FloatArray
from app.providers.paced import PacedEmbedder
from tests.fakes.embedders import HashEmbedder

TEXTS = [f"sentence number {n}" for n in range(12)]


class _Watched(HashEmbedder):
    """Counts how many calls run at once, and holds each until another one had its chance."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self.running = self.most = 0

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        threading.Event().wait(0.002)
        with self._lock:
            self.running -= 1
        return super().embed_passages(texts)


@pytest.mark.parametrize("at_once", [0, 1, 2])
def test_no_more_callers_are_let_in_than_allowed(at_once: int) -> None:
    inner = _Watched()
    paced = PacedEmbedder(inner, at_once)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: paced.embed_passages(TEXTS), range(4)))
    assert inner.most == max(1, at_once)
    for rows in found:
        np.testing.assert_array_equal(rows, HashEmbedder().embed_passages(TEXTS))


def test_a_failure_gives_the_turn_back() -> None:
    paced = PacedEmbedder(HashEmbedder(max_tokens=4), 1)
    for _ in range(2):
        with pytest.raises(Exception, match="tokens"):
            paced.embed_passages(["one two three four five six seven"])
    assert paced.embed_passages(["one"]).shape == (1, 64)
