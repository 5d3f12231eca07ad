"""Event streams over real connections: every event once and in order, for readers quick, slow and gone."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from starlette.types import Receive, Scope, Send

from app.api.streaming import EventStream, Pump, StreamSlots
from app.core.cancel import CancelToken
from tests.api.test_protocol import WAIT_S, serving

EVENTS = 400


class Events:
    """An app that streams numbered events, as long as the path says."""

    def __init__(self) -> None:
        self.slots = StreamSlots(4)
        self.stopped = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = int(scope["path"][1:])
        await EventStream(Pump(lambda cancel: self.produce(size, cancel), self.slots), "req1")(
            scope, receive, send
        )

    def produce(self, size: int, cancel: CancelToken) -> Iterator[bytes]:
        try:
            for number in range(EVENTS):
                if not cancel.cancelled:
                    yield numbered(number, size)
        finally:
            self.stopped.set()


def numbered(number: int, size: int) -> bytes:
    return b"data: %d %s\n\n" % (number, b"x" * size)


def expected(size: int) -> bytes:
    return b": connected\n\n" + b"".join(numbered(number, size) for number in range(EVENTS))


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.mark.parametrize("loop", ["auto", "asyncio"])
def test_every_event_comes_once_and_in_order_and_the_connection_serves_again(
    events: Events, loop: str
) -> None:
    with serving(events, loop=loop) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
        for size in (10, 5000):
            connection.request("GET", f"/{size}")
            assert connection.getresponse().read() == expected(size)
        connection.close()


@pytest.mark.parametrize("loop", ["auto", "asyncio"])
def test_a_slow_reader_gets_the_same(events: Events, loop: str) -> None:
    """4 MB through a socket that takes little at once: the queue fills and the producer waits."""
    size = 10_000
    with serving(events, loop=loop) as port, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        client.settimeout(WAIT_S)
        client.connect(("127.0.0.1", port))
        client.sendall(f"GET /{size} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        reply = http.client.HTTPResponse(Trickle(client))  # type: ignore[arg-type]  # it needs no more of a socket
        reply.begin()
        assert reply.read() == expected(size)


class Trickle:
    """A socket whose reader pauses now and then."""

    def __init__(self, sock: socket.socket) -> None:
        self._file = sock.makefile("rb", buffering=4096)

    def makefile(self, *_: object, **__: object) -> Trickle:
        return self

    def readline(self, limit: int = -1) -> bytes:
        return self._file.readline(limit)

    def read(self, size: int = -1) -> bytes:
        time.sleep(0.001)
        found: bytes = self._file.read(size)
        return found

    def close(self) -> None:
        self._file.close()

    def flush(self) -> None:
        """Nothing is written."""


def test_a_reader_that_leaves_stops_the_work(events: Events) -> None:
    with serving(events) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as client:
            client.sendall(b"GET /10 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert client.recv(100)
        assert events.stopped.wait(WAIT_S)
        deadline = time.monotonic() + WAIT_S
        while events.slots.taken and time.monotonic() < deadline:
            time.sleep(0.01)
        assert events.slots.taken == 0
