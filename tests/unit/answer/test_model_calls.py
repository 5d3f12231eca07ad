"""Calls of models: what is learned of a host that counts no tokens."""

from __future__ import annotations

from app.answer.models import ModelCalls
from app.core.cancel import CancelToken
from app.core.trace import Trace
from app.core.types import Message, Prompt, Token, Usage
from tests.fakes.services import PROMPTS


class Counting:
    """A generator whose host says these numbers and no others."""

    name, context_tokens = "fake:counting", 4096

    def __init__(self, usage: Usage) -> None:
        self._usage = usage

    def stream(self, prompt: Prompt, cancel: CancelToken) -> list[Token]:
        return [Token("Yes."), Token("", finish="stop", usage=self._usage)]


def learned(usage: Usage) -> tuple[Usage, Usage]:
    """Return what is learned of a call with a prompt of 400 characters, and what its question is told."""
    seen: list[Usage] = []
    calls = ModelCalls(Trace(), CancelToken(), PROMPTS, None, lambda _, one: seen.append(one))
    prompt = Prompt((Message("system", "a" * 100), Message("user", "b" * 300)))
    assert len(list(calls.stream(Counting(usage), prompt))) == 2  # type: ignore[arg-type]  # a list is iterated as well
    return seen[0], calls.usage


def test_a_prompt_that_the_host_does_not_count_has_a_token_per_four_characters() -> None:
    kept, told = learned(Usage(prompt_seconds=2.0, completion_seconds=1.0))
    assert (kept.prompt_tokens, kept.completion_tokens, kept.prompt_seconds) == (100, None, 2.0)
    assert told.prompt_tokens is None


def test_what_the_host_counts_is_taken_as_it_is() -> None:
    kept, told = learned(Usage(77, 5, 2.0, 1.0))
    assert (kept.prompt_tokens, told.prompt_tokens) == (77, 77)
