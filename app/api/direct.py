"""A way from the thread that makes a reply to its reader's socket, past the event loop.

A token that goes by the event loop wakes two threads, and each has to get the interpreter; while something computes that takes up
to a millisecond each time. A thread that writes to the socket itself saves the second half (docs/decisions/0162). HTTP stays in one
place: the connection offers this way in `scope["extensions"]`, and only for what it frames in chunks itself.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

from starlette.types import Scope

EXTENSION = "documind.direct"
"""In `scope["extensions"]`; its `open` returns a `DirectWriter` of the reply that has begun, or None."""


class DirectWriter:
    """Writes chunks of one reply from another thread while the event loop has nothing to write on that connection.

    The caller sees to that: one thread writes, only while the event loop waits for it, and `close` comes when it does not any more.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        """Take a handle of the connection's socket; the transport's own may be closed, and its number used again, at any time.

        Raises:
            OSError: There are no more handles, or the system cannot copy a socket's.
        """
        self._loop = loop
        self._transport = transport
        self._socket = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        self._behind = False

    @property
    def behind(self) -> bool:
        """True while the rest of a chunk waits for the event loop, which must write nothing else before it."""
        return self._behind

    def write(self, body: bytes) -> bool:
        """Send a chunk without waiting.

        Returns:
            False when nothing was sent, because something waits before it, the reader is slow or gone: the event loop, which
            knows what to do then, has to send it.
        """
        if not body:
            return True  # a chunk of no bytes would end the reply
        chunk = b"%x\r\n%b\r\n" % (len(body), body)
        try:
            if self._behind or self._transport.is_closing() or self._transport.get_write_buffer_size():
                return False
            sent = self._socket.send(chunk)  # the handle does not block, as the transport's
        except (OSError, RuntimeError):  # asyncio's own transport counts a buffer that its loop may be changing
            return False
        if sent < len(chunk):
            self._behind = True
            with suppress(RuntimeError):  # the loop is closed: no reader is left
                self._loop.call_soon_threadsafe(self._write_rest, chunk[sent:])
        return True

    def _write_rest(self, rest: bytes) -> None:
        self._transport.write(rest)
        self._behind = False

    def close(self) -> None:
        """Give the handle back; the connection stays."""
        self._socket.close()


def direct_writer(scope: Scope) -> DirectWriter | None:
    """Return a direct way to the reader of the reply that has begun, None where the server offers none."""
    offered = scope.get("extensions", {}).get(EXTENSION)
    if offered is None:
        return None
    opened: DirectWriter | None = offered["open"]()
    return opened
