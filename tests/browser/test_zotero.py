"""A library follows Zotero from the page, and the page says what Zotero says."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.servers import DocuMind
from tests.fakes.zotero_double import ZoteroDouble


def test_documents_follow_zotero_by_a_press(tmp_path: Path, open_page: OpenPage) -> None:
    with ZoteroDouble(tmp_path / "Zotero") as zotero:
        keys = [
            zotero.add(itemType="book", title=f"Rivers {n}", abstractNote=f"Silt of river {n}.")
            for n in range(3)
        ]
        with DocuMind(tmp_path / "data", ZOTERO_URL=zotero.url) as server:
            page = open_page(server)
            documents = page.get_by_role("region", name="Documents", exact=True)
            documents.get_by_text("Follow Zotero").click()
            card = documents.get_by_role("group", name="Follow Zotero")

            zotero.is_on = False
            card.get_by_role("button", name="Sync with Zotero").click()
            expect(card.get_by_role("alert")).to_contain_text("Allow other applications")

            zotero.is_on = True
            card.get_by_role("button", name="Sync with Zotero").click()
            said = card.get_by_role("status")
            expect(said).to_contain_text("3 added, 0 changed, 0 removed, 0 unchanged")
            expect(documents.get_by_text("Rivers 1", exact=True).first).to_be_visible()

            zotero.change(keys[0], title="Estuaries")
            zotero.trash(keys[1])
            card.get_by_role("button", name="Sync with Zotero").click()
            expect(said).to_contain_text("0 added, 1 changed, 1 removed, 1 unchanged")
            expect(documents.get_by_text("Estuaries", exact=True).first).to_be_visible()
            expect(documents.get_by_text("Rivers 1", exact=True)).to_have_count(0)

            zotero.trash(keys[0])
            zotero.trash(keys[2])
            card.get_by_role("button", name="Sync with Zotero").click()
            kept = card.get_by_role("status").filter(has_text="more than half")
            expect(kept).to_contain_text("2 documents are gone from Zotero and kept here")
            kept.get_by_role("button", name="Remove them").click()
            expect(said.first).to_contain_text("0 added, 0 changed, 2 removed, 0 unchanged")
