"""The main job on the page: upload, ask, follow a citation to the words, narrow, delete and take back."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import cast

import pypdfium2
import pypdfium2.raw as pdfium
import requests
from playwright.sync_api import FilePayload, Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.documents import (
    ENGINEER,
    LENS,
    OBSERVATORY,
    ORCHARD,
    PEARS,
    PICKERS,
    half_scanned_pdf,
    lighthouse_pdf,
)
from tests.browser.servers import DocuMind
from tests.browser.views import ask, choose, wait_until
from tests.fakes.ollama_double import OllamaDouble, Script


def _upload(page: Page, name: str, content: bytes) -> None:
    payload: FilePayload = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.get_by_test_id("upload").set_input_files(payload)


def _uploads(page: Page) -> Locator:
    return page.get_by_role("region", name="Uploads", exact=True)


def _answer(server: DocuMind, page: Page) -> dict[str, object]:
    """The stored record of the answer that was inspected last."""
    href = page.get_by_role("link", name="Inspect", exact=True).last.get_attribute("href") or ""
    return server.get(f"/api/v1/answers/{href.rpartition('/')[2]}")


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def test_first_run_offers_a_box_and_one_way_to_begin(empty: DocuMind, open_page: OpenPage) -> None:
    page = open_page(empty)
    steps = page.get_by_role("region", name="First steps", exact=True)
    expect(steps.get_by_role("button")).to_have_count(2)
    expect(steps).to_contain_text("Answers are quotes, word for word")
    expect(page.get_by_label("Question", exact=True)).to_be_visible()
    with page.expect_file_chooser() as chooser:
        steps.get_by_role("button", name="Add documents").click()
    assert chooser.value.is_multiple()


def test_samples_are_labelled_and_removed_in_one_click(
    empty: DocuMind, open_page: OpenPage
) -> None:
    empty.upload(
        ("sample_own.txt", b"Copper is a soft red metal. It melts at 1085 degrees Celsius.")
    )
    page = open_page(empty)
    expect(page.get_by_role("region", name="First steps", exact=True)).to_have_count(0)
    assert requests.post(f"{empty.base}/api/v1/samples", timeout=120).ok
    page.reload()
    documents = page.get_by_role("list", name="Documents", exact=True)
    expect(documents.get_by_text(re.compile("^sample · ")).first).to_be_visible()
    page.get_by_role("button", name="Remove samples", exact=True).click()
    expect(documents.get_by_text(re.compile("^sample · "))).to_have_count(0)
    assert [
        row["filename"]
        for row in cast(
            "list[dict[str, object]]", empty.get("/api/v1/papers", library="papers")["documents"]
        )
    ] == ["sample_own.txt"]


def test_first_steps_stay_until_something_was_done(empty: DocuMind, open_page: OpenPage) -> None:
    assert requests.post(f"{empty.base}/api/v1/samples", timeout=120).ok
    page = open_page(empty)
    steps = page.get_by_role("region", name="First steps", exact=True)
    expect(steps).to_contain_text("47 short samples in both libraries, labelled")
    choose(page, "My documents")
    ask(page, "What share of planted wrong citations did alignment catch?")
    page.reload()
    expect(page.get_by_role("region", name="Documents", exact=True)).to_be_visible()
    page.goto(empty.base)
    expect(page.get_by_text("What would you like to know?")).to_be_visible()


def test_pages_that_nobody_will_find_are_named_at_the_upload(
    empty: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(empty)
    _upload(page, "half.pdf", half_scanned_pdf())
    expect(_uploads(page)).to_contain_text(re.compile(r"Indexed: 2 pages, .* characters"))
    expect(_uploads(page)).to_contain_text(
        "Pictures without text on 1 of 2 pages (2); if they show text, run OCR"
    )


def test_upload_ask_and_follow_the_citation_to_the_words_on_the_page(
    empty: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(empty)
    pdf = lighthouse_pdf()
    _upload(page, "lighthouse.pdf", pdf)
    expect(_uploads(page)).to_contain_text(re.compile(r"Indexed: 3 pages, .* characters"))
    expect(page.get_by_role("list", name="Documents", exact=True)).to_contain_text(
        "Lighthouse of Morvane"
    )
    ask(page, LENS)
    page.get_by_role("button", name="Citation 1", exact=True).first.click()
    mark = page.get_by_role("region", name="Sources", exact=True).locator("[data-highlight]")
    expect(mark).to_have_count(1)
    expect(mark).to_contain_text("mercury bath")
    sentences = cast("list[dict[str, list[dict[str, object]]]]", _answer(empty, page)["sentences"])
    quote = str(next(c["quote"] for s in sentences for c in s["citations"] if c["n"] == 1))
    assert mark.text_content() == quote

    page.get_by_role("article").filter(has=page.locator("[data-highlight]")).get_by_role(
        "button", name="Open document"
    ).click()
    sheet = page.locator("[data-page='2']")
    boxes = sheet.locator("[data-highlight]")
    expect(boxes.first).to_be_visible()
    expect(sheet.get_by_role("img", name="Page 2")).to_be_visible()
    assert page.locator("[data-page]:not([data-page='2']) [data-highlight]").count() == 0
    assert _words(_text_under(pdf, 2, sheet, boxes)) == _words(quote)


def _text_under(pdf: bytes, number: int, sheet: Locator, boxes: Locator) -> str:
    """What the PDF says under the boxes as they are drawn, by a reader that knows nothing of our offsets."""
    drawn = sheet.bounding_box()
    assert drawn is not None
    with pypdfium2.PdfDocument(io.BytesIO(pdf)) as document:
        leaf = document[number - 1]
        width, height = leaf.get_size()
        text = leaf.get_textpage()
        found = []
        for i in range(boxes.count()):
            box = boxes.nth(i).bounding_box()
            assert box is not None
            x, y = width / drawn["width"], height / drawn["height"]
            left, right = (box["x"] - drawn["x"]) * x, (box["x"] + box["width"] - drawn["x"]) * x
            top, bottom = (box["y"] - drawn["y"]) * y, (box["y"] + box["height"] - drawn["y"]) * y
            # A point inside the edges, where a neighbour's letters cannot reach.
            found.append(
                text.get_text_bounded(left + 1, height - bottom + 2, right - 1, height - top - 2)
            )
    return " ".join(found)


def test_a_quote_behind_emoji_is_marked_exactly(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    ask(page, PEARS)
    page.get_by_role("button", name="Citation 1", exact=True).first.click()
    mark = page.locator("[data-highlight]")
    expect(mark).to_contain_text("\U0001f34e orchard of Quillane")
    quote = mark.text_content() or ""
    assert quote.startswith("The \U0001f34e orchard")
    assert quote.endswith("above the river.")
    assert quote in ORCHARD
    page.get_by_role("button", name="Open document").first.click()
    reader = page.get_by_role("region", name="Document", exact=True)
    expect(reader.locator("[data-highlight]")).to_be_visible()
    assert reader.locator("[data-highlight]").text_content() == quote


def test_a_question_is_limited_to_the_ticked_document(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    page.get_by_role("checkbox", name=re.compile("Orchard")).check()
    expect(page.get_by_test_id("scope")).to_contain_text("only The Orchard Notes")
    ask(page, "Who designed or planted it, and in which year?")
    asked = cast("dict[str, dict[str, list[str]]]", _answer(filled, page)["asked"])
    papers = cast(
        "list[dict[str, str]]", filled.get("/api/v1/papers", library="papers")["documents"]
    )
    orchard = next(d["doc_id"] for d in papers if "Orchard" in d["title"])
    assert asked["filters"]["doc_ids"] == [orchard]
    for title in (
        page.get_by_role("region", name="Sources", exact=True)
        .get_by_role("heading", level=3)
        .all_text_contents()
    ):
        assert "Orchard" in title
    page.get_by_role("button", name="Ask the whole library").click()
    expect(page.get_by_test_id("scope")).to_have_text("Asking My documents")


def test_a_source_set_aside_is_hidden_and_left_out_of_the_next_question(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    ask(page, "Who planted the orchard?")
    sources = page.get_by_role("region", name="Sources", exact=True)
    sources.get_by_role("button", name="Colours").click()
    tinted = page.locator(".prose .source-tint-0").first
    expect(tinted).to_be_visible()
    first = sources.get_by_role("article", name=re.compile("Source 1:"))
    title = first.get_by_role("heading", level=3).text_content() or ""
    first.get_by_label("Use it").uncheck()
    expect(page.locator(".prose .sentence-aside").first).to_have_css("font-size", "0px")
    expect(page.get_by_test_id("scope")).to_contain_text("without 1 document")
    ask(page, "Who planted the trees of the orchard?")
    asked = cast("dict[str, dict[str, list[str]]]", _answer(filled, page)["asked"])
    papers = cast(
        "list[dict[str, str]]", filled.get("/api/v1/papers", library="papers")["documents"]
    )
    gone = next(d["doc_id"] for d in papers if d["title"] == title)
    assert asked["filters"]["exclude_doc_ids"] == [gone]
    assert title not in sources.get_by_role("heading", level=3).all_text_contents()
    page.get_by_role("button", name="Ask the whole library").click()
    expect(page.get_by_test_id("scope")).to_have_text("Asking My documents")


def test_the_library_switch_changes_what_is_asked(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    choose(page, "Public")
    expect(page.get_by_role("list", name="Documents", exact=True)).to_contain_text("Tal Venn")
    ask(page, "Who designed the dome of the observatory?")
    expect(page.get_by_role("article").first).to_contain_text("Ruth Calloway")
    choose(page, "My documents")
    ask(page, ENGINEER)
    expect(page.get_by_role("article").filter(has_text=ENGINEER)).to_contain_text("Ilse Tarrow")


def test_where_one_library_does_not_answer_the_other_is_offered(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    choose(page, "Public")
    ask(page, ENGINEER)
    article = page.get_by_role("article").first
    expect(article).to_contain_text("Only Public was searched.")
    article.get_by_role("button", name="Ask 2 documents of My documents too").click()
    expect(page.get_by_role("article").nth(1)).to_contain_text("Ilse Tarrow")
    expect(page.get_by_test_id("scope")).to_have_text("Asking My documents and Public")


def test_a_refusal_shows_the_places_that_come_nearest_and_opens_their_words(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    ask(page, PICKERS)
    said = page.get_by_role("article", name=PICKERS)
    expect(said).to_contain_text("Not enough evidence")
    places = said.get_by_role("region", name="The nearest places, which are no answer")
    expect(places).to_contain_text("These places come nearest:")
    harvest = places.get_by_role("listitem").filter(has_text="needs forty pickers")
    assert places.get_by_role("button").count() == 0
    harvest.get_by_role("link", name="The Orchard Notes: open it at these words").click()
    reader = page.get_by_role("region", name="Document", exact=True)
    expect(reader.locator("[data-highlight]")).to_have_text(
        "The harvest \U0001f9fa begins in September and needs forty pickers for three weeks."
    )
    said.get_by_role("button", name="Copy answer").click()
    page.get_by_role("menuitem", name="As Markdown, with sources").click()
    expect(said.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    assert "pickers for three weeks" not in page.evaluate("navigator.clipboard.readText()")


def test_the_cited_pdf_is_had_with_its_citations_marked(
    filled: DocuMind, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(filled)
    ask(page, LENS)
    page.get_by_role("article", name=LENS).get_by_role("button", name="Copy answer").click()
    with page.expect_download() as kept:
        page.get_by_role("menuitem", name="PDF with its citations marked").first.click()
    kept.value.save_as(tmp_path / "marked.pdf")
    with pypdfium2.PdfDocument(tmp_path / "marked.pdf") as copy:
        assert sum(pdfium.FPDFPage_GetAnnotCount(one) for one in copy) >= 1


def test_files_that_are_added_are_shown(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    documents = page.get_by_role("list", name="Documents", exact=True)
    expect(documents).to_contain_text("Orchard")  # one's own documents, which were not chosen
    page.get_by_test_id("upload").set_input_files(
        {"name": "bees.md", "mimeType": "text/markdown", "buffer": b"# Bees\n\nThey dance."}
    )
    expect(documents).to_contain_text("Bees", timeout=30_000)


def test_files_are_handed_over_at_once_and_read_without_the_tab(
    empty: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(empty)
    handed: list[int] = []
    page.on(
        "response", lambda reply: handed.append(reply.status) if "/ingest" in reply.url else None
    )
    page.route("**/api/v1/ingest*", lambda _: None)  # held until no route is there
    files: list[FilePayload] = [
        {"name": f"log {n}.md", "mimeType": "text/markdown", "buffer": b"# Log %d\n\nCalm sea." % n}
        for n in range(15)
    ]
    page.get_by_test_id("upload").set_input_files(files)
    expect(_uploads(page)).to_contain_text("Sending")
    leave = "dispatchEvent(new Event('beforeunload', {cancelable: true}))"
    assert page.evaluate(leave) is False  # the browser asks: files are still in the tab
    page.unroute("**/api/v1/ingest*")
    expect(_uploads(page)).not_to_contain_text(re.compile("Waiting|Sending"))
    assert page.evaluate(leave) is True
    page.close()
    assert handed == [202] * len(files)
    page = open_page(empty)
    choose(page, "My documents")
    listed = page.get_by_role("list", name="Documents", exact=True).get_by_role("listitem")
    expect(listed).to_have_count(len(files), timeout=60_000)


def test_all_lists_the_documents_of_both_libraries(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    choose(page, "All")
    documents = page.get_by_role("region", name="Documents", exact=True)
    expect(documents).to_contain_text("3 documents")
    expect(documents.get_by_role("listitem")).to_have_count(3)
    expect(documents.get_by_role("listitem").last).to_contain_text("Public")
    expect(documents.get_by_role("group", name="Library", exact=True)).to_have_count(1)
    page.get_by_label("Find a document").fill("o")
    expect(documents.get_by_role("listitem").first).to_contain_text("My documents")


def test_a_link_to_a_source_opens_it(filled: DocuMind, open_page: OpenPage) -> None:
    reply = requests.post(
        f"{filled.base}/api/v1/query", json={"question": ENGINEER, "library": "papers"}, timeout=60
    )
    view_url = str(reply.json()["sources"][0]["view_url"])
    page = open_page(filled, view_url)
    expect(
        page.get_by_role("region", name="Document", exact=True).locator("[data-highlight]").first
    ).to_be_visible()


def test_delete_hides_and_undo_brings_back(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    documents = page.get_by_role("list", name="Documents", exact=True)
    page.get_by_role("button", name="Delete The Orchard Notes").click()
    expect(documents).not_to_contain_text("Orchard")
    assert (
        len(cast("list[object]", filled.get("/api/v1/papers", library="papers")["documents"])) == 1
    )
    page.get_by_role("button", name="Undo").click()
    expect(documents).to_contain_text("The Orchard Notes")
    ask(page, PEARS)
    expect(page.get_by_role("article").first).to_contain_text("sixty kinds of pears")


def test_a_bad_file_fails_alone_with_its_reason(empty: DocuMind, open_page: OpenPage) -> None:
    page = open_page(empty)
    files: list[FilePayload] = [
        {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"MZ\x90\x00" + bytes(400)},
        {"name": "observatory.md", "mimeType": "text/markdown", "buffer": OBSERVATORY.encode()},
    ]
    page.get_by_test_id("upload").set_input_files(files)
    expect(_uploads(page)).to_contain_text("1 file added, 1 failed")
    # another try reads the same bytes
    expect(_uploads(page).get_by_role("button", name="Try broken.pdf again")).to_have_count(0)
    expect(page.get_by_role("list", name="Documents", exact=True)).to_contain_text("Tal Venn")


def test_conversations_are_kept_and_opened(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    ask(page, ENGINEER)
    page.get_by_role("button", name="New conversation").click()
    expect(page.get_by_role("article")).to_have_count(0)
    page.get_by_role("button", name="Conversations").click()
    page.get_by_role("link", name=re.compile(ENGINEER[:20])).first.click()
    expect(page.get_by_role("article").first).to_contain_text("Ilse Tarrow")
    expect(page.get_by_role("button", name="Citation 1", exact=True).first).to_be_visible()


def test_a_deleted_conversation_is_brought_back(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    ask(page, ENGINEER)
    page.get_by_role("button", name="Conversations").click()
    listed = page.get_by_role("link", name=re.compile(ENGINEER[:20]))
    page.get_by_role("button", name=f"Delete {ENGINEER}").first.click()
    expect(listed).to_have_count(0)
    expect(page.get_by_role("article")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(listed.first).to_be_visible()
    expect(page.get_by_role("article").first).to_contain_text("Ilse Tarrow")


def test_an_answer_is_copied_with_its_sources(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    ask(page, ENGINEER)
    for label, part in (
        ("As Markdown, with sources", "### Sources"),
        ("Sources as BibTeX", "@misc{"),
    ):
        page.get_by_role("button", name="Copy answer").click()
        page.get_by_role("menuitem", name=label).click()
        wait_until(
            page, f"navigator.clipboard.readText().then(t => t.includes({json.dumps(part)}))"
        )


def test_a_question_is_asked_again_and_the_conversation_saved(
    filled: DocuMind, open_page: OpenPage
) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    ask(page, ENGINEER)
    page.get_by_role("button", name="Ask again").click()
    asked = page.get_by_role("article", name=ENGINEER)
    expect(asked.get_by_role("group", name="Versions of this question")).to_contain_text("2 / 2")
    expect(asked).to_have_count(1)
    expect(asked).to_contain_text("Ilse Tarrow")
    ask(page, PEARS)
    page.get_by_role("button", name="Save conversation").click()
    with page.expect_download() as saving:
        page.get_by_role("menuitem", name="As Markdown, with sources").click()
    saved = saving.value.path().read_text("utf-8")
    assert (saved.count(f"## {ENGINEER}"), saved.count(f"## {PEARS}")) == (1, 1)
    assert "### Sources" in saved


def test_a_pasted_text_is_a_document(filled: DocuMind, open_page: OpenPage) -> None:
    page = open_page(filled)
    choose(page, "My documents")
    page.get_by_role("button", name="paste a text").click()
    page.get_by_label("Title").fill("Ferry notes")
    page.get_by_label("Text", exact=True).fill("The ferry to Skarholm leaves at 7:40 on weekdays.")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("list", name="Documents", exact=True)).to_contain_text("Ferry notes")
    ask(page, "When does the ferry to Skarholm leave?")
    expect(page.get_by_role("article").last).to_contain_text("7:40")


def test_stop_ends_the_answer_and_the_model(tmp_path: Path, open_page: OpenPage) -> None:
    with (
        OllamaDouble(tokens_per_s=4) as double,
        DocuMind(
            tmp_path / "data", OLLAMA_BASE_URL=double.url, EMBEDDING_PROVIDER="minilm"
        ) as server,
    ):
        server.upload(("lighthouse.pdf", lighthouse_pdf()))
        page = open_page(server)
        # the page asks the model for suggestions too
        double.say(
            Script.of(
                "The engineer Ilse Tarrow designed it [1]. " + "It stands on a cliff [1]. " * 60,
                asked=ENGINEER,
            )
        )
        box = page.get_by_label("Question", exact=True)
        box.fill(ENGINEER)
        box.press("Enter")
        said = page.get_by_role("article", name=ENGINEER)
        expect(said).to_contain_text("Ilse", timeout=30_000)
        page.get_by_role("button", name="Stop", exact=True).click()
        expect(said).to_contain_text("Stopped.")
        with double.abort_seen:
            assert double.abort_seen.wait_for(lambda: double.aborted == 1, timeout=10)
