"""What every Generator does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from app.core.cancel import CancelToken
from app.core.errors import Cancelled
from app.core.ports import Generator
from app.core.types import Message, Prompt
from app.generation.quote.quoting import ExtractiveGenerator
from app.models.ollama import OllamaHost
from app.models.ollama_adapters import OllamaGenerator
from app.models.openai import HostedEndpoint, OpenAICompatibleGenerator
from app.models.options import HostedOptions
from app.models.retries import CallSlots
from tests.fakes.generators import ScriptedGenerator
from tests.fakes.ollama_double import OllamaDouble
from tests.fakes.openai_double import OpenAIDouble

PROMPT = Prompt(
    (Message("system", "Answer."), Message("user", "[1] Silt\nRivers carry silt. More.\n\nWhat?")),
    question="What do rivers carry?",
)


def scripted(_: ExitStack) -> Generator:
    return ScriptedGenerator(*["Rivers carry silt. [1]"] * 3)


def extractive(_: ExitStack) -> Generator:
    return ExtractiveGenerator()


def ollama(stack: ExitStack) -> Generator:
    double = stack.enter_context(OllamaDouble())
    return OllamaGenerator(OllamaHost(double.url), "llama3.2", slots=CallSlots(2, 1, "Ollama"))


def hosted(stack: ExitStack) -> Generator:
    double = stack.enter_context(OpenAIDouble())
    endpoint = HostedEndpoint("openai", HostedOptions(double.url, double.key))
    return OpenAICompatibleGenerator(endpoint, "chat-1", slots=CallSlots(2, 1, "OpenAI"))


@pytest.fixture(params=[scripted, extractive, ollama, hosted], ids=lambda make: str(make.__name__))
def generator(request: pytest.FixtureRequest) -> Iterator[Generator]:
    make: Callable[[ExitStack], Generator] = request.param
    with ExitStack() as stack:
        yield make(stack)


def test_text_then_one_finish_token(generator: Generator) -> None:
    tokens = list(generator.stream(PROMPT, CancelToken()))
    assert "".join(token.text for token in tokens).strip()
    assert [token.finish for token in tokens[:-1]] == [None] * (len(tokens) - 1)
    assert tokens[-1].finish in {"stop", "length"}


def test_it_can_be_asked_again(generator: Generator) -> None:
    first = [token.text for token in generator.stream(PROMPT, CancelToken())]
    assert [token.text for token in generator.stream(PROMPT, CancelToken())] == first


def test_a_cancelled_token_yields_nothing(generator: Generator) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        list(generator.stream(PROMPT, cancel))


def test_a_cancel_between_tokens_ends_the_stream(generator: Generator) -> None:
    cancel = CancelToken()
    stream = generator.stream(PROMPT, cancel)
    next(stream)
    cancel.cancel()
    with pytest.raises(Cancelled):
        list(stream)


def test_a_stream_may_be_left_early(generator: Generator) -> None:
    next(generator.stream(PROMPT, CancelToken()))
    assert list(generator.stream(PROMPT, CancelToken()))


def test_name_and_window(generator: Generator) -> None:
    assert generator.name
    assert generator.context_tokens is None or generator.context_tokens >= 256
