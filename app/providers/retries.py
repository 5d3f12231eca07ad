"""Decide whether to repeat a failed call to a model host, and after what time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential

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
    """The host's model process died or could not load the model.

    A second try often works, a third does not.
    """

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
