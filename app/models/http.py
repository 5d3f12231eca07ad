"""Send HTTP requests: pooled, cancellable."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Annotated, Self, TypeVar
from urllib.parse import SplitResult, urlsplit, urlunsplit

import requests
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    Strict,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from urllib3.exceptions import HTTPError as Urllib3Error
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from app.core.cancel import CancelToken
from app.core.errors import (
    Cancelled,
    DocuMindError,
    InvalidInput,
    ProviderBadResponse,
    ProviderError,
    ProviderTimeout,
    ProviderUnreachable,
)
from app.core.ids import is_loopback, without_credentials
from app.models.sockets import SocketWatch, WatchedAdapter, current_watch

# Take the address of a host apart.


def hostname_of(base_url: str) -> str:
    """Return the host's name or address of a base URL, empty when it has none."""
    return urlsplit(base_url if "://" in base_url else f"http://{base_url}").hostname or ""


def on_this_machine(base_url: str) -> bool:
    return is_loopback(hostname_of(base_url))


def parsed_address(base_url: str, name: str) -> SplitResult:
    """Return the parts of a base URL, http where it names no scheme, without a slash at its end.

    Raises:
        InvalidInput: The URL has no host or a foreign scheme; the message says of whom.
    """
    url = base_url.strip()
    refused = InvalidInput(
        f"the address of {name} is {without_credentials(base_url)!r}; expected http://host:port"
    )
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, an odd bracket; it quotes what may be a password
        raise refused from None
    if not usable:
        raise refused
    return parts._replace(path=parts.path.rstrip("/"))


# Translate the errors of requests and urllib3 into ours, once.


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


# Read a reply: as a whole, in blocks, by lines; bounded and cancellable.

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
        return self.body.decode("utf-8", "replace")


class StreamReply:
    """A reply whose body arrives in pieces; `HttpClient.stream` gives it."""

    def __init__(
        self,
        response: requests.Response,
        host: str,
        cancel: CancelToken,
        watch: SocketWatch,
        *,
        silence_s: float,
        deadline: float | None,
    ) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response, self._host, self._cancel = response, host, cancel
        self._watch, self._silence_s, self._deadline = watch, silence_s, deadline

    def blocks(self) -> Iterator[bytes]:
        """Yield bytes as they come.

        Raises:
            ProviderUnreachable: The connection broke.
            ProviderTimeout: Nothing came for the read timeout, or the deadline passed.
            Cancelled: The token was cancelled.
        """
        self._watch.wait_in_kernel(self._silence_s)
        with translated(self._host, self._cancel):
            while block := self._block():
                self._cancel.raise_if_cancelled()
                if self._deadline is not None and time.monotonic() > self._deadline:
                    raise ProviderTimeout(
                        f"{self._host} did not finish in time; raise the timeout or ask for less"
                    )
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

        Raises:
            ProviderBadResponse: A line passes the limit in bytes; and what `blocks` raises.
        """
        rest = b""
        for block in self.blocks():
            *complete, rest = (rest + block).split(b"\n")
            if any(len(line) > limit for line in (*complete, rest)):
                raise ProviderBadResponse(f"{self._host} sent a line of more than {limit} bytes")
            yield from complete
        if rest:
            yield rest

    def read(self, limit: int = MAX_JSON_BYTES, over: DocuMindError | None = None) -> bytes:
        """Return the whole body.

        Raises:
            ProviderBadResponse: It is longer than `limit` bytes, unless that is `over`; and what
                `blocks` raises.
        """
        body = bytearray()
        for block in self.blocks():
            body += block
            if len(body) > limit:
                raise over or ProviderBadResponse(f"{self._host} sent more than {limit} bytes")
        return bytes(body)


class HttpClient:
    """Calls to one host, without proxy, netrc, cookies and redirects; thread-safe."""

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

        `headers` go with every call; they may hold a key, so they are never shown. `connections`
        are kept when idle. `read_timeout_s` is the longest silence of the host.

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

        A cancel ends the call within milliseconds, in any state. `timeout_s` is a deadline for the
        whole reply; None: the read timeout for each silence.

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
        with_redirects: bool = False,
    ) -> Iterator[StreamReply]:
        """Open a reply of any status, a redirect only `with_redirects`.

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
                if response.is_redirect and not with_redirects:
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


# JSON from a host, read into models whose fields have bounds.

MOST = 2**53
"""Largest count, size in bytes or duration in nanoseconds (104 days) that is believed; JSON's
numbers are exact up to it."""
MOST_TOKENS = 10**8
"""Most tokens of one call or window that are believed."""


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST:
        raise ValueError("no count")
    return int(value)


def _listed(kind: type) -> BeforeValidator:
    """Return what leaves out the items of a list that are of another kind."""
    return BeforeValidator(
        lambda value: (
            [one for one in value if isinstance(one, kind)] if isinstance(value, list) else ()
        )
    )


Item = TypeVar("Item")
Text = InstanceOf[str]
"""Any text, half a surrogate pair too."""
Texts = Annotated[tuple[Text, ...], _listed(str)]
Items = Annotated[tuple[Item, ...], _listed(dict)]
Count = Annotated[int, BeforeValidator(_whole)]
Tokens = Annotated[int, BeforeValidator(_whole), Field(le=MOST_TOKENS)]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Flag = Annotated[bool, Strict()]


class FromHost(BaseModel):
    """An object of a reply: absent, null and wrongly typed fields take their default."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, protected_namespaces=())

    @field_validator("*", mode="wrap")
    @classmethod
    def _or_default(
        cls, value: object, read: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> object:
        try:
            return read(value)
        except ValidationError:
            return cls.model_fields[info.field_name or ""].get_default(call_default_factory=True)

    @classmethod
    def parse(cls, text: bytes | str, host: str) -> Self:
        """Read an object.

        Raises:
            ProviderBadResponse: It is no JSON object.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise ProviderBadResponse(
                f"{host} sent {text[:80]!r}, expected JSON; is it the right address?"
            ) from exc
        if not isinstance(value, dict):
            raise ProviderBadResponse(
                f"{host} sent {str(value)[:80]!r}, expected a JSON object; is it the right address?"
            )
        return cls.model_validate(value)
