"""Track a call's socket, so that another thread can shut it down.

Closing a `requests` response does not wake a thread that is blocked in it; shutting its socket down
does, at once. The socket is caught where urllib3 hands the request to it, because a host may send
nothing, not even headers, for minutes.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import threading
from contextlib import suppress
from contextvars import ContextVar

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")
"""RFC 6052 and RFC 8215: a translator behind them reaches IPv4 addresses, private ones too."""

_TICK_S = 0.05
"""The system counts in ticks of up to 10 ms and may end a wait that much early."""


def is_public(address: str) -> bool:
    """Return whether an IP address, and any IPv4 inside it, is public."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        carried = [found.ipv4_mapped, found.sixtofour, *(found.teredo or ())]
        if found in _NAT64:
            carried.append(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF))
        if found in _LOCAL_NAT64 or not all(one.is_global for one in carried if one is not None):
            return False
        return found.is_global or found.ipv4_mapped is not None
    return found.is_global


class SocketWatch:
    """A call's socket, which a cancel shuts down; a released watch does nothing."""

    def __init__(self, *, public_only: bool = False) -> None:
        self._public_only = public_only
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._shut = False

    def attach(self, sock: socket.socket) -> None:
        """Remember the socket; when the cancel came first, shut it now.

        Raises:
            ConnectionRefusedError: The other end has a private address and only public ones are
                wanted. Checked here, on the connection itself, because a name may lead elsewhere
                the second time it is looked up.
        """
        if self._public_only and not is_public(sock.getpeername()[0]):
            raise ConnectionRefusedError(f"{sock.getpeername()[0]} is a private address")
        with self._lock:
            self._socket = sock
            if self._shut:
                self._shutdown()

    def shut(self) -> None:
        """Wake the thread blocked on the socket, from any thread."""
        with self._lock:
            self._shut = True
            self._shutdown()

    def wait_in_kernel(self, silence_s: float) -> None:
        """Let the system time out reads instead of Python; TLS keeps Python's.

        With a time-out of Python's a read is two calls, and after each the thread has to get the
        interpreter again (ADR 0081). A read that the system has ended
        looks like an end or a break, so the reader has to look at the clock.
        """
        with self._lock, suppress(OSError):  # closed already, which the reader will see
            if os.name == "posix" and type(self._socket) is socket.socket:
                longer_s = silence_s + _TICK_S
                at_most = struct.pack("@ll", int(longer_s), int(longer_s % 1 * 1e6))
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, at_most)
                self._socket.settimeout(None)

    def release(self) -> None:
        """Let go: the connection goes back to the pool or belongs to another call."""
        with self._lock:
            self._socket = None

    def _shutdown(self) -> None:
        if self._socket is not None:
            try:
                # of the base class, because an SSLSocket would first drop its TLS state under the
                # blocked reader
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                return  # closed already, which is what was wanted


current_watch: ContextVar[SocketWatch | None] = ContextVar("documind_socket_watch", default=None)
"""The watch of the call that this thread is making; connections look here because urllib3 passes
nothing through."""


class _Watched:
    """Mixin: register each socket with the call's watch before it blocks."""

    sock: socket.socket
    _owner: SocketWatch | None = None

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]  # a mixin of HTTPConnection
        if self._owner is not None:
            self._owner.attach(self.sock)

    def request(self, *args: object, **kwargs: object) -> None:
        if self._owner is not None:
            self._owner.release()
        self._owner = current_watch.get()
        if self._owner is not None and self.sock is not None:
            self._owner.attach(self.sock)
        super().request(*args, **kwargs)  # type: ignore[misc]  # a mixin of HTTPConnection


class _WatchedHttp(_Watched, HTTPConnection):
    pass


class _WatchedHttps(_Watched, HTTPSConnection):
    pass


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _WatchedHttp


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _WatchedHttps


class WatchedAdapter(HTTPAdapter):
    """Transport of requests whose connections report their sockets to `current_watch`."""

    def init_poolmanager(self, *args: object, **kwargs: object) -> None:
        super().init_poolmanager(*args, **kwargs)  # type: ignore[arg-type]  # as requests calls it
        self.poolmanager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
