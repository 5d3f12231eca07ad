"""What the documents say stands on the page while a model reads, and beside its words after."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ENGINEER, LENS, lighthouse_pdf
from tests.browser.servers import DocuMind
from tests.browser.views import ask
from tests.fakes.ollama_double import DoubleModel, Fault, OllamaDouble, Script

TITLE = "From your documents"
WORDS = "Ilse Tarrow designed the Lighthouse of Morvane [1]."


@contextmanager
def _asked_of(double: OllamaDouble, directory: Path) -> Iterator[DocuMind]:
    model = double.models[0].name
    settings = {"OLLAMA_BASE_URL": double.url, "EMBEDDING_PROVIDER": "minilm", "LLM_MODEL": model}
    with double, DocuMind(directory / "data", **settings) as server:
        server.upload(("lighthouse.pdf", lighthouse_pdf()))
        yield server


def _begin(page: Page, question: str) -> None:
    box = page.get_by_label("Question", exact=True)
    box.fill(question)
    box.press("Enter")


def test_the_quote_is_there_while_the_model_reads_and_its_words_follow(
    tmp_path: Path, open_page: OpenPage
) -> None:
    double = OllamaDouble([DoubleModel("small:1b", parameter_size="1.2B")], read_tokens_per_s=60)
    with _asked_of(double, tmp_path) as server:
        page = open_page(server)
        double.say(
            Script.of(
                "A mercury bath carries the lens, so it turns with little friction [1].", asked=LENS
            )
        )
        double.say(Script.of(WORDS, asked=ENGINEER))
        ask(page, LENS)  # the second time the page knows how fast this model reads
        _begin(page, ENGINEER)
        said = page.get_by_role("article", name=ENGINEER)
        quote = said.get_by_role("region", name=TITLE)
        expect(quote).to_contain_text("Ilse Tarrow")
        expect(said).to_contain_text(
            re.compile(r"small:1b is reading about \d+ tokens, about \d+ s")
        )
        expect(said.get_by_role("progressbar", name="Reading")).to_be_visible()
        expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
        quote.get_by_role("button", name=re.compile("^Citation")).first.click()
        mark = page.get_by_role("region", name="Sources", exact=True).locator("[data-highlight]")
        assert (mark.text_content() or "?").rstrip(".") in (quote.text_content() or "")
        expect(
            said.get_by_role("progressbar")
        ).to_be_visible()  # all of that while the model still reads
        expect(said.get_by_role("button", name="Good answer")).to_be_visible(timeout=30_000)
        expect(said.get_by_role("progressbar")).to_have_count(0)
        expect(quote).to_contain_text("Ilse Tarrow")
        assert (said.text_content() or "").count(quote.locator(".prose").text_content() or "?") == 1


def test_a_model_that_speaks_alone_has_the_quote_folded_below(
    tmp_path: Path, open_page: OpenPage
) -> None:
    double = OllamaDouble([DoubleModel("large:8b", parameter_size="8.0B")], read_tokens_per_s=60)
    with _asked_of(double, tmp_path) as server:
        page = open_page(server)
        double.say(Script.of(WORDS, asked=ENGINEER))
        _begin(page, ENGINEER)
        said = page.get_by_role("article", name=ENGINEER)
        folded = said.locator("details")
        expect(folded.locator(".prose")).to_contain_text("Ilse Tarrow")
        # all of that while the model still reads
        expect(said.get_by_role("progressbar", name="Reading")).to_be_visible()
        expect(folded.locator(".prose")).to_be_visible()
        expect(said.get_by_role("button", name="Good answer")).to_be_visible(timeout=30_000)
        expect(said.locator(".prose").first).to_contain_text(
            "Ilse Tarrow designed the Lighthouse of Morvane"
        )
        expect(folded.locator(".prose")).not_to_be_visible()
        folded.get_by_text(f"{TITLE}, word for word").click()
        expect(folded.get_by_role("button", name=re.compile("^Citation")).first).to_be_visible()


def test_the_quote_is_the_answer_where_the_model_fails(tmp_path: Path, open_page: OpenPage) -> None:
    double = OllamaDouble([DoubleModel("large:8b", parameter_size="8.0B")])
    with _asked_of(double, tmp_path) as server:
        page = open_page(server)
        page.wait_for_load_state("networkidle")  # the page asks the model for suggestions too
        for _ in range(4):
            double.fail("/api/chat", Fault("error_line", after=1))
        ask(page, ENGINEER)
        said = page.get_by_role("article", name=ENGINEER)
        expect(said).to_contain_text("the answer quotes your documents instead")
        expect(said.get_by_role("region", name=TITLE)).to_contain_text("Ilse Tarrow")
        expect(said.locator(".prose")).to_have_count(1)
