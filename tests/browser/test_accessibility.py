"""axe finds nothing on any page, in both themes and at both widths."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ENGINEER, ORCHARD, PICKERS, lighthouse_pdf
from tests.browser.servers import ROOT, DocuMind
from tests.browser.views import ask, views, wait_until

AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN = """rules => axe.run(document, {runOnly: rules}).then(result => result.violations.map(violation => ({
  id: violation.id,
  nodes: violation.nodes.slice(0, 3).map(node => node.html.slice(0, 200) + ' ' + node.failureSummary),
})))"""
STILL = """() => document.getAnimations().every(a => a.timeline !== document.timeline || a.playState !== 'running' || a.effect.getTiming().iterations === Infinity)"""


VIEWS = views(ENGINEER)


@pytest.fixture(scope="module")
def library(server: DocuMind) -> DocuMind:
    """Documents that these tests only read."""
    server.clear()
    server.upload(("lighthouse.pdf", lighthouse_pdf()), ("orchard.md", ORCHARD.encode()))
    return server


def violations(page: Page) -> str:
    # A fade under way would be measured half transparent.
    wait_until(page, STILL)
    # Evaluated, not added as a script: the policy of the page rightly refuses inline scripts.
    page.evaluate(Path(AXE).read_text(encoding="utf-8"))
    found: list[object] = page.evaluate(RUN, RULES)
    return json.dumps(found, indent=1) if found else ""


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", [name for name in VIEWS if name != "first-run"])
def test_axe_finds_nothing(
    library: DocuMind, open_page: OpenPage, view: str, theme: str, width: int
) -> None:
    page = open_page(library, width=width, height=900 if width > 600 else 800, theme=theme)
    VIEWS[view](page)
    assert not violations(page), violations(page)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_a_refusal(library: DocuMind, open_page: OpenPage, theme: str) -> None:
    page = open_page(library, theme=theme)
    ask(page, PICKERS)
    expect(page.get_by_role("region", name="The nearest places")).to_be_visible()
    assert not violations(page), violations(page)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_the_first_run(
    empty: DocuMind, open_page: OpenPage, theme: str
) -> None:
    page = open_page(empty, theme=theme)
    VIEWS["first-run"](page)
    assert not violations(page), violations(page)
