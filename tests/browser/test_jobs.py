"""Vectors of a dump are paused and resumed from the page, and nothing is embedded meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import requests
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.servers import DocuMind

ARTICLES = 1000
"""Their vectors take five seconds on the fastest machine tried, which is time to press a button."""


def embedded(server: DocuMind) -> int:
    return cast("int", server.get("/api/v1/collection/stats", library="public")["embedded"])


def test_bulk_embedding_pauses_and_resumes_from_the_page(
    tmp_path: Path, open_page: OpenPage
) -> None:
    dump = tmp_path / "harbours.jsonl"
    with dump.open("w") as file:
        for n in range(ARTICLES):
            text = (
                f"Harbour {n} has {n % 9 + 2} piers. "
                + f"Its master wrote down tide {n} and wind {n % 12}. " * 12
            )
            file.write(json.dumps({"id": str(n), "title": f"Harbour {n}", "text": text}) + "\n")
    with DocuMind(tmp_path / "data") as server:
        page = open_page(server)
        page.get_by_role("link", name="Status", exact=True).click()
        body = {"action": "index", "library": "public", "source": str(dump)}
        assert requests.post(f"{server.base}/api/v1/bulk", json=body, timeout=30).status_code == 202
        page.get_by_role("button", name="Pause Vectors of new passages").click(timeout=60_000)
        row = page.get_by_role("listitem").filter(has_text="Vectors of new passages").first
        expect(row).to_contain_text("paused", timeout=90_000)  # when its batch is embedded
        kept = embedded(server)
        server.upload(("note.md", b"# Note\n\nA lantern hangs in the tower."))  # embeds meanwhile
        assert embedded(server) == kept < ARTICLES
        row.get_by_role("button", name="Resume Vectors of new passages").click()
        expect(row).to_contain_text("done", timeout=400_000)
        assert embedded(server) == ARTICLES
