"""Send requests to one server; raise errors as classes of `app.core.errors`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self, cast
from urllib.parse import urlsplit

import requests

from app.core import errors
from app.core.hosts import is_loopback

Json = Mapping[str, object]
"""A JSON object as it came."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """A server-sent event.

    `meta`, `sources`, `quote`, `reading`, `token`, `final` of an answer; `job` of a job.
    """

    name: str
    data: Json


class Connection:
    """Talks to one server over kept connections; not for several threads at once."""

    def __init__(
        self,
        base_url: str,
        api_key: str = "",
        *,
        timeout_s: float = 600.0,
        connect_timeout_s: float = 5.0,
    ) -> None:
        """Point at a server; nothing is sent yet.

        Args:
            base_url: Like `http://127.0.0.1:8001`, with the path prefix when there is one.
            api_key: Sent as X-API-Key when not empty.
            timeout_s: Longest silence of the server, in seconds; a stream has a heartbeat every 10.
            connect_timeout_s: Longest wait for a connection, in seconds.
        """
        self._base = base_url.rstrip("/")
        self._timeout = (connect_timeout_s, timeout_s)
        self._session = requests.Session()
        self._session.trust_env = (
            False  # a proxy of the environment has no business with a server on this machine
        )
        if is_loopback(urlsplit(self._base).hostname or ""):
            self._session.headers["Accept-Encoding"] = (
                "identity"  # packing costs both ends more than loopback does
            )
        if api_key:
            self._session.headers["X-API-Key"] = api_key

    @property
    def base_url(self) -> str:
        """Return the server's address without a trailing slash."""
        return self._base

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self.close()

    def get(self, path: str, params: Json | None = None) -> Json:
        """Return the JSON object at a path below the server's root."""
        return self._get(path, params)

    def post(self, path: str, body: Json | None = None, params: Json | None = None) -> Json:
        """Post a JSON body to a path below the server's root and return the reply."""
        return self._post(path, body, params)

    def put(self, path: str, body: Json) -> Json:
        """Put a JSON body to a path below the server's root and return the reply."""
        return self._read(self._send("PUT", path, json=body))

    def _get(self, path: str, params: Json | None = None) -> Json:
        return self._read(self._send("GET", path, params=params))

    def _text(self, path: str) -> str:
        reply = self._send("GET", path)
        if not reply.ok:
            raise error_of(reply)
        return reply.content.decode()

    def _post(self, path: str, body: Json | None = None, params: Json | None = None) -> Json:
        return self._read(self._send("POST", path, params=params, json=body))

    def _send(self, method: str, path: str, **request: object) -> requests.Response:
        """Send a request; values of None are left out of the query.

        Raises:
            ProviderUnreachable: No connection.
            ProviderTimeout: The server went silent.
        """
        try:
            return self._session.request(
                method,
                f"{self._base}{path}",
                timeout=self._timeout,
                **request,  # type: ignore[arg-type]
            )
        except requests.Timeout as exc:
            raise errors.ProviderTimeout(
                f"the server at {self._base} did not answer {method} {path} in time"
            ) from exc
        except requests.RequestException as exc:
            message = (
                f"no server answers at {self._base} ({type(exc).__name__}); start it with:"
                " documind serve"
            )
            raise errors.ProviderUnreachable(message) from exc

    @contextmanager
    def _stream(
        self, method: str, path: str, body: Json | None = None
    ) -> Iterator[Iterator[ServerEvent]]:
        with self._send(
            method, path, json=body, stream=True, headers={"Accept": "text/event-stream"}
        ) as reply:
            if not reply.ok:
                raise error_of(reply)
            yield _events(reply)

    def _read(self, reply: requests.Response, accept: tuple[int, ...] = ()) -> Json:
        """Return the JSON object of a reply, or raise the error it holds."""
        if not reply.ok and reply.status_code not in accept:
            raise error_of(reply)
        try:
            found = reply.json()
        except requests.JSONDecodeError as exc:
            raise errors.ProviderBadResponse(
                f"{reply.url} answered {reply.status_code} without JSON; is it DocuMind?"
            ) from exc
        return cast("Json", found) if isinstance(found, dict) else {"items": found}


def error_of(reply: requests.Response) -> errors.DocuMindError:
    """Return the error that a problem reply stands for."""
    try:
        problem = reply.json()
    except requests.JSONDecodeError:
        problem = None
    if not isinstance(problem, dict) or "code" not in problem:
        return errors.ProviderBadResponse(
            f"{reply.url} answered {reply.status_code} {reply.reason}; is it DocuMind?"
        )
    retry_after = reply.headers.get("Retry-After", "")
    return error_from(problem, float(retry_after) if retry_after.isdigit() else None)


def error_from(problem: Json, retry_after_s: float | None = None) -> errors.DocuMindError:
    """Return a problem's error: the most specific class of its code, or the root.

    The root is for unknown codes.
    """
    classes = [cls for cls in errors.error_classes().values() if cls.code == problem["code"]]
    cls = max(classes, key=lambda found: len(found.__mro__), default=errors.DocuMindError)
    return cls(str(problem.get("detail", "")), retry_after_s=retry_after_s)


def _events(reply: requests.Response) -> Iterator[ServerEvent]:
    """Yield server-sent events until the stream ends.

    Raises:
        DocuMindError: An `error` event came, or the connection broke.
    """
    name, data = "message", ""
    for line in _lines(reply):
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data += line[5:].strip()
        elif not line and data:
            event = ServerEvent(name, cast("Json", json.loads(data)))
            name, data = "message", ""
            if event.name == "error":
                raise error_from(event.data)
            yield event


def _lines(reply: requests.Response) -> Iterator[str]:
    """Yield lines as soon as they are complete; a line feed alone ends a line.

    Raises:
        ProviderUnreachable: The connection broke.
    """
    rest = b""
    try:
        for piece in reply.iter_content(chunk_size=None):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line.decode()
    except requests.RequestException as exc:
        raise errors.ProviderUnreachable(
            f"the stream from {reply.url} broke off ({type(exc).__name__})"
        ) from exc
