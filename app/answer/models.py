"""Choose the answering model and the helper; count their calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from collections.abc import Generator as Steps
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from app.core.cancel import CancelToken
from app.core.errors import Cancelled, ProviderTimeout
from app.core.ports import Generator
from app.core.trace import Trace
from app.core.types import Evidence, ModelProfile, Prompt, Token, Usage, WaitsFor
from app.generation.prompt_sets import Task
from app.generation.prompts import PromptLibrary

SIDE_CALL_S = 30.0
"""Longest call besides the answer's own (a draft, a rewrite, sub-queries), seconds: what it would
add is not worth a longer wait."""
_CHARS_PER_TOKEN = 4
"""Of English prose in present tokenizers; only the speed of hosts that count no tokens rests on
it."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The models for one question, at this moment."""

    model: Generator | None
    """Answers; None means that no model is at hand and passages are quoted instead."""
    helper: Generator | None = None
    """Rewrites, summarises, and writes hypothetical passages and sub-queries; None does without."""
    hosted: bool = False
    """True when passages leave the machine."""
    reason: str = ""
    """Why a model that was asked for is not at hand, and what to do; empty when none was
    expected."""
    profile: ModelProfile = field(default_factory=ModelProfile)
    """What is known of the answering model."""
    once: bool = False
    """The reason is worth saying once, not over every answer."""
    why: str = ""
    """Why this model answers; without one, why none does, and the cure."""
    watch: Callable[[], Callable[[], WaitsFor]] = lambda: lambda: "reading"
    """Called before a call of the model; what it returns says what the call waits for."""


class ModelSelector(Protocol):
    """Knows which model host answers now; hosts come and go."""

    def select(self, model: str | None = None) -> ModelChoice:
        """Return who writes for the next question.

        Args:
            model: Overrides the configured answering model for one question.

        Raises:
            ModelNotInstalled: The host answers but does not have the model that was asked for by
                name.
        """
        ...


@dataclass(slots=True)
class ModelCalls:
    """Model calls of one question, counted in its trace; not shared.

    Their tokens are added up.
    """

    trace: Trace
    cancel: CancelToken
    prompts: PromptLibrary
    helper: Generator | None = None
    observe: Callable[[str, Usage], None] = lambda _name, _usage: None
    """Told what each finished call took, by the generator's name."""
    watch: Callable[[], Callable[[], WaitsFor]] = lambda: lambda: "reading"
    """As of the choice."""
    patience_s: float = 3.0
    """Seconds without a first word after which `paced` says so, again and again."""
    side_call_s: float = SIDE_CALL_S
    handed: dict[int, Evidence] = field(default_factory=dict)
    """Passages that a model was given to answer from, by number."""
    _usages: list[Usage] = field(default_factory=list)

    @property
    def usage(self) -> Usage:
        """Tokens of all calls so far; None where no host reported any."""
        return Usage(
            _sum([usage.prompt_tokens for usage in self._usages]),
            _sum([usage.completion_tokens for usage in self._usages]),
        )

    def paced(self, model: Generator, prompt: Prompt) -> Steps[Token | None, None, None]:
        """Yield the tokens of one counted call, and None while the first keeps one waiting.

        Closing the iterator ends the call.

        Raises:
            ProviderError: The host failed.
            Cancelled: The question was cancelled.
        """
        yield from self._call(model, prompt, None)

    def stream(self, model: Generator, prompt: Prompt) -> Steps[Token, None, None]:
        """Yield the tokens of one counted call besides the answer's own.

        Closing the iterator ends the call.

        Raises:
            ProviderTimeout: The call was not done in `side_call_s`.
            ProviderError: The host failed.
            Cancelled: The question was cancelled.
        """
        with closing(self._call(model, prompt, self.side_call_s)) as tokens:
            yield from (token for token in tokens if token is not None)

    def _call(
        self, model: Generator, prompt: Prompt, limit_s: float | None
    ) -> Steps[Token | None, None, None]:
        self.cancel.raise_if_cancelled()
        self.trace.llm_calls += 1
        own = CancelToken()
        # Names of OpenTelemetry's conventions for generative AI.
        with (
            self.trace.within(
                "chat", {"gen_ai.operation.name": "chat", "gen_ai.request.model": model.name}
            ) as span,
            self.cancel.calling(own.cancel),
            _ended_after(own, limit_s),
        ):
            try:
                with closing(
                    _waited_for(model.stream(prompt, own), own, self.patience_s)
                ) as tokens:
                    for token in tokens:
                        self.cancel.raise_if_cancelled()
                        if token is not None and token.usage is not None:
                            self._usages.append(token.usage)
                            self.observe(model.name, _counted(token.usage, prompt))
                            span.put(_told(token.usage))
                        yield token
            except GeneratorExit:
                own.cancel()
                raise
            except Cancelled as error:
                self.cancel.raise_if_cancelled()
                if limit_s is None:
                    raise
                raise ProviderTimeout(
                    f"{model.name} was not done in {limit_s:g} s; the answer goes on without"
                ) from error

    def ask(self, task: Task, **values: str) -> str:
        """Return what the helper makes of a task, trimmed; empty when there is no helper.

        Args:
            task: Name of the prompt.
            values: Its placeholders.

        Raises:
            ProviderError: The host failed.
            Cancelled: The question was cancelled.
        """
        if self.helper is None:
            return ""
        built = self.prompts.task(task, **values)
        prompt = Prompt(built.messages, temperature=built.temperature, max_tokens=built.max_tokens)
        return "".join(token.text for token in self.stream(self.helper, prompt)).strip()


@contextmanager
def _ended_after(call: CancelToken, limit_s: float | None) -> Iterator[None]:
    """End a call after so many seconds; None lets it go on."""
    if limit_s is None:
        yield
        return
    timer = threading.Timer(limit_s, call.cancel)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _waited_for(
    tokens: Iterator[Token], call: CancelToken, every_s: float
) -> Steps[Token | None, None, None]:
    """Yield tokens, and None after each so many seconds without a first one."""
    first: Future[Token | None] = Future()

    def take() -> None:
        try:
            first.set_result(next(tokens, None))
        except BaseException as error:  # noqa: BLE001  # handed to the thread that waits
            first.set_exception(error)

    thread = threading.Thread(target=take, name="first-token", daemon=True)
    thread.start()
    try:
        while not wait([first], every_s).done:
            yield None
        if (token := first.result()) is not None:
            yield token
            yield from tokens
    finally:
        if not first.done():
            call.cancel()
            thread.join()
        if isinstance(tokens, Steps):
            tokens.close()


def _counted(usage: Usage, prompt: Prompt) -> Usage:
    """Return a usage with the prompt's tokens, estimated if not counted."""
    if usage.prompt_tokens is not None:
        return usage
    return replace(
        usage,
        prompt_tokens=sum(len(message.content) for message in prompt.messages) // _CHARS_PER_TOKEN,
    )


def _told(usage: Usage) -> dict[str, int]:
    counts = {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
    }
    return {name: count for name, count in counts.items() if count is not None}


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
