"""Pages of the web become documents under their address; the same page again is unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.main import app
from app.core.types import Library
from app.jobs.ingest import MOST_LISTED, FetchJob
from app.jobs.kinds import FETCH
from app.storage.files.lock import DirectoryLock
from tests.api.conftest import Site, listening, site
from tests.fakes.files import make_pdf
from tests.fakes.http_double import Asked, Canned, HttpDouble

PAGE = (
    b"<title>Tides</title><nav>Menu</nav><main><h1>Tides</h1><p>The tide turns at noon.</p></main>"
)


RSS = """<?xml version="1.0"?><rss version="2.0"><channel><link>{site}/</link>
<item><title>Tides</title><link>{site}/tides</link></item>
<item><link>{site}/gone</link></item><item><link>/paper</link></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><link href="{site}/"/><entry>
<link rel="edit" href="{site}/edit"/><link href="{site}/tides"/></entry></feed>"""
SITEMAP = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url>
<loc>{site}/tides</loc></url><url><loc>{site}/paper</loc></url></urlset>"""
SITEMAPS = """<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<sitemap><loc>{site}/sitemap.xml</loc></sitemap></sitemapindex>"""
EMPTY = "".join(f"<sitemap><loc>{{site}}/empty{n}.xml</loc></sitemap>" for n in range(5000))
LISTINGS = {
    "/endless.xml": f"<sitemapindex>{EMPTY}</sitemapindex>",
    "/odd.xml": "<sitemapindex><sitemap><loc>{site}/gone</loc></sitemap>"
    "<sitemap><loc>{site}/sitemap.xml</loc></sitemap></sitemapindex>",
    "/rss": RSS,
    "/atom": ATOM,
    "/sitemap.xml": SITEMAP,
    "/sitemaps.xml": SITEMAPS,
}


class Web(HttpDouble):
    """A site of two pages, one of which can change, and what lists them."""

    page = PAGE

    def default(self, asked: Asked) -> Canned:
        if asked.path in LISTINGS:
            text = LISTINGS[asked.path].replace("{site}", self.url)
            return Canned(text.encode(), content_type="application/xml")
        if asked.path.startswith("/empty"):
            return Canned(b"<urlset></urlset>", content_type="application/xml")
        if asked.path == "/tides":
            return Canned(self.page, content_type="text/html")
        if asked.path == "/paper":
            return Canned(make_pdf(), content_type="application/pdf")
        if asked.path == "/picture":
            return Canned(b"\x89PNG\r\n\x1a\n" + bytes(99), content_type="image/png")
        return Canned(b"", 404)


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as running:
        yield running


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "server") as running:
        yield running


def test_what_stands_behind_an_address_is_read_by_its_type(opened: Site, web: Web) -> None:
    def fetch(path: str) -> dict[str, object]:
        reply = opened.client.post("/api/v1/fetch-url", json={"url": web.url + path})
        assert reply.status_code in (200, 201), reply.text
        return dict(reply.json()["documents"][0])

    assert fetch("/tides#noon")["status"] == "indexed"
    assert fetch("/tides")["status"] == "unchanged"
    assert fetch("/paper")["status"] == "indexed"
    rows = opened.client.get("/api/v1/papers", params={"library": "papers"}).json()["documents"]
    assert {(row["source_key"], row["type"]) for row in rows} == {
        (f"{web.url}/tides", "html"),
        (f"{web.url}/paper", "pdf"),
    }
    page = next(row for row in rows if row["type"] == "html")
    assert (page["title"], page["source_url"], page["has_original"]) == (
        "Tides",
        f"{web.url}/tides",
        True,
    )
    parsed = opened.services.catalog.text(Library.PAPERS, str(page["doc_id"]))
    assert parsed.text == "Tides\n\nThe tide turns at noon."
    web.page = PAGE.replace(b"noon", b"dusk")
    assert fetch("/tides")["status"] == "replaced"


@pytest.mark.parametrize(
    ("listing", "outcomes"),
    [
        ("/rss", [("indexed", "/tides"), ("failed", "/gone"), ("indexed", "/paper")]),
        ("/atom", [("indexed", "/tides")]),
        ("/sitemap.xml", [("indexed", "/tides"), ("indexed", "/paper")]),
        ("/sitemaps.xml", [("indexed", "/tides"), ("indexed", "/paper")]),
        ("/odd.xml", [("indexed", "/tides"), ("indexed", "/paper")]),
    ],
)
def test_the_pages_that_a_feed_or_sitemap_lists_become_documents(
    opened: Site, web: Web, listing: str, outcomes: list[tuple[str, str]]
) -> None:
    reply = opened.client.post("/api/v1/fetch-url", json={"url": web.url + listing})
    assert reply.status_code in (201, 207), reply.text
    found = reply.json()["documents"]
    assert [one["status"] for one in found] == [status for status, _ in outcomes]
    rows = opened.client.get("/api/v1/papers", params={"library": "papers"}).json()["documents"]
    assert {row["source_key"] for row in rows} == {
        web.url + path for status, path in outcomes if status == "indexed"
    }


def test_sitemaps_are_capped_as_pages_are(
    opened: Site, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fetch,) = [kind.handler for name, kind in opened.services.jobs._kinds.items() if name == FETCH]
    assert isinstance(fetch, FetchJob)
    in_no_time = replace(fetch, apart_s=0.0)
    opened.services.jobs.register(FETCH, in_no_time, lane="network")
    reply = opened.client.post("/api/v1/fetch-url", json={"url": f"{web.url}/endless.xml"})
    assert reply.status_code in (201, 207, 415, 422), reply.text
    asked = [one.path for one in web.asked if one.path.startswith("/empty")]
    assert len(asked) == MOST_LISTED


@pytest.mark.parametrize(
    ("url", "status", "code"),
    [
        ("http://10.0.0.1/", 422, "invalid_input"),
        ("file:///etc/passwd", 422, "invalid_input"),
        ("/gone", 404, "not_found"),
        ("/picture", 415, "unsupported_type"),
    ],
)
def test_what_cannot_be_fetched_or_read_says_why(
    opened: Site, web: Web, url: str, status: int, code: str
) -> None:
    asked = web.url + url if url.startswith("/") else url
    reply = opened.client.post("/api/v1/fetch-url", json={"url": asked})
    found = reply.json()
    failed = found["documents"][0] if "documents" in found else found
    assert (reply.status_code, failed["code"]) == (status, code)


def test_the_command_fetches_again_what_was_fetched_before(
    opened: Site, web: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lock = tmp_path / "lock"
    monkeypatch.setenv("DATA_DIR", str(lock))
    with listening(opened.app, lifespan="off") as address, DirectoryLock([lock], address):
        run = CliRunner().invoke
        assert run(app, ["fetch", f"{web.url}/tides", "--json"]).exit_code == 0
        assert run(app, ["fetch", f"{web.url}/paper", "--json"]).exit_code == 0
        web.page = PAGE.replace(b"noon", b"dusk")
        again = run(app, ["fetch", "--again", "--json"])
        assert again.exit_code == 0
        assert '"unchanged"' in again.output
        assert '"replaced"' in again.output
        assert run(app, ["fetch"]).exit_code != 0


def test_the_tab_key_completes_names_of_documents(
    opened: Site, web: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened.client.post("/api/v1/fetch-url", json={"url": f"{web.url}/tides"})
    lock = tmp_path / "lock"
    monkeypatch.setenv("DATA_DIR", str(lock))

    def completed(line: str) -> str:
        asked = {"_DOCUMIND_COMPLETE": "complete_bash", "COMP_WORDS": line}
        words = str(len(line.split()) - 1)
        return (
            CliRunner().invoke(app, prog_name="documind", env={**asked, "COMP_CWORD": words}).output
        )

    assert "tides" not in completed("documind delete ti")  # no server runs on this data
    with listening(opened.app, lifespan="off") as address, DirectoryLock([lock], address):
        assert completed("documind delete ti").split() == ["tides.html"]
        assert completed("documind ask why --document ti").split() == ["tides.html"]
        assert completed("documind delete zz").split() == []
