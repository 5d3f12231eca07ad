"""Ids, spans, metrics and log lines of requests; foreign exceptions; the prefix of a proxy."""

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
from app.api.middleware.limits import Layer, header
from app.core.errors import Busy, refusal
from app.core.ids import new_id
from app.core.trace import SILENT, Spans, ended_with_block

logger = logging.getLogger(__name__)


_TOKEN = re.compile(r"(?<=/shared/)[^/]+")


def shown_path(scope: Scope) -> str:
    """Return a request's path as a log may show it: without the token of a shared answer."""
    return _TOKEN.sub("(hidden)", scope["path"])


class RequestEdge(Layer):
    """Innermost layer: catches foreign exceptions, so that outer headers are on its reply too."""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        def watched(message: Message) -> Awaitable[None]:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            return send(message)

        try:
            await self.app(scope, receive, watched)
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
                    shown_path(scope),
                    refused.message,
                    extra={"request_id": request_id},
                )
            else:
                logger.exception(
                    "%s %s failed",
                    scope["method"],
                    shown_path(scope),
                    extra={"request_id": request_id},
                )
            if started:
                raise  # too late for a reply of ours; the server closes the connection
            reply = (
                problem_response(internal_problem(request_id))
                if refused is None
                else response_of(refused, request_id)
            )
            await reply(scope, receive, send)


access_logger = logging.getLogger("app.access")

_POLLED = re.compile(
    r"/health(?:/.*)?|/metrics|/assets/.*|/api/v1/(?:libraries|jobs(?:/[^/]*)?|models|diagnostics"
    r"|papers|collection/stats)"
)
"""What a page or a monitor asks for again and again; a start that is still under way (503) is
part of it."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_CONVERTER = re.compile(r":\w+\}")


class Observed(Layer):
    """Gives a request its id, a span, a line in the access log, and counts and times it.

    A client's own id is kept when it is harmless; the id is in `scope["request_id"]` and in
    X-Request-ID. The log line holds method, path, status and milliseconds; never the query string,
    which may hold a question. Metrics and spans go by the route's template, because a path may hold
    the name of a document. What no route answered (refusals of outer layers, unknown paths, files
    of the page) shares the route `other`, so that a scanner cannot make labels. Attributes of spans
    follow OpenTelemetry's semantic conventions for HTTP servers.
    """

    kinds = frozenset({"http", "websocket"})

    def __init__(self, app: ASGIApp, *, metrics: Metrics, spans: Callable[[], Spans]) -> None:
        """Wrap an app; `spans` returns where spans begin, which is known only after the start."""
        super().__init__(app)
        self._metrics = metrics
        self._spans = spans

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = header(scope, b"x-request-id")
        request_id = scope["request_id"] = given if given and _ID.fullmatch(given) else new_id()
        started, status = time.perf_counter(), 0
        http = scope["type"] == "http"
        method = scope.get("method", "WEBSOCKET")
        known = method if method in _METHODS else "other"
        spans = self._spans() if http else SILENT
        told = {"http.request.method": known, "documind.request_id": request_id}
        span = spans.begin(f"{known} request", told, header(scope, b"traceparent") or "")

        def watched(message: Message) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            return send(message)

        with ended_with_block(span):
            try:
                with spans.around(span):
                    await self.app(scope, receive, watched)
            finally:
                elapsed_s = time.perf_counter() - started
                template = str(getattr(scope.get("route"), "path", "other"))
                route = _CONVERTER.sub("}", template)  # as OpenAPI writes it
                span.put({"http.response.status_code": status, "http.route": route})
                if status >= 500:
                    span.put({"error.type": str(status)})
                if http:
                    self._metrics.request(known, route, status, elapsed_s)
                _log(
                    request_id,
                    method,
                    quote(shown_path(scope), "/()", errors="replace"),
                    status,
                    elapsed_s,
                )


def _log(request_id: str, method: str, path: str, status: int, elapsed_s: float) -> None:
    """Log a request; successful polling only for DEBUG, so that INFO shows what people did."""
    went_well = 200 <= status < 400 or (status == 503 and path.startswith("/health"))
    polled = method in {"GET", "HEAD"} and went_well and _POLLED.fullmatch(path)
    shown = {"method": method, "path": path, "status": status}
    access_logger.log(
        logging.DEBUG if polled else logging.INFO,
        "%s %s %d %.1f ms",
        *shown.values(),
        elapsed_s * 1000,
        extra={"request_id": request_id, **shown, "duration_ms": round(elapsed_s * 1000, 1)},
    )


class ProxyPrefix(Layer):
    """Tells the app its prefix, whether the proxy passes it on or strips it.

    ASGI wants `path` to begin with `root_path` (its specification 2.4, HTTP connection scope);
    mounted files rely on that.
    """

    kinds = frozenset({"http", "websocket"})

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        super().__init__(app)
        self._prefix = f"/{prefix.strip('/')}" if prefix.strip("/") else ""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._prefix:
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
        await self.app(scope, receive, send)
