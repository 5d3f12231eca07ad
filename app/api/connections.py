"""HTTP connections with the bounds that uvicorn leaves open.

They are the size and the time of a request's head, readers that do not read, how many connections
there may be, and how many of them one address may hold without finishing a head. Measured without
them: 180 MB of header lines were accepted in one request, and a connection that never finishes its
head, or never reads its reply, stayed forever (docs/decisions/0082).
"""

from __future__ import annotations

import asyncio
import json
import select
from http import HTTPStatus

from httptools import HttpParserCallbackError
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.api.errors import PROBLEM_TYPE, problem

MAX_HEAD_BYTES = 64 * 1024
"""Of request line and headers together; common servers allow 8-64 KiB."""
HEAD_S = 5.0
"""From the connection, or from the first byte of a later request, until its head is there."""
READER_STALL_S = 60.0
"""A reader that takes nothing of a reply for so long is gone or means harm."""


class GuardedHttp(HttpToolsProtocol):
    """A client's HTTP connection, one of at most uvicorn's `limit_concurrency`."""

    head_s = HEAD_S
    reader_stall_s = READER_STALL_S

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request head, or refuse the connection if there are too many."""
        self._head_bytes = 0
        self._in_head = True
        self._timer: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        # Ours is the whole check: the parent's would refuse later, without Retry-After.
        self._allowed, self.limit_concurrency = self.limit_concurrency, None
        if self._allowed is not None and len(self.connections) > self._allowed:
            self._refuse_crowd("too many connections; try again in a moment")
            return
        self._wait_for_head()
        if not self._has_unread():  # many that connect and ask at once are no crowd
            self._share_heads()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        self._forget_stall()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # the parent does so only without an error

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and give a head up that grows too long."""
        if self.transport.is_closing():
            return
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        # Still no end of the head: only we can see what the parser buffers of an unfinished line.
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()
        self._share_heads()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count: a head may come whole, in one large read."""
        self._counted += len(name) + len(value) + 4
        if self._counted > MAX_HEAD_BYTES:
            self._refuse_head()
            raise HttpParserCallbackError("the head is too long")
        super().on_header(name, value)

    def on_message_begin(self) -> None:
        self._in_head = True
        self._counted = 0
        if self._timer is None:
            self._wait_for_head()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._counted += len(url)
        super().on_url(url)

    def on_headers_complete(self) -> None:
        """The head is there: a request begins, now or when the one before it is answered."""
        self._in_head = False
        self._head_bytes = 0
        self._forget_head()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The next bytes are those of another head."""
        super().on_message_complete()
        self._in_head = True

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, unless it was refused already."""
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, unless a request waits in its socket.

        uvloop runs timers before it looks at sockets: when something held the interpreter for
        longer than the time-out, the next request of a client that is in use would be dropped
        unread.
        """
        if not self._has_unread():
            super().timeout_keep_alive_handler()

    def _has_unread(self) -> bool:
        waiting = select.poll()
        waiting.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(waiting.poll(0))

    def pause_writing(self) -> None:
        """The reader is slow: watch whether it takes anything at all."""
        super().pause_writing()
        self._watch_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._forget_stall()
        super().resume_writing()

    def _watch_reader(self, left: int) -> None:
        self._stall = self.loop.call_later(self.reader_stall_s, self._check_reader, left)

    def _check_reader(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left < before:
            self._watch_reader(left)
        else:
            self.transport.abort()  # a close would wait for the reader

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(self.head_s, self._head_is_late)

    def _head_is_late(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()

    def _forget_head(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _share_heads(self) -> None:
        """Refuse this connection if its address fills half of all places with incomplete heads."""
        if (
            self._allowed is None
            or self.client is None
            or self._timer is None
            or self.transport.is_closing()
        ):
            return
        address = self.client[0]
        if isinstance(self.app, ProxyHeadersMiddleware) and address in self.app.trusted_hosts:
            return  # a proxy speaks for many
        waiting = sum(
            isinstance(other, GuardedHttp) and other is not self and other.waits_for_head(address)
            for other in self.connections
        )
        if waiting >= max(1, self._allowed // 2):
            self._refuse_crowd(
                f"{waiting} connections of {address} have not sent a whole request yet; finish"
                " those first"
            )

    def waits_for_head(self, address: str) -> bool:
        """Return whether this connection of the address has not sent its whole head."""
        return self._timer is not None and self.client is not None and self.client[0] == address

    def _refuse_crowd(self, detail: str) -> None:
        self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "busy", detail, retryable=True)

    def _refuse_head(self) -> None:
        detail = f"request line and headers are over {MAX_HEAD_BYTES:,} bytes; send less"
        self._refuse(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too_large", detail, retryable=False
        )

    def _refuse(self, status: HTTPStatus, code: str, detail: str, *, retryable: bool) -> None:
        """Answer before any application does, and close."""
        found = problem(status=status, code=code, detail=detail, retryable=retryable, request_id="")
        body = json.dumps(found).encode()
        lines = [
            f"HTTP/1.1 {status.value} {status.phrase}",
            f"content-type: {PROBLEM_TYPE}",
            f"content-length: {len(body)}",
        ]
        lines += ["connection: close", *(["retry-after: 1"] if retryable else [])]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()
