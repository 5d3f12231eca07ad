"""The first hour of a newcomer, in one go: start, First steps, upload, ask, follow-up, open document, next question, reload."""

from __future__ import annotations

import re
from pathlib import Path

import requests
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ENGINEER, LENS, ORCHARD, PEARS, lighthouse_pdf
from tests.browser.servers import DocuMind
from tests.browser.views import ask, choose, wait_until


def _scrolled(page: Page) -> float:
    return float(
        page.get_by_role("region", name="Conversation", exact=True).evaluate("box => box.scrollTop")
    )


def _upload(page: Page, *files: tuple[str, str, bytes]) -> None:
    payloads: list[FilePayload] = [
        {"name": name, "mimeType": kind, "buffer": content} for name, kind, content in files
    ]
    page.get_by_test_id("upload").set_input_files(payloads)


def test_the_first_hour(empty: DocuMind, open_page: OpenPage) -> None:
    empty.load_samples()
    page = open_page(empty, height=700)
    refused: list[str] = []
    page.on("response", lambda reply: refused.append(reply.url) if reply.status >= 400 else None)
    steps = page.get_by_role("region", name="First steps", exact=True)
    expect(steps).to_contain_text("47 short samples in both libraries, labelled")
    sources = page.get_by_role("region", name="Sources", exact=True)
    expect(sources).to_be_hidden()  # nothing was asked: an empty pane takes no room
    expect(page.get_by_role("banner")).to_contain_text("Quotes, no model")

    _upload(
        page,
        ("lighthouse.pdf", "application/pdf", lighthouse_pdf()),
        ("orchard.md", "text/markdown", ORCHARD.encode()),
    )
    expect(page.get_by_role("region", name="Uploads", exact=True)).to_contain_text("2 files added")
    expect(page.get_by_test_id("scope")).to_have_text("Asking My documents")

    ask(page, ENGINEER)
    first = page.get_by_role("article", name=ENGINEER)
    expect(first).to_contain_text("Ilse Tarrow")
    expect(first).to_contain_text("Quoted, word for word")
    expect(first).not_to_contain_text("%")
    ask(page, LENS)
    page.get_by_role("button", name="Citation 1", exact=True).last.click()
    sources.get_by_role("button", name="Open document").first.click()
    reader = page.get_by_role("region", name="Document", exact=True)
    expect(reader.locator("[data-highlight]").first).to_be_visible()

    ask(page, PEARS)  # the open document gives way to the sources of the next answer
    expect(reader).to_have_count(0)
    expect(sources).to_contain_text("The Orchard Notes")

    page.get_by_role("checkbox", name=re.compile("Orchard")).check()
    page.get_by_role("button", name=re.compile("^Options")).click()
    page.get_by_label("Mode", exact=True).select_option("compare")
    page.keyboard.press("Escape")
    page.get_by_label("Question", exact=True).fill("half a quest")
    conversation = page.get_by_role("region", name="Conversation", exact=True)
    page.set_viewport_size({"width": 1280, "height": 560})  # there is something to scroll
    conversation.evaluate("box => { box.scrollTop = 40; }")
    wait_until(page, "document.querySelector('[aria-label=Conversation]').scrollTop === 40")
    address = page.url
    assert "#/ask/" in address
    page.reload()
    expect(page.get_by_role("article", name=PEARS)).to_contain_text("sixty kinds")
    expect(page.get_by_test_id("scope")).to_contain_text(
        "Asking My documents, only The Orchard Notes"
    )
    expect(page.get_by_role("button", name=re.compile("^Options"))).to_have_text(
        "Options · Comparison"
    )
    expect(page.get_by_label("Question", exact=True)).to_have_value("half a quest")
    wait_until(page, "document.querySelector('[aria-label=Conversation]').scrollTop === 40")
    assert page.url == address

    page.get_by_role("link", name="Status", exact=True).click()
    expect(page.get_by_text("No check has been run yet.")).to_be_visible()
    page.get_by_role("link", name="Ask", exact=True).click()
    expect(conversation.get_by_role("article")).to_have_count(3)
    assert page.url == address
    assert not refused


def test_a_visitor_sees_the_library_with_their_own_documents(
    empty: DocuMind, open_page: OpenPage
) -> None:
    empty.load_samples()
    empty.upload(("orchard.md", ORCHARD.encode()))
    page = open_page(empty)
    expect(page.get_by_test_id("scope")).to_have_text("Asking My documents")
    expect(page.get_by_role("list", name="Documents", exact=True)).to_contain_text(
        "The Orchard Notes"
    )


def test_an_answer_has_an_address_that_opens_it(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled, height=600)
    choose(page, "My documents")
    for question in (ENGINEER, LENS, PEARS):
        ask(page, question)
    page.get_by_role("article", name=LENS).get_by_role("button", name="Copy answer").click()
    page.get_by_role("menuitem", name="Link to this answer").click()
    wait_until(page, "navigator.clipboard.readText().then(text => text.includes('#/ask/'))")
    link = str(page.evaluate("navigator.clipboard.readText()"))
    other = open_page(filled, link.removeprefix(filled.base), height=600)
    expect(
        other.get_by_role("region", name="Conversation", exact=True).get_by_role("article")
    ).to_have_count(3)
    expect(
        other.get_by_role("article", name=LENS).get_by_role("heading", name=LENS)
    ).to_be_in_viewport()
    requests.delete(f"{filled.base}/api/v1/conversations", timeout=30).raise_for_status()
    other.reload()
    expect(other.get_by_role("alert")).to_contain_text("This conversation could not be opened.")
    other.get_by_role("button", name="New conversation").click()
    expect(other.get_by_text("What would you like to know?")).to_be_visible()


def test_a_summary_needs_no_model_and_help_tells_how_to_connect_one(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled, width=390, height=844)
    page.get_by_role("navigation", name="Panes").get_by_role("button", name="Chat").click()
    ask(page, "Summarise the notes on the orchard")
    summary = page.get_by_role("article").last
    expect(summary).to_contain_text("sixty kinds of pears")
    expect(summary).to_contain_text("Quoted, word for word")
    page.get_by_role("button", name="Help", exact=True).click()
    sheet = page.get_by_role("dialog", name="Help")
    expect(sheet).to_contain_text("ollama pull llama3.2")
    sheet.get_by_role("button", name="Check").click()
    expect(sheet).to_contain_text("Not connected yet")


def test_a_long_list_says_how_many_there_are(
    empty: DocuMind, open_page: OpenPage, tmp_path: Path
) -> None:
    source = tmp_path / "notes.jsonl"
    source.write_text(
        "".join(
            f'{{"title": "Note {n}", "text": "Note number {n} is about copper."}}\n'
            for n in range(216)
        )
    )
    empty.bulk_index(source)
    page = open_page(empty)
    choose(page, "My documents")
    documents = page.get_by_role("region", name="Documents", exact=True)
    expect(documents).to_contain_text("216 documents")
    expect(documents).not_to_contain_text("and more")
