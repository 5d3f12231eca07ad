"""What was read is mended beside its page; answers of before keep their words; one click takes it back."""

from __future__ import annotations

import re
from typing import cast

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import LENS
from tests.browser.servers import DocuMind
from tests.browser.views import ask, choose

READ, MEANT = "mercury", "quicksilver"


def _correcting(page: Page) -> Locator:
    """Open the lighthouse from the list at its second page, to be corrected."""
    page.get_by_role("list", name="Documents", exact=True).get_by_text("Lighthouse").click()
    reader = page.get_by_role("region", name="Document", exact=True)
    reader.get_by_role("button", name="Correct", exact=True).click()
    reader.get_by_role("button", name="Page after", exact=True).click()
    expect(reader.get_by_text("Page 2 of 3")).to_be_visible()
    expect(reader.get_by_role("img", name="Page 2")).to_be_visible()
    return reader


def _change(reader: Locator, old: str, new: str) -> None:
    reader.get_by_role("button", name="Edit the words", exact=True).click()
    words = reader.get_by_label("Words of this page", exact=True)
    words.fill(words.input_value().replace(old, new))


def _quoted(page: Page) -> Locator:
    return page.get_by_role("region", name="Sources", exact=True).locator("[data-highlight]")


def test_words_are_corrected_beside_their_page_and_taken_back(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    ask(page, LENS)
    reader = _correcting(page)
    _change(reader, READ, MEANT)
    expect(reader.get_by_text("1 place changed")).to_be_visible()
    reader.get_by_role("button", name="Text", exact=True).click()  # a look elsewhere loses nothing
    reader.get_by_role("button", name="Correct", exact=True).click()
    reader.get_by_role("button", name="Save", exact=True).click()
    shown = reader.get_by_test_id("page-text")
    expect(shown.locator("ins")).to_have_text(MEANT)
    expect(shown.locator("ins")).to_have_attribute("title", f"Read as “{READ}”")
    listed = reader.get_by_role("list", name="Corrections of this document", exact=True)
    expect(listed.get_by_role("listitem")).to_have_count(1)
    expect(listed).to_contain_text(f"{READ} → {MEANT}")
    expect(listed).to_contain_text("Page 2")

    # The answer of before opens the words of then, and says so; the next one quotes the new ones.
    reader.get_by_role("button", name="Back to sources", exact=True).click()
    page.get_by_role("button", name="Citation 1", exact=True).first.click()
    expect(_quoted(page)).to_contain_text(READ)
    page.locator("[aria-current='true']").get_by_role("button", name="Open document").click()
    expect(reader.get_by_text("The words of then")).to_be_visible()
    expect(reader.locator("[data-page='2'] [data-highlight]").first).to_be_visible()
    reader.get_by_role("button", name="Text", exact=True).click()
    expect(reader.locator("[data-highlight]")).to_contain_text(READ)
    reader.get_by_role("button", name="Show the text of now", exact=True).click()
    expect(reader).to_contain_text(MEANT)
    ask(page, LENS)
    page.get_by_role("button", name="Citation 1", exact=True).last.click()
    expect(_quoted(page)).to_contain_text(MEANT)

    reader = _correcting(page)
    reader.get_by_role("button", name=f"Undo: {READ} stands there again", exact=True).click()
    expect(reader.get_by_text("Nothing was corrected.")).to_be_visible()
    expect(reader.get_by_test_id("page-text")).to_contain_text(READ)


def test_what_was_corrected_elsewhere_meanwhile_is_told_and_the_words_stay(
    filled: DocuMind, open_page: OpenPage
) -> None:
    first, second = open_page(filled), open_page(filled)
    readers = []
    for page in (first, second):
        choose(page, "My documents")
        readers.append(_correcting(page))
        _change(readers[-1], READ, MEANT)
    for reader in readers:
        reader.get_by_role("button", name="Save", exact=True).click()
    expect(readers[0].get_by_test_id("page-text").locator("ins")).to_have_text(MEANT)
    expect(readers[1].get_by_role("alert")).to_contain_text("is not the live one")
    assert MEANT in readers[1].get_by_label("Words of this page", exact=True).input_value()


def test_a_text_without_pages_is_corrected_in_parts_and_moves_with_its_corrections(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    page.get_by_role("list", name="Documents", exact=True).get_by_text("Orchard").click()
    reader = page.get_by_role("region", name="Document", exact=True)
    reader.get_by_role("button", name="Correct", exact=True).click()
    expect(reader.get_by_text(re.compile(r"^Part \d of 1$"))).to_be_visible()
    _change(reader, "above the river.", "beside the river.")
    reader.get_by_role("button", name="Save", exact=True).click()
    expect(reader.get_by_test_id("page-text")).to_contain_text("beside the river.")
    listed = reader.get_by_role("list", name="Corrections of this document", exact=True)
    expect(listed).to_contain_text("above → beside")
    page.get_by_role("checkbox", name="Ask only The Orchard Notes").check()
    page.get_by_role("button", name="Move to Public").click()
    expect(page.get_by_text("1 document is in Public now.")).to_be_visible()
    listed_there = cast(
        "list[dict[str, str]]",
        filled.get("/api/v1/papers", q="Orchard", library="public")["documents"],
    )
    base = f"/api/v1/documents/{listed_there[0]['doc_id']}"
    held = filled.get(f"{base}/corrections", library="public")["corrections"]
    assert [(one["before"], one["text"]) for one in cast("list[dict[str, str]]", held)] == [
        ("above", "beside")
    ]
    assert "on terraces beside the river." in str(
        filled.get(f"{base}/text", library="public")["text"]
    )
