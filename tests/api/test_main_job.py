"""The main job over HTTP: documents in, questions answered, every citation checked."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium
import pytest

from app.answer.records import AnswerRecord
from app.api.schemas.questions import QueryResponse
from app.core.serialization import adapter, json_values
from app.core.types import Question
from tests.api.conftest import LIBRARY, Site, site
from tests.fakes.files import make_pdf


def test_an_answer_cites_exact_characters(filled: Site) -> None:
    reply = filled.client.post(
        "/api/v1/query",
        json={"question": "What is the melting point of copper?", "library": "papers"},
    )
    assert reply.status_code == 200, reply.text
    answer = reply.json()
    assert answer["status"] == "answered"
    assert "1085" in answer["answer"]
    assert answer["request_id"] == reply.headers["x-request-id"]
    sources = {source["n"]: source for source in answer["sources"]}
    cited = [citation for sentence in answer["sentences"] for citation in sentence["citations"]]
    assert cited
    for citation in cited:
        source = sources[citation["n"]]
        span = filled.client.get(
            f"/api/v1/documents/{source['doc_id']}/text",
            params={
                "library": "papers",
                "start": citation["start"],
                "end": citation["end"],
                "revision": source["revision"],
            },
        ).json()
        assert span["text"] == citation["quote"] != ""


def test_a_reply_is_exactly_what_openapi_says(filled: Site) -> None:
    for options in (
        {},
        {"retrieve_only": True},
        {"trace": "full"},
        {"trace": "none"},
        {"library": "all"},
    ):
        body = {"question": "Why do tides rise?", "library": "papers", **options}
        reply = filled.client.post("/api/v1/query", json=body)
        shown = adapter(QueryResponse).validate_json(reply.content, strict=True)
        assert json_values(shown) == reply.json()
        assert shown.sources or shown.status == "abstained"
    record = AnswerRecord.of(filled.services.rag.answer(Question("Why do tides rise?", "papers")))
    assert {*json_values(record), "request_id"} == {one.name for one in fields(QueryResponse)}


def test_a_search_marks_the_words_it_matched(filled: Site) -> None:
    found = filled.client.get(
        "/api/v1/search", params={"q": "melting metals", "library": "papers"}
    ).json()
    hit = found["hits"][0]
    words = [hit["text"][mark["start"] : mark["end"]] for mark in hit["highlights"]]
    assert words == ["metal", "melting"]
    text = filled.client.get(
        f"/api/v1/documents/{hit['doc_id']}/text",
        params={"library": "papers", "start": hit["start"], "end": hit["end"]},
    ).json()["text"]
    assert text == hit["text"]


@pytest.mark.parametrize("library", ["public", "papers", "all"])
def test_searching_every_scope(filled: Site, library: str) -> None:
    found = filled.client.get("/api/v1/search", params={"q": "lions", "library": library}).json()
    assert bool(found["hits"]) == (library != "public")


def test_filters_reach_the_search(filled: Site) -> None:
    body = {"question": "What do lions do?", "library": "papers", "retrieve_only": True}
    everything = filled.client.post("/api/v1/query", json=body).json()["sources"]
    [only] = {source["doc_id"] for source in everything if source["title"] == "Lions"}
    narrowed = filled.client.post("/api/v1/query", json={**body, "doc_ids": [only]}).json()[
        "sources"
    ]
    assert {source["doc_id"] for source in narrowed} == {only}
    html = filled.client.get(
        "/api/v1/search", params={"q": "what", "library": "papers", "type": "html"}
    ).json()["hits"]
    assert {hit["type"] for hit in html} == {"html"}


def test_lists_page_by_cursor_and_show_one(filled: Site) -> None:
    seen, cursor = [], None
    while True:
        page = filled.client.get(
            "/api/v1/papers",
            params={"library": "papers", "limit": 2, **({"cursor": cursor} if cursor else {})},
        ).json()
        seen += page["documents"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(document["filename"] for document in seen) == sorted(LIBRARY)
    one = filled.client.get(
        f"/api/v1/papers/{seen[0]['doc_id']}", params={"library": "papers"}
    ).json()
    assert one == seen[0]
    by_name = filled.client.get("/api/v1/papers/copper.txt", params={"library": "papers"}).json()
    assert by_name["title"] == "Copper"
    assert (
        filled.client.get(
            "/api/v1/papers", params={"library": "papers", "cursor": "nonsense"}
        ).status_code
        == 422
    )


def test_a_document_of_the_other_library_is_named_in_the_404(filled: Site) -> None:
    [document] = filled.client.get(
        "/api/v1/papers", params={"library": "papers", "q": "tides"}
    ).json()["documents"]
    reply = filled.client.get(f"/api/v1/papers/{document['doc_id']}", params={"library": "public"})
    assert reply.status_code == 404
    assert "'papers' has it" in reply.json()["detail"]


def test_the_inside_of_a_document(filled: Site) -> None:
    [document] = filled.client.get(
        "/api/v1/papers", params={"library": "papers", "q": "tides"}
    ).json()["documents"]
    base, params = f"/api/v1/documents/{document['doc_id']}", {"library": "papers"}
    whole = filled.client.get(f"{base}/text", params=params).json()
    assert whole["length"] == len(whole["text"]) == document["characters"]
    chunks = filled.client.get(f"{base}/chunks", params=params).json()
    assert chunks["revision"] == 1
    for chunk in chunks["chunks"]:
        assert whole["text"][chunk["start"] : chunk["end"]] == chunk["text"]
    assert (
        filled.client.get(f"{base}/text", params={**params, "start": 5, "end": 99999}).status_code
        == 422
    )
    assert filled.client.get(f"{base}/text", params={**params, "revision": 7}).status_code == 404
    # Only a PDF has pages to show a box on.
    assert filled.client.get(f"{base}/boxes", params={**params, "start": 0, "end": 5}).json() == []
    assert (
        filled.client.get(f"{base}/boxes", params={**params, "start": 5, "end": 0}).status_code
        == 422
    )


def test_the_original_comes_back_as_an_attachment(filled: Site) -> None:
    reply = filled.client.get("/api/v1/documents/lions.html/file", params={"library": "papers"})
    assert reply.content == LIBRARY["lions.html"].encode()
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["content-disposition"].startswith('attachment; filename="lions.html"')
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_counts_and_libraries(filled: Site) -> None:
    stats = filled.client.get("/api/v1/collection/stats", params={"library": "papers"}).json()
    assert (stats["documents"], stats["by_type"]) == (3, {"html": 1, "markdown": 1, "text": 1})
    assert stats["embedded"] == stats["chunks"]
    libraries = filled.client.get("/api/v1/libraries").json()
    assert libraries["default_library"] == "papers"
    assert [(row["library"], row["documents"]) for row in libraries["libraries"]] == [
        ("public", 0),
        ("papers", 3),
    ]
    diagnostics = filled.client.get("/api/v1/diagnostics").json()
    assert diagnostics["chunking"] == {"chunk_size": 1000, "chunk_overlap": 150}
    assert diagnostics["jobs"] == {"done": 1}


def test_boxes_of_a_pdf_lie_on_its_page(shop: Site) -> None:
    status, body = shop.upload(
        (
            "two.pdf",
            make_pdf([["The first page speaks of copper."], ["The second page speaks of tides."]]),
        )
    )
    assert status == 201, body
    text = shop.client.get("/api/v1/documents/two.pdf/text", params={"library": "papers"}).json()[
        "text"
    ]
    start = text.index("tides")
    [page] = shop.client.get(
        "/api/v1/documents/two.pdf/boxes",
        params={"library": "papers", "start": start, "end": start + 5},
    ).json()
    assert page["page"] == 2
    [[x0, y0, x1, y1]] = page["rects"]
    assert 0 <= x0 < x1 <= page["width"]
    assert 0 <= y0 < y1 <= page["height"]


def test_documents_that_are_alike_are_listed(shop: Site) -> None:
    text = "The mill of Senn was built in 1874 by two brothers."
    files = ("a.md", text.encode()), ("b.md", f"{text}\n".encode()), ("c.md", b"Tin is grey.")
    assert shop.upload(*files)[0] == 201
    found = shop.client.get("/api/v1/duplicates", params={"library": "papers"}).json()["groups"]
    names = [(one["likeness"], [each["filename"] for each in one["documents"]]) for one in found]
    assert names == [("same_text", ["b.md", "a.md"])]
    assert (
        shop.client.get("/api/v1/duplicates", params={"library": "public"}).json()["groups"] == []
    )


def test_a_copy_of_a_pdf_is_sent_with_its_spans_marked(shop: Site) -> None:
    content = make_pdf([["The first page speaks of copper."], ["The second page speaks of tides."]])
    assert shop.upload(("two \u00e9.pdf", content), ("plain.txt", b"Tin is grey."))[0] == 201
    where = {"library": "papers"}
    text = shop.client.get("/api/v1/documents/two \u00e9.pdf/text", params=where).json()["text"]
    start = text.index("tides")
    body = {"marks": [{"start": start, "end": start + 5, "note": "tides"}]}
    reply = shop.client.post("/api/v1/documents/two \u00e9.pdf/highlights", params=where, json=body)
    assert reply.headers["content-type"] == "application/pdf"
    assert "two%20%C3%A9-highlights.pdf" in reply.headers["content-disposition"]
    with pypdfium2.PdfDocument(reply.content) as copy:
        assert [pdfium.FPDFPage_GetAnnotCount(page) for page in copy] == [0, 1]
    backwards = {"marks": [{"start": 5, "end": 1}]}
    for name, marks, status in (
        ("two \u00e9.pdf", backwards, 422),
        ("plain.txt", body, 415),
        ("none.pdf", body, 404),
    ):
        path = f"/api/v1/documents/{name}/highlights"
        assert shop.client.post(path, params=where, json=marks).status_code == status


def test_mmr_is_chosen_by_request_and_by_setting(tmp_path: Path) -> None:
    text = "Lions sleep for twenty hours a day, and lionesses hunt at night in small groups.{}"
    copies = [(f"lions{i}.txt", text.format(f" Copy {'x' * i}.").encode()) for i in range(3)]
    body = {"question": "How long do lions sleep?", "library": "papers", "retrieve_only": True}

    def found(site: Site, **options: object) -> int:
        return len(site.client.post("/api/v1/query", json={**body, **options}).json()["sources"])

    with site(tmp_path / "default") as plain:
        plain.upload(*copies)
        assert found(plain) == 1  # near copies take one place
        assert found(plain, rerank="mmr") == 3  # only their place is later
    with site(tmp_path / "mmr", rerank="mmr") as set_so:
        set_so.upload(*copies)
        assert found(set_so) == 3
        assert found(set_so, rerank="auto") == 1
