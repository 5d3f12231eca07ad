"""Every combination of Host, Origin, method and content type against the whole app: a foreign web page can use nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.types import Message, Scope

from app.api.app import create_app
from app.core.errors import InvalidInput
from tests.api.conftest import settings_for

HOSTS = {
    "127.0.0.1:8001": True,
    "localhost:8001": True,
    "LocalHost:8001": True,
    "localhost.:8001": True,
    "[::1]:8001": True,
    "127.0.0.2": True,
    "docs.example": True,
    "docs.example:8443": True,
    "deep.under.example": True,
    "evil.example": False,
    "evil.example:8001": False,
    "under.example": False,  # only names below it are trusted
    "127.0.0.1.evil.example": False,
    "localhost.evil.example": False,
    "docs.example.evil.example": False,
    "evildocs.example": False,
    "localhost@evil.example": False,
    "evil.example@localhost": False,
    "localhost, evil.example": False,
    "evil.example#localhost": False,
    "localhost/evil.example": False,
    "local\thost": False,
    "0.0.0.0:8001": False,
    "10.0.0.1:8001": False,
    "169.254.169.254": False,
    "[::]:8001": False,
    "[::ffff:10.0.0.1]": False,
    "[::1": False,
    "2130706433": False,  # 127.0.0.1 as one number: no browser sends it, so it is nobody we know
    "127.1": False,
    "localhost:99999": False,
    "": False,
}

ORIGINS = {  # by what a page may be for hosts on the loopback port 8001
    None: True,
    "http://127.0.0.1:8001": True,
    "http://localhost:8001": True,
    "http://[::1]:8001": True,
    "http://localhost:5173": True,  # CORS_ORIGINS
    "HTTP://LOCALHOST:5173": True,
    "http://localhost:8002": False,
    "http://localhost": False,
    "https://localhost": False,
    "http://evil.example": False,
    "http://evil.example:8001": False,
    "http://localhost:5173.evil.example": False,
    "http://localhost:5173@evil.example": False,
    "http://localhost:8001/path": False,
    "chrome-extension://abcdefgh": False,
    "file://": False,
    "data:": False,
    "null": False,
    "": False,
}

CHANGING = ("POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND")
READING = ("GET", "HEAD")
TYPES = (
    "",
    "application/json",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=b",
)
PATHS = ("/api/v1/ingest", "/v1/chat/completions", "/mcp")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """Never started: what passes the doors is told that the server is starting, which is answer enough here."""
    settings = settings_for(
        tmp_path_factory.mktemp("doors"), trusted_hosts=("docs.example", "*.under.example")
    )
    return create_app(settings, on_failure=lambda _: None)


async def _status(app: FastAPI, method: str, path: str, headers: list[tuple[bytes, bytes]]) -> int:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 8001),
    }
    await app(scope, receive, send)
    return int(sent[0]["status"])


def _headers(host: str, origin: str | None, kind: str) -> list[tuple[bytes, bytes]]:
    found = [(b"host", host.encode())]
    if origin is not None:
        found.append((b"origin", origin.encode()))
    if kind:
        found.append((b"content-type", kind.encode()))
    return found


def _surprises(
    app: FastAPI, cells: Sequence[tuple[str, str, str, str | None, str, bool]]
) -> list[str]:
    """Return the cells whose reply is not the expected one; a cell is (method, path, host, origin, type, allowed)."""

    async def knock() -> list[str]:
        wrong = []
        for method, path, host, origin, kind, allowed in cells:
            status = await _status(app, method, path, _headers(host, origin, kind))
            if (status == 403) == allowed:
                wrong.append(f"{method} {path} Host={host!r} Origin={origin!r} {kind!r}: {status}")
        return wrong

    return asyncio.run(knock())


@pytest.mark.parametrize("method", CHANGING)
def test_changing_needs_a_known_host_and_no_foreign_origin(app: FastAPI, method: str) -> None:
    loopback = [host for host, known in HOSTS.items() if known and host.lower().endswith(":8001")]
    cells = [
        (method, path, host, origin, kind, allowed)
        for host in loopback
        for origin, allowed in ORIGINS.items()
        for kind in TYPES
        for path in PATHS
    ]
    cells += [
        (method, path, host, origin, kind, False)
        for host, known in HOSTS.items()
        if not known
        # The name that a rebound page would send as its own origin is among them.
        for origin in (None, "http://localhost:8001", f"http://{host}", f"https://{host}")
        for kind in TYPES
        for path in PATHS
    ]
    assert len(cells) > 2000
    assert _surprises(app, cells) == []


@pytest.mark.parametrize("method", READING)
def test_reading_needs_a_known_host_whatever_page_asks(app: FastAPI, method: str) -> None:
    cells = [
        (method, path, host, origin, "", known)
        for host, known in HOSTS.items()
        for origin in (
            None,
            "http://localhost:8001",
            f"http://{host}",
            "http://evil.example",
            "null",
        )
        for path in ("/api/v1/libraries", "/nowhere", "/health/live")
    ]
    assert _surprises(app, cells) == []


def test_a_trusted_name_is_its_own_origin_only(app: FastAPI) -> None:
    own = [
        ("docs.example", "https://docs.example"),
        ("docs.example", "http://docs.example"),
        ("docs.example:8443", "https://docs.example:8443"),
    ]
    foreign = [
        ("docs.example", "https://deep.under.example"),
        ("docs.example", "http://localhost:8001"),
        ("docs.example", "https://docs.example:8443"),
        ("docs.example:8443", "https://docs.example"),
        ("127.0.0.1:8001", "https://docs.example"),
    ]
    cells = [
        ("POST", "/api/v1/query", host, origin, "application/json", True) for host, origin in own
    ]
    cells += [
        ("POST", "/api/v1/query", host, origin, "application/json", False)
        for host, origin in foreign
    ]
    assert _surprises(app, cells) == []


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_browser_that_leaves_the_origin_out_still_says_where_it_was(
    app: FastAPI, site: str
) -> None:
    headers = [*_headers("127.0.0.1:8001", None, "text/plain"), (b"sec-fetch-site", site.encode())]
    assert asyncio.run(_status(app, "POST", "/api/v1/query", headers)) == 403
    assert asyncio.run(_status(app, "GET", "/api/v1/libraries", headers)) != 403


def test_two_hosts_or_none_are_refused(app: FastAPI) -> None:
    two = [(b"host", b"127.0.0.1:8001"), (b"host", b"127.0.0.1:8001")]
    assert asyncio.run(_status(app, "GET", "/health", two)) == 403
    assert asyncio.run(_status(app, "GET", "/health", [])) == 403


def test_a_key_does_not_open_the_door_to_foreign_pages(tmp_path: Path) -> None:
    app = create_app(settings_for(tmp_path, api_key="k3y"), on_failure=lambda _: None)
    key = (b"x-api-key", b"k3y")
    foreign = [*_headers("127.0.0.1:8001", "http://evil.example", "application/json"), key]
    assert asyncio.run(_status(app, "POST", "/api/v1/query", foreign)) == 403
    assert (
        asyncio.run(
            _status(
                app,
                "POST",
                "/api/v1/query",
                [*_headers("evil.example", None, "application/json"), key],
            )
        )
        == 403
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "myhost.lan"])
def test_no_app_listens_beyond_loopback_without_a_key(tmp_path: Path, host: str) -> None:
    with pytest.raises(InvalidInput, match="API_KEY"):
        create_app(settings_for(tmp_path, api_host=host))
    create_app(settings_for(tmp_path, api_host=host, api_key="k3y"))
    create_app(settings_for(tmp_path, api_host=host, allow_insecure_bind=True))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_loopback_needs_none(tmp_path: Path, host: str) -> None:
    create_app(settings_for(tmp_path, api_host=host))


def test_the_layers_are_in_order(tmp_path: Path) -> None:
    """Layers in their documented order; a rate limit only if it is set."""
    app = create_app(settings_for(tmp_path, rate_limit_per_minute=60))
    assert [layer.cls.__name__ for layer in app.user_middleware] == [  # type: ignore[attr-defined]  # all of them are classes
        "ProxyPrefix",
        "Observed",
        "SecurityHeaders",
        "Dialect",
        "HostAndOrigin",
        "CORSMiddleware",
        "BodyLimit",
        "Concurrency",
        "RateLimit",
        "ApiKey",
        "GZipMiddleware",
        "RequestEdge",
    ]
