"""Sixty arXiv ids, and where a host may lead: nothing is asked but the one host, and nothing private behind a public name."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from app.core.errors import (
    InvalidInput,
    ProviderBadResponse,
    ProviderError,
    ProviderUnreachable,
    TooLarge,
)
from app.models.arxiv import ArxivClient, base_id
from app.models.sockets import is_public
from tests.fakes.arxiv_double import ENTRY, FEED, ArxivDouble
from tests.fakes.http_double import Canned

GOOD = {
    "2210.03629": "2210.03629",
    "2210.03629v1": "2210.03629",
    "2210.03629v12": "2210.03629",
    "0704.0001": "0704.0001",
    "1412.9999v3": "1412.9999",
    "1501.00001": "1501.00001",
    "2512.12345v2": "2512.12345",
    " 2210.03629 ": "2210.03629",
    "\t2210.03629v2\n": "2210.03629",
    "cs/0112017": "cs/0112017",
    "cs/0112017v2": "cs/0112017",
    "math.AG/0112017": "math.AG/0112017",
    "math.AG/0112017v9": "math.AG/0112017",
    "hep-th/9901001": "hep-th/9901001",
    "astro-ph/9204001v1": "astro-ph/9204001",
    "cond-mat/0001001": "cond-mat/0001001",
    "q-bio.NC/0401001": "q-bio.NC/0401001",
    "physics.ao-ph/0101001".replace(".ao-ph", ""): "physics/0101001",
}
BAD = (
    "",
    " ",
    "0",
    "2210",
    "2210.",
    "2210.036",
    "2210.036299",
    "22100.3629",
    "221.03629",
    "2210.03629v",
    "2210.03629v1v2",
    "2210.03629 v1",
    "2210,03629",
    "2210.03629.pdf",
    "2210.03629/",
    "/2210.03629",
    "2210.03629?x=1",
    "2210.03629#x",
    "2210.03629&id_list=1",
    "2210.03629,2210.03630",
    "2210.03629\n2210.03630",
    "2210.03629\x00",
    "2210.03629\r\nHost: evil",
    "../2210.03629",
    "..",
    "cs/../0112017",
    "cs/011201",
    "cs/01120177",
    "CS/0112017",
    "cs.AI.x/0112017",
    "cs.ai/0112017",
    "cs/0112017/../x",
    "arXiv:2210.03629",
    "abs/2210.03629",
    "https://arxiv.org/abs/2210.03629",
    "http://127.0.0.1/",
    "//evil.example/x",
    "2210.03629@evil.example",
    "file:///etc/passwd",
    "\u0662\u0662\u0661\u0660.\u0660\u0663\u0666\u0662\u0669",
    "\uff12\uff12\uff11\uff10.\uff10\uff13\uff16\uff12\uff19",
    "2210\u200b.03629",
    "%32210.03629",
    "-1/0112017 OR 1=1",
    "cs\\0112017",
    "a" * 5000,
    "2210.03629" * 100,
)


def test_there_are_sixty() -> None:
    assert len(GOOD) + len(BAD) >= 60


@pytest.fixture(scope="module")
def double() -> Iterator[ArxivDouble]:
    with ArxivDouble() as running:
        yield running


@pytest.fixture
def client(double: ArxivDouble) -> ArxivClient:
    double.asked.clear()
    return ArxivClient(double.url, max_bytes=1000, interval_s=0.0)


@pytest.mark.parametrize(("arxiv_id", "base"), GOOD.items(), ids=map(repr, GOOD))
def test_an_id_is_asked_for_on_its_host_alone(
    client: ArxivClient, double: ArxivDouble, arxiv_id: str, base: str
) -> None:
    assert base_id(arxiv_id) == base
    if base.startswith("9"):
        return  # the double has no such papers
    assert client.fetch(arxiv_id).source_key == base
    assert [asked.path.split("?")[0] for asked in double.asked] == [
        "/api/query",
        f"/pdf/{arxiv_id.strip()}",
    ]


@pytest.mark.parametrize("arxiv_id", BAD, ids=[repr(value)[:40] for value in BAD])
def test_what_is_no_id_is_never_asked_for(
    client: ArxivClient, double: ArxivDouble, arxiv_id: str
) -> None:
    with pytest.raises(InvalidInput):
        client.fetch(arxiv_id)
    assert double.asked == []


TARGETS = (
    "http://127.0.0.1:{port}/pdf/2210.03629",
    "http://localhost:{port}/x",
    "http://[::1]:{port}/x",
    "https://arxiv.org/pdf/2210.03629",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "//evil.example/x",
    "/pdf/other",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("target", TARGETS)
def test_no_redirect_is_followed(
    client: ArxivClient, double: ArxivDouble, target: str, status: int
) -> None:
    feed = Canned(FEED.format(entry=ENTRY.format(id="2210.03629")).encode())
    double.queue(
        feed, Canned(b"", status, headers={"Location": target.format(port=double.server_port)})
    )
    with pytest.raises(ProviderBadResponse, match="redirects"):
        client.fetch("2210.03629")
    assert len(double.asked) == 2


PRIVATE = (
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.7",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b:1::1",
    "2001:db8::1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "2002:7f00:1::",
    "2002:c0a8:1::1",
)


@pytest.mark.parametrize("address", PRIVATE)
def test_a_public_name_may_not_lead_to_a_private_address(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    assert not is_public(address)
    connected: list[object] = []
    family = socket.AF_INET6 if ":" in address else socket.AF_INET

    def lead_home(host: object, *_: object, **__: object) -> object:
        return [(family, socket.SOCK_STREAM, 6, "", (address, 443))]

    monkeypatch.setattr(socket, "getaddrinfo", lead_home)
    monkeypatch.setattr(socket.socket, "connect", lambda _, to: connected.append(to))
    with pytest.raises(ProviderUnreachable, match="leads to a private address"):
        ArxivClient("https://papers.example").fetch("2210.03629")
    assert connected == []


def test_one_private_address_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))
        for address in ("8.8.8.8", "10.0.0.1")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    with pytest.raises(ProviderUnreachable, match="private"):
        ArxivClient("https://papers.example").fetch("2210.03629")


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "151.101.3.42", "2606:4700::1111", "64:ff9b::808:808"]
)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


def test_a_stream_without_end_is_cut_at_the_cap(double: ArxivDouble) -> None:
    double.asked.clear()
    double.queue(
        Canned(FEED.format(entry=ENTRY.format(id="2210.03629")).encode()),
        Canned(b"%PDF-" + b"x" * 5_000_000),
    )
    with pytest.raises(TooLarge):
        ArxivClient(double.url, max_bytes=100_000, interval_s=0.0).fetch("2210.03629")


def test_a_compressed_reply_is_not_unpacked_beyond_the_cap(double: ArxivDouble) -> None:
    import gzip  # noqa: PLC0415  # only here

    bomb = gzip.compress(b"%PDF-" + b"\0" * 50_000_000)
    double.queue(
        Canned(FEED.format(entry=ENTRY.format(id="2210.03629")).encode()),
        Canned(bomb, headers={"Content-Encoding": "gzip"}),
    )
    with pytest.raises((TooLarge, ProviderError)):
        ArxivClient(double.url, max_bytes=100_000, interval_s=0.0).fetch("2210.03629")
