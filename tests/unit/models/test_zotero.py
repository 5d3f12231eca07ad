"""The local API of Zotero: what becomes of its items, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import InvalidInput, ProviderBadResponse, ProviderTimeout, ProviderUnreachable
from app.core.labels import labels_from
from app.core.links import zotero_link
from app.core.types import RawDocument
from app.models import zotero
from app.models.zotero import ZoteroClient
from tests.fakes.http_double import Canned
from tests.fakes.zotero_double import ZoteroDouble

PAPER: dict[str, Any] = {
    "itemType": "journalArticle",
    "title": "Rivers that carry silt",
    "creators": [
        {"creatorType": "author", "firstName": "Ann", "lastName": "Baker"},
        {"creatorType": "author", "name": "River Survey"},
        {"creatorType": "editor", "firstName": "Eve", "lastName": "Dune"},
    ],
    "date": "March 2021",
    "DOI": "https://doi.org/10.1234/silt",
    "extra": "Citation Key: baker2021",
    "abstractNote": "Silt settles where water slows.",
}


@pytest.fixture
def double(tmp_path: Path) -> Iterator[ZoteroDouble]:
    with ZoteroDouble(tmp_path / "Zotero") as running:
        yield running


def read(double: ZoteroDouble) -> dict[str, RawDocument]:
    found = ZoteroClient(double.url, silence_s=10).read()
    assert (found.failed, found.waiting) == ((), ())
    return {one.source_key: one for one in found.documents}


def test_a_file_has_what_zotero_knows_of_its_item(double: ZoteroDouble) -> None:
    inner = double.collect("Chapter 2, floods", double.collect("Thesis"))
    paper = double.add(**PAPER, tags=[{"tag": "river"}], collections=[inner])
    snapshot = double.attach(paper, "page.txt", b"A page.", title="Snapshot")
    file = double.attach(paper, "Baker 2021.pdf", b"%PDF-1.4 silt", title="Full Text PDF")
    found = read(double)
    document = found[f"zotero/library/items/{file}/file"]
    assert document.content == double.path(file)
    assert document.filename == "Baker 2021.pdf"
    labels = document.labels
    assert (labels.title, labels.authors, labels.year) == (
        "Rivers that carry silt",
        ("Ann Baker", "River Survey"),
        2021,
    )
    assert labels.tags == ("river", "Thesis/Chapter 2 floods")
    assert labels.metadata == {
        "zotero": f"zotero://open-pdf/library/items/{file}",
        "citation key": "baker2021",
        "DOI": "10.1234/silt",
    }
    other = found[f"zotero/library/items/{snapshot}/file"].labels
    assert other.title == "Rivers that carry silt (Snapshot)"
    assert other.metadata["DOI"] is None, "the PDF is the work"
    assert len(found) == 2


def test_notes_and_annotations_are_documents_of_their_own(double: ZoteroDouble) -> None:
    paper = double.add(**PAPER)
    file = double.attach(paper, "silt.pdf", b"%PDF-1.4 silt")
    double.annotate(file, 12, "Sand settles first.")
    double.annotate(file, 3, "Silt settles at 0.2 m/s.", "Check the table.")
    double.annotate(file, 4, "", "")
    double.add(itemType="note", parentItem=paper, note="<p>Ask <b>Cole</b>.</p>")
    double.add(itemType="note", parentItem=paper, note="<p> </p>")
    found = read(double)
    marks = found[f"zotero/library/items/{file}/annotations"]
    assert marks.labels.title == "Rivers that carry silt (annotations)"
    assert marks.labels.metadata["zotero"] == f"zotero://open-pdf/library/items/{file}"
    assert isinstance(marks.content, bytes)
    said = [one["data"] for one in json.loads(marks.content)]
    assert [one["annotationText"] for one in said] == [
        "Silt settles at 0.2 m/s.",
        "Sand settles first.",
    ]
    assert said[0]["annotationPosition"] == '{"pageIndex": 2}'
    notes = found[f"zotero/library/items/{paper}/item"]
    assert notes.labels.title == "Rivers that carry silt (notes)"
    assert notes.labels.metadata["zotero"] == f"zotero://select/library/items/{paper}"
    assert isinstance(notes.content, bytes)
    assert [one["data"]["itemType"] for one in json.loads(notes.content)] == ["note"]
    assert len(found) == 3


def test_an_item_without_a_file_is_its_facts(double: ZoteroDouble) -> None:
    paper = double.add(**PAPER)
    double.add(itemType="attachment", linkMode="linked_url", parentItem=paper, url="https://a.org")
    case = double.add(itemType="case", caseName="Rex v. River", creators=[])
    note = double.add(itemType="note", note="<h1>To do</h1><p>Read on silt.</p>")
    gone = double.add(itemType="book", title="Gone")
    double.attach(gone, "gone.txt", b"Gone.")
    double.trash(gone)
    found = read(double)
    assert {key: one.labels.title for key, one in found.items()} == {
        f"zotero/library/items/{paper}/item": "Rivers that carry silt",
        f"zotero/library/items/{case}/item": "Rex v. River",
        f"zotero/library/items/{note}/item": "To do",
    }
    assert found[f"zotero/library/items/{paper}/item"].labels.metadata["DOI"] == "10.1234/silt"


def test_titles_and_names_are_plain_lines(double: ZoteroDouble) -> None:
    odd = {"creatorType": "author", "firstName": "", "lastName": "\u200b"}
    ann = {"creatorType": "editor", "firstName": "Ann ", "lastName": "Baker\n"}
    tags = [{"tag": "a, b"}, {"tag": "x" * 90}, {"tag": ""}, "none"]
    title = "Growth of <i>E. coli</i> at 37 <span class='nocase'>C</span>"
    key = double.add(itemType="book", title=title, creators=[odd, ann], tags=tags)
    blank = double.add(itemType="book", title="\u200b")
    found = read(double)
    labels = found[f"zotero/library/items/{key}/item"].labels
    assert (labels.title, labels.authors) == ("Growth of E. coli at 37 C", ("Ann Baker",))
    assert labels.tags == ("a b", "x" * 64)
    assert found[f"zotero/library/items/{blank}/item"].labels.title == "Untitled"
    assert labels_from(labels.as_json()) == labels, "the server takes them"


def test_a_sync_of_zotero_changes_no_bytes(double: ZoteroDouble) -> None:
    double.add(**PAPER)
    before = read(double)
    for entry in double.entries["library"].values():
        entry["version"] = 71
        double.change(str(entry["key"]), version=71, dateModified="2026-01-01T00:00:00Z")
    assert read(double) == before


def test_groups_have_their_own_addresses(double: ZoteroDouble) -> None:
    paper = double.add("groups/4711", itemType="book", title="Sand")
    file = double.attach(paper, "sand.pdf", b"%PDF-1.4", place="groups/4711")
    (document,) = read(double).values()
    assert document.source_key == f"zotero/groups/4711/items/{file}/file"
    address = document.labels.metadata["zotero"]
    assert address == f"zotero://open-pdf/groups/4711/items/{file}"
    assert zotero_link(address, 7) == f"{address}?page=7"


def test_a_long_library_is_read_in_pages(
    double: ZoteroDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zotero, "_PAGE", 3)
    for number in range(10):
        double.add(itemType="book", title=f"Book {number}")
    told: list[tuple[int, int, str]] = []
    found = ZoteroClient(double.url).read(lambda *step: told.append(step))
    assert len(found.documents) == 10
    assert told[:4] == [(3, 10, "items"), (6, 10, "items"), (9, 10, "items"), (10, 10, "items")]


def test_a_list_that_changes_while_it_is_read_is_read_again(
    double: ZoteroDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zotero, "_PAGE", 2)
    keys = [double.add(itemType="book", title=f"Book {number}") for number in range(5)]
    removed = iter([keys[0]])

    def progress(done: int, total: int, what: str) -> None:
        if done == 2 and what == "items":
            double.trash(next(removed, ""))

    found = ZoteroClient(double.url).read(progress)
    titles = sorted(str(one.labels.title) for one in found.documents)
    assert titles == ["Book 1", "Book 2", "Book 3", "Book 4"]

    monkeypatch.setattr(zotero, "_MOST_READS", 2)

    def always(done: int, total: int, what: str) -> None:
        if done == 2 and what == "items":
            double.trash(next(iter(double.entries["library"])))
            double.add(itemType="book", title="New")

    with pytest.raises(ProviderBadResponse, match="changed its library while it was read"):
        ZoteroClient(double.url).read(always)


def test_zotero_that_is_off_away_slow_or_cut_says_what_to_do(double: ZoteroDouble) -> None:
    double.add(**PAPER)
    double.is_on = False
    with pytest.raises(ProviderBadResponse, match="tick 'Allow other applications"):
        ZoteroClient(double.url).read()
    double.is_on, double.silence_s = True, 0.6
    with pytest.raises(ProviderTimeout, match="wait until Zotero is idle"):
        ZoteroClient(double.url, silence_s=0.1).read()
    double.silence_s = 0
    double.queue(Canned(b'[{"key": "AAAA', declared=400))
    with pytest.raises(ProviderUnreachable, match="start Zotero 7"):
        ZoteroClient(double.url).read()
    double.queue(Canned(b"[]"), Canned(b'[{"key": "AAAA'))
    with pytest.raises(ProviderBadResponse, match="expected a list"):
        ZoteroClient(double.url).read()
    double.queue(Canned(b"error", 500, "text/plain"))
    with pytest.raises(ProviderBadResponse, match="answered 500"):
        ZoteroClient(double.url).read()
    with pytest.raises(ProviderUnreachable, match="start Zotero 7"):
        ZoteroClient("http://127.0.0.1:9").read()


def test_only_this_machine_is_asked() -> None:
    with pytest.raises(InvalidInput, match="ZOTERO_URL"):
        ZoteroClient("http://192.168.1.5:23119")


def test_files_that_are_away_or_half_there_fail_alone(double: ZoteroDouble, tmp_path: Path) -> None:
    paper = double.add(**PAPER)
    here = double.attach(paper, "here.pdf", b"%PDF-1.4 here")
    away = double.attach(paper, "away.pdf", b"%PDF-1.4 away")
    double.path(away).unlink()
    unknown = double.attach("", "linked.pdf", b"%PDF-1.4", linkMode="linked_file")
    found = ZoteroClient(double.url).read()
    assert [one.source_key for one in found.documents] == [f"zotero/library/items/{here}/file"]
    reasons = dict(found.failed)
    assert "open it in Zotero once" in reasons[f"zotero/library/items/{away}/file"]
    assert "does not know where 'linked.pdf' is" in reasons[f"zotero/library/items/{unknown}/file"]

    double.trash(away)
    double.trash(unknown)
    double.move_storage(tmp_path / "elsewhere")
    assert read(double)[f"zotero/library/items/{here}/file"].content == double.path(here)

    def cut(done: int, total: int, what: str) -> None:
        if what == "items":
            double.path(here).write_bytes(b"%PDF")

    half = ZoteroClient(double.url).read(cut)
    assert half.waiting == ((f"zotero/library/items/{here}/file", "its download is not finished"),)


def test_a_page_is_added_to_files_alone() -> None:
    item, file = (
        "zotero://select/library/items/ABCD2345",
        "zotero://open-pdf/library/items/ABCD2345",
    )
    assert zotero_link(item, 3) == item
    assert zotero_link(file, 3) == f"{file}?page=3"
    assert zotero_link(file, None) == file
    for other in ("javascript:alert(1)", f"{item}/../x", "zotero://fullscreen/", None, 5):
        assert zotero_link(other, 3) is None
