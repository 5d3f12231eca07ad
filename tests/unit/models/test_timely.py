"""A host that is slow or silent holds no question."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from app.core.errors import ProviderTimeout
from app.core.types import EmbedderIdentity, FloatArray
from app.models.embedding import TimelyEmbedder
from tests.fakes.embedders import HashEmbedder


class Suspended:
    """An embedder whose host answers when a test lets it."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.asked = 0
        self._own = HashEmbedder()

    @property
    def identity(self) -> EmbedderIdentity:
        return self._own.identity

    def embed_query(self, text: str) -> FloatArray:
        self.asked += 1
        assert self.answers.wait(60)
        return self._own.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        return self._own.embed_passages(texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._own.count_tokens(texts)


def test_a_question_waits_so_long_and_the_call_goes_on_for_the_next() -> None:
    slow, ended = Suspended(), threading.Event()
    timely = TimelyEmbedder(slow, 0.01, ended.set)
    for _ in range(3):
        with pytest.raises(ProviderTimeout):
            timely.embed_query("What melts?")
    assert slow.asked == 1  # while it is silent it is asked nothing more
    slow.answers.set()
    assert ended.wait(60)
    assert timely.embed_query("What melts?").shape == (slow.identity.dimension,)
    assert slow.asked == 2


def test_what_a_host_raises_is_raised() -> None:
    class Broken(Suspended):
        def embed_query(self, text: str) -> FloatArray:
            raise ProviderTimeout("the host said so")

    with pytest.raises(ProviderTimeout, match="the host said so"):
        TimelyEmbedder(Broken(), 60).embed_query("What melts?")
