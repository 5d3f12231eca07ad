"""Text from hosts that speak OpenAI's protocol, by name or self-hosted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, replace
from functools import partial
from typing import Literal

from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, ProviderBadResponse
from app.core.types import Prompt, Token, Usage
from app.models.embedding import HostEmbedder, over_estimate
from app.models.errors import translate_hosted
from app.models.http import Count, FromHost, HttpClient, Items, StreamReply, Text, Tokens
from app.models.ollama_adapters import Logprob, entries_of, spread
from app.models.options import HOSTED_DIGEST, PRESETS, HostedOptions, Preset
from app.models.retries import CallSlots, with_retries


class _Logprobs(FromHost):
    content: Items[Logprob] = ()


class _Delta(FromHost):
    content: Text = ""


class _Choice(FromHost):
    delta: _Delta = _Delta()
    logprobs: _Logprobs = _Logprobs()
    finish_reason: Text = ""


class _Counts(FromHost):
    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None


class _Event(FromHost):
    error: object = None
    usage: _Counts | None = None
    choices: Items[_Choice] = ()


class _Embedding(FromHost):
    index: Count = 0
    embedding: object = None


class _Embeddings(FromHost):
    data: Items[_Embedding] = ()


_FINISH: dict[str, Literal["stop", "length"]] = {
    "stop": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
}


class HostedEndpoint:
    """One host with its key; shared by its generator and embedder; thread-safe."""

    def __init__(self, provider: str, options: HostedOptions, *, timeout_s: float = 300.0) -> None:
        """Prepare; nothing is sent. An empty address is the preset's.

        Raises:
            InvalidInput: The provider is unknown, or its address cannot be read.
        """
        if provider not in PRESETS:
            raise InvalidInput(
                f"provider {provider!r} is unknown; expected one of {', '.join(PRESETS)}"
            )
        self.provider = provider
        self.preset: Preset = PRESETS[provider]
        self.http = HttpClient(
            options.base_url or self.preset.base_url,
            self.preset.name,
            connect_timeout_s=10.0,
            read_timeout_s=timeout_s,
            headers={"Authorization": f"Bearer {options.api_key}"} if options.api_key else {},
        )
        self.name = self.http.host
        self.translated = partial(translate_hosted, host=self.name, key=options.api_key)

    def error(self, reply: StreamReply, model: str) -> Exception:
        text = reply.read().decode("utf-8", "replace")
        retry_after = reply.headers.get("Retry-After")
        return self.translated(reply.status, text, model=model, retry_after=retry_after)


_REFUSALS = frozenset({400, 422, 500})
"""Statuses of hosts that do not know a reply format; llama-cpp-python answers 500."""


def _reply_formats(schema: Mapping[str, object] | None) -> tuple[dict[str, object], ...]:
    """Return the fields that ask for JSON: the standard ones, then those of older hosts."""
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
        """Prepare; nothing is sent. The protocol has no way to ask for `context_tokens`."""
        self._endpoint, self._model, self._slots = endpoint, model, slots
        self._temperature, self._max_tokens = temperature, max_tokens
        self.context_tokens = context_tokens
        self.name = f"{endpoint.provider}:{model}"

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        """Yield tokens; the last has `finish` and, where the host sends it, usage.

        Raises:
            InvalidInput: The prompt does not fit the window.
            Busy: No slot became free in time, or the host limits us.
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
            "messages": [asdict(message) for message in prompt.messages],
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
            if event.error is not None:
                raise self._endpoint.translated(200, str(event.error), model=model)
            if event.usage is not None:
                usage = Usage(event.usage.prompt_tokens, event.usage.completion_tokens)
            for choice in event.choices[:1]:
                if choice.delta.content:
                    began = began or time.monotonic()
                    yield from spread(choice.delta.content, entries_of(choice.logprobs.content))
                if choice.finish_reason:
                    finish = self._finish(choice.finish_reason, model)
        if finish is None:
            raise ProviderBadResponse(
                f"{self._endpoint.name} ended the answer of {model!r} early; ask again"
            )
        if began is not None:  # the protocol tells no durations
            usage = replace(
                usage, prompt_seconds=began - asked, completion_seconds=time.monotonic() - began
            )
        yield Token("", finish=finish, usage=usage)

    def _events(self, reply: StreamReply) -> Iterator[_Event]:
        for line in reply.lines():
            field, _, value = line.rstrip(b"\r").partition(b":")
            if field == b"data" and value.strip() and value.strip() != b"[DONE]":
                yield _Event.parse(value.strip(), self._endpoint.name)

    def _finish(self, reason: str, model: str) -> Literal["stop", "length"]:
        if reason not in _FINISH:
            raise ProviderBadResponse(
                f"{self._endpoint.name} ended the answer of {model!r} with {reason!r}; rephrase"
                " the question"
            )
        return _FINISH[reason]


# Vectors from hosts that speak OpenAI's protocol.

BATCH = 64
"""Texts per call; all presets take at least 100."""
MAX_TOKENS = 2048
"""The smallest window among the presets' embedding models (gemini-embedding-001), in tokens."""


class OpenAICompatibleEmbedder(HostEmbedder):
    """Embedder on `/embeddings`, whose digest is provider and model name."""

    batch = BATCH

    def __init__(
        self, endpoint: HostedEndpoint, model: str, *, dimension: int | None = None
    ) -> None:
        super().__init__(model, dimension)
        self._endpoint = endpoint

    @property
    def _host_name(self) -> str:
        return self._endpoint.name

    def _described(self) -> tuple[str, str, int]:
        provider = self._endpoint.provider
        window = min(self._traits.max_tokens or MAX_TOKENS, MAX_TOKENS)
        return provider, f"{HOSTED_DIGEST}{provider}:{self._model}", window

    def _cut(self, question: str, window: int) -> str:
        while over_estimate(question) > window:
            question = question[: len(question) * 3 // 4]
        return question

    def _vectors(self, texts: list[str], window: int, *, truncate: bool) -> object:
        del window, truncate  # the protocol knows neither
        body = {"model": self._model, "input": texts}
        reply = self._endpoint.http.call("POST", "/embeddings", body)
        if reply.status != 200:
            raise self._endpoint.translated(
                reply.status,
                reply.text,
                model=self._model,
                retry_after=reply.headers.get("Retry-After"),
                embedding=True,
            )
        found = _Embeddings.parse(reply.text, self._endpoint.name).data
        return [one.embedding for one in sorted(found, key=lambda one: one.index)]
