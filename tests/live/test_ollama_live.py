"""The Ollama client with real models: behind the double, and on a real server where OLLAMA_BASE_URL names one."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from app.core.cancel import CancelToken
from app.core.errors import Cancelled, InvalidInput, ModelNotInstalled, ProviderBadResponse
from app.core.types import Message, Prompt
from app.models.ollama import OllamaHost, same_model
from app.models.ollama_adapters import OllamaEmbedder, OllamaGenerator
from app.models.retries import CallSlots
from tests.contract.ollama_pairs import PAIRS, Pair, ask, holds_at, wrong
from tests.live.conftest import Live

pytestmark = pytest.mark.live
CANCEL_S = 2.0
"""Longest way of a cancel on a machine whose cores all compute."""


@pytest.fixture
def host(live: Live) -> OllamaHost:
    return OllamaHost(live.url)


@pytest.fixture
def generator(live: Live, host: OllamaHost) -> OllamaGenerator:
    return OllamaGenerator(host, live.chat, slots=CallSlots(2, 60, "Ollama"), num_ctx=2048)


def prompt(text: str, *, logprobs: bool = False, most: int = 40) -> Prompt:
    return Prompt((Message("user", text),), temperature=0.0, max_tokens=most, logprobs=logprobs)


@pytest.mark.parametrize("pair", PAIRS, ids=[f"{pair.path}-{pair.name}" for pair in PAIRS])
def test_replies_are_those_of_the_list(live: Live, host: OllamaHost, pair: Pair) -> None:
    if not holds_at(pair, host.version()):
        return  # of another release; its own case of the double holds it
    assert (
        wrong(
            pair,
            ask(live.url, pair, chat=live.chat, embed=live.embed),
            chat=live.chat,
            embed=live.embed,
        )
        == ""
    )


def test_the_host_lists_its_models(live: Live, host: OllamaHost) -> None:
    assert host.version()
    rows = host.models()
    assert all(len(model.digest) == 64 for model in rows)
    (chat,) = [row for row in rows if same_model(row.name, live.chat)]
    assert chat.parameters.endswith(("M", "B"))
    assert chat.size_bytes > 1_000_000


def test_vectors(live: Live, host: OllamaHost) -> None:
    embedder = OllamaEmbedder(host, live.embed)
    rows = embedder.embed_passages(
        ["Rivers carry silt to the sea.", "A treaty was signed in Vienna."]
    )
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-3)
    assert (rows @ embedder.embed_query("What do rivers carry to the sea?")).argmax() == 0
    assert embedder.embed_query("river " * 5000).shape == (embedder.identity.dimension,)


def test_an_answer_with_usage_and_the_window_that_was_asked_for(
    live: Live, host: OllamaHost, generator: OllamaGenerator
) -> None:
    tokens = list(generator.stream(prompt("Write one sentence about a river."), CancelToken()))
    assert "".join(token.text for token in tokens).strip()
    usage = tokens[-1].usage
    assert usage is not None
    assert usage.prompt_tokens
    assert usage.completion_tokens
    assert usage.completion_seconds is not None
    assert 1 < usage.completion_tokens / usage.completion_seconds < 10_000
    digest = next(row.digest for row in host.models() if same_model(row.name, live.chat))
    (loaded,) = [
        row for row in host.loaded() if row.digest == digest
    ]  # others may be loaded too, and under other names
    assert loaded.context_tokens == generator.context_tokens


def test_reading_is_timed(generator: OllamaGenerator) -> None:
    (*_, last) = generator.stream(
        prompt(f"{time.monotonic_ns()} " + "The river runs to the sea. " * 60, most=2),
        CancelToken(),
    )
    assert last.finish == "length"
    assert last.usage is not None
    assert last.usage.prompt_tokens is not None
    assert last.usage.prompt_tokens > 300
    assert last.usage.prompt_seconds is not None
    assert last.usage.prompt_seconds > 0


def test_log_probabilities(host: OllamaHost, generator: OllamaGenerator) -> None:
    tokens = list(generator.stream(prompt("Name a colour.", logprobs=True), CancelToken()))
    known = [token.logprob for token in tokens if token.logprob is not None]
    assert bool(known) == host.gives_logprobs()
    assert all(value <= 0 for value in known)


def test_a_prompt_over_the_window_is_refused(generator: OllamaGenerator) -> None:
    with pytest.raises(InvalidInput, match="longer than the window"):
        list(generator.stream(prompt("river " * 6000), CancelToken()))


def test_a_missing_model_is_named(generator: OllamaGenerator) -> None:
    with pytest.raises(ModelNotInstalled, match="ollama pull"):
        list(
            generator.stream(
                Prompt((Message("user", "x"),), model="no-such-model-here"), CancelToken()
            )
        )


def test_an_embedding_model_does_not_answer(live: Live, generator: OllamaGenerator) -> None:
    with pytest.raises(ProviderBadResponse, match="cannot chat; choose another LLM_MODEL"):
        list(generator.stream(Prompt((Message("user", "x"),), model=live.embed), CancelToken()))


def test_a_cancel_while_it_writes_is_immediate_and_the_next_answer_comes(
    generator: OllamaGenerator,
) -> None:
    cancel = CancelToken()
    stream = generator.stream(prompt("Count to one thousand in words.", most=1500), cancel)
    next(stream)
    cancel.cancel()
    asked = time.monotonic()
    with pytest.raises(Cancelled):
        list(stream)
    assert time.monotonic() - asked < CANCEL_S
    assert list(generator.stream(prompt("Say yes.", most=2), CancelToken()))


def test_a_cancel_while_it_reads_is_immediate_and_the_next_answer_comes(
    generator: OllamaGenerator,
) -> None:
    cancel, at = CancelToken(), list[float]()
    list(generator.stream(prompt("Say yes.", most=2), CancelToken()))  # it is loaded

    def stop() -> None:
        at.append(time.monotonic())
        cancel.cancel()

    threading.Timer(0.05, stop).start()
    with pytest.raises(Cancelled):
        list(generator.stream(prompt("The river runs to the sea. " * 240, most=1500), cancel))
    assert time.monotonic() - at[0] < CANCEL_S
    assert list(generator.stream(prompt("Say yes.", most=2), CancelToken()))
