"""A note of a vault shows its neighbours, and opens them."""

from __future__ import annotations

import json

import requests
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.servers import DocuMind


def test_a_note_opens_the_notes_around_it(empty: DocuMind, open_page: OpenPage) -> None:
    ids = {}
    for name, links in (("Honey bee", "Comb; Queen"), ("Queen", "Honey bee"), ("Comb", "")):
        address = f"obsidian://open?vault=Garden&file={name.replace(' ', '%20')}"
        own = {"obsidian": address, **({"links": links} if links else {})}
        reply = requests.post(
            f"{empty.base}/api/v1/ingest",
            data={"library": "papers", "metadata": json.dumps(own)},
            files={"file": (f"{name}.md", f"# {name}\n\nThe {name} is in the garden.")},
            timeout=60,
        )
        assert reply.status_code == 201, reply.text
        ids[name] = reply.json()["documents"][0]["doc_id"]
    empty.upload(("lake.txt", b"The lake has no notes around it."))
    page = open_page(empty, f"/?library=papers&doc={ids['Honey bee']}&revision=1&start=0&end=9")
    reader = page.get_by_role("region", name="Document", exact=True)
    reader.get_by_text("Leads to 2, linked from 1").click()
    expect(reader.get_by_role("list", name="Leads to").get_by_role("button")).to_have_text(
        ["Comb", "Queen"]
    )
    reader.get_by_role("list", name="Linked from").get_by_role("button", name="Queen").click()
    expect(reader.get_by_role("heading", name="Queen")).to_be_visible()
    expect(reader).to_contain_text("The Queen is in the garden.")
    reader.get_by_text("Leads to 1, linked from 1").click()
    expect(reader.get_by_role("list", name="Leads to").get_by_role("button")).to_have_text(
        ["Honey bee"]
    )
