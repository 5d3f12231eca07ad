"""The way past the event loop: what it sends, what it leaves to the loop, and the rest of a chunk that did not fit."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from app.api.direct import DirectWriter, direct_writer

WAIT_S = 5.0


class Connection(asyncio.Transport):
    """A transport that writes nothing before the test says so."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__({"socket": sock})
        self.waiting = b""
        self.closing = False

    def get_write_buffer_size(self) -> int:
        return len(self.waiting)

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.waiting += bytes(data)


class Pair:
    """Both ends of a connection, and the loop of the server's end."""

    def __init__(self) -> None:
        self.server, self.client = socket.socketpair()
        self.server.setblocking(False)
        self.client.settimeout(WAIT_S)
        self.loop = asyncio.new_event_loop()
        self.transport = Connection(self.server)
        self.writer = DirectWriter(self.loop, self.transport)

    def run_loop(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(0))

    def fill(self) -> int:
        """Write until the socket takes no more; the number of bytes."""
        filled = 0
        while True:
            try:
                filled += self.server.send(b"x" * 65536)
            except BlockingIOError:
                return filled

    def read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            found += self.client.recv(min(65536, size - len(found)))
        return found

    def close(self) -> None:
        self.writer.close()
        for end in (self.server, self.client):
            end.close()
        self.loop.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


def test_a_chunk_is_framed_and_one_of_no_bytes_does_not_end_the_reply(pair: Pair) -> None:
    assert pair.writer.write(b"event: token\n\n")
    assert pair.writer.write(b"")
    assert pair.writer.write(b"z" * 300)
    assert pair.read(319 + 5 + 2) == b"e\r\nevent: token\n\n\r\n12c\r\n" + b"z" * 300 + b"\r\n"


def test_what_waits_before_it_goes_first(pair: Pair) -> None:
    pair.transport.waiting = b"head"
    assert not pair.writer.write(b"a")
    pair.transport.waiting = b""
    pair.transport.closing = True
    assert not pair.writer.write(b"a")
    pair.transport.closing = False
    assert pair.writer.write(b"b")
    assert pair.read(6) == b"1\r\nb\r\n"


def test_a_reader_that_is_slow_or_gone_is_left_to_the_loop(pair: Pair) -> None:
    pair.fill()
    assert not pair.writer.write(b"a")
    assert not pair.writer.behind
    pair.client.close()
    assert not pair.writer.write(b"a")


def test_the_rest_of_a_chunk_is_written_by_the_loop_before_anything_else(pair: Pair) -> None:
    body = b"0123456789" * 1_000_000
    assert pair.writer.write(body)
    assert not pair.writer.write(b"next")
    behind = [pair.writer.behind]
    pair.run_loop()
    behind.append(pair.writer.behind)
    assert behind == [True, False]
    rest, pair.transport.waiting = pair.transport.waiting, b""
    chunk = b"%x\r\n%b\r\n" % (len(body), body)
    assert 0 < len(rest) < len(chunk)
    assert pair.read(len(chunk) - len(rest)) + rest == chunk
    assert pair.writer.write(b"next"), "the way is free again"


def test_closing_gives_back_the_handle_and_leaves_the_connection(pair: Pair) -> None:
    pair.writer.close()
    assert not pair.writer.write(b"a")
    pair.server.send(b"still there")
    assert pair.read(11) == b"still there"


def test_a_server_that_offers_no_way_has_none() -> None:
    assert direct_writer({"type": "http"}) is None
    assert direct_writer({"type": "http", "extensions": {}}) is None
