"""The page in a real Chromium against a real server; nothing between them is replaced."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    expect,
    sync_playwright,
)

from tests.browser.documents import OBSERVATORY, ORCHARD, lighthouse_pdf
from tests.browser.servers import DocuMind

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

expect.set_options(timeout=30_000)


@dataclass
class Witness:
    """What must not happen on any page."""

    base: str
    external: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Note requests elsewhere, uncaught errors, policy violations and dialogs."""
        page.on("request", self._request)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)
        page.on("dialog", self._dialog)

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.external.append(request.url)

    def _console(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            self.errors.append(message.text)

    def _dialog(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def check(self) -> None:
        """Fail when anything was noted."""
        assert not self.external, self.external
        assert not self.errors, self.errors
        assert not self.dialogs, self.dialogs


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of a worker."""
    assert Path(CHROMIUM).exists(), (
        "chromium is missing: make browser installs it, or apt-get install chromium"
    )
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocuMind]:
    """One server a worker for tests that only need an empty or filled library."""
    with DocuMind(tmp_path_factory.mktemp("site") / "data") as running:
        yield running


@pytest.fixture
def empty(server: DocuMind) -> DocuMind:
    """The server with both libraries empty."""
    server.clear()
    return server


@pytest.fixture
def filled(server: DocuMind) -> DocuMind:
    """The server with three papers and one article."""
    server.clear()
    server.upload(("lighthouse.pdf", lighthouse_pdf()), ("orchard.md", ORCHARD.encode()))
    server.upload(("observatory.md", OBSERVATORY.encode()), library="public")
    return server


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Open the page of a server in a fresh context; at the end nothing may have gone wrong on it."""
    contexts: list[BrowserContext] = []
    witnesses: list[Witness] = []

    def opened(
        server: DocuMind,
        path: str = "/",
        *,
        width: int = 1440,
        height: int = 900,
        theme: str = "light",
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if theme == "dark" else "light",
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.base)
        contexts.append(context)
        page = context.new_page()
        witness = Witness(server.base)
        witness.watch(page)
        witnesses.append(witness)
        page.goto(server.base + path, wait_until="load")
        return page

    yield opened
    for context in contexts:
        context.close()
    for witness in witnesses:
        witness.check()
