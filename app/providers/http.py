"""Send HTTP requests: pooled, cancellable, with errors translated once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from urllib.parse import SplitResult, urlsplit, urlunsplit

import requests
from urllib3.exceptions import HTTPError as Urllib3Error
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from app.core.cancel import CancelToken
from app.core.errors import Cancelled, InvalidInput, ProviderBadResponse, ProviderError, ProviderTimeout, ProviderUnreachable
from app.core.hosts import is_loopback
from app.providers.sockets import SocketWatch, WatchedAdapter, current_watch

MAX_JSON_BYTES = 64 * 1024 * 1024
"""Cap on a reply read as a whole; 64 embeddings of 4096 numbers are under 6 MB."""
_BLOCK = 64 * 1024


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole reply; `text` replaces undecodable bytes (error bodies of proxies)."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    def json(self, host: str) -> object:
        """Return the parsed body.

        Raises:
            ProviderBadResponse: It is no JSON.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as exc:
            raise ProviderBadResponse(f"{host} answered with {self.text[:80]!r}, expected JSON; is it the right address?") from exc


class StreamReply:
    """A reply whose body arrives in pieces; used inside `HttpClient.stream`."""

    def __init__(
        self,
        response: requests.Response,
        client: HttpClient,
        cancel: CancelToken,
        watch: SocketWatch,
        *,
        silence_s: float,
        deadline: float | None,
    ) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response, self._client, self._cancel = response, client, cancel
        self._watch, self._silence_s, self._deadline = watch, silence_s, deadline

    def blocks(self) -> Iterator[bytes]:
        """Yield bytes as they come.

        Raises:
            ProviderUnreachable: The connection broke.
            ProviderTimeout: Nothing came for the read timeout, or the deadline passed.
            Cancelled: The token was cancelled.
        """
        self._watch.wait_in_kernel(self._silence_s)
        with self._client.translated(self._cancel):
            while block := self._block():
                self._cancel.raise_if_cancelled()
                if self._deadline is not None and time.monotonic() > self._deadline:
                    raise ProviderTimeout(f"{self._client.host} did not finish in time; raise the timeout or ask for less")
                yield block
        self._cancel.raise_if_cancelled()

    def _block(self) -> bytes:
        """Return what one read of the socket brings, nothing at the end.

        Raises:
            TimeoutError: The system ended the read; what then looks like an end or a break is none.
        """
        asked = time.monotonic()
        broke: Exception | None = None
        block = b""
        try:
            # iter_content would wait for a full block of an unchunked body
            block = self._response.raw.read1(_BLOCK, decode_content=True)
        except (OSError, Urllib3Error) as error:
            broke = error
        if not block and not self._cancel.cancelled and time.monotonic() - asked >= self._silence_s:
            raise TimeoutError from broke
        if broke is not None:
            raise broke
        return block

    def lines(self, limit: int = _BLOCK * 16) -> Iterator[bytes]:
        r"""Yield lines split at `\n` only: U+0085 and U+2028 are text inside JSON.

        Args:
            limit: Longest line in bytes.

        Raises:
            ProviderBadResponse: A line passes the limit; and what `blocks` raises.
        """
        rest = b""
        for block in self.blocks():
            *complete, rest = (rest + block).split(b"\n")
            if any(len(line) > limit for line in (*complete, rest)):
                raise ProviderBadResponse(f"{self._client.host} sent a line of more than {limit} bytes")
            yield from complete
        if rest:
            yield rest

    def read(self, limit: int = MAX_JSON_BYTES) -> bytes:
        """Return the whole body.

        Raises:
            ProviderBadResponse: It is longer than `limit` bytes; and what `blocks` raises.
        """
        body = bytearray()
        for block in self.blocks():
            body += block
            if len(body) > limit:
                raise ProviderBadResponse(f"{self._client.host} sent more than {limit} bytes")
        return bytes(body)


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
        parts = _address(base_url, name)
        self.base_url = urlunsplit(parts)
        self.shown_url = without_credentials(self.base_url)
        """The address for people and pages: a name and password in it are left out."""
        self.host = f"{name} at {self.shown_url}"
        self._timeouts = (connect_timeout_s, read_timeout_s)
        self._public_only = public_only
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self._session.headers.update({"User-Agent": "documind", "Accept-Encoding": "identity", **(headers or {})})
        adapter = WatchedAdapter(pool_connections=1, pool_maxsize=connections, max_retries=0)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)

    def close(self) -> None:
        """Close idle connections."""
        self._session.close()

    def call(
        self, method: str, path: str, body: object = None, *, cancel: CancelToken | None = None, timeout_s: float | None = None
    ) -> HttpReply:
        """Return a whole reply of any status.

        Args:
            method: HTTP method.
            path: Appended to the base URL, with its query.
            body: Sent as JSON when not None.
            cancel: Ends the call within milliseconds, in any state.
            timeout_s: Deadline for the whole reply and its silences, seconds; None: the read timeout for each silence.

        Raises:
            ProviderUnreachable, ProviderTimeout, ProviderBadResponse, Cancelled: As `stream`.
        """
        with self.stream(method, path, body, cancel=cancel, timeout_s=timeout_s) as reply:
            return HttpReply(reply.status, reply.read(), reply.headers)

    @contextmanager
    def stream(
        self, method: str, path: str, body: object = None, *, cancel: CancelToken | None = None, timeout_s: float | None = None
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
                        f"{self.host} redirects to another address, which is not followed; set that one instead"
                    )
                yield StreamReply(response, self, token, watch, silence_s=self._times(timeout_s)[1], deadline=deadline)
            finally:
                response.close()
        finally:
            watch.release()

    def _open(
        self, method: str, path: str, body: object, cancel: CancelToken, watch: SocketWatch, timeout_s: float | None
    ) -> requests.Response:
        reset = current_watch.set(watch)
        try:
            with self.translated(cancel):
                return self._session.request(
                    method, self.base_url + path, json=body, timeout=self._times(timeout_s), allow_redirects=False, stream=True
                )
        finally:
            current_watch.reset(reset)

    def _times(self, timeout_s: float | None) -> tuple[float, float]:
        """Return how long to wait for a connection and for each read of a call, seconds."""
        connect_s, read_s = self._timeouts
        return (connect_s, read_s) if timeout_s is None else (min(connect_s, timeout_s), timeout_s)

    @contextmanager
    def translated(self, cancel: CancelToken) -> Iterator[None]:
        """Turn errors of requests and urllib3 into ours; after a cancel, Cancelled."""
        try:
            yield
        except (requests.RequestException, OSError, Urllib3Error) as exc:
            if cancel.cancelled:
                raise Cancelled(f"the call to {self.host} was cancelled") from exc
            raise self._translation(exc) from exc

    def _translation(self, exc: Exception) -> ProviderError:
        if isinstance(exc, requests.ConnectTimeout):
            return ProviderUnreachable(f"{self.host} does not answer connections; check the address and that it is running")
        if isinstance(exc, requests.Timeout | TimeoutError | ReadTimeoutError):
            return ProviderTimeout(f"{self.host} was silent for too long; raise the timeout or use a smaller model")
        if isinstance(exc, requests.ConnectionError):
            return ProviderUnreachable(f"cannot reach {self.host}; check the address and that it is running")
        if isinstance(exc, OSError | ProtocolError) and not isinstance(exc, requests.RequestException):
            return ProviderUnreachable(f"{self.host} broke the connection; check that it is still running")
        return ProviderBadResponse(f"{self.host} sent something that is no HTTP ({type(exc).__name__}); is it the right address?")


def hostname_of(base_url: str) -> str:
    """Return the host's name or address of a base URL, empty when it has none."""
    return urlsplit(base_url if "://" in base_url else f"http://{base_url}").hostname or ""


def without_credentials(url: str) -> str:
    """Return an address without the name and password that may be in it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def on_this_machine(base_url: str) -> bool:
    """Return whether a base URL points at this machine."""
    return is_loopback(hostname_of(base_url))


def _address(base_url: str, name: str) -> SplitResult:
    url = base_url.strip()
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError as exc:  # a port that is no number, an odd bracket
        raise InvalidInput(f"the address of {name} is {base_url!r} ({exc}); expected http://host:port") from exc
    if not usable:
        raise InvalidInput(f"the address of {name} is {base_url!r}; expected http://host:port")
    return parts._replace(path=parts.path.rstrip("/"))
