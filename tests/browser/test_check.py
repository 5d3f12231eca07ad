"""A person checks a text: pasted, from a file, against a source; opens the place; keeps the report."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ORCHARD
from tests.browser.servers import DocuMind
from tests.browser.views import choose
from tests.fakes.files import make_docx

SOURCE = "The bridge over the river Tagus opened on 6 August 1966. It is 2277 metres long."


def _checked(page: Page) -> dict[str, int]:
    """Press Check, and return how many sentences have which verdict."""
    page.get_by_role("button", name="Check", exact=True).click()
    rows = page.get_by_role("region", name="Checked text").get_by_role("listitem")
    expect(rows.first).to_be_visible(timeout=30_000)
    found = [row.inner_text().split("\n")[0] for row in rows.all()]
    return {verdict: found.count(verdict) for verdict in found}


def test_a_pasted_text_gets_verdicts_places_and_a_report(
    empty: DocuMind, open_page: OpenPage, tmp_path: Path
) -> None:
    empty.upload(("bridge.md", SOURCE.encode()), ("orchard.md", ORCHARD.encode()))
    page = open_page(empty)
    page.get_by_role("link", name="Check", exact=True).click()
    choose(page, "My documents")
    page.get_by_label("Text to check").fill(
        "# The bridge\n\nThe bridge over the river Tagus opened on 6 August 1966."
        " It is 3277 metres long. Bananas ripen in Ecuador."
    )
    assert _checked(page) == {
        "claims nothing": 1,
        "supported": 1,
        "contradicted": 1,
        "not found": 1,
    }
    checked = page.get_by_role("region", name="Checked text")
    with page.expect_download() as kept:
        checked.get_by_role("button", name="Markdown").click()
    kept.value.save_as(tmp_path / "check.md")
    assert (
        "1 supported, 0 unsure, 1 contradicted, 1 not found" in (tmp_path / "check.md").read_text()
    )
    with page.expect_download() as kept:
        checked.get_by_role("button", name="JSON").click()
    kept.value.save_as(tmp_path / "check.json")
    assert json.loads((tmp_path / "check.json").read_text())["counts"]["contradicted"] == 1
    checked.get_by_role("button", name="Open").first.click()
    expect(page.locator("[data-highlight]").first).to_contain_text("6 August 1966")


def test_one_sentence_is_changed_and_checked_by_itself(
    empty: DocuMind, open_page: OpenPage
) -> None:
    empty.upload(("bridge.md", SOURCE.encode()), ("orchard.md", ORCHARD.encode()))
    page = open_page(empty)
    page.get_by_role("link", name="Check", exact=True).click()
    choose(page, "My documents")
    text = page.get_by_label("Text to check")
    text.fill("It is 3277 metres long. Bananas ripen in Ecuador.")
    assert _checked(page) == {"contradicted": 1, "not found": 1}
    sent: list[str] = []
    page.on("request", lambda one: sent.append(one.post_data or "") if "check" in one.url else None)
    row = page.get_by_role("region", name="Checked text").get_by_role("listitem").first
    row.get_by_role("button", name="Change this sentence").click()
    box = page.get_by_label("Changed sentence")
    expect(box).to_be_focused()
    box.fill("The bridge over the river Tagus is 2277 metres long.")
    page.get_by_role("button", name="Check this sentence").click()
    expect(row).to_contain_text("supported")
    assert [json.loads(one)["text"] for one in sent] == [
        "The bridge over the river Tagus is 2277 metres long."
    ]
    whole = "The bridge over the river Tagus is 2277 metres long. Bananas ripen in Ecuador."
    expect(text).to_have_value(whole)
    expect(page.get_by_role("region", name="Checked text").get_by_role("status")).to_have_text(
        re.compile(r"1 supported\s*1 not found")
    )
    page.reload()
    expect(text).to_have_value(whole)


def test_a_file_is_read_and_a_source_that_does_not_hold_gets_a_better_one(
    empty: DocuMind, open_page: OpenPage, tmp_path: Path
) -> None:
    empty.upload(("bridge.md", SOURCE.encode()))
    page = open_page(empty)
    page.get_by_role("link", name="Check", exact=True).click()
    choose(page, "My documents")
    (tmp_path / "draft.docx").write_bytes(make_docx())
    text = page.get_by_label("Text to check")
    page.get_by_label("Open a file").set_input_files(tmp_path / "draft.docx")
    expect(text).not_to_have_value("")
    text.fill("The bridge over the river Tagus opened on 6 August 1966.")
    page.get_by_role("button", name="Check against one source").click()
    page.get_by_label("The source").fill("Copper is a soft red metal.")
    assert _checked(page) == {"not found": 1}
    checked = page.get_by_role("region", name="Checked text")
    expect(checked).to_contain_text("A better source: “The bridge over the river Tagus")


def test_references_of_a_draft_are_looked_up(empty: DocuMind, open_page: OpenPage) -> None:
    empty.upload(("bridge.md", f"# Bridges of the Tagus\n\n{SOURCE}".encode()))
    page = open_page(empty)
    page.get_by_role("link", name="Check", exact=True).click()
    choose(page, "My documents")
    page.get_by_label("Text to check").fill(
        "It is 2277 metres long [1].\n\n## References\n\n"
        "[1] Bridges of the Tagus, 1966.\n[2] Slow Rivers, 1950."
    )
    page.get_by_role("button", name="Check", exact=True).click()
    rows = page.get_by_role("region", name="References").get_by_role("listitem")
    expect(rows).to_have_count(2, timeout=30_000)
    expect(rows.nth(0)).to_contain_text("found")
    expect(rows.nth(1)).to_contain_text("not in the library")
    rows.nth(0).get_by_role("button").click()
    reader = page.get_by_role("region", name="Text of the document")
    expect(reader).to_contain_text("6 August 1966")


def test_a_long_check_says_how_far_it_is_and_can_be_stopped(
    empty: DocuMind, open_page: OpenPage
) -> None:
    empty.upload(("bridge.md", SOURCE.encode()))
    page = open_page(empty)
    page.get_by_role("link", name="Check", exact=True).click()
    choose(page, "My documents")
    draft = " ".join(f"The bridge over river {n} was painted by hand." for n in range(2000))
    page.get_by_label("Text to check").fill(draft)
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.get_by_text(re.compile(r"\d+ of 2,000 sentences"))).to_be_visible()
    expect(page.get_by_role("progressbar", name="Progress of the check")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("progressbar", name="Progress of the check")).to_have_count(0)
    expect(page.get_by_role("region", name="Checked text")).to_have_count(0)
    page.get_by_label("Text to check").fill(
        "The bridge over the river Tagus opened on 6 August 1966."
    )
    assert _checked(page) == {"supported": 1}
