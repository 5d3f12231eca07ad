"""Send HTTP requests: pooled, cancellable."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import DefaultCookiePolicy
from urllib.parse import urlunsplit

import requests

from app.core.cancel import CancelToken
from app.core.errors import ProviderBadResponse
from app.core.hosts import without_credentials
from app.providers.addresses import parsed_address
from app.providers.http_errors import translated
from app.providers.http_reply import HttpReply, StreamReply
from app.providers.sockets import SocketWatch, WatchedAdapter, current_watch


class HttpClient:
    """Calls to one host; thread-safe.

    Reads no proxy or netrc settings, keeps no cookies, follows no redirects.
    """

    def __init__(
        self,
        base_url: str,
        name: str,
        *,
        connect_timeout_s: float = 3.0,
        read_timeout_s: float = 300.0,
        headers: Mapping[str, str] | None = None,
        connections: int = 32,
        public_only: bool = False,
    ) -> None:
        """Prepare a session; nothing is sent.

        Args:
            base_url: `http[s]://host[:port][/path]`; without a scheme, http.
            name: What people call the host, for messages.
            connect_timeout_s: Longest wait for a connection, seconds.
            read_timeout_s: Longest silence of the host, seconds.
            headers: Sent with every call; may hold a key, so they are never shown.
            connections: How many idle connections are kept.
            public_only: Refuse connections that lead to a private address.

        Raises:
            InvalidInput: The URL has no host or a foreign scheme.
        """
        parts = parsed_address(base_url, name)
        self.base_url = urlunsplit(parts)
        self.shown_url = without_credentials(self.base_url)
        """The address for people and pages: a name and password in it are left out."""
        self.host = f"{name} at {self.shown_url}"
        self._timeouts = (connect_timeout_s, read_timeout_s)
        self._public_only = public_only
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self._session.headers.update(
            {"User-Agent": "documind", "Accept-Encoding": "identity", **(headers or {})}
        )
        adapter = WatchedAdapter(pool_connections=1, pool_maxsize=connections, max_retries=0)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)

    def close(self) -> None:
        """Close idle connections."""
        self._session.close()

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        cancel: CancelToken | None = None,
        timeout_s: float | None = None,
    ) -> HttpReply:
        """Return a whole reply of any status.

        Args:
            method: HTTP method.
            path: Appended to the base URL, with its query.
            body: Sent as JSON when not None.
            cancel: Ends the call within milliseconds, in any state.
            timeout_s: Deadline for the whole reply and its silences, seconds; None: the read
                timeout for each silence.

        Raises:
            ProviderUnreachable, ProviderTimeout, ProviderBadResponse, Cancelled: As `stream`.
        """
        with self.stream(method, path, body, cancel=cancel, timeout_s=timeout_s) as reply:
            return HttpReply(reply.status, reply.read(), reply.headers)

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        cancel: CancelToken | None = None,
        timeout_s: float | None = None,
    ) -> Iterator[StreamReply]:
        """Open a reply of any status but a redirect.

        Leaving the block closes the connection unless the reply was read to its end.

        Raises:
            ProviderUnreachable: No connection, or it broke.
            ProviderTimeout: The host was silent too long.
            ProviderBadResponse: The host redirects, or speaks no HTTP.
            Cancelled: The token was cancelled.
        """
        token = cancel or CancelToken()
        token.raise_if_cancelled()
        watch = SocketWatch(public_only=self._public_only)
        token.on_cancel(watch.shut)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            response = self._open(method, path, body, token, watch, timeout_s)
            try:
                if response.is_redirect:
                    raise ProviderBadResponse(
                        f"{self.host} redirects to another address, which is not followed; set"
                        " that one instead"
                    )
                yield StreamReply(
                    response,
                    self.host,
                    token,
                    watch,
                    silence_s=self._times(timeout_s)[1],
                    deadline=deadline,
                )
            finally:
                response.close()
        finally:
            watch.release()

    def _open(
        self,
        method: str,
        path: str,
        body: object,
        cancel: CancelToken,
        watch: SocketWatch,
        timeout_s: float | None,
    ) -> requests.Response:
        reset = current_watch.set(watch)
        try:
            with translated(self.host, cancel):
                return self._session.request(
                    method,
                    self.base_url + path,
                    json=body,
                    timeout=self._times(timeout_s),
                    allow_redirects=False,
                    stream=True,
                )
        finally:
            current_watch.reset(reset)

    def _times(self, timeout_s: float | None) -> tuple[float, float]:
        """Return how long to wait for a connection and for each read of a call, seconds."""
        connect_s, read_s = self._timeouts
        return (connect_s, read_s) if timeout_s is None else (min(connect_s, timeout_s), timeout_s)
