"""Express errors in the protocol's words: OpenAI's, JSON-RPC's, or problem+json.

OpenAI's under /v1, JSON-RPC at /mcp, problem+json elsewhere.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import PROBLEM_TYPE, ProblemDict
from app.api.middleware.scope import route_path

_CODES = {"unauthorized": "invalid_api_key", "rate_limited": "rate_limit_exceeded"}
"""Where OpenAI has a word of its own for one of our codes."""
_INVALID_REQUEST = -32600
_INTERNAL_ERROR = -32603
"""JSON-RPC 2.0, section 5.1."""


def openai_error(problem: ProblemDict) -> Mapping[str, object]:
    """Return a problem as OpenAI's clients read it.

    References:
        https://platform.openai.com/docs/guides/error-codes
    """
    status = problem["status"]
    kind = (
        "server_error"
        if status >= 500
        else "rate_limit_error"
        if status == 429
        else "invalid_request_error"
    )
    code = _CODES.get(problem["code"], problem["code"])
    return {"error": {"message": problem["detail"], "type": kind, "param": None, "code": code}}


def jsonrpc_error(problem: ProblemDict) -> Mapping[str, object]:
    """Return a problem as a JSON-RPC error without an id: it was not read yet."""
    code = _INTERNAL_ERROR if problem["status"] >= 500 else _INVALID_REQUEST
    data = {
        "code": problem["code"],
        "retryable": problem["retryable"],
        "request_id": problem["request_id"],
    }
    return {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": code, "message": problem["detail"], "data": data},
    }


def _dialect_of(path: str) -> Callable[[ProblemDict], Mapping[str, object]] | None:
    if path.startswith("/v1/"):
        return openai_error
    return jsonrpc_error if path == "/mcp" or path.startswith("/mcp/") else None


class Dialect:
    """Turns problems from any inner layer into the protocol's errors."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an app."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        speak = _dialect_of(route_path(scope)) if scope["type"] == "http" else None
        if speak is None:
            await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, _Translation(send, speak).send)


class _Translation:
    """One reply on its way out: held back while it is a problem, passed on otherwise."""

    def __init__(self, send: Send, speak: Callable[[ProblemDict], Mapping[str, object]]) -> None:
        self._send = send
        self._speak = speak
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        """Pass a message on, or keep it until the problem is whole."""
        if message["type"] == "http.response.start" and _is_problem(message):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._translate(self._start)

    async def _translate(self, start: Message) -> None:
        headers = MutableHeaders(raw=start["headers"])
        if headers.get("content-encoding") == "gzip":
            self._body = gzip.decompress(self._body)
            del headers["content-encoding"]
        problem: ProblemDict = json.loads(self._body)
        body = json.dumps(self._speak(problem)).encode()
        headers["content-type"] = "application/json"
        headers["content-length"] = str(len(body))
        # 422 is ours alone: both protocols call a request that cannot be understood 400.
        status = 400 if start["status"] == 422 else start["status"]
        await self._send({**start, "status": status, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": body})


def _is_problem(start: Message) -> bool:
    kind = MutableHeaders(raw=start["headers"]).get("content-type", "")
    return kind.startswith(PROBLEM_TYPE)
