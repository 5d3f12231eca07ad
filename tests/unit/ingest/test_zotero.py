"""Items as the API of Zotero returns them."""

from __future__ import annotations

import json

from app.core.types import ParsedDocument
from app.ingest.chunking import chunk
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser


def parsed(*data: dict[str, object]) -> ParsedDocument:
    entries = [{"key": f"AAAA000{n}", "version": n, "data": one} for n, one in enumerate(data)]
    return DirectParser(IngestOptions()).parse(json.dumps(entries).encode(), "items.json")


def annotation(page: int, text: str, comment: str = "", label: str = "") -> dict[str, object]:
    return {
        "itemType": "annotation",
        "annotationType": "highlight",
        "annotationText": text,
        "annotationComment": comment,
        "annotationPageLabel": label,
        "annotationPosition": json.dumps({"pageIndex": page - 1, "rects": [[1, 2, 3, 4]]}),
    }


def test_an_item_is_its_facts_and_its_abstract() -> None:
    found = parsed(
        {
            "key": "ABCD2345",
            "itemType": "journalArticle",
            "title": "Rivers that <i>carry</i> silt",
            "creators": [
                {"creatorType": "author", "firstName": "Ann", "lastName": "Baker"},
                {"creatorType": "author", "name": "River Survey"},
            ],
            "abstractNote": "Silt settles where water slows.",
            "publicationTitle": "Journal of Water",
            "DOI": "10.1234/silt",
            "dateAdded": "2024-01-01T00:00:00Z",
            "tags": [{"tag": "river"}],
            "collections": ["CCCC2222"],
            "relations": {},
        }
    )
    assert found.title == "Rivers that carry silt"
    assert found.text.splitlines() == [
        "Rivers that carry silt",
        "",
        "Author: Ann Baker",
        "Author: River Survey",
        "Publication title: Journal of Water",
        "DOI: 10.1234/silt",
        "",
        "Abstract",
        "",
        "Silt settles where water slows.",
    ]


def test_a_note_is_read_as_its_html() -> None:
    found = parsed({"itemType": "note", "note": "<h1>On silt</h1><p>Ask <b>Cole</b>.</p>"})
    assert found.text == "On silt\n\nAsk Cole."
    assert [heading.title for heading in found.headings] == ["On silt"]


def test_annotations_stand_on_their_pages() -> None:
    found = parsed(
        annotation(3, "Silt settles at 0.2 m/s.", "Check 10<sup>3</sup> in <i>table</i> 2", "117"),
        annotation(3, "Sand settles first.", label="3"),
        annotation(12, "", "No figure for clay?"),
        {"itemType": "annotation", "annotationType": "ink", "annotationPosition": "{}"},
    )
    pages = {page.number: found.text[page.start : page.end].split("\n\n") for page in found.pages}
    assert [page.number for page in found.pages] == [3, 12]
    assert pages[3][:4] == [
        "Silt settles at 0.2 m/s.",
        "Check 10^3 in table 2",
        "Page: 117",
        "Sand settles first.",
    ]
    assert pages[12] == ["No figure for clay?"]
    passages = chunk(found, IngestOptions())
    assert [one.page for one in passages] == [3, 12]


def test_other_json_is_read_as_before() -> None:
    source = json.dumps([{"key": "a", "data": {"itemType": "note"}}, {"key": "b", "data": 5}])
    found = DirectParser(IngestOptions()).parse(source.encode(), "other.json")
    assert "itemType: note" in found.text
