"""What was read can be mended: another revision of the same bytes, the old one still opens, undo."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.core.types import ParsedDocument
from app.ingest.parsers import DirectParser
from app.jobs.ingest import request_rereading
from tests.api.conftest import Site, site
from tests.fakes.files import make_pdf
from tests.unit.storage.drafts import make_draft

PAPERS = {"library": "papers"}
PAGES = [
    [f"{page} {head}", *(f"Entry {page}.{i}: the lamp bums for {i} hours." for i in range(9))]
    for page, head in enumerate(("Copper", "The tide tables", "Lions", "A mill", "Salt"), 1)
]  # fmt: skip
LOG = make_pdf(PAGES)


def get(shop: Site, name: str, what: str, **params: object) -> Any:
    asked = {**PAPERS, **params}
    reply = shop.client.get(f"/api/v1/documents/{name}/{what}", params=asked)  # type: ignore[arg-type]
    assert reply.status_code == 200, reply.text
    return reply.json()


def correct(
    shop: Site, name: str, revision: int, *edits: tuple[int, int, str], **headers: str
) -> Any:
    """Send corrections; return the status and the body."""
    body = {
        "revision": revision,
        "corrections": [{"start": a, "end": b, "text": text} for a, b, text in edits],
    }
    path = f"/api/v1/documents/{name}/corrections"
    reply = shop.client.post(path, params=PAPERS, json=body, headers=headers)
    return reply.status_code, reply.json()


def undo(shop: Site, name: str, n: int, revision: int) -> Any:
    path = f"/api/v1/documents/{name}/corrections/{n}"
    reply = shop.client.delete(path, params={**PAPERS, "revision": revision})
    return reply.status_code, reply.json()


def text_of(shop: Site, name: str, **params: object) -> str:
    return str(get(shop, name, "text", **params)["text"])


def words_of(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return one["n"], one["before"], one["text"], one["page"], one["placed"]


def upload(shop: Site, *files: tuple[str, bytes]) -> None:
    status, body = shop.upload(*files)
    assert status == 201, body


def test_twenty_corrections_leave_every_other_span_page_box_and_chunk_where_it_belongs(
    shop: Site,
) -> None:
    upload(shop, ("log.pdf", LOG))
    before = text_of(shop, "log.pdf")
    old_chunks = get(shop, "log.pdf", "chunks")["chunks"]
    found = [one.start() for one in re.finditer("bums", before)]
    assert len(found) == 45
    kinds = ("burns", "glows and glows", "is", "", "burns\nbright")
    edits = [(at, at + 4, kinds[i % 5]) for i, at in enumerate(found[::2][:20])]
    status, listed = correct(shop, "log.pdf", 1, *edits)
    assert (status, listed["revision"], len(listed["corrections"])) == (201, 2, 20)

    after = text_of(shop, "log.pdf")
    expected = before
    for start, end, words in reversed(edits):
        expected = expected[:start] + words + expected[end:]
    assert after == expected
    assert text_of(shop, "log.pdf", revision=1) == before
    for one in listed["corrections"]:
        assert after[one["start"] : one["end"]] == one["text"]
        assert f"Entry {one['page']}." in after[max(0, one["start"] - 30) : one["start"]]
    for page in range(1, 6):
        old = get(shop, "log.pdf", "text", page=page, revision=1)
        start, end = old["start"], old["end"]
        inside = [(a - start, b - start, words) for a, b, words in edits if start <= a < end]
        mended = before[start:end]
        for a, b, words in reversed(inside):
            mended = mended[:a] + words + mended[b:]
        shown = get(shop, "log.pdf", "text", page=page)
        assert shown["text"] == mended
        assert shown["text"] == after[shown["start"] : shown["end"]]
    chunks = get(shop, "log.pdf", "chunks")["chunks"]
    assert [(one["page"], one["section"]) for one in chunks] == [
        (one["page"], one["section"]) for one in old_chunks
    ]
    for old, new in zip(old_chunks, chunks, strict=True):
        assert new["text"] == after[new["start"] : new["end"]]
        moved = sum(len(words) - (b - a) for a, b, words in edits if b <= old["start"])
        assert new["start"] == old["start"] + moved
        assert old["text"].split("\n")[0] == new["text"].split("\n")[0]
    for page in range(1, 6):
        for i in range(9):
            tail = f"for {i} hours"
            where = before.index(f"Entry {page}.{i}:")
            a, b = before.index(tail, where), after.index(tail, after.index(f"Entry {page}.{i}:"))
            old, new = (
                get(shop, "log.pdf", "boxes", start=at, end=at + len(tail), revision=revision)
                for at, revision in ((a, 1), (b, 2))
            )
            assert old == new
            assert old[0]["page"] == page
            assert old[0]["rects"]
    # Of a corrected place the page shows what was read there.
    first = listed["corrections"][1]
    (box,) = get(shop, "log.pdf", "boxes", start=first["start"], end=first["end"])
    (read,) = get(shop, "log.pdf", "boxes", start=edits[1][0], end=edits[1][1], revision=1)
    assert box["rects"] == read["rects"]
    assert get(shop, "log.pdf", "corrections", revision=1)["corrections"] == []
    assert shop.services.store.fsck.run().faults == ()
    original = shop.client.get("/api/v1/documents/log.pdf/file", params=PAPERS)
    assert original.content == LOG


COPPER = ("copper.txt", b"Copper is a soft red metaI. Its melting point is 1805 degrees Celsius.")


def test_an_answer_of_before_opens_its_old_words_and_the_next_one_quotes_the_new(
    shop: Site,
) -> None:
    upload(shop, COPPER)
    question = {"question": "What is the melting point of copper?", "library": "papers"}
    old = shop.client.post("/api/v1/query", json=question).json()
    assert "1805 degrees" in old["answer"]
    start = text_of(shop, "copper.txt").index("1805")
    assert correct(shop, "copper.txt", 1, (start, start + 4, "1085"))[0] == 201
    new = shop.client.post("/api/v1/query", json=question).json()
    assert "1085 degrees" in new["answer"]
    for answer, words in ((old, "1805"), (new, "1085")):
        kept = shop.client.get(f"/api/v1/answers/{answer['answer_id']}").json()
        (source,) = kept["sources"]
        span = {name: source[name] for name in ("start", "end", "revision")}
        assert words in text_of(shop, source["doc_id"], **span)


def test_each_correction_can_be_taken_back_and_what_it_corrected_is_kept(shop: Site) -> None:
    upload(shop, COPPER)
    read = text_of(shop, "copper.txt")
    at, point = read.index("metaI"), read.index("1805")
    status, listed = correct(
        shop, "copper.txt", 1, (at, at + 5, "metal"), (point, point + 4, "1085")
    )
    assert [words_of(one) for one in listed["corrections"]] == [
        (1, "metaI", "metal", None, True),
        (2, "1805", "1085", None, True),
    ]
    assert all(one["created_at"].endswith("Z") for one in listed["corrections"])
    status, listed = undo(shop, "copper.txt", 1, 2)
    assert (status, listed["revision"]) == (200, 3)
    assert text_of(shop, "copper.txt") == read.replace("1805", "1085")
    assert undo(shop, "copper.txt", 1, 2)[0] == 409  # of an older list
    assert undo(shop, "copper.txt", 2, 3)[0] == 404
    status, listed = undo(shop, "copper.txt", 1, 3)
    assert (status, listed["revision"], listed["corrections"]) == (200, 4, [])
    assert text_of(shop, "copper.txt") == read
    assert "metal" in text_of(shop, "copper.txt", revision=2)
    assert shop.upload(COPPER)[0] == 200  # unchanged


def test_a_corrected_heading_is_the_title_unless_a_person_named_it(shop: Site) -> None:
    upload(shop, ("tides.md", b"# Tidos\n\nThe Moon pulls."), ("moon.md", b"# Mo0n\n\nIt pulls."))
    named = shop.client.patch("/api/v1/papers/moon.md", params=PAPERS, json={"title": "Luna"})
    assert named.status_code == 200
    for name, words, title in (("tides.md", "Tides", "Tides"), ("moon.md", "Moon", "Luna")):
        assert correct(shop, name, 1, (0, len(words), words))[0] == 201
        record = shop.client.get(f"/api/v1/papers/{name}", params=PAPERS).json()
        assert record["title"] == title
        assert text_of(shop, name).startswith(words)


def test_the_same_bytes_again_keep_corrections_and_other_bytes_have_none(shop: Site) -> None:
    upload(shop, COPPER)
    at = text_of(shop, "copper.txt").index("1805")
    correct(shop, "copper.txt", 1, (at, at + 4, "1085"))
    status, body = shop.upload(COPPER)
    assert (status, body["documents"][0]["status"]) == (200, "unchanged")  # type: ignore[index]
    assert "1085" in text_of(shop, "copper.txt")
    assert shop.upload((COPPER[0], COPPER[1] + b" It rings."))[0] == 201
    assert get(shop, "copper.txt", "corrections")["corrections"] == []


def test_what_cannot_be_corrected_is_told_and_nothing_is_written(shop: Site) -> None:
    upload(shop, COPPER)
    length = len(text_of(shop, "copper.txt"))
    for revision, edits, status, words in (
        (2, [(0, 6, "Tin")], 409, "is not the live one, 1 is"),
        (1, [(0, 6, "Tin"), (3, 8, "x")], 422, "lie over each other; make them one"),
        (1, [(0, length + 1, "Tin")], 422, f"must lie within 0..{length}"),
        (1, [(0, 6, "Copper")], 422, "change nothing"),
        (1, [], 422, "corrections"),
        (1, [(0, 6, "x" * 100_001)], 422, "at most 100000 characters"),
        (1, [(0, length, " ")], 422, "nothing would be left of the text"),
    ):
        got, problem = correct(shop, "copper.txt", revision, *edits)
        assert got == status, problem
        assert words in problem["detail"]
    assert correct(shop, "nowhere.txt", 1, (0, 6, "Tin"))[0] == 404
    page = shop.client.get("/api/v1/documents/copper.txt/text", params={**PAPERS, "page": 3})
    assert page.status_code == 404
    assert "has no page 3" in page.json()["detail"]
    listed = get(shop, "copper.txt", "corrections")
    assert (listed["revision"], listed["corrections"]) == (1, [])


def test_corrections_need_the_scope_write_and_keep_their_author(tmp_path: Path) -> None:
    with site(tmp_path, api_key="adm1n") as shop:
        shop.client.headers["X-API-Key"] = "adm1n"
        upload(shop, COPPER)
        keys: dict[str, str] = {}
        for name, scope in (("reader", "read"), ("laptop-of-ann", "write")):
            body = {"name": name, "scopes": [scope]}
            keys[name] = shop.client.post("/api/v1/keys", json=body).json()["key"]
        edit = (0, 6, "Tin")
        reading, writing = ({"X-API-Key": key} for key in keys.values())
        status, problem = correct(shop, "copper.txt", 1, edit, **reading)
        assert (status, "lacks the scope 'write'" in problem["detail"]) == (403, True)
        path = "/api/v1/documents/copper.txt/corrections"
        gone = shop.client.delete(f"{path}/1", params={**PAPERS, "revision": 1}, headers=reading)
        assert gone.status_code == 403
        assert correct(shop, "copper.txt", 1, edit, **writing)[0] == 201
        assert shop.client.get(path, params=PAPERS, headers=reading).status_code == 200
        (listed,) = get(shop, "copper.txt", "corrections")["corrections"]
        assert listed["author"] == "laptop-of-ann"


TOMORROW = "reader of tomorrow"


def test_a_newer_reader_keeps_what_fits_and_tells_of_the_rest(
    shop: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next release reads a head more, and otherwise what stands around one of two corrections."""
    upload(shop, COPPER)
    read = text_of(shop, "copper.txt")
    at, point = read.index("metaI"), read.index("1805")
    wanted = (at, at + 5, "metal"), (point, point + 4, "1085")
    assert correct(shop, "copper.txt", 1, *wanted)[0] == 201
    parse = DirectParser.parse

    def newer(*asked: Any, **named: Any) -> ParsedDocument:
        parsed = parse(*asked, **named)
        text = "A head\n\n" + parsed.text.replace("soft red", "soft, red")
        return replace(parsed, text=text)

    monkeypatch.setattr(DirectParser, "parse", newer)
    for module in ("app.ingest.pipeline", "app.jobs.ingest"):
        monkeypatch.setattr(f"{module}.PARSER_EDITION", TOMORROW)
    request_rereading(shop.services.jobs, shop.services.catalog)
    (job,) = (one for one in shop.services.jobs.list() if one.kind == "reread")
    done = shop.services.jobs.wait(job.id, 20)
    assert done.result == {"library": "papers", "read": 1, "failed": 0, "unplaced": 1}
    (told,) = done.errors
    assert told.startswith("'copper.txt': 1 of its corrections do not fit what is read now")
    text = text_of(shop, "copper.txt")
    assert text == "A head\n\n" + read.replace("soft red", "soft, red").replace("1805", "1085")
    listed = get(shop, "copper.txt", "corrections")
    assert [words_of(one) for one in listed["corrections"]] == [
        (1, "metaI", "metal", None, False),
        (2, "1805", "1085", None, True),
    ]
    assert (listed["corrections"][0]["start"], listed["revision"]) == (None, 3)
    document = shop.client.get("/api/v1/papers/copper.txt", params=PAPERS).json()
    assert document["flags"] == ["unplaced:1"]
    assert "metal" in text_of(shop, "copper.txt", revision=2)
    status, listed = undo(shop, "copper.txt", 1, 3)  # what does nothing goes like any other
    assert (status, [words_of(one) for one in listed["corrections"]]) == (
        200,
        [(1, "1805", "1085", None, True)],
    )
    assert text_of(shop, "copper.txt") == text
    document = shop.client.get("/api/v1/papers/copper.txt", params=PAPERS).json()
    assert document["flags"] == []


def test_a_correction_of_what_is_read_otherwise_by_now_is_refused(
    shop: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(shop, COPPER)
    parse = DirectParser.parse
    monkeypatch.setattr(
        DirectParser, "parse", lambda *asked, **named: replace(parse(*asked, **named), text="Tin.")
    )
    status, problem = correct(shop, "copper.txt", 1, (0, 6, "Lead"))
    assert status == 409
    assert "was read by an older release, and a correction does not fit" in problem["detail"]
    assert get(shop, "copper.txt", "text")["revision"] == 1


def test_a_text_without_its_bytes_is_corrected_where_it_comes_from(shop: Site) -> None:
    shop.services.writer.write([make_draft("dump.txt", "An article of a dump.")])
    status, problem = correct(shop, "dump.txt", 1, (0, 2, "The"))
    assert (status, problem["code"]) == (404, "no_original")
    assert "correct it where it comes from" in problem["detail"]
