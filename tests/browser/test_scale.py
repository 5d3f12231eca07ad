"""The page stays light: what `/` asks for, and a list of ten thousand documents."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Response, expect

from tests.browser.conftest import OpenPage
from tests.browser.servers import DocuMind
from tests.browser.views import choose

INITIAL_BYTES = 300_000
DOCUMENTS = 10_000
MOST_ROWS = 400


def test_scripts_before_interaction_are_small(empty: DocuMind, open_page: OpenPage) -> None:
    page = open_page(empty)
    expect(page.get_by_role("region", name="First steps", exact=True)).to_be_visible()
    loaded: list[Response] = []
    page.on("response", lambda response: loaded.append(response))  # noqa: PLW0108  # Playwright takes no built-in
    page.reload(wait_until="networkidle")
    scripts = [r for r in loaded if r.request.resource_type in {"script", "stylesheet"}]
    sizes = {r.url.rpartition("/")[2]: r.request.sizes()["responseBodySize"] for r in scripts}
    assert sizes, "nothing was loaded"
    assert sum(sizes.values()) <= INITIAL_BYTES, sizes
    assert not [name for name in sizes if "pdf" in name or "evaluate" in name], sizes


def test_ten_thousand_documents_stay_light(
    empty: DocuMind, open_page: OpenPage, tmp_path: Path
) -> None:
    voyages = tmp_path / "voyages.jsonl"
    with voyages.open("w") as file:
        for i in range(DOCUMENTS):
            title = f"Voyage number {i:05d}"
            file.write(
                json.dumps(
                    {
                        "id": str(i),
                        "title": title,
                        "text": f"The log of {title} tells of wind and water.",
                    }
                )
                + "\n"
            )
    empty.bulk_index(voyages)
    empty.cancel_next("backfill")  # the page is looked at, not what two cores do beside it
    page = open_page(empty)
    choose(page, "My documents")
    documents = page.get_by_role("list", name="Documents", exact=True)
    expect(documents).to_contain_text("Voyage number")
    scroller = page.get_by_test_id("document-list")
    most = 0
    reached = False
    for _ in range(400):
        most = max(most, documents.get_by_role("listitem").count())
        scroller.evaluate("node => { node.scrollTop += 3000; }")
        page.wait_for_timeout(30)
        reached = documents.locator(f"[aria-posinset='{DOCUMENTS}']").count() == 1
        if reached:
            break
    assert reached, "the list has no end"
    assert 0 < most <= MOST_ROWS
    assert page.locator("main *").count() < 2500
    page.get_by_label("Find a document", exact=True).fill("07777")
    expect(documents.get_by_role("listitem")).to_have_count(1)
    expect(documents).to_contain_text("Voyage number 07777")
