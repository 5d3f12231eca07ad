"""Fetch pages and files from the web: public hosts only, robots.txt honoured, no credentials."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Container, Iterable
from contextlib import closing
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urljoin, urlsplit
from urllib.robotparser import RobotFileParser

from app.core.cancel import CancelToken
from app.core.errors import (
    Busy,
    InvalidInput,
    NotFound,
    ProviderBadResponse,
    ProviderUnreachable,
    TooLarge,
)
from app.core.normalisation import UNSHOWABLE, clean_name
from app.core.types import RawDocument
from app.models.http import HttpClient
from app.models.sockets import is_public

LONGEST_URL = 1_000
"""Characters; it is also the source key."""
_AGENT = "documind"
_PORTS = (None, 80, 443)
_MOST_REDIRECTS = 5
_MOST_ROBOTS_BYTES = 512 * 1024
"""What crawlers read of it at least (RFC 9309, section 2.5)."""
_RETRY_S = 60.0
_WHOLE_S = 60.0
"""Longest wait for a reply as a whole."""
_ODD = re.compile(r"[ \\]")


class _Reply(NamedTuple):
    address: SplitResult
    status: int
    content: bytes
    media_type: str


def addresses_of(hostname: str) -> set[str]:
    """Return the IP addresses of a name; raises OSError where it has none."""
    return {str(info[4][0]) for info in socket.getaddrinfo(hostname, None)}


def checked_url(url: str) -> SplitResult:
    """Return the parts of a URL that may be fetched, without its fragment.

    Raises:
        InvalidInput: No http or https, credentials, another port than 80 and 443, or an address in
            a private network however it is spelt.
    """
    address = _split(url)
    if address.port not in _PORTS:
        raise InvalidInput(
            f"{url[:80]!r} asks for port {address.port}; pages are fetched from ports 80 and 443"
        )
    try:
        info = socket.getaddrinfo(address.hostname, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return address  # a name, which is looked up when it is fetched
    _refuse_private({str(one[4][0]) for one in info}, address)
    return address


def _split(url: str) -> SplitResult:
    url = url.strip()
    try:
        address = urlsplit(url)
        usable = bool(address.hostname) and address.port != 0
        named = address.hostname is not None and address.hostname.encode("idna")
    except ValueError:  # a port that is no number, an odd bracket, a name that cannot be
        usable = named = False
    odd = _ODD.search(url) or UNSHOWABLE.search(url)
    if not usable or not named or odd or len(url) > LONGEST_URL:
        raise InvalidInput(
            f"this is no web address of at most {LONGEST_URL:,} characters: {url[:80]!r}; expected"
            " one like https://example.org/page"
        )
    if address.scheme not in ("http", "https"):
        raise InvalidInput(
            f"{address.scheme!r} addresses are not fetched; give one that begins with https://"
        )
    if "@" in address.netloc:
        raise InvalidInput(
            "a name or password in an address is not sent; save the page and upload the file"
        )
    return address._replace(fragment="", netloc=address.netloc.lower(), path=address.path or "/")


def _refuse_private(found: Iterable[str], address: SplitResult) -> None:
    if not all(map(is_public, found)):
        raise InvalidInput(
            f"{address.hostname!r} leads to a private address, which is not fetched; save the page"
            " and upload the file"
        )


class WebClient:
    """Fetches one URL at a time; every hop of a redirect is checked like the first."""

    def __init__(
        self,
        *,
        max_bytes: int,
        trusted: Container[str] = (),
        resolve: Callable[[str], set[str]] = addresses_of,
    ) -> None:
        """Prepare; nothing is sent. `trusted` hosts, with their ports, may be private (tests)."""
        self._max_bytes, self._trusted, self._resolve = max_bytes, trusted, resolve

    def fetch(self, url: str, cancel: CancelToken | None = None) -> RawDocument:
        """Return what stands behind a URL.

        Raises:
            InvalidInput: It or what it redirects to may not be fetched; see `checked_url`.
            NotFound: There is nothing.
            TooLarge: The body passes the cap.
            Busy: The host asks to slow down.
            ProviderBadResponse: robots.txt forbids it, it asks for a login, or redirects in a ring.
            ProviderUnreachable, ProviderTimeout: The host is away or slow.
            Cancelled: The token was cancelled.
        """
        token = cancel or CancelToken()
        asked = self.checked(url)
        rules: dict[str, RobotFileParser] = {}

        def ask_robots(address: SplitResult) -> None:
            origin = f"{address.scheme}://{address.netloc}"
            if origin not in rules:
                rules[origin] = self._robots(origin, token)
            if not rules[origin].can_fetch(_AGENT, address.geturl()):
                raise ProviderBadResponse(
                    f"robots.txt of {address.netloc} asks programs to leave {address.path!r} alone;"
                    " save the page and upload the file"
                )

        reply = self._follow(asked, self._max_bytes, token, ask_robots)
        _refuse_status(reply)
        return RawDocument(
            source_key=asked.geturl(),
            filename=_name(reply),
            content=reply.content,
            source_url=reply.address.geturl(),
        )

    def checked(self, url: str) -> SplitResult:
        address = _split(url)
        return address if address.netloc in self._trusted else checked_url(url)

    def _robots(self, origin: str, cancel: CancelToken) -> RobotFileParser:
        reply = self._follow(self.checked(f"{origin}/robots.txt"), _MOST_ROBOTS_BYTES, cancel)
        rules = RobotFileParser()
        if reply.status >= 500 or reply.status == 429:
            raise ProviderBadResponse(
                f"robots.txt of {origin} cannot be read ({reply.status}); try again later"
            )
        text = reply.content.decode("utf-8", "replace") if reply.status == 200 else ""
        rules.parse(text.splitlines())
        return rules

    def _follow(
        self,
        address: SplitResult,
        limit: int,
        cancel: CancelToken,
        check: Callable[[SplitResult], None] = lambda _: None,
    ) -> _Reply:
        for _ in range(_MOST_REDIRECTS + 1):
            check(address)
            reply, target = self._get(address, limit, cancel)
            if not target:
                return reply
            address = self.checked(urljoin(address.geturl(), target))
        raise ProviderBadResponse(
            f"{address.netloc} redirects more than {_MOST_REDIRECTS} times; open the page in a"
            " browser and give the address that it ends at"
        )

    def _get(self, address: SplitResult, limit: int, cancel: CancelToken) -> tuple[_Reply, str]:
        """Return a reply, and where it redirects to."""
        trusted = address.netloc in self._trusted
        if not trusted:  # the connection itself is checked too: a name may lead elsewhere then
            try:
                found = self._resolve(address.hostname or "")
            except (OSError, UnicodeError) as exc:
                raise ProviderUnreachable(
                    f"cannot find {address.hostname!r}; check the address and the network"
                ) from exc
            _refuse_private(found, address)
        path = address._replace(scheme="", netloc="").geturl()
        client = HttpClient(
            f"{address.scheme}://{address.netloc}",
            "the page",
            connect_timeout_s=10.0,
            public_only=not trusted,
        )
        with (
            closing(client) as http,
            http.stream(
                "GET", path, cancel=cancel, timeout_s=_WHOLE_S, with_redirects=True
            ) as reply,
        ):
            target = reply.headers.get("Location", "") if reply.status // 100 == 3 else ""
            too_large = TooLarge(
                f"{address.geturl()!r} is larger than {limit:,} bytes; raise MAX_FILE_SIZE_MB or"
                " fetch a part of it"
            )
            body = b"" if target else reply.read(limit, too_large)
            media_type = reply.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            return _Reply(address, reply.status, body, media_type), target


def _refuse_status(reply: _Reply) -> None:
    shown, status = reply.address.geturl(), reply.status
    if status in (404, 410):
        raise NotFound(f"there is nothing at {shown!r} ({status}); check the address")
    if status in (429, 503):
        raise Busy(
            f"{reply.address.netloc} asks to slow down; try again later", retry_after_s=_RETRY_S
        )
    if status in (401, 403, 407):
        raise ProviderBadResponse(
            f"{shown!r} asks for a login or refuses programs ({status}); save the page and upload"
            " the file"
        )
    if status != 200:
        raise ProviderBadResponse(f"{shown!r} answered {status}; try again later")


_SUFFIXES = {
    "text/html": (".html", ".htm", ".xhtml"),
    "application/xhtml+xml": (".xhtml", ".html", ".htm"),
    "application/pdf": (".pdf",),
    "text/markdown": (".md", ".markdown"),
}
"""Types whose name in the address often says something else, such as `.php`."""


def _name(reply: _Reply) -> str:
    """Return a file name that ends as the content type says."""
    last = unquote(reply.address.path).rstrip("/").rpartition("/")[2]
    name = clean_name(last) or reply.address.hostname or "page"
    suffixes = _SUFFIXES.get(reply.media_type, ())
    return name if not suffixes or name.lower().endswith(suffixes) else f"{name}{suffixes[0]}"
