"""Each layer alone, around an app that says what reached it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.metrics import Metrics
from app.api.middleware.access import (
    ApiKey,
    HostAndOrigin,
    KeyCheck,
    SecurityHeaders,
    needs_key,
    split_host,
)
from app.api.middleware.limits import BodyLimit, Concurrency, RateLimit
from app.api.middleware.observing import Observed, RequestEdge
from app.core.errors import TooLarge
from app.core.trace import SILENT
from app.storage.catalog.keys import KeyStore
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps


def observed(app: ASGIApp) -> Observed:
    return Observed(app, metrics=Metrics(), spans=lambda: SILENT)


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads the whole body and says how long it was."""
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body", False):
            break
    await PlainTextResponse(f"got {size}")(scope, receive, send)


def ask(
    app: ASGIApp, method: str = "GET", path: str = "/api/v1/x", **request: object
) -> httpx.Response:
    async def one() -> httpx.Response:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8001"
        ) as client:
            return await client.request(method, path, **request)  # type: ignore[arg-type]

    return asyncio.run(one())


# --- request id and access log
# ----------------------------------------------------------------------------------------------------


def test_every_reply_carries_an_id_and_a_harmless_one_is_kept() -> None:
    app = observed(hello)
    assert len(ask(app).headers["x-request-id"]) == 32
    assert ask(app, headers={"X-Request-ID": "trace-1"}).headers["x-request-id"] == "trace-1"
    assert len(ask(app, headers={"X-Request-ID": "a b\tc"}).headers["x-request-id"]) == 32


def test_the_access_log_has_no_query_and_no_control_characters(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, logger="app.access"):
        ask(observed(hello), path="/api/v1/search%0d%0aX?q=secret%20question")
    line = caplog.records[-1].getMessage()
    assert "secret" not in line
    assert "\n" not in line
    assert line.startswith("GET /api/v1/search%0D%0AX 200")


# --- headers
# ----------------------------------------------------------------------------------------------------------------------


def test_security_headers_are_on_every_reply_and_hsts_in_production_only() -> None:
    headers = ask(SecurityHeaders(hello, hsts=False)).headers
    for name in (
        "x-content-type-options",
        "x-frame-options",
        "referrer-policy",
        "content-security-policy",
        "permissions-policy",
    ):
        assert name in headers
    assert "'unsafe" not in headers["content-security-policy"]
    assert "strict-transport-security" not in headers
    assert "strict-transport-security" in ask(SecurityHeaders(hello, hsts=True)).headers


# --- host and origin
# --------------------------------------------------------------------------------------------------------------


def guarded(
    trusted: Iterable[str] = (),
    origins: Iterable[str] = ("http://localhost:5173",),
    any_origin: bool = False,
) -> ASGIApp:
    return HostAndOrigin(hello, trusted=trusted, origins=origins, any_origin=any_origin)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8001",
        "127.0.0.1:8001",
        "127.8.9.1",
        "[::1]:8001",
        "[::1]",
        "localhost.",
        "docs.example",
        "a.b.example",
    ],
)
def test_hosts_that_are_served(host: str) -> None:
    assert ask(guarded(["docs.example", "*.b.example"]), headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "evil.example:8001",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "evil.example#localhost",
        "localhost, evil.example",
        "0.0.0.0",
        "10.0.0.1",
        "[::ffff:10.0.0.1]",
        "b.example",
        "localhost:port",
    ],
)
def test_hosts_that_are_refused(host: str) -> None:
    reply = ask(guarded(["docs.example", "*.b.example"]), headers={"Host": host})
    assert reply.status_code == 403
    assert reply.json()["code"] == "host_refused"


def test_a_second_host_header_is_refused() -> None:
    headers = [(b"host", b"localhost"), (b"host", b"evil.example")]
    assert _call(guarded(), headers=headers)[0]["status"] == 403


ORIGINS = {
    None: True,
    "http://127.0.0.1:8001": True,
    "http://localhost:8001": True,
    "http://[::1]:8001": True,
    "http://localhost:5173": True,
    "http://localhost:9999": False,
    "https://127.0.0.1": False,
    "http://evil.example": False,
    "http://evil.example:8001": False,
    "http://127.0.0.1:8001.evil.example": False,
    "null": False,
    "": False,
    "file://": False,
    "http://127.0.0.1:8001/path": False,
}


@pytest.mark.parametrize(
    "content_type", ["application/json", "text/plain", "multipart/form-data; boundary=b"]
)
@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "PUT"])
@pytest.mark.parametrize(("origin", "allowed"), ORIGINS.items())
def test_foreign_origins_may_not_change_anything(
    origin: str | None, allowed: bool, method: str, content_type: str
) -> None:
    headers = {"Content-Type": content_type} | ({} if origin is None else {"Origin": origin})
    reply = ask(guarded(), method, headers=headers)
    assert reply.status_code == (200 if allowed else 403)
    if not allowed:
        assert reply.json()["code"] == "origin_refused"


def test_reading_needs_no_origin_and_a_cross_site_request_without_one_is_refused() -> None:
    assert ask(guarded(), "GET", headers={"Origin": "http://evil.example"}).status_code == 200
    assert ask(guarded(), "POST", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert ask(guarded(), "POST", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert (
        ask(guarded(any_origin=True), "POST", headers={"Origin": "http://evil.example"}).status_code
        == 200
    )


def test_behind_a_tls_proxy_the_page_is_its_own_origin() -> None:
    app = guarded(trusted=["docs.example"])
    assert (
        ask(
            app, "POST", headers={"Host": "docs.example", "Origin": "https://docs.example"}
        ).status_code
        == 200
    )
    assert (
        ask(
            app, "POST", headers={"Host": "docs.example", "Origin": "https://docs.example:444"}
        ).status_code
        == 403
    )


def test_reached_by_tls_a_page_without_it_is_foreign() -> None:
    app = guarded(trusted=["docs.example"])

    def status(scheme: str, origin: bytes) -> int:
        headers = [(b"host", b"docs.example"), (b"origin", origin)]
        return int(_call(app, method="POST", scheme=scheme, headers=headers)[0]["status"])

    assert status("https", b"https://docs.example") == 200
    assert status("https", b"http://docs.example") == 403
    assert status("http", b"http://docs.example") == status("http", b"https://docs.example") == 200


@pytest.mark.parametrize("trusted", ["docs.example:8443", "DOCS.example.", " docs.example "])
def test_trusted_names_are_read_as_hosts_are(trusted: str) -> None:
    assert ask(guarded([trusted]), headers={"Host": "docs.example:8443"}).status_code == 200


@pytest.mark.parametrize(
    ("server", "served"),
    [
        (("127.0.0.1", 8001), True),
        (("::1", 8001), True),
        (("/run/documind.sock", None), True),
        (None, True),
        (("192.168.1.7", 8001), False),
        (("fd00::7", 8001), False),
    ],
)
def test_without_a_key_only_loopback_addresses_answer(
    server: tuple[str, int | None] | None, served: bool
) -> None:
    keyless = HostAndOrigin(hello, trusted=(), origins=(), any_origin=False, loopback_only=True)
    sent = _call(keyless, server=server)
    assert sent[0]["status"] == (200 if served else 403)
    assert _call(guarded(), server=server)[0]["status"] == 200


def test_websockets_are_checked_like_changes() -> None:
    def opened(host: bytes, origin: bytes | None) -> bool:
        headers = [(b"host", host)] + ([(b"origin", origin)] if origin else [])
        sent = _call(
            guarded_socket(),
            kind="websocket",
            headers=headers,
            incoming=[{"type": "websocket.connect"}],
        )
        return str(sent[0]["type"]) == "websocket.accept"

    assert opened(b"127.0.0.1:8001", b"http://127.0.0.1:8001")
    assert not opened(b"evil.example", b"http://evil.example")
    assert not opened(b"127.0.0.1:8001", b"http://evil.example")


def guarded_socket() -> ASGIApp:
    async def accept(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})

    return HostAndOrigin(accept, trusted=(), origins=(), any_origin=False)


def test_splitting_hosts() -> None:
    assert split_host("[::1]:80") == ("::1", 80)
    assert split_host("Example.ORG.") == ("example.org", None)
    assert split_host("a:99999") is None
    assert split_host("[::1") is None


# --- key
# --------------------------------------------------------------------------------------------------------------------------


Kept = Callable[[], KeyStore]


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[Kept]:
    """The keys of an empty catalog."""
    with closing(SqliteDatabase(tmp_path / "catalog.sqlite3", Steps())) as database:
        store = KeyStore(database)
        yield lambda: store


@pytest.mark.parametrize("path", ["/api/v1/libraries", "/v1/models", "/mcp/", "/mcp", "/api/"])
def test_protected_paths_want_the_key(path: str, keys: Kept) -> None:
    app = ApiKey(hello, check=KeyCheck(keys, key="k\u00e9y"))
    assert ask(app, path=path).status_code == 401
    assert ask(app, path=path, headers={"X-API-Key": "k\u00e9y".encode()}).status_code == 200
    assert (
        ask(app, path=path, headers={"Authorization": "Bearer k\u00e9y".encode()}).status_code
        == 200
    )
    assert (
        ask(app, path=path, headers={"Authorization": "Basic k\u00e9y".encode()}).status_code == 401
    )


def test_missing_and_wrong_key_get_the_same_reply(keys: Kept) -> None:
    app = ApiKey(hello, check=KeyCheck(keys, key="right"))
    missing = ask(app)
    for wrong in ("", "r", "righ", "right ", "rightx", "\u00ff" * 500):
        reply = ask(app, headers={"X-API-Key": wrong.encode("latin-1")})
        if wrong == "right ":
            continue  # clients and servers strip blanks around a header's value
        assert (reply.status_code, reply.content, reply.headers) == (
            401,
            missing.content,
            missing.headers,
        )


@pytest.mark.parametrize(
    "path", ["/", "/health", "/health/live", "/metrics", "/docs", "/openapi.json", "/assets/a.js"]
)
def test_open_paths_want_none(path: str) -> None:
    assert not needs_key(path)


def test_a_proxy_prefix_does_not_open_a_door(keys: Kept) -> None:
    app = ApiKey(hello, check=KeyCheck(keys, key="right"))
    assert _call(app, path="/rag/api/v1/libraries", root_path="/rag")[0]["status"] == 401
    assert _call(app, path="/rag/health", root_path="/rag")[0]["status"] == 200
    assert _call(app, path="/ragged/api", root_path="/rag")[0]["status"] == 200


# --- bodies
# -----------------------------------------------------------------------------------------------------------------------


async def _chunks(sizes: Iterable[int]) -> AsyncIterator[bytes]:
    for size in sizes:
        yield b"x" * size


@pytest.mark.parametrize(
    ("sizes", "status"),
    [([10], 200), ([50, 50], 200), ([50, 51], 413), ([1] * 101, 413), ([5000], 413)],
)
def test_bodies_are_capped_declared_or_chunked(sizes: list[int], status: int) -> None:
    app = BodyLimit(hello, limit_of=lambda _: 100)
    chunked = ask(app, "POST", content=_chunks(sizes))
    declared = ask(app, "POST", content=b"x" * sum(sizes))
    assert chunked.status_code == declared.status_code == status
    if status == 413:
        assert chunked.json()["code"] == declared.json()["code"] == "too_large"


def test_the_app_never_sees_more_than_the_cap_and_cannot_reword_the_refusal() -> None:
    seen: list[int] = []

    async def wordy(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            while True:
                seen.append(len((await receive())["body"]))
        except TooLarge:
            await PlainTextResponse("my own words", status_code=400)(scope, receive, send)

    reply = ask(BodyLimit(wordy, limit_of=lambda _: 100), "POST", content=_chunks([40] * 1000))
    assert reply.status_code == 413
    assert sum(seen) <= 100


@pytest.mark.parametrize(
    ("length", "status"),
    [("9" * 5000, 413), ("\u00b2", 200), ("-1", 200), ("1e3", 200), ("100", 200)],
)
def test_odd_lengths_are_no_errors(length: str, status: int) -> None:
    reply = ask(
        BodyLimit(hello, limit_of=lambda _: 100),
        "POST",
        headers={"content-length": length.encode("latin-1")},
        content=_chunks([5]),
    )
    assert reply.status_code == status


def test_a_body_that_trickles_is_given_up() -> None:
    now = [0.0]

    async def receive() -> Message:
        now[0] += 10.0  # a byte every ten seconds
        return {"type": "http.request", "body": b"x", "more_body": True}

    sent = _call(
        BodyLimit(hello, limit_of=lambda _: 100, clock=lambda: now[0]),
        method="POST",
        receive=receive,
    )
    assert sent[0]["status"] == 503
    assert now[0] < 60


def test_a_refusal_of_the_app_reads_the_rest_first_so_that_it_arrives() -> None:
    left = [{"type": "http.request", "body": b"x" * 1000, "more_body": True} for _ in range(5)]
    left.append({"type": "http.request", "body": b"", "more_body": False})

    async def refuses(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await PlainTextResponse("no", status_code=422)(scope, receive, send)

    sent = _call(BodyLimit(refuses, limit_of=lambda _: 100_000), method="POST", incoming=left)
    assert sent[0]["status"] == 422
    assert left == []


# --- concurrency and rate
# ---------------------------------------------------------------------------------------------------------


def test_requests_over_the_limit_are_refused_at_once_and_probes_never() -> None:
    async def scenario() -> tuple[int, int, int]:
        entered, leave = asyncio.Event(), asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"] == "/slow":
                entered.set()
                await leave.wait()
            await PlainTextResponse("ok")(scope, receive, send)

        transport = httpx.ASGITransport(Concurrency(slow, limit=1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            first = asyncio.create_task(client.get("/slow"))
            await entered.wait()
            refused = await client.get("/other")
            assert refused.headers["retry-after"] == "1"
            probe = await client.get("/health/live")
            leave.set()
            await first
            return refused.status_code, probe.status_code, (await client.get("/other")).status_code

    assert asyncio.run(scenario()) == (503, 200, 200)


def test_an_event_stream_gives_its_place_back() -> None:
    inner: list[int] = []

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/event-stream")],
            }
        )
        if scope["path"] == "/outer":
            inner.append((await _call_async(limited, path="/inner"))[0]["status"])
        await send({"type": "http.response.body", "body": b""})

    limited = Concurrency(stream, limit=1)
    assert _call(limited, path="/outer")[0]["status"] == 200
    assert inner == [200]


def test_the_rate_limit_refills_and_is_per_address() -> None:
    now = [0.0]
    app = RateLimit(hello, per_minute=2, clock=lambda: now[0])

    def status(address: str) -> int:
        return int(_call(app, client=(address, 1))[0]["status"])

    assert [status("a"), status("a"), status("a"), status("b")] == [200, 200, 429, 200]
    now[0] += 30
    assert [status("a"), status("a")] == [200, 429]
    assert _call(app, client=("a", 1), path="/health/live")[0]["status"] == 200


# --- the edge
# ---------------------------------------------------------------------------------------------------------------------


def test_an_unknown_error_is_a_500_with_the_request_id_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError("secret detail")

    reply = ask(observed(RequestEdge(broken)))
    body = reply.json()
    assert reply.status_code == body["status"] == 500
    assert reply.headers["content-type"] == "application/problem+json"
    assert body["request_id"] == reply.headers["x-request-id"]
    assert "secret" not in reply.text
    assert "ZeroDivisionError" in caplog.text


def test_a_request_that_a_shutdown_cuts_short_is_a_503_that_says_so() -> None:
    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    async def cut_short() -> list[Message]:
        call = asyncio.create_task(_call_async(observed(RequestEdge(endless))))
        await asyncio.sleep(0)
        call.cancel("the server stops")
        return await call

    start, body = asyncio.run(cut_short())
    assert start["status"] == 503
    assert dict(start["headers"])[b"content-type"] == b"application/problem+json"
    assert dict(start["headers"])[b"retry-after"] == b"5"
    assert json.loads(body["body"])["code"] == "busy"


# --- calling an app without a client
# ----------------------------------------------------------------------------------------------


def _call(app: ASGIApp, **request: Any) -> list[Message]:  # handed on as it is
    return asyncio.run(_call_async(app, **request))


async def _call_async(
    app: ASGIApp,
    *,
    kind: str = "http",
    method: str = "GET",
    path: str = "/x",
    root_path: str = "",
    scheme: str = "http",
    server: tuple[str, int | None] | None = ("127.0.0.1", 8001),
    headers: Iterable[tuple[bytes, bytes]] = ((b"host", b"127.0.0.1"),),
    client: tuple[str, int] = ("127.0.0.1", 1),
    incoming: list[Message] | None = None,
    receive: Callable[[], object] | None = None,
) -> list[Message]:
    sent: list[Message] = []

    async def next_message() -> Message:
        if incoming:
            return incoming.pop(0)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": kind,
        "scheme": scheme,
        "path": path,
        "root_path": root_path,
        "headers": list(headers),
        "client": client,
        "server": server,
        "query_string": b"",
        **({"method": method} if kind == "http" else {}),
    }
    await app(scope, receive or next_message, send)  # type: ignore[arg-type]
    return sent


@pytest.mark.parametrize(
    ("path", "level"),
    [
        ("/health/ready", logging.DEBUG),
        ("/api/v1/jobs", logging.DEBUG),
        ("/api/v1/libraries", logging.DEBUG),
        ("/api/v1/search?q=x", logging.INFO),
        ("/api/v1/papers/abc/file", logging.INFO),
    ],
)
def test_polling_stays_out_of_the_log_of_what_people_did(
    path: str, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="app.access"):
        ask(observed(hello), path=path)
    assert caplog.records[-1].levelno == level
