"""The OpenAI-compatible client with a real model behind llama.cpp's own server."""

from __future__ import annotations

import time

import pytest

from app.core.cancel import CancelToken
from app.core.errors import Cancelled, InvalidInput, ProviderBadResponse
from app.core.types import Message, Prompt
from app.models.openai import HostedEndpoint, OpenAICompatibleGenerator
from app.models.options import HostedOptions
from app.models.retries import CallSlots

pytestmark = pytest.mark.live
CANCEL_S = 2.0
"""Longest way of a cancel on a machine whose cores all compute."""


@pytest.fixture
def generator(llama_url: str) -> OpenAICompatibleGenerator:
    endpoint = HostedEndpoint("openai_compatible", HostedOptions(llama_url))
    return OpenAICompatibleGenerator(
        endpoint, "smollm2", slots=CallSlots(2, 60, "llama.cpp"), context_tokens=2048
    )


def prompt(text: str, most: int = 24) -> Prompt:
    return Prompt((Message("user", text),), temperature=0.0, max_tokens=most)


def test_an_answer_and_how_long_its_parts_took(generator: OpenAICompatibleGenerator) -> None:
    *said, last = generator.stream(prompt("Write one sentence about a river."), CancelToken())
    assert "".join(token.text for token in said).strip()
    assert last.finish in {"stop", "length"}
    assert last.usage is not None
    assert last.usage.prompt_seconds is not None
    assert last.usage.completion_seconds is not None
    assert last.usage.prompt_seconds > 0
    assert last.usage.completion_seconds > 0


def test_the_limit_is_told(generator: OpenAICompatibleGenerator) -> None:
    *_, last = generator.stream(prompt("Count to one thousand in words.", most=5), CancelToken())
    assert last.finish == "length"


def test_a_prompt_over_the_window_is_an_error_and_no_answer(
    generator: OpenAICompatibleGenerator,
) -> None:
    with pytest.raises(
        (InvalidInput, ProviderBadResponse)
    ):  # this server breaks the stream off and keeps the reason to itself
        list(generator.stream(prompt("river " * 6000), CancelToken()))


def test_a_cancel_is_immediate_and_the_next_answer_comes(
    generator: OpenAICompatibleGenerator,
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
