"""Security headers on every reply."""

from __future__ import annotations

from collections.abc import Awaitable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CSP = (
    "default-src 'self'; img-src 'self' data: blob:; connect-src 'self'; worker-src 'self' blob:;"
    " object-src 'none';"
    " base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""For the page: nothing from elsewhere, no inline script or style (docs/facts/libraries.md;
CVE-2025-32711)."""

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": CSP,
}


class SecurityHeaders:
    """Sets security headers that a reply has not set.

    A route may relax its own Content-Security-Policy.
    """

    def __init__(self, app: ASGIApp, *, hsts: bool) -> None:
        """Wrap an app; `hsts` adds Strict-Transport-Security (production)."""
        self._app = app
        self._headers = dict(_ALWAYS)
        if hsts:
            self._headers["Strict-Transport-Security"] = "max-age=31536000; includeSubDomains"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        def with_headers(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            return send(message)

        await self._app(scope, receive, with_headers)
