from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import pytest

from app.core.cancel import CancelToken
from app.core.errors import (
    Busy,
    DocuMindError,
    InvalidInput,
    ModelNotInstalled,
    PassageTooLong,
    ProviderBadResponse,
    ProviderUnreachable,
)
from app.core.types import Message, Prompt, Token
from app.models.openai import HostedEndpoint, OpenAICompatibleEmbedder, OpenAICompatibleGenerator
from app.models.options import PRESETS, HostedOptions
from app.models.retries import CallSlots
from tests.fakes.http_double import Canned
from tests.fakes.openai_double import OpenAIDouble, finish, piece, sse

PROMPT = Prompt(
    (
        Message("system", "Answer."),
        Message("user", "[1] Paris\nParis is the capital of France. More.\n\nWhat is it?"),
    )
)


@pytest.fixture
def double() -> Iterator[OpenAIDouble]:
    with OpenAIDouble() as running:
        yield running


def endpoint(
    double: OpenAIDouble, provider: str = "openai", key: str = OpenAIDouble.key
) -> HostedEndpoint:
    return HostedEndpoint(provider, HostedOptions(f"{double.url}/v1/", key), timeout_s=5)


def generator(
    double: OpenAIDouble,
    provider: str = "openai",
    key: str = OpenAIDouble.key,
    model: str = "chat-1",
) -> OpenAICompatibleGenerator:
    return OpenAICompatibleGenerator(
        endpoint(double, provider, key), model, slots=CallSlots(2, 1.0, provider)
    )


def answer(model: OpenAICompatibleGenerator, prompt: Prompt = PROMPT) -> list[Token]:
    return list(model.stream(prompt, CancelToken()))


def test_an_answer_with_usage(double: OpenAIDouble) -> None:
    tokens = answer(generator(double))
    assert "".join(token.text for token in tokens) == "Paris is the capital of France. [1]"
    assert tokens[-1].finish == "stop"
    usage = tokens[-1].usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.load_seconds) == (19, 7, None)
    assert 0 < (usage.prompt_seconds or 0) < 5
    assert 0 <= (usage.completion_seconds or 0) < 5
    (asked,) = double.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.body["stream_options"] == {"include_usage": True}
    assert asked.body["max_completion_tokens"] == 1024


def test_log_probabilities_and_schemas(double: OpenAIDouble) -> None:
    tokens = answer(
        generator(double),
        Prompt(
            PROMPT.messages,
            logprobs=True,
            json_schema={"type": "object"},
            max_tokens=5,
            temperature=0,
        ),
    )
    assert {token.logprob for token in tokens[:-1]} == {-0.1}
    body = double.asked[0].body
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": {"type": "object"}, "strict": True},
    }
    assert (body["max_completion_tokens"], body["temperature"]) == (5, 0)


def test_a_host_that_does_not_know_schemas_is_asked_in_the_older_form(double: OpenAIDouble) -> None:
    double.queue(Canned(b'{"error":{"message":"Input should be json_object"}}', 500))
    wanted = Prompt(PROMPT.messages, json_schema={"type": "object"})
    assert answer(generator(double), wanted)[-1].finish == "stop"
    formats = [asked.body["response_format"] for asked in double.asked]
    assert formats[1:] == [{"type": "json_object", "schema": {"type": "object"}}]
    double.queue(
        Canned(b'{"error":{"message":"no"}}', 400), Canned(b'{"error":{"message":"no"}}', 400)
    )
    with pytest.raises(ProviderBadResponse, match="400"):
        answer(generator(double), wanted)


def test_presets_differ_where_the_hosts_do(double: OpenAIDouble) -> None:
    answer(generator(double, "mistral"), Prompt(PROMPT.messages, logprobs=True))
    body = double.asked[0].body
    assert "stream_options" not in body
    assert "logprobs" not in body
    assert body["max_tokens"] == 1024
    for name, preset in PRESETS.items():
        assert HostedEndpoint(name, HostedOptions()).name == f"{preset.name} at {preset.base_url}"
    with pytest.raises(InvalidInput, match="'acme' is unknown"):
        HostedEndpoint("acme", HostedOptions())


def test_no_key_no_header(double: OpenAIDouble) -> None:
    with pytest.raises(ProviderBadResponse):
        answer(generator(double, "openai_compatible", key=""))
    assert "Authorization" not in double.asked[0].headers


@pytest.mark.parametrize("key", ["sk-wrong-key-654321", "an odd key without prefix"])
def test_the_key_is_in_no_error_and_no_log(
    double: OpenAIDouble, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ProviderBadResponse, match=r"refuses the key.*check HOSTED_KEY") as caught:
        answer(generator(double, key=key))
    assert key not in str(caught.value)
    assert key not in caplog.text
    assert key not in repr(HostedOptions("", key))


@pytest.mark.parametrize(
    ("replies", "error", "message"),
    [
        (
            [
                Canned(
                    b'{"error":{"message":"Rate limit reached"}}', 429, headers={"Retry-After": "7"}
                )
            ]
            * 3,
            Busy,
            "limits how often",
        ),
        ([Canned(b"<html>", 503)] * 3, Busy, "overloaded"),
        (
            [Canned(b'{"error":{"message":"maximum context length is 4096 tokens"}}', 400)],
            InvalidInput,
            "longer than the window",
        ),
        (
            [Canned(b'{"error":{"message":"bad temperature"}}', 400)],
            ProviderBadResponse,
            "answered 400.*bad temperature",
        ),
        (
            [Canned(b'{"error":{"message":"Loading model"}}', 503)] * 3,
            Busy,
            "is loading 'chat-1'.*try again",
        ),
        (
            [Canned(b'{"error":"No models loaded. Please load a model."}', 404)],
            ProviderBadResponse,
            "not loaded 'chat-1'.*load it",
        ),
        (
            [Canned(b'{"error":{"message":"no default chat template"}}', 400)],
            ProviderBadResponse,
            "choose an instruct model",
        ),
        (
            [Canned(b'{"error":"insufficient system resources"}', 400)],
            ProviderBadResponse,
            "too large.*choose a smaller",
        ),
        (
            [Canned(b'{"error":{"message":"does not support Chat Completions"}}', 400)],
            ProviderBadResponse,
            "choose a chat model",
        ),
        ([sse(piece("Half"), done=False)], ProviderBadResponse, "early"),
        ([sse(piece("Half"))], ProviderBadResponse, "early"),
        (
            [sse(piece("Half"), {"error": {"message": "server had an error"}})],
            ProviderBadResponse,
            "server had an error",
        ),
        ([sse(piece("Half"), finish("content_filter"))], ProviderBadResponse, "content_filter"),
        ([Canned(b"data: {nonsense\n\n")], ProviderBadResponse, "expected JSON"),
        (
            [Canned(sse(piece("Half")).body, declared=5000)],
            ProviderUnreachable,
            "broke the connection",
        ),
    ],
)
def test_what_goes_wrong(
    double: OpenAIDouble, replies: list[Canned], error: type[DocuMindError], message: str
) -> None:
    double.queue(*replies)
    with pytest.raises(error, match=message) as caught:
        answer(generator(double))
    assert len(double.asked) == len(replies)
    if "limits" in message:
        assert caught.value.retry_after_s == 7


def test_models_that_are_not_there(double: OpenAIDouble) -> None:
    with pytest.raises(ModelNotInstalled, match="no model 'chat-9'"):
        answer(generator(double, model="chat-9"))


def test_lines_of_any_kind(double: OpenAIDouble) -> None:
    body = sse(piece("A\u2028"), piece("\u0085B 🙂"), finish("length")).body
    double.queue(Canned(b": comment\r\n\r\nevent: x\r\n" + body.replace(b"\n\n", b"\r\n\r\n")))
    tokens = answer(generator(double))
    assert "".join(token.text for token in tokens) == "A\u2028\u0085B 🙂"
    assert tokens[-1].finish == "length"


def test_vectors_come_in_order_and_normalised(double: OpenAIDouble) -> None:
    embedder = OpenAICompatibleEmbedder(endpoint(double), "embed-1")
    texts = [f"text number {number}" for number in range(130)]
    np.testing.assert_allclose(
        embedder.embed_passages(texts), [double.model.vector(text) for text in texts], atol=1e-6
    )
    identity = embedder.identity
    assert (identity.provider, identity.digest, identity.dimension) == (
        "openai",
        "hosted:openai:embed-1",
        32,
    )
    assert embedder.embed_query("word " * 5000).shape == (32,)
    with pytest.raises(PassageTooLong, match=r"passage 0 .*split it"):
        embedder.embed_passages(["word " * 3000])


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (Canned(b'{"data":[]}'), ProviderBadResponse, "for 1 texts"),
        (Canned(b'{"data":[{"index":0,"embedding":[1,"x"]}]}'), ProviderBadResponse, "no numbers"),
        (
            Canned(b'{"data":[{"index":0,"embedding":[1,2]}]}'),
            ProviderBadResponse,
            "2 dimensions, expected 32",
        ),
        (
            Canned(b'{"error":{"message":"maximum context length is 8192 tokens"}}', 400),
            PassageTooLong,
            "split it",
        ),
        (Canned(b"gone", 410), ProviderBadResponse, "answered 410"),
    ],
)
def test_vectors_that_cannot_be_used(
    double: OpenAIDouble, reply: Canned, error: type[DocuMindError], message: str
) -> None:
    embedder = OpenAICompatibleEmbedder(endpoint(double), "embed-1", dimension=32)
    assert embedder.identity
    double.queue(reply)
    with pytest.raises(error, match=message):
        embedder.embed_passages(["a text"])
