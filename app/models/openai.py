"""Text from hosts that speak OpenAI's protocol, by name or self-hosted."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Literal

import numpy as np

from app.core.cancel import CancelToken
from app.core.errors import (
    Busy,
    DocuMindError,
    InvalidInput,
    ModelNotInstalled,
    PassageTooLong,
    ProviderBadResponse,
)
from app.core.types import EmbedderIdentity, FloatArray, Prompt, Token, Usage
from app.models.http import MOST_TOKENS, Fields, HttpClient, StreamReply, error_text
from app.models.ollama import embedding_traits
from app.models.ollama_adapters import over_estimate, spread
from app.models.options import HOSTED_DIGEST, PRESETS, HostedOptions, Preset
from app.models.retries import CallSlots, checked_rows, refuse_long, with_retries

# Translate an OpenAI-compatible host's failures into our errors, with a fix.

_TOO_LONG = re.compile(
    r"context.?length|maximum context|too many (input )?tokens|exceeds? .*tokens", re.IGNORECASE
)
_NO_MODEL = re.compile(r"model", re.IGNORECASE)
_LOADING = re.compile(r"loading model|model is loading", re.IGNORECASE)
_NOT_LOADED = re.compile(r"no models? loaded|models? (is )?(not loaded|unloaded)", re.IGNORECASE)
_NO_TEMPLATE = re.compile(r"chat.template", re.IGNORECASE)
_NO_MEMORY = re.compile(
    r"insufficient (system )?(memory|resources)|out.of.memory|not enough memory", re.IGNORECASE
)
_WRONG_KIND = re.compile(
    r"does not support (the )?(chat|completion|embedding)|not a chat model|is an? embedding model",
    re.IGNORECASE,
)
_RETRY_S = 5.0
_LONGEST_RETRY_S = 3600.0


def translate(
    status: int,
    body: str,
    *,
    host: str,
    model: str,
    preset: Preset,
    key: str,
    retry_after: str | None = None,
    embedding: bool = False,
) -> DocuMindError:
    """Return a reply's error, with the key removed from the host's words.

    Args:
        status: HTTP status; 200 for an error inside a stream.
        body: The reply's body.
        host: The host with its address, for messages.
        model: The model that was asked for.
        preset: Names the settings to look at.
        key: The secret that must not appear.
        retry_after: The header of that name.
        embedding: The call was for vectors.
    """
    said = error_text(body)
    if key:
        said = said.replace(key, "***")
    # providers repeat the start and end of a wrong key, which is still too much for a log
    said = re.sub(r"\b(sk|gsk|key|AIza)[-_\w*]{6,}", "***", said)[:200]
    if status in {401, 403}:
        return ProviderBadResponse(
            f"{host} refuses the key ({said}); check {preset.env_prefix}_API_KEY"
        )
    if (trouble := _model_trouble(status, said, host, model, embedding)) is not None:
        return trouble
    if status in {429, 502, 503, 529}:
        told = retry_after and retry_after.strip().isdecimal()
        wait = min(float(retry_after or 0), _LONGEST_RETRY_S) if told else _RETRY_S
        loading = f"is loading {model!r}" if _LOADING.search(said) else "is overloaded"
        why = "limits how often it is asked" if status == 429 else loading
        return Busy(f"{host} {why} ({said}); try again later", retry_after_s=wait)
    if status in {400, 413, 422} and _TOO_LONG.search(said):
        if embedding:
            return PassageTooLong(f"a text is longer than {model!r} reads ({said}); split it")
        return InvalidInput(
            f"the prompt is longer than the window of {model!r} ({said}); ask with fewer passages"
        )
    return ProviderBadResponse(f"{host} answered {status} for {model!r}: {said!r}")


def _model_trouble(
    status: int, said: str, host: str, model: str, embedding: bool
) -> DocuMindError | None:
    """Return the error of a model that cannot serve; hosts use many statuses."""
    if _NOT_LOADED.search(said):
        return ProviderBadResponse(
            f"{host} has not loaded {model!r} ({said}); load it there and ask again"
        )
    if _NO_TEMPLATE.search(said):
        return ProviderBadResponse(
            f"model {model!r} has no chat template ({said}); choose an instruct model"
        )
    if _NO_MEMORY.search(said):
        return ProviderBadResponse(
            f"model {model!r} is too large for the memory of {host} ({said}); choose a smaller"
            " model"
        )
    if _WRONG_KIND.search(said):
        wanted = "embed; choose an embedding model" if embedding else "chat; choose a chat model"
        return ProviderBadResponse(f"model {model!r} cannot {wanted} ({host}: {said})")
    if status == 404 and _NO_MODEL.search(said):
        return ModelNotInstalled(f"{host} has no model {model!r} ({said}); check the model's name")
    return None


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
        return self.http.host

    def error(self, reply: StreamReply, model: str) -> Exception:
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
        return f"{self._endpoint.provider}:{self._model}"

    @property
    def context_tokens(self) -> int:
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


# Vectors from hosts that speak OpenAI's protocol.

BATCH = 64
"""Texts per call; all presets take at least 100."""
MAX_TOKENS = 2048
"""The smallest window among the presets' embedding models (gemini-embedding-001), in tokens."""


class OpenAICompatibleEmbedder:
    """Embedder on `/embeddings`, whose digest is provider and model name; thread-safe."""

    def __init__(
        self, endpoint: HostedEndpoint, model: str, *, dimension: int | None = None
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            endpoint: Host and key.
            model: Name at the host.
            dimension: What vectors must have, when known (a library's fingerprint).
        """
        self._endpoint, self._model, self._dimension = endpoint, model, dimension
        self._traits = embedding_traits(model)
        self._identity: EmbedderIdentity | None = None
        self._lock = threading.Lock()

    @property
    def identity(self) -> EmbedderIdentity:
        """Return the dimension confirmed with one vector; asked once."""
        with self._lock:
            if self._identity is None:
                endpoint, traits = self._endpoint, self._traits
                dimension = self._embed(["dimension"], self._dimension).shape[1]
                digest = f"{HOSTED_DIGEST}{endpoint.provider}:{self._model}"
                window = min(traits.max_tokens or MAX_TOKENS, MAX_TOKENS)
                self._identity = EmbedderIdentity(
                    endpoint.provider,
                    self._model,
                    digest,
                    dimension,
                    window,
                    traits.query_prefix,
                    traits.passage_prefix,
                )
            return self._identity

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        identity = self.identity
        refuse_long(texts, self.count_tokens(texts), self._model, identity.max_tokens)
        rows = np.empty((len(texts), identity.dimension), dtype=np.float32)
        for at in range(0, len(texts), BATCH):
            batch = [self._traits.passage_prefix + text for text in texts[at : at + BATCH]]
            rows[at : at + BATCH] = self._embed(batch, identity.dimension)
        return rows

    def embed_query(self, text: str) -> FloatArray:
        """Return float32 `[dim]`; a long question is cut here, because hosts refuse it."""
        identity = self.identity
        question = self._traits.query_prefix + text
        while over_estimate(question) > identity.max_tokens:
            question = question[: len(question) * 3 // 4]
        row: FloatArray = self._embed([question], identity.dimension)[0]
        return row

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [over_estimate(self._traits.passage_prefix + text) for text in texts]

    def _embed(self, texts: list[str], dimension: int | None) -> FloatArray:
        body = {"model": self._model, "input": [text if text.strip() else "." for text in texts]}

        def call() -> Fields:
            reply = self._endpoint.http.call("POST", "/embeddings", body)
            if reply.status != 200:
                retry_after = reply.headers.get("Retry-After")
                raise self._endpoint.translated(
                    reply.status, reply.text, self._model, retry_after, embedding=True
                )
            return Fields(reply.json(self._endpoint.name), self._endpoint.name)

        items = with_retries(call, CancelToken()).children("data")
        ordered = sorted(items, key=lambda item: item.count("index") or 0)
        vectors = [item.raw("embedding") for item in ordered]
        return checked_rows(
            vectors, len(texts), dimension, host=self._endpoint.name, model=self._model
        )
