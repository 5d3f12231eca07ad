"""The API key."""

from __future__ import annotations

import hashlib
import hmac

from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.middleware.scope import header, refuse, route_path
from app.core.errors import Unauthorized

_PROTECTED = ("/api/", "/v1/", "/mcp")
_MESSAGE = "this server asks for its API key; send it as X-API-Key or as Authorization: Bearer"
"""The same for a missing and a wrong key."""


def needs_key(path: str) -> bool:
    """Return whether a path (within the app) needs the key.

    The page, its assets, docs, health and metrics do not.
    """
    return path.startswith(_PROTECTED)


class KeyCheck:
    """Compares keys in constant time.

    Digests have equal length, so neither content nor length shows.
    """

    def __init__(self, key: str) -> None:
        """Keep the digest of the right key; an empty key means that none is asked for."""
        self._digest = _digest(key) if key else None

    @property
    def required(self) -> bool:
        """Return whether a key is required."""
        return self._digest is not None

    def accepts(self, scope: Scope) -> bool:
        """Return whether the request carries the right key, or none is needed."""
        if self._digest is None:
            return True
        given = header(scope, b"x-api-key")
        if given is None:
            scheme, _, token = (header(scope, b"authorization") or "").partition(" ")
            given = token.strip() if scheme.lower() == "bearer" else ""
        # Header text is Latin-1 of the raw bytes; going back gives the bytes that were sent.
        return hmac.compare_digest(hashlib.sha256(given.encode("latin-1")).digest(), self._digest)


class ApiKey:
    """Lets protected paths through with the right key only."""

    def __init__(self, app: ASGIApp, *, check: KeyCheck) -> None:
        """Wrap an app."""
        self._app = app
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if (
            scope["type"] in {"http", "websocket"}
            and needs_key(route_path(scope))
            and not self._check.accepts(scope)
        ):
            await refuse(Unauthorized(_MESSAGE), scope, receive, send)
            return
        await self._app(scope, receive, send)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
