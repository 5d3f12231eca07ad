"""With API_KEY set: a dialogue asks for it, and then everything works, streams and files included."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import LENS, lighthouse_pdf
from tests.browser.servers import DocuMind
from tests.browser.views import ask, choose

KEY = "correct-horse-battery"


def test_the_page_asks_for_the_key_and_uses_it_everywhere(
    tmp_path: Path, open_page: OpenPage
) -> None:
    with DocuMind(tmp_path / "data", API_KEY=KEY) as server:
        page = open_page(server)
        dialogue = page.get_by_role("dialog", name="API key")
        expect(dialogue).to_be_visible()
        page.keyboard.press("Escape")
        expect(dialogue).to_be_visible()
        dialogue.get_by_label("API key", exact=True).fill("wrong")
        dialogue.get_by_role("button", name="Use key").click()
        expect(dialogue.get_by_role("alert")).to_contain_text("did not accept")
        dialogue.get_by_label("API key", exact=True).fill(KEY)
        page.keyboard.press("Enter")
        expect(dialogue).to_be_hidden()

        page.get_by_test_id("upload").set_input_files(
            {"name": "lighthouse.pdf", "mimeType": "application/pdf", "buffer": lighthouse_pdf()}
        )
        expect(page.get_by_role("region", name="Uploads", exact=True)).to_contain_text(
            "Indexed: 3 pages"
        )
        choose(page, "My documents")
        ask(page, LENS)
        page.get_by_role("button", name="Citation 1", exact=True).first.click()
        page.get_by_role("button", name="Open document").first.click()
        expect(page.get_by_role("img", name="Page 2")).to_be_visible()
        expect(page.locator("[data-page='2'] [data-highlight]").first).to_be_visible()

        assert page.evaluate("sessionStorage.getItem('documind.key')") == KEY
        assert page.evaluate("Object.values(localStorage).join()").find(KEY) == -1
        page.reload()
        expect(page.get_by_role("list", name="Documents", exact=True)).to_contain_text("Morvane")
        expect(dialogue).to_be_hidden()
        other = open_page(server)
        expect(other.get_by_role("dialog", name="API key")).to_be_visible()
