"""Uploads: every status of the contract, odd names, and what is left behind when something is refused."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from app.core.errors import DiskFull
from app.core.types import Library, ParsedDocument
from app.ingest.parsers import DirectParser
from tests.api.conftest import Site, site
from tests.fakes.files import make_docx, make_pdf, make_scan


def outcomes(body: object) -> list[str]:
    assert isinstance(body, dict)
    return [row["status"] for row in body["documents"]]


def test_new_same_changed_and_mixed(shop: Site) -> None:
    status, body = shop.upload(("a.txt", b"Copper is red."), ("b.docx", make_docx()))
    assert (status, outcomes(body)) == (201, ["indexed", "indexed"])
    assert isinstance(body, dict)
    receipt = body["documents"][0]["receipt"]
    assert receipt == {
        "pages": 0,
        "characters": 14,
        "covered_characters": 12,
        "chunks": 1,
        "vectors": 1,
    }
    assert shop.upload(("a.txt", b"Copper is red."))[0] == 200
    status, body = shop.upload(("a.txt", b"Copper is not blue."), ("c.txt", b"Tin is grey."))
    assert (status, outcomes(body)) == (201, ["replaced", "indexed"])
    status, body = shop.upload(("d.txt", b"Zinc is blue."), ("e.pdf", b"MZ\x90\x00" + bytes(500)))
    assert (status, outcomes(body)) == (207, ["indexed", "failed"])
    assert isinstance(body, dict)
    assert body["documents"][1]["doc_id"] is None


@pytest.mark.parametrize(
    ("name", "content", "status", "code"),
    [
        ("zero.txt", b"", 422, "unreadable"),
        ("x.pdf", b"MZ\x90\x00" + bytes(500), 415, "unsupported_type"),
        ("scan.pdf", make_scan(), 422, "no_text_layer"),
        ("big.txt", b"a b " * 300_000, 413, "too_large"),
        ("torn.pdf", b"%PDF-1.7\n" + b"\x00" * 100, 422, "unreadable"),
    ],
)
def test_one_bad_file_gets_its_own_error(
    tmp_path: Path, name: str, content: bytes, status: int, code: str
) -> None:
    with site(tmp_path, max_file_size_mb=1) as small:
        got, body = small.upload((name, content))
        assert isinstance(body, dict)
        assert (got, body["code"]) == (status, code)
        assert name in body["detail"]
        stats = small.client.get("/api/v1/collection/stats", params={"library": "papers"}).json()
        assert (stats["documents"], stats["chunks"]) == (0, 0)
        assert not list((small.settings.data_dir / "originals").iterdir())
        assert not list((small.settings.data_dir / "uploads").iterdir())


def test_waiting_for_text_and_not_at_all(shop: Site) -> None:
    status, body = shop.upload(("a.txt", b"Copper is red."), wait="text")
    assert (status, outcomes(body)) == (201, ["indexed"])
    status, body = shop.upload(("b.txt", b"Tin is grey."), wait="false")
    assert isinstance(body, dict)
    assert (status, body["documents"]) == (202, [])
    job = shop.services.jobs.wait(body["job_id"], 20)
    assert job.state == "done"
    shown = shop.client.get(f"/api/v1/jobs/{body['job_id']}").json()
    assert (shown["state"], shown["kind"]) == ("done", "ingest")
    assert shown["result"]["documents"][0]["status"] == "indexed"
    assert shown["files"] == [{"filename": "b.txt", "state": "done", "progress": 1.0}]
    assert "payload" not in shown


def test_a_deletion_ends_the_upload_that_waits_for_its_turn(
    shop: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shop.upload(("x.md", b"# Heron\n\nOld words."))[0] == 201
    parse, free = DirectParser.parse, threading.Event()

    def held(
        parser: DirectParser, content: bytes | Path, filename: str, **_: object
    ) -> ParsedDocument:
        assert free.wait(30)
        return parse(parser, content, filename)

    monkeypatch.setattr(DirectParser, "parse", held)
    _, running = shop.upload(("x.md", b"# Heron\n\nNew words."), wait="false")
    _, waiting = shop.upload(("x.md", b"# Heron\n\nNewest words."), wait="false")
    gone = shop.client.delete("/api/v1/papers/x.md", params={"library": "papers"})
    assert gone.status_code == 200
    free.set()
    for accepted in (running, waiting):
        assert isinstance(accepted, dict)
        job = shop.services.jobs.wait(accepted["job_id"], 30)
        assert job.state == "cancelled"
        assert job.errors[-1].startswith("superseded: 'x.md' was deleted")
    assert shop.services.catalog.counts(Library.PAPERS).documents == 0
    assert not list((shop.settings.data_dir / "originals").iterdir())


def test_the_library_is_said_once(shop: Site) -> None:
    def post(query: str, form: str | None) -> tuple[int, str]:
        reply = shop.client.post(
            f"/api/v1/ingest{query}",
            files={"file": ("a.txt", b"text")},
            data={} if form is None else {"library": form},
        )
        return reply.status_code, reply.text

    assert post("?library=papers", "papers")[0] == 201
    assert post("?library=papers", "public")[0] == 422
    assert post("", "nope")[0] == 422
    assert post("?library=nope", None)[0] == 422
    assert post("", None)[0] == 201
    assert (
        shop.client.get("/api/v1/collection/stats", params={"library": "public"}).json()[
            "documents"
        ]
        == 1
    )


def test_source_keys_name_documents(shop: Site) -> None:
    keys = ["notes/./a.txt", "notes\\b.txt"]
    status, _ = shop.upload(("x.txt", b"one"), ("x.txt", b"two"), source_key=keys)
    assert status == 201
    listed = shop.client.get("/api/v1/papers", params={"library": "papers"}).json()["documents"]
    assert sorted(document["source_key"] for document in listed) == ["notes/a.txt", "notes/b.txt"]
    for bad in (["../x"], ["/etc/passwd"], ["C:\\x"], ["a", "b"], [""]):
        status, body = shop.upload(("x.txt", b"one"), source_key=bad)
        assert status == 422, bad
    status, body = shop.upload(("x.txt", b"one"), ("x.txt", b"two"))
    assert status == 422
    assert "source_key" in str(body)


NAMES = [
    "../../../escaped.txt",
    "..\\..\\escaped.txt",
    "/etc/escaped.txt",
    "C:\\escaped.txt",
    "\\\\host\\share\\escaped.txt",
    "nul\x00byte.txt",
    "bidi\u202etxt.exe",
    "<img src=x onerror=alert(1)>.txt",
    'quo"te.txt',
    "new\nline.txt",
    "\u6570\u636e\u5e93.txt",
    "e\u0301.txt",
    "a" * 400 + ".txt",
    "con.txt",
    ".hidden",
    "%2e%2e%2fx.txt",
    "tag\U000e0041.txt",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_data(shop: Site, name: str) -> None:
    shown = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A").encode()
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="'
        + shown
        + b'"\r\n\r\nsome words to read\r\n--b--\r\n'
    )
    reply = shop.client.post(
        "/api/v1/ingest?library=papers",
        content=body,
        headers={"Content-Type": "multipart/form-data; boundary=b"},
    )
    assert reply.status_code in {201, 422}, reply.text
    if reply.status_code == 201:
        [document] = reply.json()["documents"]
        kept = document["filename"]
        assert "/" not in kept
        assert "\\" not in kept
        assert kept.isprintable()
        assert len(kept.encode()) <= 255
        file = shop.client.get(
            f"/api/v1/documents/{document['doc_id']}/file", params={"library": "papers"}
        )
        assert file.content == b"some words to read"
        assert "\n" not in file.headers["content-disposition"]
    escaped = list(shop.settings.data_dir.parent.rglob("*escaped*"))
    assert escaped == []


def test_a_pdf_keeps_its_pages(shop: Site) -> None:
    _, body = shop.upload(
        ("p.pdf", make_pdf([["First page with words."], ["Second page with words."]]))
    )
    assert isinstance(body, dict)
    assert body["documents"][0]["receipt"]["pages"] == 2


def test_a_full_disk_is_507_and_keeps_nothing(shop: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> list[str]:
        raise DiskFull("no space for the original; free some and send it again")

    with monkeypatch.context() as patched:
        patched.setattr(shop.services.writer, "store_originals", full)
        status, body = shop.upload(("a.txt", b"Copper is red."))
    assert isinstance(body, dict)
    assert (status, body["code"], body["retryable"]) == (507, "disk_full", True)
    assert shop.client.get("/api/v1/jobs").json()["jobs"] == []
    assert shop.upload(("a.txt", b"Copper is red."))[0] == 201


def test_remove_restore_correct_and_clear(shop: Site) -> None:
    shop.upload(("a.txt", b"Copper is red."), ("b.txt", b"Tin is grey."))
    params = {"library": "papers"}
    corrected = shop.client.patch(
        "/api/v1/papers/a.txt",
        params=params,
        json={"title": "On copper", "authors": ["A. Smith"], "year": 1931},
    )
    assert (corrected.json()["title"], corrected.json()["year"]) == ("On copper", 1931)
    assert (
        shop.client.patch("/api/v1/papers/a.txt", params=params, json={"year": None}).json()["year"]
        is None
    )
    assert (
        shop.client.patch("/api/v1/papers/a.txt", params=params, json={"titel": "x"}).status_code
        == 422
    )
    doc_id = corrected.json()["doc_id"]
    gone = shop.client.delete(f"/api/v1/papers/{doc_id}", params={**params, "grace_s": 60}).json()
    assert (gone["doc_id"], gone["chunks"], gone["purged"]) == (doc_id, 1, False)
    assert shop.client.get(f"/api/v1/papers/{doc_id}", params=params).status_code == 404
    assert (
        shop.client.post(f"/api/v1/papers/{doc_id}/restore", params=params).json()["title"]
        == "On copper"
    )
    assert shop.client.delete(f"/api/v1/ingest/{doc_id}", params=params).json()["purged"] is True
    assert shop.client.delete(f"/api/v1/ingest/{doc_id}", params=params).status_code == 404
    assert shop.client.post(f"/api/v1/papers/{doc_id}/restore", params=params).status_code == 404
    assert (
        shop.client.delete(
            "/api/v1/libraries/papers/documents", params={"confirm": "public"}
        ).status_code
        == 422
    )
    assert (
        shop.client.delete(
            "/api/v1/libraries/papers/documents", params={"confirm": "papers"}
        ).json()["documents"]
        == 1
    )


def test_a_second_file_of_a_name_says_that_it_replaced_the_first(shop: Site) -> None:
    assert shop.upload(("README.md", b"# Tin\n\nTin is a grey metal."))[0] == 201
    status, body = shop.upload(("README.md", b"# Zinc\n\nZinc is a blue metal."))
    assert (status, outcomes(body)) == (201, ["replaced"])
    assert "took the place of the document that was sent as 'README.md'" in str(body)
    assert shop.upload(("a.md", b"Lead is dull."), source_key="one/a.md")[0] == 201
    _, body = shop.upload(("a.md", b"Lead is soft."), source_key="one/a.md")
    assert outcomes(body) == ["replaced"]
    assert "took the place" not in str(body)


def test_a_data_directory_that_was_moved_away_is_told_and_not_made_again(tmp_path: Path) -> None:
    with site(tmp_path) as shop:
        data = shop.settings.data_dir
        away = data.rename(tmp_path / "away")
        status, body = shop.upload(("a.md", b"Tin is grey."))
        assert status == 503, body
        assert "is gone under the server" in str(body)
        checked = shop.client.post("/api/v1/check/text", files={"file": ("a.md", b"Tin.")})
        saved = [
            shop.client.post("/api/v1/backup", json={}),
            shop.client.post("/api/v1/export", json={"library": "papers"}),
        ]
        assert [checked.status_code, *(each.status_code for each in saved)] == [503, 503, 503]
        assert not data.exists()
        away.rename(data)
        assert shop.upload(("a.md", b"Tin is grey."))[0] == 201
