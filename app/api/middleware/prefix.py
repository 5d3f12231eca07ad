"""The path prefix under which a proxy serves us."""

from __future__ import annotations

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.answer.passage_records import root_path


class ProxyPrefix:
    """Tells the app its prefix, whether the proxy passes it on or strips it.

    ASGI wants `path` to begin with `root_path` (its specification 2.4, HTTP connection scope);
    mounted files rely on that.
    """

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        """Wrap an app; an empty prefix changes nothing."""
        self._app = app
        self._prefix = f"/{prefix.strip('/')}" if prefix.strip("/") else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
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
