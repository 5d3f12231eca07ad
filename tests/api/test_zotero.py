"""`documind sync zotero` from a double of Zotero's local API into a real server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli.main import app
from app.storage.files.lock import DirectoryLock
from tests.api.conftest import Site, listening, site
from tests.fakes.files import make_pdf
from tests.fakes.http_double import Canned
from tests.fakes.zotero_double import WEB_KEY, ZoteroDouble, ZoteroWebDouble

SILT = (
    ("Contents", "Silt is carried by rivers, and settles where the water is slow."),
    ("Results", "Grains of silt settle at 0.2 millimetres per second in still water."),
)
WRITTEN = {
    "documents": "doc, revision, sha256, title, tags, metadata, accepted, updated_at",
    "revisions": "doc, revision, created_at",
    "chunks": "chunk_id, doc, revision",
    "labels": "doc, key, value",
    "sync_claims": "source_key, sha256",
}
"""Tables of the catalog that a document is written to, and columns that no later work on it changes."""


@pytest.fixture
def double(tmp_path: Path) -> Iterator[ZoteroDouble]:
    with ZoteroDouble(tmp_path / "Zotero") as running:
        yield running


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, double: ZoteroDouble) -> Iterator[Site]:
    """A server, and an environment whose data directory it holds and whose Zotero is the double."""
    with (
        site(tmp_path / "server") as opened,
        listening(opened.app, lifespan="off") as url,
        DirectoryLock([tmp_path / "lock"], url),
    ):
        monkeypatch.setenv("DATA_DIR", str(tmp_path / "lock"))
        monkeypatch.setenv("ZOTERO_URL", double.url)
        yield opened


def sync(*arguments: str) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(app, ["sync", "zotero", "--json", *arguments])
    return result.exit_code, json.loads(result.stdout)


def documents(served: Site) -> dict[str, dict[str, Any]]:
    rows = served.client.get("/api/v1/papers?library=papers&limit=500").json()["documents"]
    return {row["source_key"]: row for row in rows}


def rows(served: Site) -> dict[str, list[tuple[Any, ...]]]:
    with served.services.store.database.read_raw() as cursor:
        return {table: cursor.execute(f"SELECT * FROM {table}").fetchall() for table in WRITTEN}


def uploads(served: Site) -> set[str]:
    """Return the ids of the jobs that wrote files."""
    with served.services.store.database.read_raw() as cursor:
        return {row[0] for row in cursor.execute("SELECT id FROM jobs WHERE kind = 'ingest'")}


def paper(double: ZoteroDouble, number: int = 0, **data: object) -> tuple[str, str]:
    """Add an item with a PDF; return the keys of both."""
    known: dict[str, Any] = {
        "itemType": "journalArticle",
        "title": f"Rivers that carry silt {number}",
        "creators": [{"creatorType": "author", "firstName": "Ann", "lastName": "Baker"}],
        "date": "2021",
        "DOI": f"10.1234/silt.{number}",
        "extra": f"Citation Key: baker{number}",
        "tags": [{"tag": "river"}],
        **data,
    }
    key = double.add(**known)
    return key, double.attach(key, f"Baker {number}.pdf", make_pdf(SILT, title="scan_0001"))


def test_a_library_follows_zotero(served: Site, double: ZoteroDouble) -> None:
    item, file = paper(double, collections=[double.collect("Thesis")])
    double.annotate(file, 2, "Grains of silt settle at 0.2 millimetres", "Too slow for the dam?")
    double.add(itemType="note", parentItem=item, note="<p>Ask Cole about the dam in Ulm.</p>")
    pdf, marks = f"zotero/library/items/{file}/file", f"zotero/library/items/{file}/annotations"
    notes = f"zotero/library/items/{item}/item"
    assert served.upload(("mine.txt", b"An upload that Zotero knows nothing of."))[0] == 201
    code, first = sync()
    assert (code, sorted(first["added"]), first["failed"]) == (0, sorted([pdf, marks, notes]), [])
    held = documents(served)
    known = held[pdf]
    assert (known["title"], known["authors"], known["year"], known["tags"]) == (
        "Rivers that carry silt 0",
        ["Ann Baker"],
        2021,
        ["river", "Thesis"],
    )
    assert known["metadata"] == {
        "zotero": f"zotero://open-pdf/library/items/{file}",
        "citation key": "baker0",
        "DOI": "10.1234/silt.0",
    }
    assert known["filename"] == "Baker 0.pdf"
    assert held[marks]["title"] == "Rivers that carry silt 0 (annotations)"
    asked = {"q": "too slow for the dam", "library": "papers"}
    hit = served.client.get("/api/v1/search", params=asked).json()["hits"][0]
    assert (hit["doc_id"], hit["page"]) == (held[marks]["doc_id"], 2)

    assert hit["zotero_url"] == f"zotero://open-pdf/library/items/{file}?page=2"
    body = {
        "question": "At what speed do grains of silt settle in still water?",
        "library": "papers",
    }
    answer = served.client.post("/api/v1/query", json=body).json()
    assert "0.2 millimetres" in answer["answer"]
    cited = {one["n"] for sentence in answer["sentences"] for one in sentence["citations"]}
    assert cited
    for source in answer["sources"]:
        if source["n"] in cited:
            place, page = f"zotero://open-pdf/library/items/{file}", source["page"]
            assert source["zotero_url"] == f"{place}?page={page}"

    before, sent = rows(served), uploads(served)
    code, second = sync()
    assert (code, second["unchanged"], second["added"], second["replaced"]) == (0, 3, [], [])
    assert rows(served) == before
    assert uploads(served) <= sent

    # the item is corrected, an annotation is added, the note goes
    double.change(item, title="Rivers that carry much silt", extra="")
    double.annotate(file, 1, "settles where the water is slow")
    (note,) = (key for key, one in double.entries["library"].items() if "note" in str(one["data"]))
    double.trash(note)
    code, third = sync()
    assert (code, third["added"], sorted(third["replaced"]), third["removed"]) == (
        0,
        [],
        sorted([pdf, marks]),
        [notes],
    )
    held = documents(served)
    assert held[pdf]["title"] == "Rivers that carry much silt"
    assert "citation key" not in held[pdf]["metadata"]
    assert held[pdf]["revision"] == 1, "its bytes are the same"
    assert held[marks]["revision"] == 2
    assert third["names"][pdf] == "Baker 0.pdf"
    shown = CliRunner().invoke(app, ["sync", "zotero"])
    assert "2 unchanged" in shown.stdout

    (folder,) = served.client.get("/api/v1/sync/folders").json()["folders"]
    assert (folder["folder"].rpartition(":")[2], folder["documents"]) == ("Zotero", 2)
    double.trash(item)
    double.trash(file)
    code, kept = sync()
    assert (code, kept["removed"], sorted(kept["kept"])) == (3, [], sorted([pdf, marks]))
    assert sync("--allow-empty")[0] == 0
    assert list(documents(served)) == ["mine.txt"]


ITEMS = int(os.environ.get("ZOTERO_ITEMS", "100"))
"""1000 take a minute and a half."""


def test_many_items_are_written_once(
    served: Site, double: ZoteroDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.models.zotero._PAGE", ITEMS // 4)
    for number in range(ITEMS):
        double.add(
            itemType="book",
            title=f"Book {number} of the river",
            abstractNote=f"The river rose {number} millimetres in the year of the flood.",
            creators=[{"creatorType": "author", "firstName": "Ann", "lastName": f"Baker {number}"}],
            tags=[{"tag": "river"}],
            date=str(1900 + number % 100),
        )
    code, first = sync()
    assert (code, len(first["added"]), first["failed"]) == (0, ITEMS, [])
    before, sent = rows(served), uploads(served)
    assert len(before["documents"]) == ITEMS
    code, second = sync()
    assert (code, second["unchanged"], second["added"]) == (0, ITEMS, [])
    assert rows(served) == before
    assert uploads(served) <= sent


def test_files_that_are_away_keep_their_documents(
    served: Site, double: ZoteroDouble, tmp_path: Path
) -> None:
    item, first = paper(double)
    _, second = paper(double, 1)
    assert sync()[0] == 0
    aside = double.storage.rename(tmp_path / "not mounted")
    code, away = sync()
    assert (code, away["removed"], away["kept"], len(away["failed"])) == (1, [], [], 2)
    assert "mount its disk" in str(away["failed"])
    assert len(documents(served)) == 2
    aside.rename(double.storage)
    double.move_storage(tmp_path / "elsewhere")
    assert sync()[1]["unchanged"] == 2

    # half a PDF is refused, and what was there stays
    whole = double.path(first).read_bytes()
    double.path(first).write_bytes(whole[:100])
    code, half = sync()
    assert (code, [key for key, _ in half["failed"]]) == (3, [f"zotero/library/items/{first}/file"])
    assert documents(served)[f"zotero/library/items/{first}/file"]["revision"] == 1
    double.path(first).write_bytes(whole)
    assert sync()[1]["replaced"] == [f"zotero/library/items/{first}/file"]
    assert sync()[1]["unchanged"] == 2
    double.trash(first)
    assert sync("--allow-empty")[1]["removed"] == [f"zotero/library/items/{first}/file"]
    left = {f"zotero/library/items/{item}/item", f"zotero/library/items/{second}/file"}
    assert set(documents(served)) == left, "an item without its file is its facts"


def test_a_zotero_that_cannot_be_read_removes_nothing_and_says_why(
    served: Site, double: ZoteroDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    paper(double)
    assert sync()[0] == 0
    double.is_on = False
    off = CliRunner().invoke(app, ["sync", "zotero"])
    assert off.exit_code not in (0, 3)
    assert "Allow other applications" in str(off.exception)
    monkeypatch.setenv("ZOTERO_URL", "http://127.0.0.1:9")
    away = CliRunner().invoke(app, ["sync", "zotero"])
    assert away.exit_code not in (0, 3)
    assert "start Zotero 7 or newer" in str(away.exception)
    assert len(documents(served)) == 1
    watching = CliRunner().invoke(app, ["sync", "zotero", "--watch"])
    assert "--watch follows folders" in str(watching.exception)


def test_a_folder_named_zotero_is_a_folder_with_its_path(
    served: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "zotero").mkdir()
    (tmp_path / "zotero" / "tin.txt").write_text("Tin is a grey metal.")
    result = CliRunner().invoke(app, ["sync", str(tmp_path / "zotero"), "--json"])
    assert json.loads(result.stdout)["added"] == ["tin.txt"]
    assert list(documents(served)) == ["tin.txt"]
    monkeypatch.chdir(tmp_path)
    unclear = CliRunner().invoke(app, ["sync", "zotero"])
    assert "give the whole path of the folder" in str(unclear.exception)


def follow(opened: Site, *, allow_empty: bool = False) -> dict[str, Any]:
    """Sync as the page does; return the job as it ended."""
    body = {"library": "papers", "allow_empty": allow_empty}
    reply = opened.client.post("/api/v1/sync/zotero", json=body)
    assert reply.status_code == 202, reply.text
    opened.services.jobs.wait(reply.json()["id"], 60)
    ended: dict[str, Any] = opened.client.get(f"/api/v1/jobs/{reply.json()['id']}").json()
    return ended


def counts(job: dict[str, Any]) -> dict[str, int]:
    assert job["state"] == "done", job
    return {name: n for name, n in job["result"].items() if isinstance(n, int) and n}


def test_the_server_follows_zotero_as_a_job(
    tmp_path: Path, double: ZoteroDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    with site(tmp_path / "server", zotero_url=double.url, max_file_size_mb=1) as served:
        item, file = paper(double)
        double.annotate(file, 2, "Grains of silt settle at 0.2 millimetres", "Too slow?")
        paper(double, 1)
        _, third = paper(double, 2)
        big = double.attach("", "film.txt", b"x" * (2**20 + 1))
        assert served.upload(("mine.txt", b"An upload that Zotero knows nothing of."))[0] == 201
        first = follow(served)
        assert counts(first) == {"added": 4, "failures": 1}
        (failed,) = first["result"]["failed"]
        assert failed["file"] == f"zotero/library/items/{big}/file"
        assert "MAX_FILE_SIZE_MB" in failed["reason"]
        held = documents(served)
        known = held[f"zotero/library/items/{file}/file"]
        assert (known["title"], known["tags"]) == ("Rivers that carry silt 0", ["river"])
        assert known["metadata"]["zotero"] == f"zotero://open-pdf/library/items/{file}"
        assert known["embedded"] == known["chunks"] > 0

        before = rows(served)
        double.trash(big)
        assert counts(follow(served)) == {"unchanged": 4}
        assert rows(served) == before, "the second run writes nothing"

        double.change(item, title="Rivers that carry much silt")
        double.trash(third)
        assert counts(follow(served)) == {"added": 1, "replaced": 2, "removed": 1, "unchanged": 1}
        held = documents(served)
        assert held[f"zotero/library/items/{file}/file"]["title"] == "Rivers that carry much silt"

        # the commands and the page are one folder
        with (
            listening(served.app, lifespan="off") as url,
            DirectoryLock([served.settings.data_dir], url),
        ):
            monkeypatch.setenv("DATA_DIR", str(served.settings.data_dir))
            monkeypatch.setenv("ZOTERO_URL", double.url)
            assert sync()[1]["unchanged"] == 4

        for key in list(double.entries["library"]):
            double.trash(key)
        assert counts(follow(served)) == {"kept": 4}
        assert counts(follow(served, allow_empty=True)) == {"removed": 4}
        assert list(documents(served)) == ["mine.txt"]


def test_a_job_says_what_to_do_where_zotero_does_not_answer(
    tmp_path: Path, double: ZoteroDouble
) -> None:
    with site(tmp_path / "server", zotero_url=double.url) as served:
        paper(double)
        assert counts(follow(served)) == {"added": 1}
        double.is_on = False
        off = follow(served)
        assert off["state"] == "failed"
        assert "Allow other applications" in off["errors"][0]
        assert len(documents(served)) == 1
    for url, told in (
        ("http://127.0.0.1:9", "start Zotero 7 or newer"),
        ("http://192.168.1.9:23119", "the local API is on this machine"),
    ):
        with site(tmp_path / told, zotero_url=url) as served:
            failed = follow(served)
            assert (failed["state"], told in failed["errors"][0]) == ("failed", True)


def test_a_library_of_zotero_org_is_followed_by_its_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with (
        ZoteroWebDouble(tmp_path / "web") as web,
        site(
            tmp_path / "server",
            zotero_url=web.url,
            zotero_library="users/475425",
            zotero_api_key=WEB_KEY,
        ) as served,
    ):
        item, file = paper(web)
        _, other = paper(web, 1)
        web.annotate(file, 2, "Grains of silt settle at 0.2 millimetres")
        assert counts(follow(served)) == {"added": 3}
        held = documents(served)
        known = held[f"zotero/library/items/{file}/file"]
        assert (known["filename"], known["tags"]) == ("Baker 0.pdf", ["river"])
        assert known["metadata"]["zotero"] == f"zotero://open-pdf/library/items/{file}"
        assert web.fetched == [file, other]

        before = rows(served)
        web.asked.clear()
        assert counts(follow(served)) == {"unchanged": 3}
        assert len(web.asked) == 1, "the library says that it is as it was"
        assert rows(served) == before

        # a new note is read, and no file is fetched for it
        web.add(itemType="note", parentItem=item, note="<p>Ask Cole.</p>")
        assert counts(follow(served)) == {"added": 1, "unchanged": 3}
        assert web.fetched == [file, other]

        # half a file leaves what was there, and the next sync fetches it again
        web.replace_file(other, make_pdf((*SILT, ("More", "Clay settles last."))))
        web.half = {other}
        half = follow(served)
        assert counts(half) == {"unchanged": 3, "failures": 1}
        assert "broke off" in half["result"]["failed"][0]["reason"]
        web.half = set()
        assert counts(follow(served)) == {"replaced": 1, "unchanged": 3}
        assert documents(served)[f"zotero/library/items/{other}/file"]["revision"] == 2

        # a document that was deleted here comes back, though its library has not changed
        gone = served.client.delete(f"/api/v1/papers/{known['doc_id']}?library=papers")
        assert gone.status_code == 200
        assert counts(follow(served)) == {"added": 1, "unchanged": 3}

        web.change(item, title="Rivers that carry much silt")
        web.trash(other)
        ended = follow(served)
        assert counts(ended) == {"added": 1, "replaced": 3, "removed": 1}
        title = documents(served)[f"zotero/library/items/{file}/file"]["title"]
        assert title == "Rivers that carry much silt"

        web.queue(Canned(b"Invalid key", 403, "text/plain"))
        refused = follow(served)
        assert refused["state"] == "failed"
        assert "set ZOTERO_API_KEY" in refused["errors"][0]
        shown = str(served.client.get("/api/v1/diagnostics").json()) + caplog.text + str(refused)
        assert WEB_KEY not in shown
        assert WEB_KEY not in repr(served.settings)


def test_the_command_follows_zotero_org_too(
    served: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ZoteroWebDouble(tmp_path / "web") as web:
        monkeypatch.setenv("ZOTERO_URL", web.url)
        monkeypatch.setenv("ZOTERO_LIBRARY", "users/475425")
        monkeypatch.setenv("ZOTERO_API_KEY", WEB_KEY)
        _, file = paper(web)
        assert sync()[1]["added"] == [f"zotero/library/items/{file}/file"]
        web.asked.clear()
        code, second = sync()
        assert (code, second["unchanged"], len(web.asked)) == (0, 1, 1)
        assert sync("--again")[1]["unchanged"] == 1
        assert web.fetched == [file, file], "again is all of it again"
        (folder,) = served.client.get("/api/v1/sync/folders").json()["folders"]
        assert folder["folder"] == "zotero.org:users/475425"


def test_a_sync_that_is_cancelled_while_it_reads_changes_nothing(
    tmp_path: Path, double: ZoteroDouble
) -> None:
    with site(tmp_path / "server", zotero_url=double.url) as served:
        paper(double)
        double.may_answer.clear()
        job = served.client.post("/api/v1/sync/zotero", json={}).json()
        joined = served.client.post("/api/v1/sync/zotero", json={}).json()
        assert joined["id"] == job["id"], "asking again joins it"
        assert served.client.delete(f"/api/v1/jobs/{job['id']}").status_code == 200
        double.may_answer.set()
        assert served.services.jobs.wait(job["id"], 60).state == "cancelled"
        assert documents(served) == {}
