"""Text from an Ollama host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Literal

from app.core.cancel import CancelToken
from app.core.errors import ProviderBadResponse, ProviderError
from app.core.types import Prompt, Token, Usage
from app.providers.http_reply import StreamReply
from app.providers.json_fields import MOST_TOKENS, Fields
from app.providers.logprobs import spread
from app.providers.ollama import OllamaHost
from app.providers.ollama_errors import cannot_chat, no_template, translate
from app.providers.ollama_listing import ModelDetails
from app.providers.retries import with_retries
from app.providers.slots import CallSlots

_MIN_WINDOW = 256
REPEAT_PENALTY = 1.1
"""What Ollama had by default before 0.32.10 and small models need; sent where the model file
sets none."""


class OllamaGenerator:
    """Generator on `/api/chat`; thread-safe.

    `num_ctx` and `shift` are the same on every call of a model, because the host loads it again
    when they differ; `truncate` is off, because a host that cuts a prompt drops the instructions
    first and says nothing.
    """

    def __init__(
        self,
        host: OllamaHost,
        model: str,
        *,
        slots: CallSlots,
        num_ctx: int = 8192,
        keep_alive: str = "30m",
        temperature: float = 0.2,
        max_tokens: int = 1024,
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            host: Where the model is.
            model: Name as `ollama list` shows it.
            slots: Cap on calls at once, shared by all generators of a host.
            num_ctx: Window to ask for, in tokens; clamped to what the model has.
            keep_alive: How long the host keeps the model in memory after a call, as a Go duration.
            temperature: For prompts that name none.
            max_tokens: Longest answer for prompts that name none.
        """
        self._host, self._model, self._slots = host, model, slots
        self._num_ctx, self._keep_alive = num_ctx, keep_alive
        self._temperature, self._max_tokens = temperature, max_tokens
        self._known: dict[str, ModelDetails] = {}

    @property
    def name(self) -> str:
        """`ollama:model`."""
        return f"ollama:{self._model}"

    @property
    def context_tokens(self) -> int:
        """Return the requested window in tokens, at most the model's.

        While the host is away, as configured.
        """
        try:
            return self._window(self._model)
        except ProviderError:
            return self._num_ctx  # the call that follows says what is wrong

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        """Yield tokens; the last has `finish` and usage.

        Raises:
            InvalidInput: The prompt does not fit the window.
            ModelNotInstalled: The host does not have the model.
            ProviderBadResponse: The stream ended early or said why it failed.
            ProviderError: The host failed otherwise.
            Busy: No slot became free in time, or the host's queue is full.
            Cancelled: The token was cancelled.
        """
        model = prompt.model or self._model
        with self._slots.hold(cancel), ExitStack() as stack:
            # only the opening is repeated: once a line has come, a second try would answer twice
            lines = with_retries(lambda: self._open(prompt, model, cancel, stack), cancel)
            yield from self._tokens(lines, model)

    def _open(
        self, prompt: Prompt, model: str, cancel: CancelToken, stack: ExitStack
    ) -> Iterator[Fields]:
        details = self._details(model, cancel)
        if details.capabilities and "completion" not in details.capabilities:
            raise cannot_chat(model, self._host.name, f"it can: {', '.join(details.capabilities)}")
        if details.bare_prompt and not self._host.uses_own_templates():
            raise no_template(model, "its model file has only {{ .Prompt }}")
        body = self._body(prompt, model, cancel)
        reply = stack.enter_context(
            self._host.http.stream("POST", "/api/chat", body, cancel=cancel)
        )
        if reply.status != 200:
            raise translate(
                reply.status,
                reply.read().decode("utf-8", "replace"),
                host=self._host.name,
                model=model,
            )
        return self._lines(reply)

    def _body(self, prompt: Prompt, model: str, cancel: CancelToken) -> dict[str, object]:
        body: dict[str, object] = {
            "model": model,
            "messages": [
                {"role": message.role, "content": message.content} for message in prompt.messages
            ],
            "stream": True,
            "think": False,
            "truncate": False,
            "shift": False,
            "keep_alive": self._keep_alive,
            "options": self._options(prompt, model, cancel),
        }
        if prompt.logprobs and self._host.gives_logprobs():
            body["logprobs"] = True
        if prompt.json_schema is not None:
            body["format"] = dict(prompt.json_schema)
        return body

    def _window(self, model: str, cancel: CancelToken | None = None) -> int:
        of_model = self._details(model, cancel).context_tokens
        return max(_MIN_WINDOW, min(self._num_ctx, of_model or self._num_ctx))

    def _details(self, model: str, cancel: CancelToken | None = None) -> ModelDetails:
        known = self._known.get(model)
        if known is None:  # two threads may ask at once; they get the same answer
            known = self._known[model] = self._host.details(model, cancel)
        return known

    def _options(self, prompt: Prompt, model: str, cancel: CancelToken) -> dict[str, object]:
        options: dict[str, object] = {
            "num_ctx": self._window(model, cancel),
            "num_predict": self._max_tokens if prompt.max_tokens is None else prompt.max_tokens,
            "temperature": self._temperature if prompt.temperature is None else prompt.temperature,
        }
        if not self._details(model, cancel).sets_repeat_penalty:
            options["repeat_penalty"] = REPEAT_PENALTY
        return options

    def _lines(self, reply: StreamReply) -> Iterator[Fields]:
        for line in reply.lines():
            if line.strip():
                yield Fields.parse(line, self._host.name)

    def _tokens(self, lines: Iterator[Fields], model: str) -> Iterator[Token]:
        pending: list[tuple[str, float]] = []
        for line in lines:
            if "error" in line:
                raise translate(200, line.text("error"), host=self._host.name, model=model)
            pending += [
                (entry.text("token"), min(entry.number("logprob") or 0.0, 0.0))
                for entry in line.children("logprobs")
            ]
            content = line.child("message").text("content")
            if content:
                yield from spread(content, pending)
                pending = []
            if line.flag("done"):
                yield Token("", finish=self._finish(line, model), usage=_usage(line))
                return
        raise ProviderBadResponse(
            f"{self._host.name} ended the answer of {model!r} early; ask again, and look into its"
            " log if it stays"
        )

    def _finish(self, line: Fields, model: str) -> Literal["stop", "length"]:
        reason = line.text("done_reason", "stop")
        if reason == "length":
            return "length"
        if reason == "stop":
            return "stop"
        raise ProviderBadResponse(
            f"{self._host.name} ended the answer of {model!r} with {reason!r}; ask again"
        )


def _usage(line: Fields) -> Usage:
    return Usage(
        line.count("prompt_eval_count", MOST_TOKENS),
        line.count("eval_count", MOST_TOKENS),
        prompt_seconds=_seconds(line, "prompt_eval_duration"),
        completion_seconds=_seconds(line, "eval_duration"),
        load_seconds=_seconds(line, "load_duration"),
    )


def _seconds(line: Fields, name: str) -> float | None:
    nanoseconds = line.count(name)
    return None if nanoseconds is None else nanoseconds / 1e9
