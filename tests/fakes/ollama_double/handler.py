"""The double's routes, as docs/facts/ollama.md describes them."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from tests.fakes.ollama_double.chat import ChatEndpoints
from tests.fakes.ollama_double.decisions import DecisionEndpoints
from tests.fakes.ollama_double.library import LibraryEndpoints
from tests.fakes.ollama_double.models import Fault
from tests.fakes.ollama_double.protocol import Refused, admitted
from tests.fakes.ollama_double.vectors import VectorEndpoints
from tests.fakes.ollama_double.wire import PLAIN_JSON, Fields, Gone

_GETS = {"/", "/api/version", "/api/tags", "/api/ps", "/v1/models"}
_POSTS = {
    "/api/show",
    "/api/pull",
    "/api/chat",
    "/api/generate",
    "/api/embed",
    "/api/embeddings",
    "/api/copy",
    "/v1/systemone",
}
CONTROL = "/double/fail"
"""Queues a fault from another process: `{"path": "/api/chat", "fault": {"kind": "reset",
"after": 2}}`."""


class Handler(ChatEndpoints, VectorEndpoints, DecisionEndpoints, LibraryEndpoints):
    """One connection."""

    def do_GET(self) -> None:  # noqa: N802 - of the base class
        if not self._entered():
            return
        self._record({})
        if self._faulty():
            return
        if self.path == "/":
            self._send(200, b"Ollama is running", "text/plain; charset=utf-8")
        elif self.path == "/api/version":
            self._json(200, {"version": self.server.version})
        elif self.path == "/v1/models":
            rows = [{"id": model.name, "object": "model"} for model in self.server.models]
            self._json(200, {"object": "list", "data": rows or None})
        else:
            self._json(200, self.tags() if self.path == "/api/tags" else self.ps())

    do_HEAD = do_GET  # noqa: N815 - of the base class

    def do_POST(self) -> None:  # noqa: N802 - of the base class
        self._with_body()

    def do_DELETE(self) -> None:  # noqa: N802 - of the base class
        self._with_body()

    def _with_body(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == CONTROL:
            asked = json.loads(content)
            self.server.fail(asked["path"], Fault(**asked["fault"]))
            self._json(200, {})
            return
        if not self._entered():
            return
        try:
            body = _decoded(content)
            self._record(body)
            self._routed(body)
        except Refused as refused:
            # what the runner says passes through as it is
            self._error(
                refused.status, refused.message, *([PLAIN_JSON] if refused.of_runner else [])
            )
        except (Gone, BrokenPipeError, ConnectionResetError):
            self.server.note_abort()
            self.close_connection = True

    def _routed(self, body: Fields) -> None:
        routes = {
            "/api/show": self.show,
            "/api/pull": self.pull,
            "/api/chat": self.chat,
            "/api/generate": self.generate,
            "/api/embed": self.embed,
            "/api/embeddings": self.embeddings,
            "/api/copy": self.copy,
            "/v1/systemone": self.systemone,
            "/api/delete": self.delete,
        }
        routes[self.path](body)

    def _entered(self) -> bool:
        """Answer foreign callers and wrong paths; True when the request goes on."""
        if not admitted(self.headers.get("Host", ""), self.headers.get("Origin")):
            self._send(403, b"", "")
            return False
        doubled = self.requestline.split(" ")[1].startswith(
            "//"
        )  # the base class has made one slash of them
        self.path = urlsplit(f"http://h{self.path}").path
        methods = set() if doubled else _methods(self.path)
        if self.command in methods:
            return True
        if methods:
            self._send(
                405, b"405 method not allowed", "text/plain", Allow=", ".join(sorted(methods))
            )
        elif doubled:
            self._send(307, b"", "", Location=self.path)
        elif _methods(self.path.rstrip("/")):
            self._send(
                301 if self.command == "GET" else 307, b"", "", Location=self.path.rstrip("/")
            )
        else:
            self._send(404, b"404 page not found", "text/plain")
        return False


def _methods(path: str) -> set[str]:
    if path in _GETS:
        return {"GET", "HEAD"} if path in {"/", "/api/version", "/api/tags"} else {"GET"}
    return {"POST"} if path in _POSTS else {"DELETE"} if path == "/api/delete" else set()


def _decoded(content: bytes) -> Fields:
    """Parse the first JSON value; what follows it is not looked at."""
    if not content:
        raise Refused(400, "missing request body")
    text = content.decode("utf-8", "replace").lstrip()
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except ValueError as exc:
        whole = text[:1] in ("{", "[", '"') and text.count("{") > text.count("}")
        said = (
            "unexpected EOF"
            if whole
            else f"invalid character {text[:1]!r} looking for beginning of value"
        )
        raise Refused(400, said) from exc
    if not isinstance(value, dict):
        kind = (
            "array" if isinstance(value, list) else "string" if isinstance(value, str) else "number"
        )
        raise Refused(400, f"json: cannot unmarshal {kind} into Go value of type api.ChatRequest")
    return value
