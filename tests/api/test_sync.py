"""`documind sync` against a real server."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.main import app
from app.core.errors import InvalidInput
from app.core.labels import FILE_DATE
from app.storage.files.lock import DirectoryLock
from tests.api.conftest import Site, listening, site


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server, and an environment whose data directory it holds."""
    with (
        site(tmp_path / "server") as opened,
        listening(opened.app, lifespan="off") as url,
        DirectoryLock([tmp_path / "lock"], url),
    ):
        monkeypatch.setenv("DATA_DIR", str(tmp_path / "lock"))
        yield opened


def sync(folder: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    result = CliRunner().invoke(
        app, ["sync", str(folder), "--library", "papers", "--json", *arguments]
    )
    return result.exit_code, json.loads(result.stdout)


def test_a_library_follows_a_folder(served: Site, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "copper.txt").write_text(
        "Copper is a soft red metal. Its melting point is 1085 degrees Celsius."
    )
    (folder / "deep" / "tides.md").write_text("# Tides\n\nTides are caused by the Moon.")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    assert served.upload(("mine.txt", b"An upload that no folder knows of."))[0] == 201

    code, first = sync(folder)
    assert (code, first["added"], first["unchanged"]) == (3, ["copper.txt", "deep/tides.md"], 0)
    failed = first["failed"]
    assert isinstance(failed, list)
    assert [key for key, _ in failed] == ["broken.pdf"]

    (folder / "broken.pdf").unlink()
    code, second = sync(folder)
    assert (code, second["added"], second["replaced"], second["removed"], second["unchanged"]) == (
        0,
        [],
        [],
        [],
        2,
    )

    (folder / "copper.txt").write_text(
        "Copper melts at 1085 degrees and boils at 2562 degrees Celsius."
    )
    (folder / "deep" / "tides.md").unlink()
    code, third = sync(folder)
    assert (code, third["replaced"], third["removed"], third["unchanged"]) == (
        0,
        ["copper.txt"],
        ["deep/tides.md"],
        0,
    )
    documents = served.client.get("/api/v1/papers", params={"library": "papers"}).json()[
        "documents"
    ]
    assert sorted(row["filename"] for row in documents) == ["copper.txt", "mine.txt"]
    found = served.client.get(
        "/api/v1/search", params={"q": "copper boils", "library": "papers"}
    ).json()["hits"]
    assert "2562" in found[0]["text"]
    shown = CliRunner().invoke(app, ["sync", str(folder)])
    assert "0 added, 0 replaced, 0 removed, 1 unchanged, 0 failed" in shown.stdout


def test_a_folder_whose_disk_is_not_mounted_empties_nothing(served: Site, tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    for n in range(3):
        (folder / f"{n}.txt").write_text(f"Tin melts at 23{n} degrees.")
    assert sync(folder)[0] == 0
    mounted = folder.rename(tmp_path / "elsewhere")
    folder.mkdir()
    shown = CliRunner().invoke(app, ["sync", str(folder)])
    assert shown.exit_code == 3
    assert "3 documents are kept" in shown.stderr
    assert "--allow-empty" in shown.stderr
    assert documents(served) == ["0.txt", "1.txt", "2.txt"]
    folder.rmdir()
    mounted.rename(folder)
    assert sync(folder)[1]["unchanged"] == 3
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_files_that_hold_no_document_are_skipped_and_fail_nothing(
    served: Site, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "tin.txt").write_text("Tin is a grey metal that melts at 232 degrees.")
    (folder / "~$draft.docx").write_bytes(b"\x05owner" + bytes(40))
    (folder / "deep" / "Desktop.ini").write_text("[.ShellClassInfo]")
    (folder / "empty.md").touch()
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(range(256)) * 8)
    code, first = sync(folder)
    assert (code, first["added"], first["failed"]) == (0, ["tin.txt"], [])
    skipped = first["skipped"]
    assert isinstance(skipped, list)
    assert sorted(key for key, _ in skipped) == [
        "deep/Desktop.ini",
        "empty.md",
        "photo.jpg",
        "~$draft.docx",
    ]
    (folder / "tin.txt").write_text("")
    code, second = sync(folder)
    assert (code, second["removed"]) == (0, [])
    assert served.client.get("/api/v1/search", params={"q": "tin melts"}).json()["hits"]


def test_what_an_older_release_has_read_is_read_anew_when_asked(
    served: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del served
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "copper.txt").write_text(
        "Copper is a soft red metal. Its melting point is 1085 degrees Celsius."
    )
    with monkeypatch.context() as older:
        older.setattr("app.ingest.pipeline.PARSER_EDITION", "reader 0")
        assert sync(folder)[1]["added"] == ["copper.txt"]
    code, plain = sync(folder)
    assert (code, plain["replaced"], plain["unchanged"]) == (0, [], 1)
    code, again = sync(folder, "--again")
    assert (code, again["replaced"], again["unchanged"]) == (0, ["copper.txt"], 0)
    assert sync(folder, "--again")[1]["unchanged"] == 1


def documents(served: Site) -> list[str]:
    rows = served.client.get("/api/v1/papers", params={"library": "papers"}).json()["documents"]
    return sorted(row["filename"] for row in rows)


def test_a_folder_from_elsewhere_removes_nothing_whatever_its_manifest_says(
    served: Site, tmp_path: Path
) -> None:
    mine = b"An upload that no folder knows of."
    assert served.upload(("mine.txt", mine))[0] == 201
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "a.txt").write_text("Tides are caused by the Moon.")
    assert sync(ours)[1]["added"] == ["a.txt"]
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "b.txt").write_text("Copper is a soft red metal.")
    entries = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "mtime_ns": 1}
        for name, content in (("mine.txt", mine), ("a.txt", (ours / "a.txt").read_bytes()))
    }
    for manifest in (None, {"version": 1, "libraries": {"papers": entries}}):
        if manifest is not None:
            (foreign / ".documind-sync.json").write_text(json.dumps(manifest))
        assert sync(foreign)[1]["removed"] == []
    assert documents(served) == ["a.txt", "b.txt", "mine.txt"]


def test_a_folder_without_its_manifest_still_removes_what_came_from_it(
    served: Site, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.txt").write_text(f"Text of {name}.")
    sync(folder)
    shutil.rmtree(tmp_path / "lock" / "synced")
    (folder / "a.txt").unlink()
    moved = folder.rename(tmp_path / "moved")
    assert sync(moved)[1]["removed"] == [], "under another path it is another folder"
    moved.rename(folder)
    assert sync(folder)[1]["removed"] == ["a.txt"]
    assert documents(served) == ["b.txt"]


def test_what_was_replaced_from_elsewhere_stays_and_again_makes_it_the_folders(
    served: Site, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    served.upload(("a.txt", b"Copper is a soft red metal."))
    (folder / "a.txt").write_bytes(b"Copper is a soft red metal.")
    assert sync(folder)[1]["unchanged"] == 1
    (folder / "a.txt").rename(tmp_path / "a.txt")
    assert sync(folder)[1]["removed"] == [], "it came as an upload"
    (tmp_path / "a.txt").rename(folder / "a.txt")
    assert sync(folder, "--again")[1]["unchanged"] == 1
    served.upload(("a.txt", b"Copper melts at 1085 degrees."))
    (folder / "a.txt").unlink()
    assert sync(folder)[1]["removed"] == [], "it holds other bytes now"
    served.upload(("a.txt", b"Copper is a soft red metal."))
    assert sync(folder, "--allow-empty")[1]["removed"] == ["a.txt"]


def test_the_server_removes_only_what_the_folder_sent(served: Site) -> None:
    client = served.client
    form = {"library": "papers", "sync_folder": "here:/a"}
    sent = client.post(
        "/api/v1/ingest", data=form, files={"file": ("a.txt", b"Copper is a soft red metal.")}
    )
    assert sent.status_code == 201
    served.upload(("b.txt", b"Tides are caused by the Moon."))
    listed = client.get(
        "/api/v1/sync/documents", params={"library": "papers", "folder": "here:/a"}
    ).json()
    assert listed == {"source_keys": ["a.txt"]}
    for folder, removed in (("there:/a", []), ("here:/a", ["a.txt"]), ("here:/a", [])):
        body = {"library": "papers", "folder": folder, "source_keys": ["a.txt", "b.txt", "no.txt"]}
        reply = client.post("/api/v1/sync/remove", json=body)
        assert (reply.status_code, reply.json()) == (200, {"source_keys": removed})
    assert documents(served) == ["b.txt"]
    with served.services.store.database.read_raw() as cursor:
        assert cursor.execute("SELECT count(*) FROM sync_claims").fetchone() == (0,), (
            "names of purged documents go too"
        )
    twice = client.post(
        "/api/v1/ingest", data={"sync_folder": ["x", "y"]}, files={"file": ("c.txt", b"text")}
    )
    assert twice.status_code == 422


def labels(served: Site) -> dict[str, tuple[list[str], dict[str, object]]]:
    """Return tags and metadata by source key, without the days of the files."""
    listed = served.client.get("/api/v1/papers", params={"library": "papers"}).json()["documents"]
    for one in listed:
        one["metadata"].pop(FILE_DATE)
    return {one["source_key"]: (one["tags"], one["metadata"]) for one in listed}


def test_the_day_of_a_file_is_kept_with_its_document(served: Site, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    note = folder / "copper.txt"
    note.write_text("Copper is a soft red metal.")
    os.utime(note, times=(0, datetime(2024, 6, 4, 12, tzinfo=UTC).timestamp()))
    assert sync(folder)[1]["added"] == ["copper.txt"]
    known = served.client.get("/api/v1/papers/copper.txt?library=papers").json()
    assert known["metadata"] == {FILE_DATE: "2024-06-04"}
    os.utime(note)
    assert sync(folder)[1]["unchanged"] == 1, "nothing in it has changed"


def test_front_matter_and_sidecars_give_labels(served: Site, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    matter = "---\ntitle: Tides\ntags: [Sea, '#Moon', '']\nrating: 5\ndue: 2026-02-01\n---\n"
    (folder / "tides.md").write_text(f"{matter}Tides are caused by the Moon.")
    (folder / "copper.txt").write_text("Copper is a soft red metal.")
    beside = folder / "copper.txt.meta.json"
    beside.write_text('{"tags": ["metal"], "metadata": {"rating": 3}}')
    (folder / "alone.meta.json").write_text('{"tin": "grey metal"}')
    code, first = sync(folder)
    assert (code, first["added"]) == (0, ["alone.meta.json", "copper.txt", "tides.md"])
    found = {
        "alone.meta.json": ([], {}),
        "copper.txt": (["metal"], {"rating": 3}),
        "tides.md": (["Sea", "Moon"], {"rating": 5, "due": "2026-02-01"}),
    }
    assert labels(served) == found
    assert sync(folder)[1]["unchanged"] == 3

    beside.write_text('{"tags": ["soft"], "metadata": {"rating": null}}')
    code, changed = sync(folder)
    assert (code, changed["replaced"], changed["unchanged"]) == (0, ["copper.txt"], 2)
    assert labels(served)["copper.txt"] == (["soft"], {})
    assert sync(folder)[1]["unchanged"] == 3

    facts = '{"tags": ["soft"], "title": "On copper", "authors": ["Ann Baker"], "year": 2021}'
    for said, year in ((facts, 2021), (facts.replace("2021", "2022"), 2022)):
        beside.write_text(said)
        assert sync(folder)[1]["replaced"] == ["copper.txt"]
        known = served.client.get("/api/v1/papers/copper.txt?library=papers").json()
        shown = known["title"], known["authors"], known["year"]
        assert shown == ("On copper", ["Ann Baker"], year)

    beside.write_text('{"tags": "soft"}')
    code, failed = sync(folder)
    assert code == 3
    assert "copper.txt" in str(failed["failed"])
    beside.unlink()
    (folder / "tides.md").write_text(f"{matter.replace('5', 'five')}The Moon causes tides.")
    assert sync(folder)[1]["replaced"] == ["tides.md"]
    assert labels(served)["copper.txt"] == (["soft"], {})
    assert labels(served)["tides.md"][1]["rating"] == 5


def test_a_synced_folder_shows_what_it_holds_and_what_failed(
    served: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "copper.txt").write_text("Copper is a soft red metal that melts at 1085 degrees.")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    assert served.client.get("/api/v1/sync/folders").json() == {"folders": []}
    assert sync(folder)[0] == 3
    (seen,) = served.client.get("/api/v1/sync/folders").json()["folders"]
    assert (seen["library"], seen["documents"], seen["watched"]) == ("papers", 1, False)
    assert seen["folder"].endswith(f":{folder.resolve()}")
    assert [one["file"] for one in seen["failed"]] == ["broken.pdf"]
    assert seen["failed"][0]["reason"]

    # a watch says that it goes on, and nothing of failures: they stay
    report = {"library": "papers", "folder": seen["folder"], "watching": True}
    (beat,) = served.client.put("/api/v1/sync/folders", json=report).json()["folders"]
    assert (beat["watched"], beat["failed"]) == (True, seen["failed"])
    assert beat["looked_at"] >= seen["looked_at"]
    # one that was killed says nothing any more
    long_ago = (datetime.now(UTC) - timedelta(minutes=12)).isoformat()
    monkeypatch.setattr("app.storage.catalog.folders.utc_now", lambda: long_ago)
    (silent,) = served.client.put("/api/v1/sync/folders", json=report).json()["folders"]
    assert silent["watched"] is False

    (folder / "broken.pdf").unlink()
    (folder / "copper.txt").unlink()
    code, gone = sync(folder)
    assert (code, gone["removed"], gone["kept"]) == (3, [], ["copper.txt"])
    assert sync(folder, "--allow-empty")[0] == 0
    assert served.client.get("/api/v1/sync/folders").json() == {"folders": []}


NOTES = int(os.environ.get("OBSIDIAN_NOTES", "60"))


def test_a_vault_is_followed_note_by_note_and_opens_in_obsidian(
    served: Site, tmp_path: Path
) -> None:
    vault = tmp_path / "Garden"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "Daily").mkdir()
    for n in range(NOTES):
        (vault / "Daily" / f"Day {n}.md").write_text(
            f"---\ntags: [garden]\n---\n# Day {n}\n\n## Bed {n}\n\nOn day {n} the bed got"
            f" {n} litres of water. See [[Day {n + 1}]].\n"
        )
    code, first = sync(vault, "--obsidian")
    assert (code, len(first["added"])) == (0, NOTES)  # type: ignore[arg-type]
    assert sync(vault)[1]["unchanged"] == NOTES

    few = NOTES // 10
    for n in range(few):
        day = vault / "Daily"
        (day / f"Day {n}.md").rename(day / f"First {n}.md")
        (day / f"Day {few + n}.md").unlink()
        changed = day / f"Day {2 * few + n}.md"
        changed.write_text(changed.read_text() + "\nIt rained.\n")
    _, second = sync(vault)
    renamed = sorted(f"Daily/First {n}.md" for n in range(few))
    gone = sorted(f"Daily/Day {n}.md" for n in range(2 * few))
    assert sorted(second["added"]) == renamed  # type: ignore[call-overload]
    assert sorted(second["removed"]) == gone  # type: ignore[call-overload]
    assert len(second["replaced"]) == few  # type: ignore[arg-type]
    assert second["unchanged"] == NOTES - 3 * few

    asked = {"question": f"How much water did the bed get on day {NOTES - 1}?", "library": "papers"}
    source = served.client.post("/api/v1/query", json=asked).json()["sources"][0]
    assert source["obsidian_url"].startswith("obsidian://open?vault=Garden&file=Daily%2FDay%20")
    assert source["obsidian_url"].endswith(f"%23Day%20{NOTES - 1}")  # the heading it stands under
    last = vault / "Daily" / f"Day {NOTES - 1}.md"
    last.write_text(f"# Day {NOTES - 1}\n\nThe bed is empty.\n")
    assert sync(vault)[1]["replaced"] == [f"Daily/{last.name}"]
    document = next(
        one
        for one in served.client.get(
            "/api/v1/papers", params={"library": "papers", "limit": 500}
        ).json()["documents"]
        if one["filename"] == last.name
    )
    assert document["tags"] == []
    assert "links" not in document["metadata"]
    assert document["metadata"]["obsidian"].endswith(f"Day%20{NOTES - 1}")


def test_a_folder_that_is_no_vault_is_refused_as_one(served: Site, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no folder '\.obsidian'"):
        CliRunner().invoke(app, ["sync", str(tmp_path), "--obsidian"], catch_exceptions=False)


NOTES = int(os.environ.get("VAULT_NOTES", "80"))
"""2000 take some minutes."""


def test_a_vault_is_followed_and_its_notes_know_their_neighbours(
    served: Site, tmp_path: Path
) -> None:
    root, few = tmp_path / "Garden", NOTES // 100 or 2
    (root / ".obsidian").mkdir(parents=True)

    def path(number: int, kind: str = "Plant") -> Path:
        return root / f"{kind} {number}.md"

    for number in range(NOTES):
        text = (
            f"# Plant {number}\n\n## Soil\n\nPlant number {number} likes sand and grows beside"
            f" [[Plant {number + 1}|the next]]. ^soil-{number}\n"
        )
        path(number).write_text(text)
    assert len(sync(root)[1]["added"]) == NOTES  # type: ignore[arg-type]
    rows = served.client.get(f"/api/v1/papers?library=papers&limit={min(NOTES, 1000)}")
    ids = {row["source_key"]: row["doc_id"] for row in rows.json()["documents"]}

    def around(number: int) -> tuple[list[str], list[str]]:
        asked = {"library": "papers"}
        found = served.client.get(f"/api/v1/documents/Plant {number}.md/links", params=asked).json()
        links, backlinks = found["links"], found["backlinks"]
        return [one["title"] for one in links], [one["title"] for one in backlinks]

    last = NOTES - 1
    assert around(last - 1) == ([f"Plant {last}"], [f"Plant {last - 2}"])
    assert around(last) == ([], [f"Plant {last - 1}"]), "the note after it is not written yet"
    asked = {"q": f"plant number {last} likes sand", "library": "papers"}
    hit = served.client.get("/api/v1/search", params=asked).json()["hits"][0]
    assert hit["doc_id"] in ids.values()
    name = hit["filename"].removesuffix(".md")
    number = name.rpartition(" ")[2]
    address = f"obsidian://open?vault=Garden&file={name.replace(' ', '%20')}"
    assert hit["obsidian_url"] == f"{address}%23%5Esoil-{number}"

    for number in range(few):
        path(number).rename(path(number, "Herb"))
        path(few + number).unlink()
        path(2 * few + number).write_text("It is gone. [[Herb 0]]")
    code, done = sync(root)
    renamed = [f"Herb {number}.md" for number in range(few)]
    assert (code, sorted(done["added"])) == (0, sorted(renamed))  # type: ignore[call-overload]
    removed = sorted(f"Plant {number}.md" for number in range(2 * few))
    assert sorted(done["removed"]) == removed  # type: ignore[call-overload]
    changed = [f"Plant {2 * few + number}.md" for number in range(few)]
    assert sorted(done["replaced"]) == sorted(changed)  # type: ignore[call-overload]
    assert done["unchanged"] == NOTES - 3 * few
    assert around(2 * few)[0] == ["Plant 0"], "a title is what stands in the note"
    assert sync(root)[1]["unchanged"] == NOTES - few
    other = served.upload(("mine.txt", b"No note."))
    assert other[0] == 201
    none = served.client.get("/api/v1/documents/mine.txt/links", params={"library": "papers"})
    assert none.json() == {"links": [], "backlinks": []}
