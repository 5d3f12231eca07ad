"""Every view of the page, and how a person gets to it; axe and the screenshots look at the same ones."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

CHECKED = (
    "The tower is forty-one metres high. The last keeper left in 1989. Bananas ripen in Ecuador."
)
"""Sentences for the view that checks a text."""

View = Callable[[Page], None]


def ask(page: Page, question: str) -> None:
    """Ask, and wait for the closing event: the answer has its footer."""
    finished = page.get_by_role("article").get_by_role("button", name="Good answer")
    before = finished.count()
    box = page.get_by_label("Question", exact=True)
    box.fill(question)
    box.press("Enter")
    expect(finished).to_have_count(before + 1, timeout=30_000)


def choose(page: Page, library: str) -> None:
    """Switch the library."""
    page.get_by_role("group", name="Library", exact=True).get_by_role(
        "button", name=library
    ).click()


def go(page: Page, name: str) -> None:
    """Open a page of the program: by its tab, or behind "More" where the tabs have no room."""
    tab = page.get_by_role("banner").get_by_role("link", name=name, exact=True)
    if not tab.is_visible():
        page.get_by_role("navigation", name="Pages").get_by_role("button").click()
        tab = page.get_by_role("menuitem", name=name, exact=True)
    tab.click()


def show_pane(page: Page, name: str) -> None:
    """Bring a pane up where a phone shows one at a time."""
    tab = page.get_by_role("navigation", name="Panes").get_by_role("button", name=name)
    if tab.is_visible():
        tab.click()


def views(question: str) -> dict[str, View]:
    """Views by name; `question` is one that the papers answer."""

    def first_steps(page: Page) -> None:
        expect(page.get_by_role("region", name="First steps", exact=True)).to_be_visible()

    def documents(page: Page) -> None:
        show_pane(page, "Documents")
        choose(page, "My documents")
        page.get_by_role("checkbox").first.check()

    def answer(page: Page) -> None:
        show_pane(page, "Documents")
        choose(page, "My documents")
        show_pane(page, "Chat")
        ask(page, question)

    def citation(page: Page) -> None:
        answer(page)
        page.get_by_role("button", name="Citation 1", exact=True).first.click()
        expect(page.locator("[data-highlight]").first).to_be_visible()

    def document(page: Page) -> None:
        citation(page)
        page.locator("[aria-current='true']").get_by_role("button", name="Open document").click()
        reader = page.get_by_role("region", name="Document", exact=True)
        expect(reader.locator("[data-highlight]").first).to_be_visible()

    def correct(page: Page) -> None:
        document(page)
        reader = page.get_by_role("region", name="Document", exact=True)
        reader.get_by_role("button", name="Correct", exact=True).click()
        reader.get_by_role("button", name="Edit the words", exact=True).click()
        expect(reader.get_by_label("Words of this page", exact=True)).to_be_focused()

    def inspect(page: Page) -> None:
        answer(page)
        page.get_by_role("link", name="Inspect", exact=True).last.click()
        expect(page.get_by_text("Time per step")).to_be_visible()

    def search(page: Page) -> None:
        go(page, "Search")
        choose(page, "My documents")
        page.get_by_label("Search", exact=True).fill(question)
        expect(page.get_by_role("listitem").first).to_be_visible()

    def check(page: Page) -> None:
        go(page, "Check")
        choose(page, "My documents")
        page.get_by_label("Text to check").fill(f"# A draft\n\n{CHECKED}")
        page.get_by_role("button", name="Check", exact=True).click()
        expect(page.get_by_role("region", name="Checked text")).to_be_visible()

    def evaluate(page: Page) -> None:
        go(page, "Evaluate")
        expect(page.get_by_role("button", name="Start a run")).to_be_visible()

    def status(page: Page) -> None:
        go(page, "Status")
        expect(page.get_by_role("table", name="Libraries")).to_be_visible()
        expect(page.get_by_role("heading", name="Diagnostics")).to_be_visible()

    def settings(page: Page) -> None:
        go(page, "Settings")
        expect(page.get_by_role("heading", name="Appearance")).to_be_visible()

    def conversations(page: Page) -> None:
        answer(page)
        show_pane(page, "Conversations")
        side = page.get_by_role("group", name="Left side")
        if side.is_visible():
            side.get_by_role("button", name="Conversations").click()
        # a long title is cut
        expect(page.get_by_role("link", name=question[:40])).not_to_have_count(0)

    def options(page: Page) -> None:
        show_pane(page, "Chat")
        page.get_by_role("button", name=re.compile("^Options")).click()
        expect(page.get_by_label("Mode", exact=True)).to_be_visible()

    def help_sheet(page: Page) -> None:
        page.evaluate("document.activeElement?.blur()")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Help")).to_be_visible()

    return {
        "first-run": first_steps,
        "documents": documents,
        "answer": answer,
        "citation": citation,
        "document": document,
        "correct": correct,
        "search": search,
        "check": check,
        "inspect": inspect,
        "evaluate": evaluate,
        "status": status,
        "settings": settings,
        "conversations": conversations,
        "options": options,
        "help": help_sheet,
    }


def wait_until(page: Page, script: str) -> None:
    """Wait until a script of the page is true; our security policy forbids Playwright's own wait."""
    for _ in range(200):
        if page.evaluate(script):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {script}")
