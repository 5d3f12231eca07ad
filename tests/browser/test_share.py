"""A person shares one answer by a link; who has it reads that answer, and nothing else, until it is revoked."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ENGINEER, PEARS, lighthouse_pdf
from tests.browser.servers import DocuMind
from tests.browser.test_accessibility import violations
from tests.browser.views import ask, choose, go

KEY = "correct-horse-battery"


def test_an_answer_is_read_by_its_link_until_it_is_revoked(
    tmp_path: Path, open_page: OpenPage
) -> None:
    with DocuMind(tmp_path / "data", API_KEY=KEY) as server:
        server.upload(("lighthouse.pdf", lighthouse_pdf()))
        page = open_page(server)
        page.get_by_role("dialog", name="API key").get_by_label("API key", exact=True).fill(KEY)
        page.keyboard.press("Enter")
        choose(page, "My documents")
        ask(page, ENGINEER)
        page.get_by_role("button", name="Copy answer").click()
        page.get_by_role("menuitem", name="Share by link").click()
        dialog = page.get_by_role("dialog", name="Share this answer")
        expect(dialog).to_contain_text("No answer is open by a link.")
        dialog.get_by_role("button", name="Make a link").click()
        link = dialog.get_by_label("Link to the shared answer").input_value()
        assert link.startswith(f"{server.base}/shared/")
        dialog.get_by_role("button", name="Copy", exact=True).click()
        expect(dialog.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == link

        stranger = open_page(server, link.removeprefix(server.base))
        shared = stranger.get_by_role("article", name=ENGINEER)
        expect(shared).to_contain_text("Ilse Tarrow")
        expect(stranger.get_by_role("dialog")).to_have_count(0)
        expect(stranger.get_by_label("Question", exact=True)).to_have_count(0)
        shared.get_by_role("button", name="Citation 1", exact=True).first.click()
        source = shared.get_by_role("listitem").first
        expect(source).to_be_focused()
        expect(source).to_contain_text("Morvane")
        expect(source).to_contain_text("designed by the engineer Ilse Tarrow")
        assert stranger.locator("meta[name=robots]").get_attribute("content") == (
            "noindex, nofollow"
        )
        assert violations(stranger) == ""

        page.keyboard.press("Escape")
        go(page, "Settings")
        listed = page.get_by_role("list", name="Shared answers")
        expect(listed).to_contain_text(ENGINEER)
        listed.get_by_role("button", name="Revoke").click()
        expect(page.get_by_text("No answer is open by a link.")).to_be_visible()
        stranger.reload()
        expect(stranger.get_by_role("alert")).to_contain_text("This link opens nothing")
        assert PEARS not in stranger.content()
