"""Read an ASGI scope: path within the app, headers; refuse a request."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from app.api.errors import response_of
from app.core.errors import DocuMindError


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


def header_count(scope: Scope, name: bytes) -> int:
    """Return how often a header of a lower-case name was sent."""
    return sum(key == name for key, _ in scope["headers"])


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
