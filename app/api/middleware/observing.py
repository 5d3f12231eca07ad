"""Catch unexpected exceptions: 500 with a request id and a logged traceback.

A shutdown becomes a 503.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.answer.records import root_path
from app.api.errors import internal_problem, problem_response, response_of
from app.api.metrics import Metrics
from app.api.middleware.limits import header
from app.core.errors import Busy, refusal
from app.core.ids import new_id
from app.core.trace import SILENT, Spans, ended_with_block

logger = logging.getLogger(__name__)


class RequestEdge:
    """Innermost layer: catches every foreign exception.

    So the headers of the outer layers are on its reply too.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        def watched(message: Message) -> Awaitable[None]:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            return send(message)

        try:
            await self._app(scope, receive, watched)
        except asyncio.CancelledError:
            if started:
                raise
            stops = Busy(
                "the server is stopping; send this again when it has started: what it accepted is"
                " kept",
                retry_after_s=5,
            )
            await response_of(stops, scope.get("request_id", ""))(scope, receive, send)
        except Exception as error:
            request_id = scope.get("request_id", "")
            refused = refusal(error)
            if refused is not None:
                logger.warning(
                    "%s %s: %s",
                    scope["method"],
                    scope["path"],
                    refused.message,
                    extra={"request_id": request_id},
                )
            else:
                logger.exception(
                    "%s %s failed", scope["method"], scope["path"], extra={"request_id": request_id}
                )
            if started:
                raise  # too late for a reply of ours; the server closes the connection
            reply = (
                problem_response(internal_problem(request_id))
                if refused is None
                else response_of(refused, request_id)
            )
            await reply(scope, receive, send)


# Request ids and the access log.

access_logger = logging.getLogger("app.access")

_POLLED = re.compile(
    r"/health(?:/.*)?|/metrics|/assets/.*|/api/v1/(?:libraries|jobs(?:/[^/]*)?|models|diagnostics"
    r"|papers|collection/stats)"
)
"""What a page or a monitor asks for again and again; a start that is still under way (503) is
part of it."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestId:
    """Gives every request an id: in the scope, X-Request-ID, and the access log.

    `scope["request_id"]`; one log line when the request ends. A client's own id is kept when it is
    harmless. The log line holds method, path, status and milliseconds; never the query string,
    which may hold a question.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        given = header(scope, b"x-request-id")
        request_id = given if given and _ID.fullmatch(given) else new_id()
        scope["request_id"] = request_id
        started = time.perf_counter()
        status = 0

        def with_id(message: Message) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            return send(message)

        try:
            await self._app(scope, receive, with_id)
        finally:
            elapsed_ms = (time.perf_counter() - started) * 1000
            method, path = scope.get("method", "WEBSOCKET"), quote(scope["path"], errors="replace")
            access_logger.log(
                _level(method, path, status),
                "%s %s %d %.1f ms",
                method,
                path,
                status,
                elapsed_ms,
                extra={
                    "request_id": request_id,
                    "method": method,
                    "path": path,
                    "status": status,
                    "duration_ms": round(elapsed_ms, 1),
                },
            )


def _level(method: str, path: str, status: int) -> int:
    """Return DEBUG for successful polling, so that INFO shows what people did."""
    went_well = 200 <= status < 400 or (status == 503 and path.startswith("/health"))
    return (
        logging.DEBUG
        if method in {"GET", "HEAD"} and went_well and _POLLED.fullmatch(path)
        else logging.INFO
    )


# Requests, counted by route.

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_CONVERTER = re.compile(r":\w+\}")


class Metering:
    """Counts every request by method, route template and status, and times it.

    What no route answered (refusals of outer layers, unknown paths, files of the page) shares the
    route `other`, so that a scanner cannot make labels.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        def watched(message: Message) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            return send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            self._metrics.request(
                known_method(scope), route_of(scope), status, time.perf_counter() - started
            )


def known_method(scope: Scope) -> str:
    """Return the method, or `other` for one that HTTP does not know."""
    return str(scope["method"]) if scope["method"] in _METHODS else "other"


def route_of(scope: Scope) -> str:
    """Return the route's template as OpenAPI writes it; the router sets it."""
    route = scope.get("route")
    return _CONVERTER.sub("}", str(getattr(route, "path", "other")))


# Open a span around every request, in the caller's trace.

SERVER_ERROR = 500


class Tracing:
    """Opens a span per request, named by route template.

    A path may hold the name of a document. Attributes follow OpenTelemetry's semantic conventions
    for HTTP servers.
    """

    def __init__(self, app: ASGIApp, *, spans: Callable[[], Spans]) -> None:
        """Wrap an app.

        Args:
            app: What serves.
            spans: Returns where spans begin, which is known only after the start.
        """
        self._app = app
        self._spans = spans

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        spans = self._spans() if scope["type"] == "http" else SILENT
        if spans is SILENT:
            await self._app(scope, receive, send)
            return
        method = known_method(scope)
        told = {
            "http.request.method": method,
            "documind.request_id": str(scope.get("request_id", "")),
        }
        span = spans.begin(f"{method} request", told, header(scope, b"traceparent") or "")

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                span.put({"http.response.status_code": message["status"]})
                if message["status"] >= SERVER_ERROR:
                    span.put({"error.type": str(message["status"])})
            await send(message)

        with ended_with_block(span):
            try:
                with spans.around(span):
                    await self._app(scope, receive, watched)
            finally:
                span.put({"http.route": route_of(scope)})


# The path prefix under which a proxy serves us.


class ProxyPrefix:
    """Tells the app its prefix, whether the proxy passes it on or strips it.

    ASGI wants `path` to begin with `root_path` (its specification 2.4, HTTP connection scope);
    mounted files rely on that.
    """

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        self._app = app
        self._prefix = f"/{prefix.strip('/')}" if prefix.strip("/") else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._prefix and scope["type"] in {"http", "websocket"}:
            path: str = scope["path"]
            if path == self._prefix and scope.get("method") in {"GET", "HEAD"}:
                # The page names its files relative to the slash.
                query = scope.get("query_string", b"").decode("latin-1")
                there = f"{self._prefix}/" + (f"?{query}" if query else "")
                await RedirectResponse(there)(scope, receive, send)
                return
            root_path.set(self._prefix)
            inside = path == self._prefix or path.startswith(f"{self._prefix}/")
            scope = {
                **scope,
                "root_path": self._prefix,
                "path": path if inside else f"{self._prefix}{path}",
            }
        await self._app(scope, receive, send)
