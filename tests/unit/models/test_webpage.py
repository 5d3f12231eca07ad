"""Pages are fetched from public hosts only, each hop is checked, and robots.txt is honoured."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.core.errors import (
    Busy,
    InvalidInput,
    NotFound,
    ProviderBadResponse,
    ProviderUnreachable,
    TooLarge,
)
from app.models.webpage import WebClient, checked_url
from tests.fakes.http_double import Asked, Canned, HttpDouble

HOSTILE = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://0/",
    "http://0.0.0.0/",
    "http://10.0.0.1/",
    "http://10.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://192.168.257/",
    "http://169.254.169.254/latest/meta-data/",
    "http://0xa9fea9fe/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    "http://203.0.113.9/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[fd12:3456::1]/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://user@example.org/",
    "http://user:secret@example.org/",
    "http://example.org@127.0.0.1/",
    "http://example.org:22/",
    "http://example.org:6379/",
    "http://example.org:0/",
    "http://example.org:99999/",
    "http://example.org:8o80/",
    "file:///etc/passwd",
    "gopher://example.org/",
    "ftp://example.org/a",
    "data:text/html,x",
    "javascript:alert(1)",
    "//example.org/",
    "example.org",
    "http://",
    "http:///path",
    "http://[::1/",
    "http://exa mple.org/",
    "http://example.org\\@127.0.0.1/",
    "http://example.org/\r\nHost: a",
    "http://example.org/" + "a" * 1_000,
    "http://" + "a" * 70 + ".org/",
]


@pytest.mark.parametrize("url", HOSTILE)
def test_hostile_addresses_are_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(InvalidInput):
        checked_url(url)
    with pytest.raises(InvalidInput):
        WebClient(max_bytes=100).fetch(url)


def test_an_address_is_kept_without_its_fragment() -> None:
    assert checked_url(" https://Example.org/a?b=c#d ").geturl() == "https://example.org/a?b=c"
    assert checked_url("https://example.org").geturl() == "https://example.org/"
    assert checked_url("https://93.184.216.34:443/").port == 443


class Site(HttpDouble):
    """Pages by path; without a robots.txt of its own it has none."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[str, Canned] = {}

    def default(self, asked: Asked) -> Canned:
        return self.pages.get(asked.path, Canned(b"", 404))


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        yield running


def client(site: Site, **options: int) -> WebClient:
    return WebClient(
        max_bytes=options.get("max_bytes", 1_000), trusted=frozenset({site.url.partition("//")[2]})
    )


def page(body: bytes = b"<p>Tides", kind: str = "text/html; charset=utf-8") -> Canned:
    return Canned(body, content_type=kind)


def to(target: str) -> Canned:
    return Canned(b"", 302, headers={"Location": target})


def test_the_name_of_a_page_holds_no_controls(site: Site) -> None:
    path = "/a%1B%5D0;x%07%00%0A%E2%80%AEb.html"
    site.pages = {path: page()}
    assert client(site).fetch(site.url + path).filename == "a]0;xb.html"
    with pytest.raises(InvalidInput, match="no web address"):
        client(site).fetch(f"{site.url}/\u202eb.html")


def test_a_page_is_fetched_under_its_address_and_named_by_its_type(site: Site) -> None:
    site.pages = {
        "/a/tides.php?x=1": page(),
        "/": page(),
        "/paper": page(b"%PDF-1.7", "application/pdf"),
        "/b.md": page(b"# Tides", "text/plain"),
    }
    fetched = client(site).fetch(f"{site.url}/a/tides.php?x=1#part")
    assert (fetched.content, fetched.filename) == (b"<p>Tides", "tides.php.html")
    assert fetched.source_key == fetched.source_url == f"{site.url}/a/tides.php?x=1"
    assert client(site).fetch(site.url).filename == "127.0.0.1.html"
    assert client(site).fetch(f"{site.url}/paper").filename == "paper.pdf"
    assert client(site).fetch(f"{site.url}/b.md").filename == "b.md"
    assert {asked.path for asked in site.asked} == {"/robots.txt", *site.pages}
    assert not any(
        "Cookie" in asked.headers or "Authorization" in asked.headers for asked in site.asked
    )


def test_redirects_are_followed_and_each_is_checked(site: Site) -> None:
    site.pages = {"/old": to("/new"), "/new": to("tides.html"), "/tides.html": page()}
    fetched = client(site).fetch(f"{site.url}/old")
    assert fetched.source_key == f"{site.url}/old"
    assert fetched.source_url == f"{site.url}/tides.html"
    for target in (
        "http://10.0.0.1/",
        "http://0x7f.1/",
        "file:///etc/passwd",
        "http://a:b@c.org/",
        "//[::1]/",
    ):
        site.pages["/old"] = to(target)
        with pytest.raises(InvalidInput):
            client(site).fetch(f"{site.url}/old")
    site.pages["/old"] = to("/old")
    with pytest.raises(ProviderBadResponse, match="more than 5 times"):
        client(site).fetch(f"{site.url}/old")


def test_a_name_that_leads_into_the_local_network_is_refused(site: Site) -> None:
    with pytest.raises(InvalidInput, match="private address"):
        WebClient(max_bytes=9, resolve=lambda _: {"93.184.216.34", "10.0.0.1"}).fetch(
            "http://a.org/"
        )


def test_a_name_that_leads_elsewhere_the_second_time_reaches_nothing(site: Site) -> None:
    with pytest.raises(ProviderUnreachable):  # looked up as public, connected to this machine
        WebClient(max_bytes=9, resolve=lambda _: {"93.184.216.34"}).fetch("http://localhost/")
    assert site.asked == []


def test_robots_txt_is_honoured(site: Site) -> None:
    site.pages = {"/a": page(), "/b": to("/a"), "/c": page()}
    site.pages["/robots.txt"] = page(b"User-agent: *\nDisallow: /a\n", "text/plain")
    for path in ("/a", "/b"):
        with pytest.raises(ProviderBadResponse, match=r"robots\.txt"):
            client(site).fetch(site.url + path)
    assert "/a" not in {asked.path for asked in site.asked}
    assert client(site).fetch(f"{site.url}/c").content == b"<p>Tides"
    site.pages["/robots.txt"] = Canned(b"", 500)
    with pytest.raises(ProviderBadResponse, match="cannot be read"):
        client(site).fetch(f"{site.url}/c")


@pytest.mark.parametrize(
    ("reply", "error", "said"),
    [
        (Canned(b"", 404), NotFound, "nothing at"),
        (Canned(b"", 410), NotFound, "nothing at"),
        (Canned(b"", 401), ProviderBadResponse, "login"),
        (Canned(b"", 403), ProviderBadResponse, "login"),
        (Canned(b"", 429), Busy, "slow down"),
        (Canned(b"", 500), ProviderBadResponse, "answered 500"),
        (Canned(b"x" * 2_000), TooLarge, "MAX_FILE_SIZE_MB"),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Canned) else "",
)
def test_what_is_no_page_says_so(
    site: Site, reply: Canned, error: type[Exception], said: str
) -> None:
    site.pages = {"/a": reply}
    with pytest.raises(error, match=said):
        client(site).fetch(f"{site.url}/a")
