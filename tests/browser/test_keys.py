"""A person makes keys in the settings, sees each once, and revokes them; the server closes and opens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import requests
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.servers import ROOT, DocuMind
from tests.browser.views import go


def _status(server: DocuMind, key: str = "") -> int:
    headers = {"X-API-Key": key} if key else {}
    return requests.get(f"{server.base}/api/v1/libraries", headers=headers, timeout=30).status_code


def test_the_first_key_closes_the_server_and_the_last_one_opens_it(
    tmp_path: Path, open_page: OpenPage
) -> None:
    with DocuMind(tmp_path / "data") as server:
        page = open_page(server)
        go(page, "Settings")
        new = page.get_by_role("form", name="New key")
        new.get_by_label("Name of the key").fill("laptop")
        new.get_by_role("button", name="Make a key").click()
        expect(new).to_contain_text("This is the first key.")
        assert _status(server) == 200  # it was told, and nothing is closed yet
        new.get_by_role("button", name="Make it and close the server").click()
        first = page.get_by_test_id("made-key").inner_text()
        assert (_status(server), _status(server, first)) == (401, 200)
        new.get_by_role("button", name="Copy").click()
        expect(new.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == first
        expect(page.get_by_role("dialog", name="API key")).to_be_hidden()

        new.get_by_label("Name of the key").fill("reader")
        new.get_by_label("Library of the key").select_option("papers")
        new.get_by_label("ask", exact=False).first.uncheck()
        new.get_by_role("button", name="Make a key").click()
        table = page.get_by_role("table", name="Keys")
        expect(table.get_by_role("row", name="reader")).to_contain_text("read")
        expect(table.get_by_role("row", name="reader")).to_contain_text("My documents")
        expect(page.get_by_test_id("made-key")).not_to_have_text(first)
        second = page.get_by_test_id("made-key").inner_text()
        limited = requests.get(
            f"{server.base}/api/v1/libraries", headers={"X-API-Key": second}, timeout=30
        ).json()
        assert [one["library"] for one in limited["libraries"]] == ["papers"]

        page.reload()
        expect(table.get_by_role("row", name="laptop")).to_contain_text("everything")
        expect(page.get_by_test_id("made-key")).to_have_count(0)
        page.get_by_role("button", name="Revoke reader").click()
        with page.expect_response(lambda reply: reply.request.method == "DELETE"):
            table.get_by_role("button", name="Revoke", exact=True).click()
        expect(table.get_by_role("row", name="reader")).to_have_count(0)
        assert _status(server, second) == 401

        page.get_by_role("button", name="Revoke laptop").click()
        table.get_by_role("button", name="Revoke", exact=True).click()
        expect(table).to_contain_text("the last key")
        assert _status(server) == 401
        table.get_by_role("button", name="Revoke and open the server").click()
        expect(table).to_have_count(0)
        assert _status(server) == 200


def test_closed_settings_are_this_browsers_alone_and_commands_still_make_keys(
    tmp_path: Path, open_page: OpenPage
) -> None:
    with DocuMind(tmp_path / "data", ALLOW_SETTINGS="false") as server:
        page = open_page(server)
        go(page, "Settings")
        expect(page.get_by_text("ALLOW_SETTINGS=false")).to_be_visible()
        expect(page.get_by_role("heading", name="Keys")).to_have_count(0)
        expect(page.get_by_label("Model to pull")).to_have_count(0)
        page.get_by_role("group", name="Theme").get_by_role("button", name="Dark").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        made = subprocess.run(
            [sys.executable, "-m", "app", "keys", "add", "laptop", "-s", "admin", "--yes"],
            cwd=ROOT,
            env=server.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        key = made.stdout.strip()
        assert (_status(server), _status(server, key)) == (401, 200)
        pulled = requests.post(
            f"{server.base}/api/v1/models/pull",
            json={"model": "m"},
            headers={"X-API-Key": key},
            timeout=30,
        )
        assert pulled.status_code == 403
