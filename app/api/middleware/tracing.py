"""Open a span around every request, in the caller's trace."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.middleware.metering import known_method, route_of
from app.api.middleware.scope import header
from app.core.spans import SILENT, Spans, ended_with_block

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
        """Serve one request."""
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
