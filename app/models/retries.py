"""Decide whether to repeat a failed call to a model host, and after what time."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tenacity import Retrying, retry_if_exception, wait_exponential

from app.core.cancel import CancelToken
from app.core.errors import Busy, ProviderBadResponse, ProviderUnreachable

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


def with_retries(call: Callable[[], T], cancel: CancelToken) -> T:
    """Return what `call` does, repeating it where that can help.

    It must not have delivered anything when it raises. The cancel ends a wait at once.

    Raises:
        DocuMindError: What the last attempt raised.
        Cancelled: The token was cancelled.
    """

    def pause(seconds: float) -> None:
        cancel.wait(seconds)
        cancel.raise_if_cancelled()

    retrying = Retrying(
        retry=retry_if_exception(lambda error: attempts_for(error) > 1),
        stop=lambda state: (
            state.outcome is None or state.attempt_number >= attempts_for(state.outcome.exception())
        ),
        wait=wait_exponential(multiplier=_FIRST_WAIT_S, max=_LONGEST_WAIT_S),
        sleep=pause,
        reraise=True,
    )
    return retrying(call)


# Limit concurrent calls; waiters have a deadline and can be cancelled.


class CallSlots:
    """At most `size` holders; thread-safe.

    Ollama queues requests for a loaded model without limit and without an error, so the limit has
    to be here.
    """

    def __init__(self, size: int, wait_s: float, name: str) -> None:
        """Start with all slots free; `name` says what is waited for."""
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
