"""A TLS proxy on a loopback port, as an operator would put one in front.

It ends TLS, adds forwarded headers, and may strip a prefix.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import re
import ssl
import threading
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def make_certificate(folder: Path, name: str) -> Path:
    """Write a self-signed certificate with its key for a host name and 127.0.0.1; returns the PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName(
        [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "proxy.pem"
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    path.write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))
    return path


class TlsProxy:
    """Use as a context manager; `strips` is a prefix that is taken off paths before they are passed on.

    One loop in one thread: a TLS socket must not be read and written by two.
    """

    def __init__(self, upstream_url: str, certificate: Path, strips: str = "") -> None:
        parts = urlsplit(upstream_url)
        self._upstream = (parts.hostname or "", parts.port or 80)
        self._strips = strips
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(20)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    async def _start(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)

    async def _stop(self) -> None:
        self._server.close()
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """Pass one request on and its reply back, every read at once."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await client.readuntil(b"\r\n\r\n")
            upstream, to_upstream = await asyncio.open_connection(*self._upstream)
            to_upstream.write(self._forwarded(head.removesuffix(b"\r\n\r\n")))
            up = asyncio.create_task(_pump(client, to_upstream))
            try:
                await _pump(upstream, to_client)
            finally:
                up.cancel()
                to_upstream.close()
        to_client.close()

    def _forwarded(self, head: bytes) -> bytes:
        """One request per connection; the Host header stays, what a client says about forwarding does not."""
        line, *headers = head.split(b"\r\n")
        if self._strips:
            line = re.sub(rb"^(\w+) " + re.escape(self._strips.encode()) + rb"(?=/)", rb"\1 ", line)
        kept = [h for h in headers if not h.lower().startswith((b"x-forwarded-", b"connection:"))]
        added = [b"X-Forwarded-For: 203.0.113.9", b"X-Forwarded-Proto: https", b"Connection: close"]
        return b"\r\n".join([line, *kept, *added, b"", b""])


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while block := await source.read(65536):
            target.write(block)
            await target.drain()
