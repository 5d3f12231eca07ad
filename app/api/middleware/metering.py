"""Requests, counted by route."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.metrics import Metrics

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_CONVERTER = re.compile(r":\w+\}")


class Metering:
    """Counts every request by method, route template and status, and times it.

    What no route answered (refusals of outer layers, unknown paths, files of the page) shares the
    route `other`, so that a scanner cannot make labels.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        """Wrap an app."""
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
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
