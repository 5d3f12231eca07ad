"""What people are used to from other programs: Back, reload, pins, several documents at once, a model by a press."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import ENGINEER, LENS, PEARS, lighthouse_pdf
from tests.browser.servers import ROOT, DocuMind
from tests.browser.views import ask, choose, go, show_pane, wait_until
from tests.fakes.ollama_double import DoubleModel, Fault, OllamaDouble, Script


def test_on_a_phone_back_closes_what_was_opened(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled, width=390, height=844)
    box = page.get_by_label("Question", exact=True)
    show_pane(page, "Documents")
    choose(page, "My documents")
    page.reload()
    panes = page.get_by_role("navigation", name="Panes")
    expect(panes.get_by_role("button", name="Documents")).to_have_attribute("aria-current", "true")
    show_pane(page, "Chat")
    assert (box.bounding_box() or {"height": 0})["height"] >= 44
    ask(page, ENGINEER)
    expect(page.get_by_role("button", name="Copy answer")).to_be_in_viewport()
    page.get_by_role("button", name="Citation 1", exact=True).first.click()
    page.get_by_role("button", name="Open document").first.click()
    reader = page.get_by_role("region", name="Document", exact=True)
    # the text, at the mark, not a page of paper that nobody can read
    expect(reader.locator("mark[data-highlight]")).to_be_in_viewport()
    page.reload()
    expect(reader.locator("mark[data-highlight]")).to_be_in_viewport()
    page.go_back()
    expect(reader).to_have_count(0)
    expect(panes.get_by_role("button", name="Sources")).to_have_attribute("aria-current", "true")
    page.go_back()
    expect(page.get_by_role("article", name=ENGINEER)).to_be_visible()
    go(page, "Status")
    expect(page.get_by_role("navigation", name="Pages").get_by_role("button")).to_have_text(
        "Status"
    )


def test_a_search_a_draft_and_a_document_survive_a_reload(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    go(page, "Search")
    page.get_by_label("Search", exact=True).fill("pears")
    page.get_by_role("listitem").first.get_by_role("button", name="Open").click()
    reader = page.get_by_role("region", name="Document", exact=True)
    expect(reader).to_be_visible()
    page.reload()
    expect(page.get_by_label("Search", exact=True)).to_have_value("pears")
    expect(reader).to_contain_text("The Orchard Notes")
    page.go_back()
    expect(reader).to_have_count(0)
    go(page, "Check")
    page.get_by_label("Text to check").fill("Bananas ripen in Ecuador.")
    page.get_by_role("button", name="Check", exact=True).click()
    verdicts = page.get_by_role("region", name="Checked text")
    expect(verdicts).to_be_visible()
    go(page, "Search")
    go(page, "Check")
    page.reload()
    expect(page.get_by_label("Text to check")).to_have_value("Bananas ripen in Ecuador.")
    expect(verdicts).to_be_visible()
    # the tab of the conversation leads back to it, also after a reload elsewhere
    go(page, "Ask")
    ask(page, PEARS)
    go(page, "Search")
    page.reload()
    go(page, "Ask")
    expect(page.get_by_role("article", name=PEARS)).to_contain_text("sixty kinds")
    page.get_by_role("button", name="New conversation").click()
    go(page, "Search")
    page.reload()
    go(page, "Ask")
    expect(page.get_by_role("article")).to_have_count(0)


def test_conversations_are_found_pinned_and_shared_by_tabs(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    ask(page, ENGINEER)
    page.get_by_role("button", name="Pin this answer").click()
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_role("article", name=ENGINEER)).to_contain_text("Ilse Tarrow")
    ask(page, PEARS)
    expect(other.get_by_role("article", name=PEARS)).to_contain_text("sixty kinds")
    page.get_by_role("button", name="New conversation").click()
    ask(page, PEARS)
    page.get_by_role("button", name="Conversations", exact=True).click()
    side = page.get_by_role("region", name="Conversations", exact=True)
    side.get_by_role("button", name=f"Pin {PEARS}").click()
    expect(side.get_by_role("heading", level=3)).to_have_text(
        ["Pinned answers", "Pinned", "Earlier"]
    )
    side.get_by_label("Find a conversation").fill("lighthouse")
    expect(side.get_by_role("link", name=PEARS)).to_have_count(0)
    side.get_by_role("link", name=ENGINEER).first.click()
    expect(page.get_by_role("article", name=ENGINEER)).to_contain_text("Ilse Tarrow")
    page.go_back()
    expect(page.get_by_role("article", name=ENGINEER)).to_have_count(0)
    expect(page.get_by_role("article", name=PEARS)).to_be_visible()


def test_a_rating_takes_a_comment_and_inspect_lists_the_answer(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    ask(page, ENGINEER)
    page.get_by_role("button", name="Good answer").click()
    page.get_by_label("Comment").fill("The name is right.")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_text("Kept with the answer.")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "true")
    go(page, "Inspect")
    page.get_by_role("list", name="Answers").get_by_role("link", name=ENGINEER).first.click()
    expect(page.get_by_text("Time per step")).to_be_visible()


def test_several_documents_are_deleted_brought_back_corrected_and_downloaded(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    documents = page.get_by_role("list", name="Documents", exact=True)
    expect(documents.get_by_role("listitem")).to_have_count(2)
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("No documents yet")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(documents.get_by_role("listitem")).to_have_count(2)
    row = documents.get_by_role("listitem").filter(has_text="Orchard")
    row.hover()
    row.get_by_role("button", name="More about").click()
    with page.expect_download() as saving:
        page.get_by_role("menuitem", name="Download the original").click()
    assert saving.value.suggested_filename == "orchard.md"
    row.get_by_role("button", name="More about").click()
    page.get_by_role("menuitem", name="Edit title").click()
    page.get_by_label("Title", exact=True).fill("Notes on pears")
    page.get_by_label("Year").fill("1911")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(documents).to_contain_text("Notes on pears")
    expect(documents).to_contain_text("1911")


def test_documents_move_to_the_other_library_with_what_was_said_of_them(
    filled: DocuMind, open_page: OpenPage
) -> None:
    filled.upload(("report-2023.md", b"# Report\n\nThe quay was mended in spring."))
    filled.upload(("report-2024.md", b"# Report\n\nThe crane was painted in autumn."))
    page = open_page(filled)
    choose(page, "My documents")
    documents = page.get_by_role("list", name="Documents", exact=True)
    # one title, two files: the file tells them apart
    old = documents.get_by_role("listitem").filter(has_text="report-2023.md")
    expect(documents.get_by_role("listitem").filter(has_text="report-2024.md")).to_have_count(1)
    old.hover()
    old.get_by_role("button", name="More about").click()
    page.get_by_role("menuitem", name="Edit title").click()
    page.get_by_label("Title", exact=True).fill("Harbour in 2023")
    page.get_by_label("Tags", exact=True).fill("harbour")
    page.get_by_role("button", name="Save", exact=True).click()
    moved = documents.get_by_role("listitem").filter(has_text="Harbour in 2023")
    expect(moved).to_contain_text("harbour")
    moved.get_by_role("checkbox").check()
    page.get_by_role("button", name="Move to Public").click()
    expect(page.get_by_text("1 document is in Public now.")).to_be_visible()
    expect(moved).to_have_count(0)
    choose(page, "Public")
    expect(moved).to_contain_text("harbour")
    ask(page, "When was the quay mended?")
    expect(page.get_by_role("article").last).to_contain_text("in spring")


def test_tags_narrow_the_list_the_search_and_the_next_question(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    documents = page.get_by_role("list", name="Documents", exact=True)
    orchard = documents.get_by_role("listitem").filter(has_text="Orchard")
    orchard.hover()
    orchard.get_by_role("button", name="More about").click()
    page.get_by_role("menuitem", name="Edit title").click()
    page.get_by_label("Tags", exact=True).fill("fruit, old")
    page.get_by_label("Metadata").fill("rating=4\nseen=2026-03-01")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(orchard).to_contain_text("fruit")
    expect(orchard).to_contain_text("rating: 4")
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Tags to add").fill("read")
    page.get_by_label("Tags to remove").fill("OLD")
    page.get_by_role("button", name="Save", exact=True).click()
    filters = page.get_by_role("group", name="Tags and filters")
    expect(filters.get_by_role("button", name="#read 2")).to_be_visible()
    expect(filters.get_by_role("button", name="#old")).to_have_count(0)
    page.get_by_role("button", name="Untick").click()
    filters.get_by_role("button", name="#fruit").click()
    expect(documents.get_by_role("listitem")).to_have_count(1)
    expect(page.get_by_test_id("scope")).to_have_text("Asking My documents, only #fruit")
    ask(page, ENGINEER)
    expect(page.get_by_role("article", name=ENGINEER)).not_to_contain_text("Ilse Tarrow")
    filters.get_by_role("button", name="Edit tags and filters").click()
    page.get_by_label("Condition on metadata").fill("rating=3..")
    page.get_by_role("button", name="Narrow").click()
    page.get_by_label("Name of the collection").fill("Good fruit")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("list", name="Collections")).to_contain_text("Good fruit")
    page.get_by_role("button", name="Rename the tag read").click()
    page.get_by_label("New name of read").fill("known")
    page.get_by_label("New name of read").press("Enter")
    expect(page.get_by_role("list", name="Tags")).to_contain_text("#known")
    page.get_by_role("button", name="Delete the tag fruit").click()
    expect(page.get_by_role("list", name="Tags")).not_to_contain_text("#fruit")
    page.keyboard.press("Escape")
    # the saved filter asks for a tag that is gone
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    page.get_by_role("button", name="Ask the whole library").click()
    filters.get_by_role("button", name="#known").click()
    go(page, "Search")
    page.get_by_label("Search", exact=True).fill("tower")
    expect(page.get_by_role("listitem").first).to_contain_text("Lighthouse")
    filters.get_by_role("button", name="Good fruit").click()
    filters.get_by_role("button", name="#known").click()
    expect(page.get_by_text("Nothing found")).to_be_visible()


def test_the_list_stays_while_one_looks_for_a_document(
    empty: DocuMind, open_page: OpenPage, tmp_path: Path
) -> None:
    source = tmp_path / "cards.jsonl"
    source.write_text(
        "".join(
            f'{{"title": "Card {n}", "text": "Card number {n} is about tin."}}\n'
            for n in range(216)
        )
    )
    empty.bulk_index(source)
    empty.cancel_next("backfill")
    page = open_page(empty)
    choose(page, "My documents")
    documents = page.get_by_role("list", name="Documents", exact=True)
    expect(documents.get_by_role("listitem").first).to_be_visible()
    scroller = page.get_by_test_id("document-list")
    wait_until(
        page,
        """(() => {
          const box = document.querySelector("[data-testid=document-list]");
          box.scrollTop = box.scrollHeight;
          return document.querySelector("[aria-posinset='216']") !== null;
        })()""",
    )
    assert scroller.evaluate("box => box.scrollTop") > 5000
    find = page.get_by_label("Find a document", exact=True)
    find.fill("Card 117")
    expect(documents.get_by_role("listitem")).to_have_count(1)
    find.fill("")
    expect(documents.get_by_role("listitem").nth(5)).to_be_in_viewport()


@pytest.mark.timeout(300)
def test_an_answer_is_written_again_by_another_model(tmp_path: Path, open_page: OpenPage) -> None:
    models = [DoubleModel("small:1b", parameter_size="1.2B"), DoubleModel("large:8b")]
    with (
        OllamaDouble(models) as double,
        DocuMind(
            tmp_path / "data", OLLAMA_BASE_URL=double.url, EMBEDDING_PROVIDER="minilm"
        ) as server,
    ):
        server.upload(("lighthouse.pdf", lighthouse_pdf()))
        page = open_page(server)
        double.say(
            Script.of("The engineer Ilse Tarrow designed the lighthouse [1].", asked=ENGINEER)
        )
        ask(page, ENGINEER)
        double.say(Script.of("The designer was the engineer Ilse Tarrow [1].", asked=ENGINEER))
        page.get_by_role("button", name="Ask again", exact=True).click()
        page.get_by_role("menuitem", name="With small:1b").click()
        asked_once = page.get_by_role("article", name=ENGINEER)
        versions = asked_once.get_by_role("group", name="Versions of this question")
        expect(versions).to_contain_text("2 / 2", timeout=60_000)
        expect(page.get_by_role("button", name="Good answer")).to_have_count(1, timeout=60_000)
        newest = cast("list[dict[str, str]]", server.get("/api/v1/answers")["answers"])[0]
        asked = cast(
            "dict[str, str]", server.get(f"/api/v1/answers/{newest['answer_id']}")["asked"]
        )
        assert (asked["question"], asked["model"]) == (ENGINEER, "small:1b")
        expect(asked_once.locator("footer")).to_contain_text("small:1b")
        page.reload()
        expect(versions).to_contain_text("2 / 2")
        versions.get_by_role("button", name="Earlier version").click()
        expect(versions).to_contain_text("1 / 2")
        expect(asked_once.locator("footer")).to_contain_text("large:8b")


def test_a_changed_question_is_a_branch_in_every_tab(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    ask(page, ENGINEER)
    ask(page, PEARS)
    page.get_by_role("button", name="Edit the question").first.click()
    box = page.get_by_label("Changed question")
    expect(box).to_be_focused()
    expect(box).to_have_value(ENGINEER)
    box.press("Escape")
    expect(box).to_have_count(0)
    page.get_by_role("button", name="Edit the question").first.click()
    box.fill(LENS)
    box.press("Enter")
    branch = page.get_by_role("article", name=LENS)
    expect(branch.get_by_role("button", name="Good answer")).to_be_visible()
    versions = page.get_by_role("group", name="Versions of this question")
    expect(versions).to_contain_text("2 / 2")
    asked = page.get_by_role("region", name="Conversation", exact=True).get_by_role("article")
    expect(asked).to_have_count(1)
    page.reload()
    expect(branch).to_contain_text("mercury bath")
    expect(versions).to_contain_text("2 / 2")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_role("article", name=LENS)).to_be_visible()

    versions.get_by_role("button", name="Earlier version").click()
    for tab in (page, other):
        expect(tab.get_by_role("article", name=ENGINEER)).to_contain_text("Ilse Tarrow")
        expect(tab.get_by_role("article", name=PEARS)).to_contain_text("sixty kinds")
        expect(tab.get_by_role("group", name="Versions of this question")).to_contain_text("1 / 2")
    page.reload()
    expect(asked.get_by_role("button", name="Good answer")).to_have_count(2)
    # what is asked now goes on with the branch that is shown
    ask(page, LENS)
    expect(asked).to_have_count(3)
    expect(other.get_by_role("article", name=LENS)).to_contain_text("mercury bath")


@pytest.mark.timeout(300)
def test_an_answer_that_was_cut_goes_on(tmp_path: Path, open_page: OpenPage) -> None:
    first = "The engineer Ilse Tarrow designed the lighthouse [1]."
    second = "It was finished in the autumn of 1874 [1]."
    models = [DoubleModel("large:8b", parameter_size="8.0B")]
    with (
        OllamaDouble(models) as double,
        DocuMind(
            tmp_path / "data", OLLAMA_BASE_URL=double.url, EMBEDDING_PROVIDER="minilm"
        ) as server,
    ):
        server.upload(("lighthouse.pdf", lighthouse_pdf()))
        page = open_page(server)
        asked = page.get_by_role("article", name=ENGINEER)
        go_on = asked.get_by_role("button", name="Continue")
        cut = Script.of(f"{first} It was fin", asked=ENGINEER)
        double.say(replace(cut, done_reason="length"))
        ask(page, ENGINEER)
        expect(asked).to_contain_text("The model reached the length limit.")
        page.reload()  # what was asked is kept with the answer
        double.say(Script.of(second, asked=ENGINEER))
        go_on.click()
        expect(asked.get_by_role("group", name="Versions of this question")).to_contain_text(
            "2 / 2", timeout=60_000
        )
        expect(asked.get_by_role("button", name="Good answer")).to_be_visible(timeout=60_000)
        expect(go_on).to_have_count(0)
        kept = cast("list[dict[str, str]]", server.get("/api/v1/answers")["answers"])[0]
        answer = server.get(f"/api/v1/answers/{kept['answer_id']}")
        sentences = cast("list[dict[str, object]]", answer["sentences"])
        assert [one["text"] for one in sentences] == [first, second]
        assert all(one["citations"] for one in sentences)

        page.get_by_role("button", name="New conversation").first.click()
        double.fail("/api/chat", Fault("stall", after=12))
        double.say(Script.of(f"{first} Moreover {second}", asked=ENGINEER))
        box = page.get_by_label("Question", exact=True)
        box.fill(ENGINEER)
        box.press("Enter")
        expect(asked).to_contain_text("Moreover", timeout=60_000)  # no word of the quote
        page.get_by_role("button", name="Stop", exact=True).click()
        double.say(Script.of(second, asked=ENGINEER))
        go_on.click()
        expect(asked.get_by_role("button", name="Good answer")).to_be_visible(timeout=60_000)
        expect(asked).to_contain_text("finished in the autumn")
        expect(asked).to_have_count(1)
        page.reload()
        expect(asked.get_by_role("button", name="Good answer")).to_be_visible(timeout=60_000)
        expect(asked).to_have_count(1)


def test_settings_count_at_once_and_in_the_next_tab(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    go(page, "Settings")
    page.get_by_text("What a model is told, word for word.").click()
    prompt = page.get_by_role("list", name="The prompt")
    expect(prompt).to_contain_text("{question}")
    before = prompt.inner_text()
    page.get_by_label("Kind of answer of the prompt").select_option("compare")
    expect(prompt).not_to_have_text(before)
    page.get_by_label("Kind of answer at the start").select_option("compare")
    page.get_by_label("Library at the start").select_option("all")
    page.get_by_role("group", name="Theme").get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    other = page.context.new_page()
    other.goto(filled.base)
    expect(other.get_by_role("button", name=re.compile("^Options"))).to_contain_text("Comparison")
    expect(other.get_by_test_id("scope")).to_have_text("Asking My documents and Public")


def test_a_synced_folder_shows_its_state(
    tmp_path: Path, filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    state = page.get_by_text("1 synced folder")
    expect(page.get_by_role("region", name="Documents")).to_contain_text("My documents")
    expect(state).to_have_count(0)
    folder = tmp_path / "harbour notes"
    folder.mkdir()
    (folder / "ferry.md").write_text("# Ferry\n\nThe ferry to Skarholm leaves at 7:40.")
    (folder / "torn.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    command = [sys.executable, "-m", "app", "sync", str(folder)]
    once = subprocess.run(
        command, cwd=ROOT, env=filled.environment, capture_output=True, timeout=120, check=False
    )
    assert once.returncode == 3, once.stderr
    page.reload()
    state.click()
    row = page.get_by_role("list", name="Synced folders").get_by_role("listitem")
    expect(row).to_contain_text(str(folder))
    expect(row).to_contain_text("1 document")
    expect(row).to_contain_text("compared just now")
    expect(row).to_contain_text("torn.pdf")
    expect(row.get_by_text("followed")).to_have_count(0)

    (folder / "torn.pdf").unlink()
    watching = subprocess.Popen([*command, "--watch"], cwd=ROOT, env=filled.environment)
    try:
        wait_until_folder(filled, watched=True)
        page.reload()
        state.click()
        expect(row.get_by_text("followed")).to_be_visible()
        expect(row).not_to_contain_text("torn.pdf")
    finally:
        watching.send_signal(signal.SIGINT)
        watching.wait(30)
    wait_until_folder(filled, watched=False)


def wait_until_folder(server: DocuMind, *, watched: bool) -> None:
    """Wait until the one synced folder is followed, or not any more."""
    deadline = time.monotonic() + 60
    while True:
        (folder,) = cast("list[dict[str, bool]]", server.get("/api/v1/sync/folders")["folders"])
        if folder["watched"] is watched:
            return
        assert time.monotonic() < deadline, folder
        time.sleep(0.1)


def test_what_grows_under_an_answer_leaves_its_end_in_sight(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled, width=390, height=844)
    show_pane(page, "Documents")
    choose(page, "My documents")
    show_pane(page, "Chat")
    for question in (ENGINEER, PEARS, LENS):
        ask(page, question)
    copy = page.get_by_role("button", name="Copy answer").last
    conversation = page.get_by_role("region", name="Conversation", exact=True)
    expect(copy).to_be_in_viewport()
    # further questions come late: a scroll event of before is told after they took their place
    grow = """box => {
      const further = document.createElement("div");
      further.style.height = "300px";
      [...box.querySelectorAll("article > footer")].at(-1).before(further);
      box.dispatchEvent(new Event("scroll"));
    }"""
    conversation.evaluate(grow)
    expect(copy).to_be_in_viewport()
    # who scrolls up stays there
    conversation.hover()
    page.mouse.wheel(0, -400)
    expect(copy).not_to_be_in_viewport()
    conversation.evaluate(grow)
    expect(copy).not_to_be_in_viewport()


def test_documents_that_look_alike_are_listed_and_one_is_removed(
    empty: DocuMind, open_page: OpenPage
) -> None:
    empty.upload(("mill.md", b"The mill of Senn was built in 1874 by two brothers."))
    empty.upload(("mill copy.md", b"The mill of Senn was built in 1874 by two brothers."))
    page = open_page(empty)
    choose(page, "My documents")
    page.get_by_role("button", name="Look at them").click()
    dialog = page.get_by_role("dialog", name="Documents that look alike")
    expect(dialog).to_contain_text("the same file")
    expect(dialog).to_contain_text("mill copy.md")
    dialog.get_by_role("button", name="Delete").first.click()
    expect(page.get_by_role("button", name="Look at them")).to_have_count(0)
