"""The page in other languages: chosen, kept, whole, and nowhere wider than a phone."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ENGINEER, ORCHARD, PICKERS, lighthouse_pdf
from tests.browser.servers import ROOT, DocuMind
from tests.browser.views import go, views

MESSAGES: dict[str, dict[str, str | dict[str, str]]] = {
    language: json.loads(
        (ROOT / "web" / "src" / "languages" / f"{language}.json").read_text(encoding="utf-8")
    )
    for language in ("de", "es")
}
# what has values, and words that a document or a server may say too, prove nothing
ENGLISH = {
    language: {
        key
        for key, text in messages.items()
        if text != key and "{" not in key and len(key.split()) > 1
    }
    for language, messages in MESSAGES.items()
}
VIEWS = views(ENGINEER)
WIDE = """() => [document.documentElement, ...document.querySelectorAll("body *")].filter(one => {
  if (one.closest("dialog:not([open]), .sr-only, svg")) return false;
  for (let box = one.parentElement; box; box = box.parentElement) {
    if (box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX !== "visible") return false;
  }
  const {right} = one.getBoundingClientRect();
  return right > innerWidth + 1 || (one === document.documentElement && one.scrollWidth > innerWidth);
}).map(one => one.outerHTML.slice(0, 200))"""
SAID = """() => [...document.querySelectorAll("body *")].flatMap(one => [
  ...[...one.childNodes].filter(node => node.nodeType === 3).map(node => node.data.trim()),
  ...["aria-label", "title", "placeholder"].map(name => one.getAttribute(name)),
])"""


@pytest.fixture(scope="module")
def library(server: DocuMind) -> DocuMind:
    """Documents that these tests only read."""
    server.clear()
    server.upload(("lighthouse.pdf", lighthouse_pdf()), ("orchard.md", ORCHARD.encode()))
    return server


def _in(page: Page, language: str) -> None:
    page.evaluate(
        f"""localStorage.setItem('documind.preferences.1', '{{"language":"{language}"}}')"""
    )
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", language)


@pytest.mark.parametrize("language", ["de", "es"])
@pytest.mark.parametrize("view", [name for name in VIEWS if name != "first-run"])
def test_a_language_is_whole_and_fits_a_phone(
    library: DocuMind, open_page: OpenPage, view: str, language: str
) -> None:
    page = open_page(library, width=390, height=844)
    VIEWS[view](page)
    _in(page, language)
    if view == "options":
        page.get_by_role("button", name=re.compile(f"^{MESSAGES[language]['Options']}")).click()
    if view == "help":
        page.keyboard.press("?")
    pages = page.get_by_role("navigation", name=str(MESSAGES[language]["Pages"]))
    expect(pages).to_be_visible()
    expect(page.locator(".pulse")).to_have_count(0)
    assert page.evaluate(WIDE) == []
    assert set(page.evaluate(SAID)) & ENGLISH[language] == set()


@pytest.mark.parametrize("language", ["de", "es"])
def test_a_refusal_names_the_nearest_places_in_the_language_of_the_page(
    library: DocuMind, open_page: OpenPage, language: str
) -> None:
    page = open_page(library, width=390, height=844)
    _in(page, language)
    box = page.get_by_label(str(MESSAGES[language]["Question"]), exact=True)
    box.fill(PICKERS)
    box.press("Enter")
    name = MESSAGES[language]["The nearest places, which are no answer"]
    places = page.get_by_role("region", name=str(name))
    expect(places.get_by_role("listitem")).to_have_count(3)
    assert page.evaluate(WIDE) == []
    assert set(page.evaluate(SAID)) & ENGLISH[language] == set()


def test_what_the_server_says_is_in_the_language_of_the_page(
    library: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(library)
    _in(page, "de")
    page.get_by_test_id("upload").set_input_files(
        {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.4 nothing"}
    )
    uploads = page.get_by_role("region", name="Neue Dateien")
    expect(uploads).to_contain_text("Beschädigt, leer oder nicht das, was der Name sagt.")
    page.get_by_role("button", name=re.compile("^Optionen")).click()
    page.get_by_label("Art", exact=True).select_option("summary")
    page.keyboard.press("Escape")
    box = page.get_by_label("Frage", exact=True)
    box.fill("Summarise this document")
    box.press("Enter")
    said = page.get_by_role("article", name="Summarise this document").get_by_role("status")
    expect(said.first).to_have_text(
        "Es ist nicht klar, welches Dokument gemeint ist: Haken Sie es an oder nennen Sie seinen Titel."
    )


def test_a_language_is_chosen_and_kept(library: DocuMind, open_page: OpenPage) -> None:
    page = open_page(library)
    go(page, "Settings")
    page.get_by_label("Language", exact=True).select_option("es")
    expect(page.get_by_role("heading", name="Apariencia")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "es")
    page.reload()
    expect(page.get_by_role("link", name="Preguntar", exact=True)).to_be_visible()
    page.get_by_label("Idioma", exact=True).select_option("")
    expect(page.get_by_role("heading", name="Appearance")).to_be_visible()
