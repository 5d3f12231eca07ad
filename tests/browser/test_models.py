"""Which model answers: the page says it, and another one is one press away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ENGINEER, lighthouse_pdf
from tests.browser.servers import DocuMind
from tests.browser.test_accessibility import violations
from tests.browser.views import ask, go
from tests.fakes.ollama_double import DoubleModel, OllamaDouble
from tests.fakes.openai_double import OpenAIDouble, finish, piece, sse

SMALL = DoubleModel("small:1b", parameter_size="1.2B")
LARGE = DoubleModel("large:8b", parameter_size="8.0B")
VECTORS = DoubleModel("vectors:latest", "bert", dimension=8)


@pytest.mark.timeout(300)
def test_another_model_answers_from_now_on_without_a_restart(
    tmp_path: Path, open_page: OpenPage
) -> None:
    with (
        OllamaDouble([SMALL, LARGE, VECTORS]) as double,
        DocuMind(
            tmp_path / "data", OLLAMA_BASE_URL=double.url, EMBEDDING_PROVIDER="minilm"
        ) as server,
    ):
        page = open_page(server, "/#/settings")
        header = page.get_by_role("banner")
        expect(header).to_contain_text("large:8b")
        models = page.get_by_role("table", name="Installed models")
        row = models.get_by_role("row", name=re.compile("small:1b"))
        expect(models.get_by_role("button", name="Use this")).to_have_count(1)
        row.get_by_role("button", name="Use this").click()
        expect(header).to_contain_text("small:1b")
        expect(row).to_contain_text("in use")
        page.get_by_role("button", name="Help").click()
        page.get_by_role("button", name="Check", exact=True).click()
        expect(page.get_by_role("status").filter(has_text="Connected")).to_contain_text(
            "Connected: small:1b answers (it was chosen)."
        )


@pytest.mark.timeout(300)
def test_a_named_model_is_the_environments(tmp_path: Path, open_page: OpenPage) -> None:
    with (
        OllamaDouble([SMALL, LARGE]) as double,
        DocuMind(
            tmp_path / "data",
            OLLAMA_BASE_URL=double.url,
            EMBEDDING_PROVIDER="minilm",
            LLM_MODEL="phi4",
        ) as server,
    ):
        page = open_page(server, "/#/settings")
        expect(page.get_by_text("The environment decides which model answers.")).to_be_visible()
        expect(page.get_by_text("ollama pull phi4")).to_be_visible()
        expect(page.get_by_role("button", name="Use this")).to_have_count(0)


@pytest.mark.timeout(300)
def test_a_model_of_another_host_answers_once_its_key_is_given(
    tmp_path: Path, open_page: OpenPage
) -> None:
    with OpenAIDouble() as double, DocuMind(tmp_path / "data") as server:
        server.upload(("lighthouse.pdf", lighthouse_pdf()))
        page = open_page(server, "/#/settings")
        page.get_by_text("A model of another host").click()
        form = page.get_by_role("form", name="A model of another host")
        form.get_by_label("Address of the host").fill(f"{double.url}/v1")
        form.get_by_label("Model on the host").fill("chat-1")
        form.get_by_label("Key of the host").fill(double.key)
        page.get_by_text("What a model is told, word for word.").click()
        expect(page.get_by_role("list", name="The prompt")).to_be_visible()
        assert violations(page) == ""
        form.get_by_role("button", name="Use this").click()
        header = page.get_by_role("banner")
        expect(header).to_contain_text("chat-1")
        expect(page.get_by_text("No language model is connected")).to_have_count(0)
        said = "The engineer Ilse Tarrow designed the lighthouse [1]."
        double.queue(sse(piece(said), finish("stop")))
        go(page, "Ask")
        ask(page, ENGINEER)
        expect(page.get_by_role("article", name=ENGINEER)).to_contain_text("chat-1")
        go(page, "Settings")
        page.reload()
        expect(form.get_by_label("Key of the host")).to_have_value("")
        assert double.key not in page.content()
        form.get_by_role("button", name="Forget host and key").click()
        expect(header).to_contain_text("no model")
        assert not (tmp_path / "data" / "hosted.json").exists()
