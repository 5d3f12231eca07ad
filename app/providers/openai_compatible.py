"""Text from hosts that speak OpenAI's protocol, by name or self-hosted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Literal

from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, ProviderBadResponse
from app.core.types import Prompt, Token, Usage
from app.providers.http import HttpClient
from app.providers.http_reply import StreamReply
from app.providers.json_fields import MOST_TOKENS, Fields
from app.providers.logprobs import spread
from app.providers.openai_errors import translate
from app.providers.options import HostedOptions
from app.providers.presets import PRESETS, Preset
from app.providers.retries import with_retries
from app.providers.slots import CallSlots

_FINISH: dict[str, Literal["stop", "length"]] = {
    "stop": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
}


class HostedEndpoint:
    """One host with its key; shared by its generator and embedder; thread-safe."""

    def __init__(
        self,
        provider: str,
        options: HostedOptions,
        *,
        timeout_s: float = 300.0,
        connect_timeout_s: float = 10.0,
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            provider: A name of `PRESETS`.
            options: Address (empty: the preset's), key and model.
            timeout_s: Longest silence of the host, seconds.
            connect_timeout_s: Longest wait for a connection, seconds.

        Raises:
            InvalidInput: The provider is unknown, or its address cannot be read.
        """
        if provider not in PRESETS:
            raise InvalidInput(
                f"provider {provider!r} is unknown; expected one of {', '.join(PRESETS)}"
            )
        self.provider = provider
        self.preset: Preset = PRESETS[provider]
        self._key = options.api_key
        self.http = HttpClient(
            options.base_url or self.preset.base_url,
            self.preset.name,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=timeout_s,
            headers={"Authorization": f"Bearer {options.api_key}"} if options.api_key else {},
        )

    @property
    def name(self) -> str:
        """The host with its address, for messages."""
        return self.http.host

    def error(self, reply: StreamReply, model: str) -> Exception:
        """Return the error for a reply that is not 200."""
        text = reply.read().decode("utf-8", "replace")
        return self.translated(reply.status, text, model, reply.headers.get("Retry-After"))

    def translated(
        self,
        status: int,
        text: str,
        model: str,
        retry_after: str | None = None,
        *,
        embedding: bool = False,
    ) -> Exception:
        """Return the error for a status and body."""
        return translate(
            status,
            text,
            host=self.name,
            model=model,
            preset=self.preset,
            key=self._key,
            retry_after=retry_after,
            embedding=embedding,
        )


_REFUSALS = frozenset({400, 422, 500})
"""Statuses of hosts that do not know a reply format; llama-cpp-python answers 500."""


def _reply_formats(schema: Mapping[str, object] | None) -> tuple[dict[str, object], ...]:
    """Return the fields that ask for JSON, the standard ones first.

    Older hosts know `json_object` alone, with the schema in a field of its own.
    """
    if schema is None:
        return ({},)
    named = {"name": "reply", "schema": dict(schema), "strict": True}
    return (
        {"response_format": {"type": "json_schema", "json_schema": named}},
        {"response_format": {"type": "json_object", "schema": dict(schema)}},
    )


class OpenAICompatibleGenerator:
    """Generator on `/chat/completions`, streamed as server-sent events; thread-safe."""

    def __init__(
        self,
        endpoint: HostedEndpoint,
        model: str,
        *,
        slots: CallSlots,
        context_tokens: int = 8192,
        temperature: float = 0.2,
        max_tokens: int = 1024,
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            endpoint: Host and key.
            model: Name at the host.
            slots: Cap on calls at once.
            context_tokens: Window to plan with; the protocol has no way to ask.
            temperature: For prompts that name none.
            max_tokens: Longest answer for prompts that name none.
        """
        self._endpoint, self._model, self._slots = endpoint, model, slots
        self._context_tokens, self._temperature, self._max_tokens = (
            context_tokens,
            temperature,
            max_tokens,
        )

    @property
    def name(self) -> str:
        """`provider:model`."""
        return f"{self._endpoint.provider}:{self._model}"

    @property
    def context_tokens(self) -> int:
        """The window to plan with, in tokens."""
        return self._context_tokens

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        """Yield tokens; the last has `finish` and, where the host sends it, usage.

        Raises:
            InvalidInput: The prompt does not fit the window.
            ModelNotInstalled: The host does not have the model.
            ProviderBadResponse: The key is refused, the stream ended early, or it said why it
                failed.
            ProviderError: The host failed otherwise.
            Busy: No slot became free in time, or the host limits us.
            Cancelled: The token was cancelled.
        """
        model = prompt.model or self._model
        with self._slots.hold(cancel), ExitStack() as stack:
            reply, asked = with_retries(lambda: self._open(prompt, model, cancel, stack), cancel)
            yield from self._tokens(reply, model, asked)

    def _open(
        self, prompt: Prompt, model: str, cancel: CancelToken, stack: ExitStack
    ) -> tuple[StreamReply, float]:
        """Return the reply and when it was asked for, on the monotonic clock."""
        body, asked = self._body(prompt, model), time.monotonic()
        *refusable, last = _reply_formats(prompt.json_schema)
        for form in refusable:
            with ExitStack() as attempt:
                reply = attempt.enter_context(self._asked({**body, **form}, cancel))
                if reply.status not in _REFUSALS:
                    stack.enter_context(attempt.pop_all())
                    return self._accepted(reply, model), asked
        reply = stack.enter_context(self._asked({**body, **last}, cancel))
        return self._accepted(reply, model), asked

    def _asked(
        self, body: dict[str, object], cancel: CancelToken
    ) -> AbstractContextManager[StreamReply]:
        return self._endpoint.http.stream("POST", "/chat/completions", body, cancel=cancel)

    def _accepted(self, reply: StreamReply, model: str) -> StreamReply:
        if reply.status != 200:
            raise self._endpoint.error(reply, model)
        return reply

    def _body(self, prompt: Prompt, model: str) -> dict[str, object]:
        preset = self._endpoint.preset
        body: dict[str, object] = {
            "model": model,
            "messages": [
                {"role": message.role, "content": message.content} for message in prompt.messages
            ],
            "stream": True,
            "temperature": self._temperature if prompt.temperature is None else prompt.temperature,
            preset.max_tokens_field: self._max_tokens
            if prompt.max_tokens is None
            else prompt.max_tokens,
        }
        if preset.usage_on_request:
            body["stream_options"] = {"include_usage": True}
        if prompt.logprobs and preset.logprobs:
            body["logprobs"] = True
        return body

    def _tokens(self, reply: StreamReply, model: str, asked: float) -> Iterator[Token]:
        finish: Literal["stop", "length"] | None = None
        usage = Usage()
        began: float | None = None
        for event in self._events(reply):
            if "error" in event:
                raise self._endpoint.translated(200, str(event.raw("error")), model)
            if "usage" in event:
                counts = event.child("usage")
                usage = Usage(
                    counts.count("prompt_tokens", MOST_TOKENS),
                    counts.count("completion_tokens", MOST_TOKENS),
                )
            for choice in event.children("choices")[:1]:
                entries = [
                    (e.text("token"), min(e.number("logprob") or 0.0, 0.0))
                    for e in choice.child("logprobs").children("content")
                ]
                if content := choice.child("delta").text("content"):
                    began = began or time.monotonic()
                    yield from spread(content, entries)
                if reason := choice.text("finish_reason"):
                    finish = self._finish(reason, model)
        if finish is None:
            raise ProviderBadResponse(
                f"{self._endpoint.name} ended the answer of {model!r} early; ask again"
            )
        if began is not None:  # the protocol tells no durations
            usage = replace(
                usage, prompt_seconds=began - asked, completion_seconds=time.monotonic() - began
            )
        yield Token("", finish=finish, usage=usage)

    def _events(self, reply: StreamReply) -> Iterator[Fields]:
        for line in reply.lines():
            field, _, value = line.rstrip(b"\r").partition(b":")
            if field == b"data" and value.strip() and value.strip() != b"[DONE]":
                yield Fields.parse(value.strip(), self._endpoint.name)

    def _finish(self, reason: str, model: str) -> Literal["stop", "length"]:
        if reason not in _FINISH:
            raise ProviderBadResponse(
                f"{self._endpoint.name} ended the answer of {model!r} with {reason!r}; rephrase"
                " the question"
            )
        return _FINISH[reason]
