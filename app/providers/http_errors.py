"""Translate the errors of requests and urllib3 into ours, once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import requests
from urllib3.exceptions import HTTPError as Urllib3Error
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from app.core.cancel import CancelToken
from app.core.errors import (
    Cancelled,
    ProviderBadResponse,
    ProviderError,
    ProviderTimeout,
    ProviderUnreachable,
)


@contextmanager
def translated(host: str, cancel: CancelToken) -> Iterator[None]:
    """Turn errors of requests and urllib3 into ours; after a cancel, Cancelled."""
    try:
        yield
    except (requests.RequestException, OSError, Urllib3Error) as exc:
        if cancel.cancelled:
            raise Cancelled(f"the call to {host} was cancelled") from exc
        raise _translation(host, exc) from exc


def _translation(host: str, exc: Exception) -> ProviderError:
    if isinstance(exc, requests.ConnectTimeout):
        return ProviderUnreachable(
            f"{host} does not answer connections; check the address and that it is running"
        )
    if isinstance(exc, requests.Timeout | TimeoutError | ReadTimeoutError):
        return ProviderTimeout(
            f"{host} was silent for too long; raise the timeout or use a smaller model"
        )
    if isinstance(exc, requests.ConnectionError):
        return ProviderUnreachable(f"cannot reach {host}; check the address and that it is running")
    if isinstance(exc, OSError | ProtocolError) and not isinstance(exc, requests.RequestException):
        return ProviderUnreachable(f"{host} broke the connection; check that it is still running")
    return ProviderBadResponse(
        f"{host} sent something that is no HTTP ({type(exc).__name__}); is it the right address?"
    )
