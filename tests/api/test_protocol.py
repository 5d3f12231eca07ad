"""Connections that harm: endless heads, heads that never end, readers that do not read, and too many of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.connections import MAX_HEAD_BYTES, GuardedHttp

WAIT_S = 20.0
HELLO = b"HTTP/1.1 200 OK"


class Hasty(GuardedHttp):
    """The same with patience that a test can wait for."""

    head_s = 0.3
    reader_stall_s = 0.3


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]}
    )
    await send({"type": "http.response.body", "body": b"hello"})


@contextmanager
def serving(
    app: ASGIApp,
    limit: int | None = None,
    http: type[GuardedHttp] = GuardedHttp,
    loop: str = "auto",
    proxies: str = "",
) -> Iterator[int]:
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        lifespan="off",
        log_config=None,
        access_log=False,
        http=http,
        loop=loop,
        limit_concurrency=limit,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies or None,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    started = threading.Event()
    while not server.started:
        assert thread.is_alive()
        started.wait(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(WAIT_S)


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
        yield connection


def said(connection: socket.socket) -> bytes:
    """Everything until the server closes."""
    read = b""
    with contextlib.suppress(ConnectionResetError):
        while block := connection.recv(65536):
            read += block
    return read


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(hello) as number:
        yield number


LINE = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
LONG = {
    "one long value": LINE + b"X: " + b"a" * (MAX_HEAD_BYTES + 10) + b"\r\n\r\n",
    "a value that never ends": LINE + b"X: " + b"a" * (MAX_HEAD_BYTES + 10),
    "many short headers": LINE + b"X: a\r\n" * (MAX_HEAD_BYTES // 5) + b"\r\n",
    "a long path": b"GET /"
    + b"a" * (MAX_HEAD_BYTES + 10)
    + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a path that never ends": b"GET /" + b"a" * (MAX_HEAD_BYTES + 10),
}


@pytest.mark.parametrize("sent", LONG.values(), ids=LONG)
@pytest.mark.parametrize("step", [1 << 20, 1000], ids=["at once", "in pieces"])
def test_a_head_is_bounded(port: int, sent: bytes, step: int) -> None:
    with connected(port) as connection:
        with contextlib.suppress(
            OSError
        ):  # the refusal may come while the rest is still on its way
            for start in range(0, len(sent), step):
                connection.sendall(sent[start : start + step])
        reply = said(connection)
    # A client that was still sending may only see the reset; what it must never see is a reply of
    # the app.
    assert reply == b"" or reply.startswith(b"HTTP/1.1 431 ")
    assert HELLO not in reply
    if step > len(sent):
        head, _, body = reply.partition(b"\r\n\r\n")
        assert b"application/problem+json" in head
        assert json.loads(body)["code"] == "too_large"


def test_ordinary_requests_pass_one_after_the_other(port: int) -> None:
    with connected(port) as connection:
        for size in (0, 60_000, 10):
            connection.sendall(LINE + b"X: " + b"a" * size + b"\r\n\r\n")
            read = b""
            while not read.endswith(b"hello"):
                read += connection.recv(65536)
            assert read.startswith(HELLO)


def test_a_large_body_is_no_head(port: int) -> None:
    with connected(port) as connection:
        body = b"b" * (3 * MAX_HEAD_BYTES)
        connection.sendall(
            b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            % len(body)
            + body
        )
        assert said(connection).startswith(HELLO)


def test_what_is_no_http_is_refused(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 no HTTP at all\r\n\r\n")
        assert said(connection).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "first",
    [b"", LINE, LINE + b"\r\n" + LINE],
    ids=["nothing", "half a head", "half of a second head"],
)
def test_a_head_that_does_not_end_is_given_up(first: bytes) -> None:
    with serving(hello, http=Hasty) as number, connected(number) as connection:
        connection.sendall(first)
        assert (
            HELLO in said(connection) or b"\r\n" + LINE not in first
        )  # and the connection ends, else this waits in vain


def test_a_reader_that_does_not_read_loses_its_connection() -> None:
    gone = threading.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            for _ in range(1000):  # 1 GB: more than any socket buffer takes
                await send({"type": "http.response.body", "body": b"x" * 2**20, "more_body": True})
        finally:
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()

    with serving(endless, http=Hasty) as number, connected(number) as connection:
        connection.sendall(LINE + b"\r\n")
        assert gone.wait(WAIT_S)


def test_connections_over_the_limit_are_told_when_to_come_back() -> None:
    with serving(hello, limit=2) as number, answered(number, 2) as (first, _):
        with connected(number) as third:
            head, _, body = said(third).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in head
        assert json.loads(body)["code"] == "busy"
        first.close()
        while True:  # until the server has noticed
            with connected(number) as again:
                again.sendall(LINE + b"\r\n")
                if again.recv(65536).startswith(HELLO):
                    break


class Brief(GuardedHttp):
    """The same, closing connections that nobody uses at once."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its parent
        super().connection_made(transport)
        self.timeout_keep_alive = 0.01  # type: ignore[assignment]  # any number of seconds does


def test_a_request_that_came_while_the_server_was_busy_is_answered() -> None:
    go_on, busy = threading.Event(), threading.Event()
    ours, loops = socket.socketpair()

    def hold_everything() -> None:
        asyncio.get_running_loop().remove_reader(loops)
        busy.set()
        go_on.wait(WAIT_S)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await hello(scope, receive, send)
        if scope["path"] == "/busy":
            asyncio.get_running_loop().add_reader(loops, hold_everything)
            ours.sendall(b"x")

    with ours, loops, serving(app, http=Brief) as port, connected(port) as connection:
        connection.sendall(b"GET /busy HTTP/1.1\r\nHost: here\r\n\r\n")
        assert busy.wait(WAIT_S)
        assert connection.recv(4096).startswith(HELLO)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        threading.Event().wait(0.1)  # ten times as long as a connection may be unused
        go_on.set()
        assert said(connection).count(HELLO) == 1  # and unused again, it is closed


def test_a_client_that_hangs_up_unread_leaves_no_timer_behind() -> None:
    ended = threading.Event()
    lost: list[tuple[Exception | None, object]] = []

    class Watched(GuardedHttp):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            lost.append((exc, self.timeout_keep_alive_task))
            ended.set()

    with serving(hello, http=Watched) as port, connected(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        assert select.select([connection], [], [], WAIT_S)[0]
        connection.close()  # with the reply unread, which resets the connection
        assert ended.wait(WAIT_S)
    ((error, timer),) = lost
    assert isinstance(error, ConnectionResetError)
    assert timer is None


PLACES = 8
"""Connections that there may be in the tests below."""


@contextmanager
def half_open(port: int, count: int, sent: bytes = LINE) -> Iterator[list[socket.socket]]:
    """Connections of 127.0.0.1 that have sent this much of a head and no more."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(connected(port)) for _ in range(count)]
        for connection in opened:
            with contextlib.suppress(OSError):  # those over their share are refused at once
                connection.sendall(sent)
        yield opened


@contextmanager
def answered(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Connections of 127.0.0.1 that are in use; each is answered before the next one opens."""
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            connection = stack.enter_context(connected(port))
            connection.sendall(LINE + b"\r\n")
            reply = b""
            while not reply.endswith(b"hello"):
                block = connection.recv(65536)
                assert block
                reply += block
            assert reply.startswith(HELLO)
            opened.append(connection)
        yield opened


def without_refused(held: list[socket.socket], expected: int) -> list[socket.socket]:
    """Wait until so many are refused, in whichever order the server reads them, and return the others."""
    waiting = list(held)
    while len(held) - len(waiting) < expected:
        readable, _, _ = select.select(waiting, [], [], WAIT_S)
        assert readable
        waiting = [connection for connection in waiting if connection not in readable]
        for connection in readable:
            head = said(connection)
            # Bytes that the server had not read when it closed cost the reply: TCP resets.
            assert not head or head.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 1" in head
    return waiting


def asked(port: int, address: str) -> bytes:
    with socket.create_connection(
        ("127.0.0.1", port), timeout=WAIT_S, source_address=(address, 0)
    ) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(LINE + b"Connection: close\r\n\r\n")
        return said(connection)


@pytest.mark.parametrize("sent", [b"", LINE], ids=["nothing sent", "half a head"])
def test_heads_that_do_not_end_leave_half_of_all_places_to_others(sent: bytes) -> None:
    with serving(hello, limit=PLACES) as port, half_open(port, PLACES, sent) as held:
        waiting = without_refused(held, PLACES // 2)
        with half_open(port, 1, sent) as another:
            assert without_refused(another, 1) == []
        assert asked(port, "127.0.0.2").startswith(HELLO)
        waiting[0].sendall(b"\r\n" if sent else LINE + b"\r\n")
        assert waiting[0].recv(4096).startswith(HELLO)


def test_the_second_head_of_a_connection_counts_too() -> None:
    with serving(hello, limit=PLACES) as port, answered(port, PLACES - 1) as held:
        for connection in held:
            connection.sendall(LINE)
        assert len(without_refused(held, PLACES - 1 - PLACES // 2)) == PLACES // 2
        assert asked(port, "127.0.0.2").startswith(HELLO)


def test_connections_in_use_are_not_shared_out_by_address() -> None:
    hold, begun = threading.Event(), threading.Semaphore(0)

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        begun.release()
        while scope["path"] != "/" and not hold.is_set():  # set in another thread
            await asyncio.sleep(0.01)
        await hello(scope, receive, send)

    with serving(slow, limit=PLACES) as port, contextlib.ExitStack() as stack:
        held: list[socket.socket] = []
        while len(held) < PLACES - 1:
            held.append(stack.enter_context(connected(port)))
            held[-1].sendall(b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n")
            assert begun.acquire(timeout=WAIT_S)
        assert asked(port, "127.0.0.1").startswith(HELLO)
        hold.set()
        assert all(connection.recv(65536).startswith(HELLO) for connection in held)


def test_a_proxy_has_no_share() -> None:
    with serving(hello, limit=PLACES, proxies="127.0.0.1") as port, half_open(port, PLACES - 1):
        assert asked(port, "127.0.0.1").startswith(HELLO)


def test_a_head_has_five_seconds() -> None:
    assert GuardedHttp.head_s == 5.0
