"""Sending, breaking off and noticing that the client is gone."""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from tests.fakes.ollama_double.models import Fault, Recorded

if TYPE_CHECKING:
    from tests.fakes.ollama_double.server import OllamaDouble

JSON = "application/json; charset=utf-8"
PLAIN_JSON = "application/json"
"""What a pull, and what the runner says, comes with."""
BUFFER = 2048
"""Longest JSON that Go sends with its length; more goes in chunks."""
Fields = dict[str, object]


def now() -> str:
    return (
        datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "123Z"
    )  # nine digits, as Go writes them


class Gone(Exception):
    """The client closed its end."""


class Wire(BaseHTTPRequestHandler):
    """What every endpoint sends with."""

    protocol_version = "HTTP/1.1"
    server: OllamaDouble
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _record(self, body: Fields) -> None:
        with self.server.lock:
            self.server.requests.append(Recorded(self.path, body, dict(self.headers)))

    def _faulty(self) -> bool:
        fault = self._fault_before_body()
        return fault is not None and fault.kind in {"status", "redirect"}

    def _fault_before_body(self) -> Fault | None:
        fault = self.server.next_fault(self.path)
        if fault is None:
            return None
        self._sleep(fault.delay_s)
        if fault.kind == "status":
            self._send(fault.status, fault.body.encode(), fault.content_type)
        elif fault.kind == "redirect":
            self.send_response(302)
            self.send_header("Location", "http://192.0.2.1/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
        return fault

    def _raise_if_gone(self) -> None:
        self._sleep_until(time.monotonic() + 1e-6)

    def _sleep(self, seconds: float) -> None:
        """Wait, unless the client goes first."""
        self._sleep_until(time.monotonic() + seconds)

    def _sleep_until(self, deadline: float) -> None:
        while (left := deadline - time.monotonic()) > 0:
            readable, _, _ = select.select([self.connection], [], [], left)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise Gone

    def _stream(self, lines: Iterator[Fields], fault: Fault | None) -> None:
        """Send lines; nothing leaves before the first is there, so that what is wrong before it has a status of its own."""
        first = next(lines)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        pause = 1 / self.server.tokens_per_s if self.server.tokens_per_s else 0.0
        due = time.monotonic()
        joined = bytearray()
        for sent, value in enumerate(chain([first], lines)):
            line = json.dumps(value, ensure_ascii=False).encode() + b"\n"
            if fault is not None and sent == fault.after and self._break(line, fault):
                return
            # By its own clock: pauses after each line would lengthen by what the machine does, and
            # make streams write together.
            due += pause
            self._sleep_until(due)
            self.server.note_line()
            if fault is not None and fault.kind == "joined":
                joined += line
            elif fault is not None and fault.kind == "split":
                for byte in line:
                    self._chunk(bytes([byte]))
            else:
                self._chunk(line)
        if joined:
            self._chunk(bytes(joined))
        self._chunk(b"")

    def _break(self, line: bytes, fault: Fault) -> bool:
        """Do what the fault says at this line; True when that ends the reply."""
        if fault.kind == "error_line":
            self._chunk(json.dumps({"error": fault.message}).encode() + b"\n")
        elif fault.kind == "garbage":
            self._chunk(b"<html>not JSON</html>\n")
        elif fault.kind in {"reset", "close"}:
            self._chunk(line[: len(line) // 2])
            self._hang_up(fault)
            return True
        elif fault.kind == "stall":
            self._sleep(3600)
        elif fault.kind != "no_done":
            return False
        self._chunk(b"")
        return True

    def _cut(self, content: bytes, fault: Fault) -> None:
        self.send_response(200)
        self.send_header("Content-Type", JSON)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        self._hang_up(fault)

    def _hang_up(self, fault: Fault) -> None:
        self.wfile.flush()
        if fault.kind == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            self.connection.shutdown(socket.SHUT_WR)
        self.close_connection = True

    @staticmethod
    def _spoil(rows: list[list[float]], fault: Fault) -> list[list[float]]:
        if fault.kind == "wrong_dimension":
            return [row[:-1] for row in rows]
        if fault.kind == "not_finite":
            return [[float(np.nan), *row[1:]] for row in rows]
        return rows[:-1] if fault.kind == "missing_vector" else rows

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.flush()

    def _error(self, status: int, message: str, kind: str = JSON) -> None:
        self._send(status, json.dumps({"error": message}, ensure_ascii=False).encode(), kind)

    def _json(self, status: int, value: Fields) -> None:
        self._send(status, json.dumps(value, ensure_ascii=False).encode(), JSON)

    def _send(self, status: int, content: bytes, kind: str, **headers: str) -> None:
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name, value)
        chunked = len(content) > BUFFER and self.command != "HEAD"
        self.send_header(
            *(
                ("Transfer-Encoding", "chunked")
                if chunked
                else ("Content-Length", str(len(content)))
            )
        )
        self.end_headers()
        if chunked:
            for at in range(0, len(content), BUFFER):
                self._chunk(content[at : at + BUFFER])
            self._chunk(b"")
        elif self.command != "HEAD":
            self.wfile.write(content)
