"""Who may ask: the API key, known hosts and origins; and the headers of every reply."""

from __future__ import annotations

import hmac
import ipaddress
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from anyio import to_thread
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.middleware.limits import Layer, header, refuse, route_path
from app.core.access import Caller, digest_of
from app.core.errors import (
    AccessError,
    Busy,
    DocuMindError,
    HostRefused,
    OriginRefused,
    Unauthorized,
)
from app.core.ids import is_loopback

if TYPE_CHECKING:  # SQL takes a while to import; a thread does it
    from app.storage.catalog.keys import Key, KeyStore

_PROTECTED = ("/api/", "/v1/", "/mcp")
THIS_MACHINE = "(this machine)"
"""The name of the caller who may read the data directory: a command on the server's machine."""
_CHANGED = "changed"
audit_logger = logging.getLogger("app.audit")
_MESSAGE = "this server asks for its API key; send it as X-API-Key or as Authorization: Bearer"
"""The same for a missing and a wrong key."""


def needs_key(path: str) -> bool:
    """Return whether a path within the app needs the key; page, docs, health and metrics do not."""
    return path.startswith(_PROTECTED)


class KeyCheck:
    """Finds whose key a request has, by its digest: neither content nor length shows."""

    def __init__(self, kept: Callable[[], KeyStore], *, key: str = "", local_key: str = "") -> None:
        """Check keys.

        Args:
            kept: Returns the keys of the catalog, or raises Busy while they are not open.
            key: API_KEY, which may do everything; empty: none.
            local_key: The same for commands of this machine.
        """
        self._kept = kept
        self._closed = bool(key)
        named = {"(API_KEY)": key, THIS_MACHINE: local_key}
        self._fixed = [
            (digest_of(one.encode()), Caller(name)) for name, one in named.items() if one
        ]

    def is_open(self) -> bool:
        """Return whether no key is asked for: API_KEY is empty, and none was made."""
        return not self._closed and not self._keys()

    def must_read(self) -> bool:
        """Return whether `caller` reads the catalog, which takes a thread."""
        try:
            return self._kept().held() is None
        except Busy:
            return False

    def caller(self, scope: Scope) -> Caller:
        """Return who sends a request.

        Raises:
            Unauthorized: Its key is missing or wrong.
            Busy: The keys are not open yet.
        """
        given = header(scope, b"x-api-key")
        if given is None:
            scheme, _, token = (header(scope, b"authorization") or "").partition(" ")
            given = token.strip() if scheme.lower() == "bearer" else ""
        # Header text is Latin-1 of the raw bytes; going back gives the bytes that were sent.
        digest = digest_of(given.encode("latin-1"))
        for own, caller in self._fixed:
            if hmac.compare_digest(own, digest):
                return caller
        if self._closed and not given:
            raise Unauthorized(_MESSAGE)
        keys = self._keys()
        for key in keys:
            if hmac.compare_digest(key.digest, digest):
                self._kept().use(key.caller.name)
                return key.caller
        if keys or self._closed:
            raise Unauthorized(_MESSAGE)
        return ANYONE

    def sees_counts(self, scope: Scope) -> bool:
        """Return whether a request may see how many documents every library has."""
        try:
            caller = self.caller(scope)
        except Unauthorized:
            return False
        return caller.may("read") and caller.sees_all

    def _keys(self) -> tuple[Key, ...]:
        kept = self._kept()
        held = kept.held()
        return kept.read() if held is None else held


ANYONE = Caller("(no key)")
"""Who asks while no key is asked for, or within this process."""


class ApiKey(Layer):
    """Lets protected paths through with a right key only; logs a line for each change."""

    kinds = frozenset({"http", "websocket"})

    def __init__(self, app: ASGIApp, *, check: KeyCheck) -> None:
        super().__init__(app)
        self._check = check

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if needs_key(route_path(scope)):
            check = self._check
            try:
                if check.must_read():
                    scope["caller"] = await to_thread.run_sync(check.caller, scope)
                else:
                    scope["caller"] = check.caller(scope)
            except DocuMindError as error:
                await refuse(error, scope, receive, send)
                return
        status = 0

        def watched(message: Message) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            return send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            if _CHANGED in scope:
                _log(scope, status)


def _log(scope: Scope, status: int) -> None:
    name, documents = caller_of(scope).name, scope[_CHANGED]
    route = f"{scope['method']} {quote(scope['path'], errors='replace')}"
    audit_logger.info(
        "key %r: %s %d, documents: %s",
        name,
        route,
        status,
        ", ".join(map(repr, documents)) or "-",
        extra={"key": name, "route": route, "status": status, "documents": documents},
    )


def changed(request: Request, *documents: str) -> None:
    """Have the log say that a request changes something, and these documents if any."""
    request.scope.setdefault(_CHANGED, []).extend(documents)


def caller_of(scope: Scope) -> Caller:
    """Return who sent a request to a protected path."""
    caller: Caller = scope["caller"]
    return caller


SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_DEFAULT_PORTS = {"http": 80, "https": 443}


def split_host(value: str) -> tuple[str, int | None] | None:
    """Return (name, port) of a Host header, the name bare and in lower case; None if malformed."""
    if not value or any(c in value for c in "/@\\?# \t,") or not value.isascii():
        return None
    try:
        parts = urlsplit(f"//{value}")
        port = parts.port
    except ValueError:
        return None
    name = (parts.hostname or "").removesuffix(".")
    return (name, port) if name else None


class HostAndOrigin(Layer):
    """Refuses foreign Host names, and foreign origins where state may change or on websockets."""

    kinds = frozenset({"http", "websocket"})

    def __init__(
        self,
        app: ASGIApp,
        *,
        trusted: Iterable[str],
        origins: Iterable[str],
        any_origin: bool,
        loopback_only: bool = False,
    ) -> None:
        """Wrap an app.

        Args:
            app: What to protect.
            trusted: Host names besides the loopback ones; `*.example.org` covers every name below
                example.org.
            origins: Web origins (`scheme://host[:port]`) that may change state.
            any_origin: Development: every origin may.
            loopback_only: Refuse requests at an address of this machine that others can reach.
                There is no key, and uvicorn with its own --host starts without our check.
        """
        super().__init__(app)
        self._loopback_only = loopback_only
        names = [_trusted_name(name) for name in trusted]
        self._names = frozenset(name for name in names if name and not name.startswith("*."))
        self._below = tuple(name[1:] for name in names if name.startswith("*."))
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        self._any_origin = any_origin

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(scope)
        if refused is None:
            await self.app(scope, receive, send)
        else:
            await refuse(refused, scope, receive, send)

    def _refusal(self, scope: Scope) -> AccessError | None:
        if self._loopback_only and _reachable_by_others(scope):
            return HostRefused(
                "this server has no API_KEY and answers on loopback only; set API_KEY, or"
                " ALLOW_INSECURE_BIND=true"
            )
        given = header(scope, b"host") or ""
        named = sum(key == b"host" for key, _ in scope["headers"])
        host = split_host(given) if named == 1 else None
        if host is None or not (
            is_loopback(host[0]) or host[0] in self._names or host[0].endswith(self._below)
        ):
            return HostRefused(
                f"host {given!r} is not served here; use localhost, or add the name to"
                " TRUSTED_HOSTS"
            )
        changes = scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS
        origin = self._foreign(scope, host) if changes else None
        if origin is None:
            return None
        return OriginRefused(
            f"a page of {origin!r} may not change anything here; add its origin to"
            " CORS_ORIGINS if it should"
        )

    def _foreign(self, scope: Scope, host: tuple[str, int | None]) -> str | None:
        """Return the origin that must be refused; None when the request may go on."""
        if self._any_origin:
            return None
        origin = header(scope, b"origin")
        if origin is None:
            # Browsers send Origin with every unsafe request; older ones at least say which site it
            # came from.
            site = header(scope, b"sec-fetch-site")
            return None if site in {None, "same-origin", "none"} else f"{site} (no Origin)"
        if origin.lower() in self._origins or _same_server(
            origin, host, over_tls=scope["scheme"] in {"https", "wss"}
        ):
            return None
        return origin


def _trusted_name(value: str) -> str:
    """Return a TRUSTED_HOSTS name as `split_host` returns that of a header."""
    split = split_host(value.strip())
    return split[0] if split else value.strip().lower().strip("[]")


def _reachable_by_others(scope: Scope) -> bool:
    """Return whether a request came to an address beyond loopback; a socket file has none."""
    server = scope.get("server")
    try:
        return server is not None and not ipaddress.ip_address(server[0]).is_loopback
    except ValueError:
        return False


def _same_server(origin: str, host: tuple[str, int | None], *, over_tls: bool) -> bool:
    """Return whether an Origin names the server of the Host header.

    All loopback names are one server. Known to be reached by TLS (a proxy that FORWARDED_ALLOW_IPS
    believes says so), a page that came without it is another's.
    """
    try:
        parts = urlsplit(origin.lower())
        name, port = (parts.hostname or "").removesuffix("."), parts.port
    except ValueError:
        return False
    if (
        parts.scheme not in _DEFAULT_PORTS
        or (over_tls and parts.scheme != "https")
        or parts.path
        or parts.query
        or not name
    ):
        return False
    default = _DEFAULT_PORTS[parts.scheme]
    same_name = name == host[0] or (is_loopback(name) and is_loopback(host[0]))
    return same_name and (port or default) == (host[1] or default)


CSP = (
    "default-src 'self'; img-src 'self' data: blob:; connect-src 'self'; worker-src 'self' blob:;"
    " object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
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


class SecurityHeaders(Layer):
    """Sets security headers that a reply has not set: a route may relax its own policy."""

    def __init__(self, app: ASGIApp, *, hsts: bool) -> None:
        super().__init__(app)
        self._headers = dict(_ALWAYS)
        if hsts:
            self._headers["Strict-Transport-Security"] = "max-age=31536000; includeSubDomains"

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        def with_headers(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            return send(message)

        await self.app(scope, receive, with_headers)
