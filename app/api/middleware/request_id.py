"""Request ids and the access log."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.middleware.scope import header
from app.core.ids import new_id

logger = logging.getLogger("app.access")

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
        """Wrap an app."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
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
            logger.log(
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
