"""Decide whether to repeat a failed call to a model host, and after what time."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential

from app.core.cancel import CancelToken
from app.core.errors import (
    Busy,
    PassageTooLong,
    ProviderBadResponse,
    ProviderTimeout,
    ProviderUnreachable,
)
from app.core.ports import Embedder
from app.core.types import EmbedderIdentity, FloatArray
from app.core.vectors import l2_normalise

T = TypeVar("T")

_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 4.0
_ATTEMPTS = 3
_ATTEMPTS_AFTER_CRASH = 2
"""Ollama evicts and retries by itself once, so a second crash will not go away
(docs/facts/ollama.md)."""


class RunnerStopped(ProviderBadResponse):
    """The host's model process died or could not load; a second try often works."""

    retryable = True


def attempts_for(error: BaseException | None) -> int:
    """Return how often a call that ends in this error may be made in total.

    Never more than once for a read that timed out (it would start the model from the beginning), a
    refusal, or an unknown model.
    """
    if isinstance(error, ProviderUnreachable | Busy):
        return _ATTEMPTS
    return _ATTEMPTS_AFTER_CRASH if isinstance(error, RunnerStopped) else 1


def with_retries(
    call: Callable[[], T], cancel: CancelToken, sleep: Callable[[float], object] | None = None
) -> T:
    """Return what `call` does, repeating it where that can help.

    Args:
        call: Does the whole thing; must not have delivered anything when it raises.
        cancel: Ends a wait at once.
        sleep: Waits a number of seconds; None waits on the cancel token.

    Raises:
        DocuMindError: What the last attempt raised.
        Cancelled: The token was cancelled.
    """

    def pause(seconds: float) -> None:
        (sleep or cancel.wait)(seconds)
        cancel.raise_if_cancelled()

    retrying = Retrying(
        retry=retry_if_exception(lambda error: attempts_for(error) > 1),
        stop=lambda state: state.attempt_number >= attempts_for(_error_of(state)),
        wait=wait_exponential(multiplier=_FIRST_WAIT_S, max=_LONGEST_WAIT_S),
        sleep=pause,
        reraise=True,
    )
    return retrying(call)


def _error_of(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None


# Limit concurrent calls; waiters have a deadline and can be cancelled.


class CallSlots:
    """At most `size` holders; thread-safe.

    Ollama queues requests for a loaded model without limit and without an error, so the limit has
    to be here.
    """

    def __init__(self, size: int, wait_s: float, name: str) -> None:
        """Start with all slots free.

        Args:
            size: Holders at once, at least 1.
            wait_s: Longest wait for a slot, seconds.
            name: What is waited for, for the message.
        """
        self._free = max(1, size)
        self._wait_s = wait_s
        self._name = name
        self._changed = threading.Condition()
        self._calls = itertools.count()
        self._under_way: frozenset[int] = frozenset()

    def under_way(self) -> frozenset[int]:
        """Return the numbers of the calls that hold a slot now; no number comes twice."""
        return self._under_way

    @contextmanager
    def hold(self, cancel: CancelToken) -> Iterator[None]:
        """Hold a slot.

        Raises:
            Busy: None became free in time.
            Cancelled: The token was cancelled while waiting.
        """
        cancel.on_cancel(self._wake)
        deadline = time.monotonic() + self._wait_s
        with self._changed:
            while self._free == 0 and not cancel.cancelled:
                if (
                    not self._changed.wait(max(0.0, deadline - time.monotonic()))
                    and self._free == 0
                ):
                    raise Busy(
                        f"all slots of {self._name} are taken; try again, or raise MAX_MODEL_CALLS",
                        retry_after_s=self._wait_s,
                    )
            cancel.raise_if_cancelled()
            self._free -= 1
            number = next(self._calls)
            self._under_way |= {number}
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._under_way -= {number}
                self._changed.notify()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


# Check passages before embedding and vectors after it, for every embedder.


def refuse_long(texts: Sequence[str], counts: Sequence[int], model: str, limit: int) -> None:
    """Let only passages through that the model reads whole.

    Args:
        texts: The passages.
        counts: Tokens of each, exact or over-estimated.
        model: For the message.
        limit: Most tokens.

    Raises:
        PassageTooLong: One has more; the message names the first.
    """
    for position, (text, tokens) in enumerate(zip(texts, counts, strict=True)):
        if tokens > limit:
            raise PassageTooLong(
                f"passage {position} ({text[:40]!r}...) has {tokens} tokens, {model!r} reads"
                f" {limit}; split it"
            )


def checked_rows(
    value: object, count: int, dimension: int | None, *, host: str, model: str
) -> FloatArray:
    """Return what a host sent as float32 `[count, dim]`, rows of L2 norm 1.

    Args:
        value: Lists of numbers.
        count: How many texts were sent.
        dimension: What rows must have; None takes any.
        host: The host with its address, for messages.
        model: The model, for messages.

    Raises:
        ProviderBadResponse: These are not so many finite vectors of that dimension.
    """
    try:
        rows = l2_normalise(np.asarray(value, dtype=np.float32))
    except (TypeError, ValueError) as exc:
        raise ProviderBadResponse(
            f"{host} sent vectors of {model!r} that are no numbers ({exc}); look into its log"
        ) from exc
    if rows.ndim != 2 or len(rows) != count:
        raise ProviderBadResponse(
            f"{host} sent vectors of shape {rows.shape} for {count} texts; look into its log"
        )
    if dimension is not None and rows.shape[1] != dimension:
        raise ProviderBadResponse(
            f"{model!r} sent {rows.shape[1]} dimensions, expected {dimension}; restore the model"
            " or run: documind reembed"
        )
    return rows


# An embedder for questions: a host that is slow or silent holds none of them.


class TimelyEmbedder:
    """Waits for its host at most `timeout_s` seconds; thread-safe.

    A call that takes longer goes on in the background, since a host stops loading a model when its
    caller leaves. Until that call has ended the host is asked nothing more.
    """

    def __init__(
        self, embedder: Embedder, timeout_s: float, ended: Callable[[], None] = lambda: None
    ) -> None:
        """Wait for `embedder`; nothing is sent yet.

        Args:
            embedder: Asks the host, for as long as that takes.
            timeout_s: Longest wait, seconds.
            ended: Called when a call that took longer has ended.
        """
        self._embedder = embedder
        self._timeout_s = timeout_s
        self._ended = ended
        self._identity: EmbedderIdentity | None = None
        self._overdue: Future[object] | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        if self._identity is None:
            self._identity = self._within(lambda: self._embedder.identity)
        return self._identity

    def embed_query(self, text: str) -> FloatArray:
        return self._within(lambda: self._embedder.embed_query(text))

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        return self._within(lambda: self._embedder.embed_passages(texts))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._embedder.count_tokens(texts)

    def _within(self, ask: Callable[[], T]) -> T:
        if self._overdue is not None and not self._overdue.done():
            raise ProviderTimeout(
                "the embedding model is still being loaded, or its host is silent"
            )
        asked: Future[T] = Future()

        def run() -> None:
            try:
                asked.set_result(ask())
            except BaseException as error:  # noqa: BLE001  # handed to the thread that asked
                asked.set_exception(error)

        threading.Thread(target=run, name="embed-question", daemon=True).start()
        try:
            return asked.result(self._timeout_s)
        except TimeoutError:
            self._overdue = asked  # type: ignore[assignment]  # only whether it has ended counts
            asked.add_done_callback(lambda _: self._ended())
            raise ProviderTimeout(
                f"the embedding model gave nothing in {self._timeout_s:g} s; it is being loaded in"
                " the background"
            ) from None
