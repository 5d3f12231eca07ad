"""The page Evaluate: a run from the button to the passages of one question."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.servers import DocuMind

RUN_MS = 60_000


def test_a_run_ends_in_a_report_whose_questions_open(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    page.get_by_role("link", name="Evaluate", exact=True).click()
    page.get_by_role("group", name="What to compare").get_by_role("button", name="Search").click()
    page.get_by_label("Library of the run").select_option("papers")
    page.get_by_role("button", name="Start a run").click()
    expect(page.get_by_text("The run is done; its report is below.")).to_be_visible(timeout=RUN_MS)
    expect(page.get_by_role("heading", name="Retrieval: own papers")).to_be_visible()
    expect(page.get_by_role("table", name="Comparisons with the baseline")).to_contain_text(
        "configured"
    )
    expect(page.get_by_role("img", name="nDCG@10 of 5 arms with 95 % intervals")).to_be_visible()
    table = page.get_by_role("table", name="nDCG@10 by question and arm")
    table.get_by_role("button").first.click()
    expect(
        table.get_by_role("region", name="Found by configured").get_by_role("listitem").first
    ).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="HTML", exact=True).click()
    assert "<svg" in Path(download.value.path()).read_text(encoding="utf-8")


def test_an_answer_set_is_chosen_and_asked(
    filled: DocuMind, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(filled)
    page.get_by_role("link", name="Evaluate", exact=True).click()
    page.get_by_role("group", name="What to compare").get_by_role("button", name="Answers").click()
    start = page.get_by_role("button", name="Start a run")
    expect(start).to_be_disabled()
    wrong, cases = tmp_path / "wrong.jsonl", tmp_path / "cases.jsonl"
    wrong.write_text("not a case\n")
    cases.write_text('{"question": "Hello!", "library": "papers", "intent": "chitchat"}\n')
    page.get_by_label("Answer set").set_input_files(wrong)
    expect(page.get_by_role("alert")).to_contain_text("Line 1 is not a case")
    page.get_by_label("Answer set").set_input_files(cases)
    start.click()
    expect(page.get_by_text("The run is done; its report is below.")).to_be_visible(timeout=RUN_MS)
    expect(page.get_by_role("table", name="right by question and arm")).to_contain_text("Hello!")
