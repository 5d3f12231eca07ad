"""An OpenTelemetry collector on a loopback port: a real HTTP server that keeps the spans it is sent (OTLP over HTTP, protobuf)."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        sent = ExportTraceServiceRequest.FromString(body)
        with self.server.lock:
            self.server.paths.append(self.path)
            for resource in sent.resource_spans:
                self.server.resources.append(
                    {a.key: a.value.string_value for a in resource.resource.attributes}
                )
                self.server.spans += [
                    span for scope in resource.scope_spans for span in scope.spans
                ]
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


class Collector(ThreadingHTTPServer):
    """Use as a context manager."""

    daemon_threads = True

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.paths: list[str] = []
        self.spans: list[Span] = []
        self.resources: list[dict[str, str]] = []
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
