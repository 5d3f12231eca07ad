"""The server goes away and comes back, or the page is loaded again in mid-answer: nothing that was asked is lost."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ENGINEER, LENS, lighthouse_pdf
from tests.browser.servers import DocuMind
from tests.browser.views import ask, choose
from tests.fakes.ollama_double import DoubleModel, OllamaDouble, Script


def test_away_and_back_without_a_reload(tmp_path: Path, open_page: OpenPage) -> None:
    with DocuMind(tmp_path / "data") as server:
        server.upload(("lighthouse.pdf", lighthouse_pdf()))
        page = open_page(server)
        page.evaluate("window.stayed = true")
        choose(page, "My documents")
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


def test_a_reload_in_mid_answer_keeps_the_question(tmp_path: Path, open_page: OpenPage) -> None:
    double = OllamaDouble([DoubleModel("small:1b", parameter_size="1.2B")], read_tokens_per_s=2)
    settings = {"EMBEDDING_PROVIDER": "minilm", "LLM_MODEL": "small:1b"}
    with double, DocuMind(tmp_path / "data", OLLAMA_BASE_URL=double.url, **settings) as server:
        server.upload(("lighthouse.pdf", lighthouse_pdf()))
        page = open_page(server)
        choose(page, "My documents")
        box = page.get_by_label("Question", exact=True)
        box.fill(ENGINEER)
        box.press("Enter")
        said = page.get_by_role("article", name=ENGINEER)
        expect(said.get_by_role("progressbar", name="Reading")).to_be_visible()
        expect(page).to_have_url(re.compile("#/?ask/."))
        page.reload()
        expect(said).to_contain_text("Broken off before an answer came.")
        double.read_tokens_per_s = 0.0
        double.say(Script.of("Ilse Tarrow designed the Lighthouse of Morvane [1].", asked=ENGINEER))
        said.get_by_role("button", name="Ask again").click()
        expect(said.get_by_role("button", name="Good answer")).to_be_visible(timeout=30_000)
        page.reload()
        expect(said).to_contain_text("Ilse Tarrow")
        expect(said).to_have_count(1)
