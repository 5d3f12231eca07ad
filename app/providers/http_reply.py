"""Read a reply: as a whole, in blocks, by lines; bounded and cancellable."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import requests
from urllib3.exceptions import HTTPError as Urllib3Error

from app.core.cancel import CancelToken
from app.core.errors import ProviderBadResponse, ProviderTimeout
from app.providers.http_errors import translated
from app.providers.sockets import SocketWatch

MAX_JSON_BYTES = 64 * 1024 * 1024
"""Cap on a reply read as a whole; 64 embeddings of 4096 numbers are under 6 MB."""
_BLOCK = 64 * 1024


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole reply; `text` replaces undecodable bytes (error bodies of proxies)."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    def json(self, host: str) -> object:
        """Return the parsed body.

        Raises:
            ProviderBadResponse: It is no JSON.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as exc:
            raise ProviderBadResponse(
                f"{host} answered with {self.text[:80]!r}, expected JSON; is it the right address?"
            ) from exc


class StreamReply:
    """A reply whose body arrives in pieces; `HttpClient.stream` gives it."""

    def __init__(
        self,
        response: requests.Response,
        host: str,
        cancel: CancelToken,
        watch: SocketWatch,
        *,
        silence_s: float,
        deadline: float | None,
    ) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response, self._host, self._cancel = response, host, cancel
        self._watch, self._silence_s, self._deadline = watch, silence_s, deadline

    def blocks(self) -> Iterator[bytes]:
        """Yield bytes as they come.

        Raises:
            ProviderUnreachable: The connection broke.
            ProviderTimeout: Nothing came for the read timeout, or the deadline passed.
            Cancelled: The token was cancelled.
        """
        self._watch.wait_in_kernel(self._silence_s)
        with translated(self._host, self._cancel):
            while block := self._block():
                self._cancel.raise_if_cancelled()
                if self._deadline is not None and time.monotonic() > self._deadline:
                    raise ProviderTimeout(
                        f"{self._host} did not finish in time; raise the timeout or ask for less"
                    )
                yield block
        self._cancel.raise_if_cancelled()

    def _block(self) -> bytes:
        """Return what one read of the socket brings, nothing at the end.

        Raises:
            TimeoutError: The system ended the read; what then looks like an end or a break is none.
        """
        asked = time.monotonic()
        broke: Exception | None = None
        block = b""
        try:
            # iter_content would wait for a full block of an unchunked body
            block = self._response.raw.read1(_BLOCK, decode_content=True)
        except (OSError, Urllib3Error) as error:
            broke = error
        if not block and not self._cancel.cancelled and time.monotonic() - asked >= self._silence_s:
            raise TimeoutError from broke
        if broke is not None:
            raise broke
        return block

    def lines(self, limit: int = _BLOCK * 16) -> Iterator[bytes]:
        r"""Yield lines split at `\n` only: U+0085 and U+2028 are text inside JSON.

        Args:
            limit: Longest line in bytes.

        Raises:
            ProviderBadResponse: A line passes the limit; and what `blocks` raises.
        """
        rest = b""
        for block in self.blocks():
            *complete, rest = (rest + block).split(b"\n")
            if any(len(line) > limit for line in (*complete, rest)):
                raise ProviderBadResponse(f"{self._host} sent a line of more than {limit} bytes")
            yield from complete
        if rest:
            yield rest

    def read(self, limit: int = MAX_JSON_BYTES) -> bytes:
        """Return the whole body.

        Raises:
            ProviderBadResponse: It is longer than `limit` bytes; and what `blocks` raises.
        """
        body = bytearray()
        for block in self.blocks():
            body += block
            if len(body) > limit:
                raise ProviderBadResponse(f"{self._host} sent more than {limit} bytes")
        return bytes(body)
