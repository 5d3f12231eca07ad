"""Generators without a model: they say what they were told to, and remember what they were asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from app.answer.models import ModelChoice
from app.core.cancel import CancelToken
from app.core.errors import Cancelled
from app.core.ports import Generator
from app.core.types import ModelProfile, Prompt, Token, Usage

Reply = str | Sequence[Token | Exception] | Exception
"""A whole text, exact tokens, or what to raise before the first token; an exception among tokens
breaks the stream there."""


def tokens_of(text: str) -> list[Token]:
    """Return the words of a text as tokens, blanks kept, and a finish token."""
    words = re.findall(r"\s*\S+", text)
    return [*(Token(word) for word in words), Token("", finish="stop")]


def with_probabilities(*pairs: tuple[str, float]) -> list[Token]:
    """Return tokens with log-probabilities, and a finish token."""
    return [*(Token(text, logprob) for text, logprob in pairs), Token("", finish="stop")]


class ScriptedGenerator:
    """Replies in the order of its script; an unexpected call is an error of the test."""

    def __init__(
        self,
        *script: Reply,
        name: str = "fake:scripted",
        context_tokens: int | None = 8192,
        reads: float = 1.0,
    ) -> None:
        """`reads` is the share of a prompt that the fake host says it read."""
        self._reads = reads
        self._script = list(script)
        self._name = name
        self._context_tokens = context_tokens
        self.prompts: list[Prompt] = []
        self.cancelled = 0
        """Calls that were stopped by their cancel token."""
        self.closed = 0
        """Calls whose iterator was closed before its end."""

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int | None:
        return self._context_tokens

    @property
    def left(self) -> int:
        """Replies that were not asked for yet."""
        return len(self._script)

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        self.prompts.append(prompt)
        if not self._script:
            raise AssertionError(
                f"unexpected call of {self._name}: {prompt.messages[-1].content[:200]!r}"
            )
        reply = self._script.pop(0)
        if isinstance(reply, Exception):
            raise reply
        seen = int(sum(len(message.content) for message in prompt.messages) / 4 * self._reads)
        return self._play(
            tokens_of(reply) if isinstance(reply, str) else reply, Usage(seen, 0), cancel
        )

    def _play(
        self, tokens: Iterable[Token | Exception], usage: Usage, cancel: CancelToken
    ) -> Iterator[Token]:
        cancel.on_cancel(self._count_cancel)
        try:
            for count, token in enumerate(tokens):
                if cancel.cancelled:
                    raise Cancelled("the fake was cancelled")
                if isinstance(token, Exception):
                    raise token
                yield (
                    replace(token, usage=replace(usage, completion_tokens=count))
                    if token.finish
                    else token
                )
        except GeneratorExit:
            self.closed += 1
            raise

    def _count_cancel(self) -> None:
        self.cancelled += 1


@dataclass
class FixedModels:
    """Always chooses the same models; records which override was asked for."""

    model: Generator | None = None
    helper: Generator | None = None
    hosted: bool = False
    reason: str = ""
    once: bool = False
    error: Exception | None = None
    profile: ModelProfile = field(
        default_factory=lambda: ModelProfile("fake:scripted", "fake", hosted=True)
    )
    """Of a large model on a quick host, unless a test says otherwise."""
    asked: list[str | None] = field(default_factory=list)
    judge: Generator | None = None

    def select(self, model: str | None = None) -> ModelChoice:
        self.asked.append(model)
        if self.error is not None:
            raise self.error
        reason = "" if self.model else self.reason
        return ModelChoice(
            self.model, self.helper, self.hosted, reason, self.profile, self.once, judge=self.judge
        )
