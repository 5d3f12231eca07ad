"""What every Embedder does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from app.core.errors import PassageTooLong
from app.core.ports import Embedder
from app.models.minilm import MiniLmEmbedder
from app.models.multilingual import MultilingualEmbedder
from app.models.ollama import OllamaHost
from app.models.ollama_adapters import OllamaEmbedder
from app.models.openai import HostedEndpoint, OpenAICompatibleEmbedder
from app.models.options import HostedOptions
from tests.fakes.embedders import HashEmbedder
from tests.fakes.ollama_double import OllamaDouble
from tests.fakes.openai_double import OpenAIDouble

TEXTS = [
    "Rivers carry sediment to the sea.",
    "A treaty was signed in Vienna.",
    "naïve café — 日本語 🙂",
    "Deltas form where rivers carry sediment to the sea, and " * 5,
    "x",
]


def hashed(_: ExitStack, __: MiniLmEmbedder) -> Embedder:
    return HashEmbedder()


def embedded(_: ExitStack, minilm: MiniLmEmbedder) -> Embedder:
    return minilm


def multilingual(_: ExitStack, __: MiniLmEmbedder) -> Embedder:
    return MultilingualEmbedder()


def ollama(stack: ExitStack, _: MiniLmEmbedder) -> Embedder:
    return OllamaEmbedder(OllamaHost(stack.enter_context(OllamaDouble()).url), "nomic-embed-text")


def hosted(stack: ExitStack, _: MiniLmEmbedder) -> Embedder:
    double = stack.enter_context(OpenAIDouble())
    return OpenAICompatibleEmbedder(
        HostedEndpoint("openai", HostedOptions(double.url, double.key)), "embed-1"
    )


@pytest.fixture(
    params=[hashed, embedded, multilingual, ollama, hosted], ids=lambda make: str(make.__name__)
)
def embedder(request: pytest.FixtureRequest, minilm: MiniLmEmbedder) -> Iterator[Embedder]:
    make: Callable[[ExitStack, MiniLmEmbedder], Embedder] = request.param
    with ExitStack() as stack:
        yield make(stack, minilm)


def test_identity_is_stable_and_says_what_rows_are(embedder: Embedder) -> None:
    identity = embedder.identity
    assert identity == embedder.identity
    assert identity.model
    assert identity.digest
    assert identity.max_tokens > 0
    assert embedder.embed_passages(TEXTS[:1]).shape == (1, identity.dimension)


def test_rows_are_float32_of_norm_one_in_order(embedder: Embedder) -> None:
    rows = embedder.embed_passages(TEXTS)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    alone = np.stack([embedder.embed_passages([text])[0] for text in TEXTS])
    assert ((rows @ alone.T).argmax(axis=1) == np.arange(len(TEXTS))).all()
    assert (rows * alone).sum(axis=1).min() > 0.9999


def test_no_texts_no_rows(embedder: Embedder) -> None:
    assert embedder.embed_passages([]).shape == (0, embedder.identity.dimension)
    assert embedder.count_tokens([]) == []


def test_a_question_is_nearest_to_what_it_is_about(embedder: Embedder) -> None:
    rows = embedder.embed_passages(TEXTS[:2])
    question = embedder.embed_query("What sediment do rivers carry?")
    assert question.shape == (embedder.identity.dimension,)
    assert (rows @ question).argmax() == 0


def test_over_long_passages_are_refused_and_questions_are_not(embedder: Embedder) -> None:
    long = "sediment " * (embedder.identity.max_tokens + 10)
    with pytest.raises(PassageTooLong):
        embedder.embed_passages([TEXTS[0], long])
    assert np.linalg.norm(embedder.embed_query(long)) == pytest.approx(1.0, abs=1e-5)


def test_what_counts_within_the_limit_is_taken(embedder: Embedder) -> None:
    limit = embedder.identity.max_tokens
    words = 1
    while embedder.count_tokens(["sea " * (words + 1)])[0] <= limit:
        words += max(1, (limit - embedder.count_tokens(["sea " * words])[0]) // 8)
    assert embedder.embed_passages(["sea " * words]).shape[0] == 1


def test_counts_grow_with_the_text(embedder: Embedder) -> None:
    short, long, empty = embedder.count_tokens(["one two", "one two three, four", ""])
    assert 0 <= empty < short < long
