"""A real Ollama, asked the things the double pretends. Run by hand:

OLLAMA_BASE_URL=http://127.0.0.1:11434 python -m pytest tests/live

LIVE_CHAT_MODEL and LIVE_EMBEDDING_MODEL name other models than llama3.2 and nomic-embed-text.
"""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from app.core.cancel import CancelToken
from app.core.errors import Cancelled, InvalidInput, ModelNotInstalled
from app.core.types import Message, Prompt
from app.providers.ollama import OllamaHost
from app.providers.ollama_embedder import OllamaEmbedder
from app.providers.ollama_generator import OllamaGenerator
from app.providers.slots import CallSlots

URL = os.environ.get("OLLAMA_BASE_URL", "")
CHAT = os.environ.get("LIVE_CHAT_MODEL", "llama3.2")
EMBED = os.environ.get("LIVE_EMBEDDING_MODEL", "nomic-embed-text")

pytestmark = [pytest.mark.live, pytest.mark.skipif(not URL, reason="needs OLLAMA_BASE_URL")]


@pytest.fixture
def host() -> OllamaHost:
    return OllamaHost(URL)


@pytest.fixture
def generator(host: OllamaHost) -> OllamaGenerator:
    return OllamaGenerator(host, CHAT, slots=CallSlots(2, 60, "Ollama"), num_ctx=2048)


def prompt(text: str, **options: object) -> Prompt:
    return Prompt((Message("user", text),), temperature=0.0, max_tokens=40, logprobs=bool(options.get("logprobs")))


def test_the_host_lists_its_models(host: OllamaHost) -> None:
    assert host.version()
    assert all(len(model.digest) == 64 for model in host.models())


def test_vectors(host: OllamaHost) -> None:
    embedder = OllamaEmbedder(host, EMBED)
    rows = embedder.embed_passages(["Rivers carry silt to the sea.", "A treaty was signed in Vienna."])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-3)
    assert (rows @ embedder.embed_query("What do rivers carry?")).argmax() == 0
    assert embedder.embed_query("river " * 5000).shape == (embedder.identity.dimension,)


def test_an_answer_with_usage_and_the_window_that_was_asked_for(host: OllamaHost, generator: OllamaGenerator) -> None:
    tokens = list(generator.stream(prompt("Say the word: river"), CancelToken()))
    assert "river" in "".join(token.text for token in tokens).lower()
    assert tokens[-1].usage is not None
    assert tokens[-1].usage.prompt_tokens
    loaded = next(model for model in host.loaded() if model.context_tokens)
    assert generator.context_tokens == loaded.context_tokens


def test_log_probabilities(host: OllamaHost, generator: OllamaGenerator) -> None:
    tokens = list(generator.stream(prompt("Name a colour.", logprobs=True), CancelToken()))
    known = [token.logprob for token in tokens if token.logprob is not None]
    assert bool(known) == host.gives_logprobs()
    assert all(value <= 0 for value in known)


def test_a_prompt_over_the_window_is_refused(generator: OllamaGenerator) -> None:
    with pytest.raises(InvalidInput):
        list(generator.stream(prompt("river " * 6000), CancelToken()))


def test_a_missing_model_is_named(generator: OllamaGenerator) -> None:
    with pytest.raises(ModelNotInstalled, match="ollama pull"):
        list(generator.stream(Prompt((Message("user", "x"),), model="no-such-model-here"), CancelToken()))


def test_a_cancel_is_immediate(generator: OllamaGenerator) -> None:
    cancel, at = CancelToken(), list[float]()

    def stop() -> None:
        at.append(time.monotonic())
        cancel.cancel()

    threading.Timer(1.0, stop).start()
    long = Prompt((Message("user", "Count to one thousand in words."),), max_tokens=1500)
    with pytest.raises(Cancelled):
        list(generator.stream(long, cancel))
    assert time.monotonic() - at[0] < 0.5
