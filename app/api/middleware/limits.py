"""Limits on what requests may take, and refusals in the words of the protocol."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import PROBLEM_TYPE, ProblemDict, response_of
from app.core.errors import Busy, DocuMindError, RateLimited, TooLarge


class Layer(ABC):
    """ASGI middleware: `serve` gets what a subclass is for, the app inside gets anything else."""

    kinds = frozenset({"http"})

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        serve = self.serve if scope["type"] in self.kinds else self.app
        await serve(scope, receive, send)

    @abstractmethod
    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse a request."""


def route_path(scope: Scope) -> str:
    """Return the path as the routes see it: without the prefix of a proxy.

    `scope["path"]`, never the URL of a request: a Host header can change what the latter says
    (CVE-2026-48710).
    """
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :] or "/"
    return path


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first header of a lower-case name as Latin-1 text."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


def is_health(scope: Scope) -> bool:
    """Return whether the request is a probe; probes are answered at every load."""
    path = route_path(scope)
    return path == "/health" or path.startswith("/health/")


async def refuse(error: DocuMindError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request with one of our errors; a websocket is closed before it opens."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": error.code})
        return
    await response_of(error, scope.get("request_id", ""))(scope, receive, send)


_DRAIN_BYTES = 8 * 1024 * 1024
_DRAIN_S = 2.0
"""How much of a refused body is read and thrown away, so that the client gets to read the
refusal instead of a reset."""
_GRACE_S = 30.0
_MIN_BYTES_PER_S = 16 * 1024
"""A body may take 30 s plus its size at this rate: slower is an attack or a dead line.

uvicorn has no limit (docs/facts/libraries.md)."""
_BUCKETS = 10_000


class BodyLimit(Layer):
    """Refuses bodies over a cap, declared or chunked, with 413, and those that trickle with 503."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        limit_of: Callable[[str], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Wrap an app; `limit_of` says how many bytes a path within the app may get."""
        super().__init__(app)
        self._limit_of = limit_of
        self._clock = clock

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(receive, self._limit_of(route_path(scope)), self._clock)
        length = header(scope, b"content-length")
        if length is not None and _bytes_of(length) > body.limit:
            await body.drain()
            await refuse(body.too_large(), scope, receive, send)
            return
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if body.refusal is not None and not started:
                return  # the app's reply to a torn body is replaced below
            if message["type"] == "http.response.start":
                started = True
                if message["status"] >= 400:
                    await body.drain()
            await send(message)

        try:
            await self.app(scope, body.receive, guarded)
        except DocuMindError as error:
            if error is not body.refusal:
                raise
        if body.refusal is not None and not started:
            await body.drain()
            await refuse(body.refusal, scope, receive, send)


def _bytes_of(length: str) -> float:
    """Return the value of a Content-Length; too many digits count as infinite."""
    if not (length.isascii() and length.isdigit()):
        return 0.0  # no number: what comes is counted
    return float(length)


class _Body:
    """One request body on its way in."""

    def __init__(self, receive: Receive, limit: int, clock: Callable[[], float]) -> None:
        self._receive = receive
        self._clock = clock
        self._started_s = clock()
        self._seen = 0
        self._complete = False
        self.limit = limit
        self.refusal: DocuMindError | None = None

    def too_large(self) -> TooLarge:
        return TooLarge(f"the request body is over {self.limit:,} bytes; send less at once")

    async def receive(self) -> Message:
        """Pass the next message on, or raise the refusal."""
        if self.refusal is not None:
            raise self.refusal
        if self._complete:
            return await self._receive()
        try:
            message = await self._within(
                self._started_s + _GRACE_S + self._seen / _MIN_BYTES_PER_S - self._clock()
            )
        except TimeoutError:
            self.refusal = Busy(
                "the request body arrives too slowly; try again on a better line", retry_after_s=5
            )
            self._complete = True  # nothing more is read of it
            raise self.refusal from None
        if message["type"] == "http.request":
            self._seen += len(message.get("body", b""))
            self._complete = not message.get("more_body", False)
            if self._seen > self.limit:
                self.refusal = self.too_large()
                raise self.refusal
        else:
            self._complete = True
        return message

    async def drain(self) -> None:
        """Read and forget the rest of the body, within limits."""
        until_s, seen = self._clock() + _DRAIN_S, 0
        while not self._complete and seen < _DRAIN_BYTES:
            try:
                message = await self._within(until_s - self._clock())
            except TimeoutError:
                return
            seen += len(message.get("body", b""))
            self._complete = message["type"] != "http.request" or not message.get(
                "more_body", False
            )

    async def _within(self, timeout_s: float) -> Message:
        """Return the next message, or raise TimeoutError; one that comes at once can be late."""
        if timeout_s <= 0:
            raise TimeoutError
        async with asyncio.timeout(timeout_s):
            return await self._receive()


class Concurrency(Layer):
    """Refuses requests over a number in flight, at once, with 503.

    Health checks always pass. A reply that turns out to be an event stream gives its place back:
    streams have a cap of their own.
    """

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        super().__init__(app)
        self._limit = limit
        self._in_flight = 0

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_health(scope):
            await self.app(scope, receive, send)
            return
        if self._in_flight >= self._limit:
            busy = Busy("the server is at its limit; try again in a moment", retry_after_s=1)
            await refuse(busy, scope, receive, send)
            return
        self._in_flight += 1
        held = True

        def release() -> None:
            nonlocal held
            if held:
                held = False
                self._in_flight -= 1

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and _has_type(message, "text/event-stream"):
                release()
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            release()


class RateLimit(Layer):
    """A token bucket per client address: `per_minute` on average and at once."""

    def __init__(
        self, app: ASGIApp, *, per_minute: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(app)
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Address -> (tokens, when), least recently seen first; bounded, so that many addresses
        cannot fill the memory."""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_health(scope):
            client = scope.get("client")
            wait_s = self._take(str(client[0]) if client else "")
            if wait_s > 0:
                message = (
                    f"more than {self._per_minute} requests a minute; try again in {wait_s:.0f} s"
                )
                await refuse(RateLimited(message, retry_after_s=wait_s), scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _take(self, address: str) -> float:
        """Take one token; return how many seconds are missing for it, 0 when it was there."""
        now_s = self._clock()
        tokens, at_s = self._buckets.pop(address, (float(self._per_minute), now_s))
        tokens = min(float(self._per_minute), tokens + (now_s - at_s) * self._per_minute / 60)
        granted = tokens >= 1
        self._buckets[address] = (tokens - 1 if granted else tokens, now_s)
        if len(self._buckets) > _BUCKETS:
            self._buckets.popitem(last=False)
        return 0.0 if granted else max(1.0, (1 - tokens) * 60 / self._per_minute)


_CODES = {"unauthorized": "invalid_api_key", "rate_limited": "rate_limit_exceeded"}
"""Where OpenAI has a word of its own for one of our codes."""
_INVALID_REQUEST = -32600
_INTERNAL_ERROR = -32603
"""JSON-RPC 2.0, section 5.1."""


def openai_error(problem: ProblemDict) -> Mapping[str, object]:
    """Return a problem as OpenAI's clients read it.

    References:
        https://platform.openai.com/docs/guides/error-codes
    """
    status = problem["status"]
    kind = (
        "server_error"
        if status >= 500
        else "rate_limit_error"
        if status == 429
        else "invalid_request_error"
    )
    code = _CODES.get(problem["code"], problem["code"])
    return {"error": {"message": problem["detail"], "type": kind, "param": None, "code": code}}


def jsonrpc_error(problem: ProblemDict) -> Mapping[str, object]:
    """Return a problem as a JSON-RPC error without an id: it was not read yet."""
    code = _INTERNAL_ERROR if problem["status"] >= 500 else _INVALID_REQUEST
    data = {
        "code": problem["code"],
        "retryable": problem["retryable"],
        "request_id": problem["request_id"],
    }
    return {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": code, "message": problem["detail"], "data": data},
    }


class Dialect(Layer):
    """Turns problems from any inner layer into the protocol's errors."""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = route_path(scope)
        if path.startswith("/v1/"):
            send = _Translation(send, openai_error).send
        elif path == "/mcp" or path.startswith("/mcp/"):
            send = _Translation(send, jsonrpc_error).send
        await self.app(scope, receive, send)


class _Translation:
    """One reply on its way out: held back while it is a problem, passed on otherwise."""

    def __init__(self, send: Send, speak: Callable[[ProblemDict], Mapping[str, object]]) -> None:
        self._send = send
        self._speak = speak
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        """Pass a message on, or keep it until the problem is whole."""
        if message["type"] == "http.response.start" and _has_type(message, PROBLEM_TYPE):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._translate(self._start)

    async def _translate(self, start: Message) -> None:
        headers = MutableHeaders(raw=start["headers"])
        if headers.get("content-encoding") == "gzip":
            self._body = gzip.decompress(self._body)
            del headers["content-encoding"]
        problem: ProblemDict = json.loads(self._body)
        body = json.dumps(self._speak(problem)).encode()
        headers["content-type"] = "application/json"
        headers["content-length"] = str(len(body))
        # 422 is ours alone: both protocols call a request that cannot be understood 400.
        status = 400 if start["status"] == 422 else start["status"]
        await self._send({**start, "status": status, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": body})


def _has_type(start: Message, media_type: str) -> bool:
    return Headers(raw=start["headers"]).get("content-type", "").startswith(media_type)
