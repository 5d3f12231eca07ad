"""Names, titles, text and answers are data: nothing of them runs, nothing is asked elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import FilePayload, Page, Route, expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ENGINEER, lighthouse_pdf
from tests.browser.payloads import HOST, NAMES, PAYLOADS
from tests.browser.servers import DocuMind
from tests.browser.views import ask, choose
from tests.fakes.ollama_double import OllamaDouble

FORBIDDEN = (
    "script, img, iframe, object, embed, video, audio, picture, source, svg:not([aria-hidden]),"
    " math, style, link, base, meta,"
    " form, input, details, marquee, template, portal"
)


def test_there_are_a_hundred_payloads() -> None:
    assert len(set(PAYLOADS)) == 100


def _nothing_ran(page: Page) -> None:
    assert page.evaluate("window.pwned") is None
    assert (
        page.locator("html").evaluate(
            "node => node.ownerDocument.querySelectorAll('base, meta[http-equiv]').length"
        )
        == 0
    )


def test_a_model_that_writes_payloads_gets_text(tmp_path: Path, open_page: OpenPage) -> None:
    words = "Ilse Tarrow designed it"
    with (
        OllamaDouble() as double,
        DocuMind(
            tmp_path / "data",
            OLLAMA_BASE_URL=double.url,
            EMBEDDING_PROVIDER="minilm",
            LLM_PROVIDER="ollama",
        ) as server,
    ):
        server.upload(("lighthouse.pdf", lighthouse_pdf()))
        page = open_page(server)
        choose(page, "My documents")
        for first in range(10):  # payloads of one kind in a row would be ended as a repeat
            double.say("\n\n".join((f"{words} [1].", *PAYLOADS[first::10])))
            ask(page, f"{ENGINEER} Draft {first}.")
        articles = page.locator("article .prose")
        assert (
            articles.filter(has_text=words).count() >= 9
        )  # the double may refuse what is a follow-up
        assert articles.locator(FORBIDDEN).count() == 0
        for link in articles.locator("a").all():
            assert (link.get_attribute("href") or "").startswith(("https://", "http://"))
            assert link.get_attribute("rel") == "noopener noreferrer nofollow"
            assert HOST[8:] in (link.text_content() or "").lower(), "a link says where it goes"
        for name in (
            "onerror",
            "onload",
            "onclick",
            "onmouseover",
            "style",
            "srcset",
            "background",
            "ping",
        ):
            assert articles.locator(f"[{name}]").count() == 0, name
        for pill in articles.get_by_role("button", name="Citation 1", exact=True).all():
            pill.hover()
        _nothing_ran(page)


def test_documents_full_of_payloads_are_read_as_text(empty: DocuMind, open_page: OpenPage) -> None:
    text = "\n\n".join(
        f"The harbour ledger, entry {i}, says: {payload}" for i, payload in enumerate(PAYLOADS)
    )
    empty.upload(("ledger.txt", text.encode()), ("ledger.md", text.encode()))
    page = open_page(empty)
    choose(page, "My documents")
    ask(page, "What does the harbour ledger say in its entries?")
    while page.get_by_role("button", name="Whole passage").count():  # a click renames it
        page.get_by_role("button", name="Whole passage").first.click()
    page.get_by_role("button", name="Open document").first.click()
    expect(page.get_by_role("region", name="Text of the document")).to_contain_text(
        "harbour ledger"
    )
    _nothing_ran(page)
    page.goto(f"{empty.base}/#/search")
    page.get_by_label("Search", exact=True).fill("harbour ledger onerror script image")
    expect(page.get_by_role("listitem").first).to_contain_text("ledger")
    assert page.locator("main img, main iframe, main script").count() == 0
    _nothing_ran(page)


def test_hostile_file_names_are_shown_as_they_are(empty: DocuMind, open_page: OpenPage) -> None:
    page = open_page(empty)
    files: list[FilePayload] = [
        {
            "name": name,
            "mimeType": "text/plain",
            "buffer": f"The weather at sea was calm and grey on day {i}.".encode(),
        }
        for i, name in enumerate(NAMES)
    ]
    page.get_by_test_id("upload").set_input_files(files)
    uploads = page.get_by_role("region", name="Uploads", exact=True)
    expect(uploads).to_contain_text(f"{len(NAMES)} files", timeout=60_000)
    expect(uploads.get_by_role("progressbar", name="Uploads", exact=True)).to_have_count(
        0, timeout=60_000
    )
    assert page.locator("main img, main iframe, main script").count() == 0
    ask(page, "How was the weather at sea?")
    assert page.locator("main img, main iframe, main script").count() == 0
    page.get_by_role("button", name="Open document").first.click()
    expect(page.get_by_role("region", name="Text of the document")).to_contain_text(
        "weather at sea"
    )
    _nothing_ran(page)


MALFORMED = "https://[bad"
DUSK = "What does the condor of Bogota drink at dusk?"


def test_a_document_with_a_malformed_address_is_shown_without_a_link(
    empty: DocuMind, open_page: OpenPage, tmp_path: Path
) -> None:
    row = {
        "id": "2",
        "title": "Condor",
        "text": "The condor of Bogota drinks green rain at dusk, says the encyclopedia.",
        "url": MALFORMED,
    }
    source = tmp_path / "birds.jsonl"
    source.write_text(json.dumps(row) + "\n", "utf-8")
    empty.bulk_index(source)
    page = open_page(empty)
    choose(page, "My documents")
    ask(page, DUSK)
    card = page.get_by_role("article", name="Source 1: Condor")
    expect(card).to_contain_text("green rain")
    assert card.locator("a").count() == 0


def test_a_source_that_cannot_be_shown_leaves_the_rest_of_the_page(
    empty: DocuMind, open_page: OpenPage
) -> None:
    empty.upload(
        (
            "condor.txt",
            b"Condor\n\nThe condor of Bogota drinks green rain at dusk, says the encyclopedia.",
        )
    )
    page = open_page(empty)

    def spoil(route: Route) -> None:
        reply = route.fetch()
        body = reply.text().replace('"source_url":null', f'"source_url":"{MALFORMED}"')
        for band in (
            "strong",
            "partial",
            "weak",
        ):  # a word that the page does not know: the card cannot be drawn
            body = body.replace(f'"band":"{band}"', '"band":"odd"')
        route.fulfill(response=reply, body=body)

    page.route("**/api/v1/**", spoil)
    choose(page, "My documents")
    ask(page, DUSK)
    sources = page.get_by_role("region", name="Source list")
    expect(sources.get_by_role("alert")).to_contain_text("Source 1 cannot be shown.")
    expect(page.get_by_role("article", name=DUSK)).to_be_visible()
    page.unroute_all(behavior="wait")  # a request may still be on its way
    page.goto(f"{empty.base}/#/search")
    page.get_by_label("Search", exact=True).fill("condor")
    expect(page.get_by_role("listitem").first).to_contain_text("condor")
