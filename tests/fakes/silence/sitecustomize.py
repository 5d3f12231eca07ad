"""Put on PYTHONPATH: every attempt of a process to reach beyond this machine is written to SILENCE_LOG and refused.

Audit hooks see what Python code asks of sockets, whoever calls; what native code does on its own is
counted by the kernel of the network namespace (tests/fakes/silence/scenario.py).
"""

import os
import sys

_LOG = os.environ.get("SILENCE_LOG", "")
_LOOPBACK = ("127.", "::1", "localhost", "0.0.0.0", "::ffff:127.")


def _host_of(event: str, arguments: tuple[object, ...]) -> object:
    """Return whom a call is about; None when it stays here."""
    if event in {"socket.connect", "socket.sendto"}:
        address = arguments[1]
        return (
            address[0] if isinstance(address, tuple) else None
        )  # a path is a socket of this machine
    if event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        return arguments[0]
    return None


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if not event.startswith("socket."):
        return
    host = _host_of(event, arguments)
    if isinstance(host, bytes):
        host = host.decode("latin-1")
    if host is None or host == "" or str(host).startswith(_LOOPBACK):
        return
    with open(_LOG, "a", encoding="utf-8") as log:  # noqa: PTH123  # loaded by every interpreter: as few imports as can be
        log.write(f"{os.getpid()} {event} {host}\n")
    raise OSError(f"this test has no network: {event} {host}")


if _LOG:
    sys.addaudithook(_watch)
