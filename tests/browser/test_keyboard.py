"""Everything that matters, without a mouse."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ENGINEER, LENS
from tests.browser.servers import DocuMind
from tests.browser.views import choose

SETTLED = (
    "document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.tagName ?? ''"
)


def _focused(page: Page) -> str:
    label: str = page.evaluate(SETTLED)
    return label


def test_ask_follow_read_and_return_by_keys(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("/")
    expect(page.get_by_label("Question", exact=True)).to_be_focused()
    page.keyboard.type(ENGINEER)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Citation 1", exact=True).first).to_be_visible()
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("j")
    expect(page.locator("[data-highlight]")).to_contain_text("Morvane")
    page.keyboard.press("o")
    reader = page.get_by_role("region", name="Document", exact=True)
    expect(reader.locator("[data-highlight]").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(reader).to_have_count(0)


def test_pages_by_keys_and_the_help_sheet(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    for key, name in (
        ("s", "Search"),
        ("i", "Inspect"),
        ("e", "Evaluate"),
        ("t", "Status"),
        ("a", "Ask"),
    ):
        page.evaluate("document.activeElement?.blur()")
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Help")
    expect(sheet).to_be_visible()
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()


def test_keys_do_nothing_while_typing(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    box = page.get_by_label("Question", exact=True)
    box.focus()
    page.keyboard.type("?/gs[tnju")
    expect(box).to_have_value("?/gs[tnju")
    expect(page.get_by_role("heading", level=1)).to_have_text("Ask")


def test_tab_alone_reaches_documents_question_and_sources(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    box = page.get_by_label("Question", exact=True)
    box.fill(LENS)
    box.press("Enter")
    expect(page.get_by_role("button", name="Citation 1", exact=True).first).to_be_visible()
    page.evaluate("document.activeElement?.blur()")
    seen = []
    wanted = {"Find a document", "Citation 1", "Question", "Source list"}
    for _ in range(120):  # Tab starts behind the question box and comes round
        page.keyboard.press("Tab")
        seen.append(_focused(page))
        if wanted <= set(seen):
            break
    assert wanted <= set(seen), seen


def test_a_document_is_ticked_with_the_space_bar(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    page.get_by_role("checkbox", name="Ask only The Orchard Notes").focus()
    page.keyboard.press("Space")
    expect(page.get_by_test_id("scope")).to_contain_text("only The Orchard Notes")
