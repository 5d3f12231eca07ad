"""Passages spread over hosts: the same vectors in the same order, whoever makes them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from app.core.errors import PassageTooLong, ProviderUnreachable
from app.core.types import EmbedderIdentity, FloatArray
from app.providers.ollama import OllamaHost
from app.providers.ollama_embedder import OllamaEmbedder
from app.providers.spread import SpreadEmbedder
from tests.fakes.embedders import HashEmbedder
from tests.fakes.ollama_double import OllamaDouble

TEXTS = [f"passage number {i}" for i in range(100)]
NOMIC = "nomic-embed-text"
EMBED = "/api/embed"


class Recorded(HashEmbedder):
    """Notes what it embeds; may meet the others first, fail, or have another digest."""

    def __init__(
        self,
        *,
        meets: threading.Barrier | None = None,
        fails_after: int = 1000,
        digest: str | None = None,
    ) -> None:
        super().__init__()
        self.seen: list[str] = []
        self._meets, self._fails_after, self._digest = meets, fails_after, digest

    @property
    def identity(self) -> EmbedderIdentity:
        own = super().identity
        return replace(own, digest=self._digest) if self._digest else own

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        if len(self.seen) >= self._fails_after:
            raise ProviderUnreachable("this host is gone")
        if self._meets is not None:
            meets, self._meets = self._meets, None
            meets.wait(60)
        self.seen += texts
        return super().embed_passages(texts)


def test_every_host_takes_a_share_and_the_order_stays() -> None:
    barrier = threading.Barrier(3)  # broken unless all three work at once
    hosts = [Recorded(meets=barrier) for _ in range(3)]
    rows = SpreadEmbedder(hosts[0], hosts[1:]).embed_passages(TEXTS)
    np.testing.assert_array_equal(rows, HashEmbedder().embed_passages(TEXTS))
    assert all(host.seen for host in hosts)
    assert sorted(text for host in hosts for text in host.seen) == sorted(TEXTS)


@pytest.mark.parametrize("fails_after", [0, 1])
def test_what_a_host_fails_at_is_done_by_the_first_and_it_rests(
    fails_after: int, caplog: pytest.LogCaptureFixture
) -> None:
    barrier = threading.Barrier(2) if fails_after else None
    first, other = Recorded(meets=barrier), Recorded(meets=barrier, fails_after=fails_after)
    spread = SpreadEmbedder(first, [other])
    expected = HashEmbedder().embed_passages(TEXTS)
    for _ in range(2):
        np.testing.assert_array_equal(spread.embed_passages(TEXTS), expected)
    assert caplog.text.count("this host is gone") <= 1
    assert len(other.seen) <= 25 * fails_after


def test_a_host_with_another_model_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    first, other = Recorded(), Recorded(digest="another")
    SpreadEmbedder(first, [other]).embed_passages(TEXTS)
    assert other.seen == []
    assert "is another one" in caplog.text


def test_a_failure_of_the_first_host_is_the_callers() -> None:
    with pytest.raises(ProviderUnreachable):
        SpreadEmbedder(Recorded(fails_after=0), [Recorded(fails_after=0)]).embed_passages(TEXTS)


def test_questions_and_few_passages_are_the_first_hosts() -> None:
    first, other = Recorded(), Recorded()
    spread = SpreadEmbedder(first, [other])
    spread.embed_query("q")
    spread.embed_passages(TEXTS[:8])
    assert (len(first.seen), other.seen) == (8, [])
    assert spread.count_tokens(["a b"]) == first.count_tokens(["a b"])


@pytest.fixture
def doubles() -> Iterator[list[OllamaDouble]]:
    with ExitStack() as stack:
        yield [stack.enter_context(OllamaDouble()) for _ in range(3)]


def test_hosts_of_ollama_share_the_passages(doubles: list[OllamaDouble]) -> None:
    """As the server wires them; a host that ends meanwhile costs nothing but its help."""
    embedders = [OllamaEmbedder(OllamaHost(double.url), NOMIC) for double in doubles]
    spread = SpreadEmbedder(embedders[0], embedders[1:])
    alone = embedders[0].embed_passages(TEXTS)
    np.testing.assert_allclose(spread.embed_passages(TEXTS), alone, atol=1e-6)
    assert spread.identity == embedders[0].identity
    with pytest.raises(PassageTooLong):
        spread.embed_passages([*TEXTS, "word " * 9000])
