"""The page in other languages: chosen, kept, whole, and nowhere wider than a phone."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ENGINEER, ORCHARD, lighthouse_pdf
from tests.browser.servers import ROOT, DocuMind
from tests.browser.views import go, views

GERMAN: dict[str, str | dict[str, str]] = json.loads(
    (ROOT / "web" / "src" / "languages" / "de.json").read_text(encoding="utf-8")
)
# what has values, and words that a document or a server may say too, prove nothing
ENGLISH = [
    key for key, text in GERMAN.items() if text != key and "{" not in key and len(key.split()) > 1
]
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


def _in_german(page: Page) -> None:
    page.evaluate("localStorage.setItem('documind.preferences.1', '{\"language\":\"de\"}')")
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "de")


@pytest.mark.parametrize("view", [name for name in VIEWS if name != "first-run"])
def test_german_is_whole_and_fits_a_phone(
    library: DocuMind, open_page: OpenPage, view: str
) -> None:
    page = open_page(library, width=390, height=844)
    VIEWS[view](page)
    _in_german(page)
    if view == "options":
        page.get_by_role("button", name=re.compile("^Optionen")).click()
    if view == "help":
        page.keyboard.press("?")
    expect(page.get_by_role("navigation", name="Seiten")).to_be_visible()
    expect(page.locator(".pulse")).to_have_count(0)
    assert page.evaluate(WIDE) == []
    assert set(page.evaluate(SAID)) & set(ENGLISH) == set()


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
