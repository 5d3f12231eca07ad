"""A document's button asks for its summary, in the conversation, with its own sources."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ORCHARD, lighthouse_pdf
from tests.browser.servers import DocuMind
from tests.browser.views import choose, show_pane


def test_a_document_is_summarised_by_its_button(empty: DocuMind, open_page: OpenPage) -> None:
    empty.upload(("lighthouse.pdf", lighthouse_pdf()), ("orchard.md", ORCHARD.encode()))
    page = open_page(empty)
    choose(page, "My documents")
    documents = page.get_by_role("region", name="Documents", exact=True)
    row = documents.get_by_role("listitem").filter(has_text="Lighthouse")
    row.hover()
    row.get_by_role("button", name="Summarise").click()
    show_pane(page, "Chat")
    summary = page.get_by_role("article", name="Summarise")
    expect(summary).to_have_count(1)
    expect(summary.get_by_text("Quoted, word for word")).to_be_visible(timeout=30_000)
    expect(summary.get_by_role("heading", level=2)).to_contain_text("Summarise")
    expect(summary).to_contain_text("Only")
    expect(summary.get_by_role("button", name="Citation 1", exact=True).first).to_be_visible()
    sources = page.get_by_role("region", name="Sources")
    expect(sources).not_to_contain_text("orchard")
    expect(page.get_by_role("button", name=re.compile("^Options"))).to_have_text("Options")
