"""Fetch papers from arXiv: valid ids, one request in 3 s, only the set host."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
import time
from collections.abc import Callable
from urllib.parse import quote
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from app.core.cancel import CancelToken
from app.core.errors import (
    Busy,
    InvalidInput,
    NotFound,
    ProviderBadResponse,
    ProviderUnreachable,
    TooLarge,
)
from app.core.types import Metadata, RawDocument
from app.models.http import HttpClient, StreamReply, hostname_of
from app.models.sockets import is_public

ID = re.compile(
    r"(?P<new>[0-9]{4}\.[0-9]{4,5})(v[0-9]+)?|(?P<old>[a-z-]+(\.[A-Z]{2})?/[0-9]{7})(v[0-9]+)?"
)
"""Identifiers since 2007 and before; info.arxiv.org/help/arxiv_identifier.html."""
_ATOM = "{http://www.w3.org/2005/Atom}"
_MAX_FEED_BYTES = 1024 * 1024
_RETRY_S = 30.0


class ArxivClient:
    """Fetches papers one at a time, spaced as info.arxiv.org/help/api/tou.html asks."""

    def __init__(
        self,
        base_url: str = "https://export.arxiv.org",
        *,
        max_bytes: int = 50 * 1024 * 1024,
        interval_s: float = 3.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """Prepare; nothing is sent.

        Only the host of `base_url` is ever asked, and a private address only when it stands there
        itself. `clock` and `sleep` are for tests.

        Raises:
            InvalidInput: The address cannot be read.
        """
        self._hostname = hostname_of(base_url)
        # an address that is set on purpose may be private (a mirror, a test); a name must not lead
        # into the local network
        self._public_only = not (_is_address(self._hostname) or self._hostname == "localhost")
        self._http = HttpClient(
            base_url,
            "arXiv",
            connect_timeout_s=10.0,
            read_timeout_s=60.0,
            connections=1,
            public_only=self._public_only,
        )
        self._max_bytes, self._interval_s = max_bytes, interval_s
        self._clock, self._sleep = clock, sleep
        self._turn = threading.Lock()
        self._next_at = clock()

    def fetch(self, arxiv_id: str, cancel: CancelToken | None = None) -> RawDocument:
        """Return a paper's PDF with its metadata, by an id such as `2210.03629v2` or `cs/0112017`.

        Raises:
            InvalidInput: This is no arXiv id.
            NotFound: arXiv has no such paper.
            TooLarge: The PDF passes the cap.
            ProviderBadResponse: The host sent something else, or redirects.
            ProviderUnreachable, ProviderTimeout: The host is away, or its name leads to a private
                address.
            Busy: The host asks to slow down.
            Cancelled: The token was cancelled.
        """
        identity = base_id(arxiv_id)
        wanted, token = arxiv_id.strip(), cancel or CancelToken()
        self._refuse_private()
        metadata = self._metadata(wanted, identity, token)
        content = self._get(f"/pdf/{quote(wanted)}", wanted, self._max_bytes, token)
        if not content.startswith(b"%PDF-"):
            raise ProviderBadResponse(
                f"{self._http.host} sent no PDF for {wanted!r}; it may have none, or asks for"
                " patience: try later"
            )
        name = wanted.replace("/", "_") + ".pdf"
        url = f"https://arxiv.org/abs/{wanted}"
        return RawDocument(identity, name, content, source_url=url, metadata=metadata)

    def _metadata(self, wanted: str, identity: str, cancel: CancelToken) -> Metadata:
        feed = self._get(
            f"/api/query?id_list={quote(wanted)}&max_results=1", wanted, _MAX_FEED_BYTES, cancel
        )
        try:
            entry = fromstring(feed).find(f"{_ATOM}entry")
        except (ParseError, DefusedXmlException) as exc:
            raise ProviderBadResponse(
                f"{self._http.host} sent no readable feed for {wanted!r} ({exc}); try later"
            ) from exc
        if entry is None or "/api/errors" in _text(entry, "id"):
            raise NotFound(f"arXiv has no paper {wanted!r}; check the id")
        authors = tuple(
            name for author in entry.findall(f"{_ATOM}author") if (name := _text(author, "name"))
        )
        published = re.match(r"\d{4}", _text(entry, "published"))
        return Metadata(
            _text(entry, "title") or wanted,
            authors,
            int(published[0]) if published else None,
            identity,
        )

    def _get(self, path: str, wanted: str, limit: int, cancel: CancelToken) -> bytes:
        with self._turn:  # one connection at a time, and each at least interval_s after the last
            wait_s = self._next_at - self._clock()
            if wait_s > 0:
                (self._sleep or cancel.wait)(wait_s)
            cancel.raise_if_cancelled()
            self._next_at = self._clock() + self._interval_s
            with self._http.stream("GET", path, cancel=cancel) as reply:
                self._check(reply, wanted)
                too_large = TooLarge(
                    f"paper {wanted!r} is larger than {limit} bytes; raise MAX_FILE_SIZE_MB or"
                    " download it yourself"
                )
                return reply.read(limit, too_large)

    def _check(self, reply: StreamReply, wanted: str) -> None:
        if reply.status == 404:
            raise NotFound(f"arXiv has no paper {wanted!r}; check the id")
        if reply.status in {429, 503}:
            raise Busy(
                f"{self._http.host} asks to slow down; try again later", retry_after_s=_RETRY_S
            )
        if reply.status != 200:
            raise ProviderBadResponse(
                f"{self._http.host} answered {reply.status} for {wanted!r}; try later"
            )

    def _refuse_private(self) -> None:
        """Say clearly what the connection would refuse."""
        if not self._public_only:
            return
        try:
            found = {str(info[4][0]) for info in socket.getaddrinfo(self._hostname, None)}
        except OSError as exc:
            raise ProviderUnreachable(
                f"cannot find {self._http.host}; check the network and ARXIV_BASE_URL"
            ) from exc
        if not all(is_public(address) for address in found):
            raise ProviderUnreachable(
                f"{self._http.host} leads to a private address; set ARXIV_BASE_URL to that address"
                " if it is meant"
            )


def base_id(arxiv_id: str) -> str:
    """Return an id without its version.

    Raises:
        InvalidInput: This is no arXiv id.
    """
    match = ID.fullmatch(arxiv_id.strip())
    if match is None:
        raise InvalidInput(
            f"{arxiv_id!r} is no arXiv id; expected something like '2210.03629', '2210.03629v2' or"
            " 'cs/0112017'"
        )
    return match["new"] or match["old"]


def _text(element: Element, name: str) -> str:
    found = element.find(_ATOM + name)
    return " ".join((found.text or "").split()) if found is not None else ""


def _is_address(hostname: str) -> bool:
    try:
        ipaddress.ip_address(hostname)
    except ValueError:
        return False
    return True
