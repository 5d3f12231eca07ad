from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.cancel import CancelToken
from app.core.errors import (
    Busy,
    Cancelled,
    DocuMindError,
    InvalidInput,
    NotFound,
    ProviderBadResponse,
    ProviderUnreachable,
    TooLarge,
)
from app.core.types import Metadata
from app.models.arxiv import ArxivClient, base_id
from tests.fakes.arxiv_double import ENTRY, FEED, ArxivDouble
from tests.fakes.http_double import Canned


class Clock:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(round(seconds, 3))
        self.now += seconds


@pytest.fixture
def double() -> Iterator[ArxivDouble]:
    with ArxivDouble() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(double: ArxivDouble, clock: Clock) -> ArxivClient:
    return ArxivClient(double.url, max_bytes=1000, clock=clock, sleep=clock.sleep)


def feed() -> Canned:
    return Canned(FEED.format(entry=ENTRY.format(id="2210.03629v2")).encode())


def test_a_paper_with_its_metadata(client: ArxivClient, double: ArxivDouble) -> None:
    paper = client.fetch(" 2210.03629v2 ")
    assert paper.metadata == Metadata(
        "Rivers That Carry Silt", ("Ada Brook", "Émile Fleuve"), 2022, "2210.03629"
    )
    assert paper.content == double.pdf
    assert paper.source_key == "2210.03629"
    assert paper.filename == "2210.03629v2.pdf"
    assert paper.source_url == "https://arxiv.org/abs/2210.03629v2"
    assert [asked.path for asked in double.asked] == [
        "/api/query?id_list=2210.03629v2&max_results=1",
        "/pdf/2210.03629v2",
    ]


def test_an_old_id_keeps_its_slash_out_of_the_file_name(
    client: ArxivClient, double: ArxivDouble
) -> None:
    paper = client.fetch("math.AG/0112017")
    assert (paper.source_key, paper.filename) == ("math.AG/0112017", "math.AG_0112017.pdf")
    assert double.asked[-1].path == "/pdf/math.AG/0112017"


def test_requests_are_three_seconds_apart(client: ArxivClient, clock: Clock) -> None:
    client.fetch("2210.03629")
    clock.now += 1
    client.fetch("2210.03630")
    assert clock.waits == [3.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "arxiv_id",
    [
        "",
        "2210.036",
        "../etc/passwd",
        "2210.03629/../x",
        "2210.03629v",
        "http://127.0.0.1/",
        "cs/011",
    ],
)
def test_what_is_no_id_is_refused_before_anything_is_sent(
    client: ArxivClient, double: ArxivDouble, arxiv_id: str
) -> None:
    with pytest.raises(InvalidInput, match="no arXiv id"):
        client.fetch(arxiv_id)
    assert double.asked == []


@given(st.text(max_size=20))
def test_accepted_ids_are_plain_path_segments(text: str) -> None:
    try:
        identity = base_id(text)
    except InvalidInput:
        return
    assert set(identity) <= set("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ./-")
    assert ".." not in identity


@pytest.mark.parametrize(
    ("replies", "error", "message"),
    [
        ([Canned(b"no", 404)], NotFound, "no paper '2210.03629'"),
        ([feed(), Canned(b"no", 404)], NotFound, "no paper '2210.03629'"),
        ([Canned(b"", 429)], Busy, "slow down"),
        ([Canned(b"", 500)], ProviderBadResponse, "answered 500"),
        ([Canned(b"<feed")], ProviderBadResponse, "no readable feed"),
        (
            [Canned(b'<!DOCTYPE f [<!ENTITY a "b">]><f>&a;</f>')],
            ProviderBadResponse,
            "no readable feed",
        ),
        ([feed(), Canned(b"<html>", content_type="text/html")], ProviderBadResponse, "no PDF"),
        ([feed(), Canned(b"%PDF-" + b"x" * 2000)], TooLarge, "larger than 1000 bytes"),
        (
            [feed(), Canned(b"", 302, headers={"Location": "http://127.0.0.1:1/"})],
            ProviderBadResponse,
            "redirects",
        ),
        ([feed(), Canned(b"%PDF-", declared=500)], ProviderUnreachable, "broke the connection"),
    ],
)
def test_what_goes_wrong(
    client: ArxivClient,
    double: ArxivDouble,
    replies: list[Canned],
    error: type[DocuMindError],
    message: str,
) -> None:
    double.queue(*replies)
    with pytest.raises(error, match=message):
        client.fetch("2210.03629")


def test_an_unknown_paper(client: ArxivClient) -> None:
    with pytest.raises(NotFound, match=r"'9999\.99999'"):
        client.fetch("9999.99999")


def test_a_cancel_ends_the_wait(double: ArxivDouble) -> None:
    cancel = CancelToken()
    client = ArxivClient(double.url, interval_s=60)
    timer = threading.Timer(0.1, cancel.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        client.fetch("2210.03629", cancel)  # the feed comes at once, the PDF would wait a minute
    timer.join()
    assert len(double.asked) == 1


def test_a_name_that_leads_home_is_refused(
    double: ArxivDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.getaddrinfo
    answers = iter(
        ["8.8.8.8", "127.0.0.1"]
    )  # first a look-up that passes, then the one of the connection

    def lead_home(host: object, *args: object, **kwargs: object) -> object:
        if host != "papers.example":
            return real(host, *args, **kwargs)  # type: ignore[arg-type]  # passed through
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), double.server_port))]

    monkeypatch.setattr(socket, "getaddrinfo", lead_home)
    client = ArxivClient(f"http://papers.example:{double.server_port}")
    with pytest.raises(ProviderUnreachable, match="cannot reach"):
        client.fetch("2210.03629")
    answers = iter(["127.0.0.1"])
    with pytest.raises(ProviderUnreachable, match="leads to a private address"):
        client.fetch("2210.03629")
    assert double.asked == []
