"""Calls of models: what is learned of a host that counts no tokens, and waits that are bounded."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from app.answer.models import ModelCalls
from app.core.cancel import CancelToken
from app.core.errors import Cancelled, ProviderTimeout
from app.core.trace import Trace
from app.core.types import Message, Prompt, Token, Usage
from app.generation.prompt.prompts import PromptLibrary


class Counting:
    """A generator whose host says these numbers and no others."""

    name, context_tokens = "fake:counting", 4096

    def __init__(self, usage: Usage) -> None:
        self._usage = usage

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        return iter([Token("Yes."), Token("", finish="stop", usage=self._usage)])


def learned(usage: Usage) -> tuple[Usage, Usage]:
    """Return what is learned of a call with a prompt of 400 characters, and what its question is told."""
    seen: list[Usage] = []
    calls = ModelCalls(
        Trace(), CancelToken(), PromptLibrary.load(), None, lambda _, one: seen.append(one)
    )
    prompt = Prompt((Message("system", "a" * 100), Message("user", "b" * 300)))
    assert len(list(calls.stream(Counting(usage), prompt))) == 2
    return seen[0], calls.usage


def test_a_prompt_that_the_host_does_not_count_has_a_token_per_four_characters() -> None:
    kept, told = learned(Usage(prompt_seconds=2.0, completion_seconds=1.0))
    assert (kept.prompt_tokens, kept.completion_tokens, kept.prompt_seconds) == (100, None, 2.0)
    assert told.prompt_tokens is None


def test_what_the_host_counts_is_taken_as_it_is() -> None:
    kept, told = learned(Usage(77, 5, 2.0, 1.0))
    assert (kept.prompt_tokens, told.prompt_tokens) == (77, 77)


class Late:
    """A generator that says its words when a test lets it."""

    name, context_tokens = "fake:late", 4096

    def __init__(self) -> None:
        self.may_speak = threading.Event()
        self.ended = threading.Event()

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        cancel.on_cancel(self.may_speak.set)
        try:
            self.may_speak.wait(60)
            cancel.raise_if_cancelled()
            yield Token("Yes.", finish="stop")
        finally:
            self.ended.set()


def _calls(**options: float) -> ModelCalls:
    return ModelCalls(Trace(), CancelToken(), PromptLibrary.load(), **options)  # type: ignore[arg-type]


def test_a_call_without_a_first_word_says_so_and_goes_on() -> None:
    model = Late()
    tokens = _calls(patience_s=0.01).paced(model, Prompt((Message("user", "?"),)))
    assert next(tokens) is None
    assert next(tokens) is None
    model.may_speak.set()
    assert [token.text for token in tokens if token is not None] == ["Yes."]


def test_a_call_that_is_left_while_it_waits_ends() -> None:
    model = Late()
    tokens = _calls(patience_s=0.01).paced(model, Prompt((Message("user", "?"),)))
    assert next(tokens) is None
    tokens.close()
    assert model.ended.wait(60)


def test_a_side_call_is_bounded_and_its_question_goes_on() -> None:
    model, calls = Late(), _calls(side_call_s=0.01)
    with pytest.raises(ProviderTimeout, match="was not done in"):
        list(calls.stream(model, Prompt((Message("user", "?"),))))
    assert model.ended.wait(60)
    assert not calls.cancel.cancelled


def test_a_cancelled_question_ends_a_call_that_waits() -> None:
    model, calls = Late(), _calls(patience_s=0.01)
    tokens = calls.paced(model, Prompt((Message("user", "?"),)))
    assert next(tokens) is None
    calls.cancel.cancel()
    with pytest.raises(Cancelled):
        list(tokens)
    assert model.ended.wait(60)
