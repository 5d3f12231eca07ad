"""A pooler of PostgreSQL that gives a client another session for each transaction, as PgBouncer does in transaction mode."""

from __future__ import annotations

import select
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_WITHOUT_TLS = {80877103, 80877104}
"""Requests for TLS and for GSS, by their codes in a startup packet (PostgreSQL, section 55.7)."""
_END = b"X"


def _received(source: socket.socket, n: int) -> bytes:
    found = b""
    while len(found) < n:
        if not (some := source.recv(n - len(found))):
            raise ConnectionError("closed")
        found += some
    return found


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    """Return the kind of the next message, and all its bytes."""
    head = _received(source, 5)
    return head[:1], head + _received(source, int.from_bytes(head[1:]) - 4)


class _Handler(socketserver.BaseRequestHandler):
    server: _Pooler

    def handle(self) -> None:
        try:
            self._serve(self.request)
        except OSError:
            self.request.close()

    def _serve(self, client: socket.socket) -> None:
        while True:
            length = _received(client, 4)
            packet = length + _received(client, int.from_bytes(length) - 4)
            if int.from_bytes(packet[4:8]) not in _WITHOUT_TLS:
                break
            client.sendall(b"N")
        self._transaction(client, socket.create_connection(self.server.upstream), packet)
        while True:
            kind, message = _message(client)
            if kind == _END:
                return
            self._transaction(client, self.server.sessions.pop(), message)

    def _transaction(self, client: socket.socket, session: socket.socket, message: bytes) -> None:
        """Pass messages on until the session is in no transaction; then others may have it."""
        try:
            session.sendall(message)
            while True:
                readable, _, _ = select.select([client, session], [], [])
                if session in readable:
                    kind, message = _message(session)
                    client.sendall(message)
                    if kind == b"Z" and message[5:] == b"I":
                        break
                else:
                    session.sendall(_message(client)[1])
        except OSError:
            session.close()
            raise
        self.server.sessions.append(session)


class _Pooler(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, upstream: tuple[str, int]) -> None:
        self.upstream = upstream
        self.sessions: list[socket.socket] = []
        """Those in no transaction, the last used one last."""
        super().__init__(("127.0.0.1", 0), _Handler)


@contextmanager
def transaction_pooler(port: int) -> Iterator[int]:
    """Yield the port of a pooler before the PostgreSQL at `port`."""
    with _Pooler(("127.0.0.1", port)) as pooler:
        threading.Thread(target=pooler.serve_forever, args=(0.01,), daemon=True).start()
        yield int(pooler.server_address[1])
        pooler.shutdown()
        for session in pooler.sessions:
            session.close()
