"""Text from an Ollama host."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Literal

import numpy as np

from app.core.cancel import CancelToken
from app.core.errors import ModelNotInstalled, ProviderBadResponse, ProviderError
from app.core.types import EmbedderIdentity, FloatArray, Prompt, Token, Usage
from app.models.http import MOST_TOKENS, Fields, StreamReply
from app.models.ollama import ModelDetails, OllamaHost, embedding_traits, same_model
from app.models.ollama_errors import cannot_chat, no_template, translate
from app.models.retries import CallSlots, checked_rows, refuse_long, with_retries

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
        """The window to ask for, at most the model's; as configured while the host is away."""
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


# Estimate a text's tokens for models without a local tokenizer.

SPECIALS = 2
"""Begin and end of text."""

_PIECE = re.compile(r"[A-Za-z]+|[^\sA-Za-z]")


def over_estimate(text: str) -> int:
    """Return a count that English prose seldom passes: sub-word tokens with specials.

    A run of letters counts one, and one more for each four letters after the third; a digit or sign
    counts one; any other character counts its UTF-8 bytes, what a byte-level tokenizer falls back
    to. Over the squad, pubmedqa and cranfield passages it is 1.25 times the true WordPiece count
    (median) and below it for 11 of 3,044, which the host then refuses rather than cuts.
    """
    count = SPECIALS
    for piece in _PIECE.findall(text):
        if piece.isascii():
            count += 1 + max(0, len(piece) - 3) // 4
        else:
            count += len(piece.encode("utf-8", "surrogatepass"))
    return count


# Vectors from an Ollama host.

BATCH = 32
"""Texts per call. The host embeds one after the other, so batches only save HTTP overhead
(docs/facts/ollama.md)."""
MAX_WINDOW = 2048
"""Window we ask for at most, in tokens: encoder models cannot split a text over batches, whose
default size this is."""
_DEFAULT_WINDOW = 512
"""For hosts that do not tell a model's window; the smallest of the common models'."""


class OllamaEmbedder:
    """Embedder on `/api/embed`; thread-safe. The first identity or vector contacts the host."""

    def __init__(
        self, host: OllamaHost, model: str, *, keep_alive: str = "30m", dimension: int | None = None
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            host: Where the model is.
            model: Name as `ollama list` shows it.
            keep_alive: How long the host keeps the model in memory after a call, as a Go duration.
            dimension: What vectors must have, when known (a library's fingerprint); None takes what
                comes first.
        """
        self._host, self._model, self._keep_alive, self._dimension = (
            host,
            model,
            keep_alive,
            dimension,
        )
        self._traits = embedding_traits(model)
        self._identity: EmbedderIdentity | None = None
        self._lock = threading.Lock()

    @property
    def identity(self) -> EmbedderIdentity:
        """Return the host's digest, window and dimension; asked once, confirmed by a vector."""
        with self._lock:
            if self._identity is None:
                self._identity = self._ask_identity()
            return self._identity

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        identity = self.identity
        refuse_long(texts, self.count_tokens(texts), self._model, identity.max_tokens)
        rows = np.empty((len(texts), identity.dimension), dtype=np.float32)
        for at in range(0, len(texts), BATCH):
            batch = [self._traits.passage_prefix + text for text in texts[at : at + BATCH]]
            rows[at : at + BATCH] = self._embed(batch, identity.max_tokens, identity.dimension)
        return rows

    def embed_query(self, text: str) -> FloatArray:
        identity = self.identity
        row: FloatArray = self._embed(
            [self._traits.query_prefix + text],
            identity.max_tokens,
            identity.dimension,
            truncate=True,
        )[0]
        return row

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        prefix = self._traits.passage_prefix
        return [over_estimate(prefix + text) for text in texts]

    def _ask_identity(self) -> EmbedderIdentity:
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
        stated = [
            tokens
            for tokens in (self._traits.max_tokens, details.context_tokens, details.configured_ctx)
            if tokens
        ]
        window = min([*stated, MAX_WINDOW]) if stated else _DEFAULT_WINDOW
        # some models have dense layers after the pooling, so only a vector tells the dimension
        dimension = self._embed(["dimension"], window, self._dimension).shape[1]
        traits = self._traits
        return EmbedderIdentity(
            "ollama",
            self._model,
            digest,
            dimension,
            window,
            traits.query_prefix,
            traits.passage_prefix,
        )

    def _embed(
        self, texts: list[str], window: int, dimension: int | None, *, truncate: bool = False
    ) -> FloatArray:
        body = {
            "model": self._model,
            "input": [
                text if text.strip() else "." for text in texts
            ],  # tokenizers without specials refuse an empty text
            "truncate": truncate,
            "keep_alive": self._keep_alive,
            "options": {"num_ctx": window},  # always the same, or the host loads the model again
        }

        def call() -> Fields:
            return self._host.check(
                self._host.http.call("POST", "/api/embed", body), self._model, embedding=True
            )

        reply = with_retries(call, CancelToken())
        return checked_rows(
            reply.raw("embeddings"), len(texts), dimension, host=self._host.name, model=self._model
        )
