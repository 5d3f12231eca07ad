"""A loopback HTTP server whose replies a test writes down; the base of the OpenAI and arXiv doubles."""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Canned:
    """One reply. `declared` is the Content-Length to claim; more than the body cuts the connection short of it."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    declared: int | None = None


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    body: dict[str, object]
    headers: dict[str, str]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HttpDouble

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _serve(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = Asked(
            self.command, self.path, json.loads(content) if content else {}, dict(self.headers)
        )
        reply = self.server.reply_to(asked)
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header(
            "Content-Length", str(len(reply.body) if reply.declared is None else reply.declared)
        )
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)
        if reply.declared is not None:
            self.close_connection = True

    do_GET = do_POST = _serve  # noqa: N815 - names of the base class


class HttpDouble(ThreadingHTTPServer):
    """Answers queued replies first, then `default`; use as a context manager."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._queue: deque[Canned] = deque()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join(5)

    def queue(self, *replies: Canned) -> None:
        """Reply with these to the next requests."""
        self._queue.extend(replies)

    def reply_to(self, asked: Asked) -> Canned:
        with self._lock:
            self.asked.append(asked)
            if self._queue:
                return self._queue.popleft()
        return self.default(asked)

    def default(self, asked: Asked) -> Canned:
        """What is said to a request nobody queued a reply for."""
        return Canned(b'{"error":{"message":"not found"}}', 404)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no news."""
