"""The server goes away and comes back; the page says so and goes on without a reload."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ENGINEER, LENS, lighthouse_pdf
from tests.browser.servers import DocuMind
from tests.browser.views import ask, choose


@pytest.mark.timeout(300)
def test_away_and_back_without_a_reload(tmp_path: Path, open_page: OpenPage) -> None:
    with DocuMind(tmp_path / "data") as server:
        server.upload(("lighthouse.pdf", lighthouse_pdf()))
        page = open_page(server)
        page.evaluate("window.stayed = true")
        choose(page, "Papers")
        ask(page, ENGINEER)
        server.stop()
        away = page.get_by_role("alert").filter(
            has_text="it goes on by itself when the server is back"
        )
        expect(away).to_be_visible(timeout=20_000)
        expect(page.get_by_role("article").first).to_contain_text("Ilse Tarrow")
        box = page.get_by_label("Question", exact=True)
        box.fill(LENS)
        box.press("Enter")
        expect(page.get_by_role("article", name=LENS).last.get_by_role("alert")).to_contain_text(
            "No answer."
        )
        server.start()
        expect(away).to_have_count(0, timeout=20_000)
        page.get_by_role("article", name=LENS).last.get_by_role("button", name="Retry").click()
        expect(page.get_by_role("article", name=LENS).last).to_contain_text("mercury bath")
        expect(page.get_by_role("list", name="Documents", exact=True)).to_contain_text("Morvane")
        assert page.evaluate("window.stayed") is True
