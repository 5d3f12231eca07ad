"""Text from an Ollama host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from typing import Literal

from app.core.cancel import CancelToken
from app.core.errors import ModelNotInstalled, ProviderBadResponse, ProviderError
from app.core.types import Prompt, Token, Usage
from app.models.embedding import HostEmbedder
from app.models.errors import CANNOT_CHAT, NO_TEMPLATE, translate_ollama
from app.models.http import Count, Flag, FromHost, Items, Number, Text, Tokens
from app.models.ollama import ModelDetails, OllamaHost, same_model
from app.models.retries import CallSlots, with_retries

# Text and the log-probabilities that came with it.


def spread(content: str, entries: list[tuple[str, float]]) -> Iterator[Token]:
    """Yield the text of a line with the log-probabilities that came for it.

    When the entries spell the text, each is a token of its own; otherwise the text is one token
    with the smallest, because doubt about a part is doubt about the whole.
    """
    if entries and "".join(text for text, _ in entries) == content:
        yield from (Token(text, logprob) for text, logprob in entries)
    else:
        yield Token(content, min((logprob for _, logprob in entries), default=None))


class Logprob(FromHost):
    token: Text = ""
    logprob: Number = 0.0


def entries_of(logprobs: Iterable[Logprob]) -> list[tuple[str, float]]:
    """Return tokens with their log-probabilities, none above 0."""
    return [(one.token, min(one.logprob, 0.0)) for one in logprobs]


class _Message(FromHost):
    content: Text = ""


class _Line(FromHost):
    """A line of a streamed answer; durations in nanoseconds."""

    error: object = None
    message: _Message = _Message()
    logprobs: Items[Logprob] = ()
    done: Flag = False
    done_reason: Text = "stop"
    prompt_eval_count: Tokens | None = None
    eval_count: Tokens | None = None
    prompt_eval_duration: Count | None = None
    eval_duration: Count | None = None
    load_duration: Count | None = None


class _Vectors(FromHost):
    embeddings: object = None


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

        The slots are shared by all generators of a host. `num_ctx` is clamped to what the model
        has; `keep_alive` is a Go duration. Temperature and `max_tokens` are for prompts that name
        none.
        """
        self._host, self._model, self._slots = host, model, slots
        self._num_ctx, self._keep_alive = num_ctx, keep_alive
        self._temperature, self._max_tokens = temperature, max_tokens
        self.name = f"ollama:{model}"
        self._known: dict[str, ModelDetails] = {}

    @property
    def context_tokens(self) -> int:
        """The window to ask for, at most the model's; as configured while the host is away."""
        try:
            return self._window(self._model)
        except ProviderError:
            return self._num_ctx  # the call that follows says what is wrong

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        """Yield tokens; the last has `finish` and usage.

        Raises:
            InvalidInput: The prompt does not fit the window.
            Busy: No slot became free in time, or the host's queue is full.
        """
        model = prompt.model or self._model
        with self._slots.hold(cancel), ExitStack() as stack:
            # only the opening is repeated: once a line has come, a second try would answer twice
            lines = with_retries(lambda: self._open(prompt, model, cancel, stack), cancel)
            yield from self._tokens(lines, model)

    def _open(
        self, prompt: Prompt, model: str, cancel: CancelToken, stack: ExitStack
    ) -> Iterator[_Line]:
        details = self._details(model, cancel)
        if not details.chats:
            can = f"it can: {', '.join(details.capabilities)}"
            raise ProviderBadResponse(
                CANNOT_CHAT.format(model=model, host=self._host.name, said=can)
            )
        if details.bare_prompt and not self._host.uses_own_templates():
            said = "its model file has only {{ .Prompt }}"
            raise ProviderBadResponse(NO_TEMPLATE.format(model=model, said=said))
        body = self._body(prompt, model, cancel)
        reply = stack.enter_context(
            self._host.http.stream("POST", "/api/chat", body, cancel=cancel)
        )
        if reply.status != 200:
            said = reply.read().decode("utf-8", "replace")
            raise translate_ollama(reply.status, said, host=self._host.name, model=model)
        lines = filter(bytes.strip, reply.lines())
        return (_Line.parse(line, self._host.name) for line in lines)

    def _body(self, prompt: Prompt, model: str, cancel: CancelToken) -> dict[str, object]:
        body: dict[str, object] = {
            "model": model,
            "messages": [asdict(message) for message in prompt.messages],
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

    def _tokens(self, lines: Iterator[_Line], model: str) -> Iterator[Token]:
        pending: list[tuple[str, float]] = []
        for line in lines:
            if line.error is not None:
                said = line.error if isinstance(line.error, str) else ""
                raise translate_ollama(200, said, host=self._host.name, model=model)
            pending += entries_of(line.logprobs)
            if line.message.content:
                yield from spread(line.message.content, pending)
                pending = []
            if line.done:
                yield Token("", finish=self._finish(line, model), usage=_usage(line))
                return
        raise ProviderBadResponse(
            f"{self._host.name} ended the answer of {model!r} early; ask again, and look into its"
            " log if it stays"
        )

    def _finish(self, line: _Line, model: str) -> Literal["stop", "length"]:
        match line.done_reason:
            case "length" | "stop" as reason:
                return reason
        raise ProviderBadResponse(
            f"{self._host.name} ended the answer of {model!r} with {line.done_reason!r}; ask again"
        )


def _usage(line: _Line) -> Usage:
    prompt_s, completion_s, load_s = (
        None if nanoseconds is None else nanoseconds / 1e9
        for nanoseconds in (line.prompt_eval_duration, line.eval_duration, line.load_duration)
    )
    return Usage(
        line.prompt_eval_count,
        line.eval_count,
        prompt_seconds=prompt_s,
        completion_seconds=completion_s,
        load_seconds=load_s,
    )


# Vectors from an Ollama host.

BATCH = 32
"""Texts per call. The host embeds one after the other, so batches only save HTTP overhead
(docs/facts/ollama.md)."""
MAX_WINDOW = 2048
"""Window we ask for at most, in tokens: encoder models cannot split a text over batches, whose
default size this is."""
_DEFAULT_WINDOW = 512
"""For hosts that do not tell a model's window; the smallest of the common models'."""


class OllamaEmbedder(HostEmbedder):
    """Embedder on `/api/embed`."""

    batch = BATCH

    def __init__(
        self, host: OllamaHost, model: str, *, keep_alive: str = "30m", dimension: int | None = None
    ) -> None:
        """Prepare; nothing is sent. `keep_alive` is a Go duration, after each call."""
        super().__init__(model, dimension)
        self._host, self._keep_alive = host, keep_alive

    @property
    def _host_name(self) -> str:
        return self._host.name

    def _described(self) -> tuple[str, str, int]:
        details = self._host.details(self._model)
        if not details.embeds:
            raise ProviderBadResponse(
                f"model {self._model!r} cannot embed; choose an embedding model such as"
                " 'nomic-embed-text'"
            )
        digest = next(
            (row.digest for row in self._host.models() if same_model(row.name, self._model)), None
        )
        if digest is None:
            raise ModelNotInstalled(
                f"model {self._model!r} is not installed; run: ollama pull {self._model}"
            )
        known = (self._traits.max_tokens, details.context_tokens, details.configured_ctx)
        stated = [tokens for tokens in known if tokens]
        return "ollama", digest, min([*stated, MAX_WINDOW]) if stated else _DEFAULT_WINDOW

    def _vectors(self, texts: list[str], window: int, *, truncate: bool) -> object:
        body = {
            "model": self._model,
            "input": texts,
            "truncate": truncate,
            "keep_alive": self._keep_alive,
            "options": {"num_ctx": window},  # always the same, or the host loads the model again
        }
        reply = self._host.http.call("POST", "/api/embed", body)
        return self._host.check(reply, self._model, _Vectors, embedding=True).embeddings
