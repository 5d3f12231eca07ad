"""Checks, exports, imports and backups while the server owns the data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from app.core.types import Job, Library
from app.jobs.maintenance import Housekeeper
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.api.conftest import LIBRARY, Site, site
from tests.unit.storage.drafts import make_draft


def done(opened: Site, path: str, body: dict[str, object] | None = None) -> Job:
    accepted = opened.client.post(path, json=body or {})
    assert accepted.status_code == 202, accepted.text
    return opened.services.jobs.wait(accepted.json()["id"], 30)


def filled_with(shop: Site) -> Site:
    assert shop.upload(*((name, text.encode()) for name, text in LIBRARY.items()))[0] == 201
    return shop


def test_a_check_reports_and_the_last_one_is_kept(shop: Site) -> None:
    assert shop.client.get("/api/v1/fsck").status_code == 404
    filled_with(shop)
    job = done(shop, "/api/v1/fsck")
    assert job.state == "done", job
    report = shop.client.get("/api/v1/fsck").json()
    assert (report["sound"], report["faults"], report["repair"]) == (True, [], False)
    [original] = list((shop.settings.data_dir / "originals").glob("*.bin"))[:1]
    original.unlink()
    assert done(shop, "/api/v1/fsck").state == "done"
    assert shop.client.get("/api/v1/fsck").json()["sound"] is False


def test_a_library_goes_out_and_comes_back(shop: Site, tmp_path: Path) -> None:
    filled_with(shop)
    target = tmp_path / "papers.documind"
    out = done(shop, "/api/v1/export", {"library": "papers", "path": str(target)})
    assert out.state == "done", out
    assert out.result is not None
    assert (out.result["documents"], out.result["path"]) == (3, str(target))
    assert (
        shop.client.post(
            "/api/v1/export", json={"library": "papers", "path": str(target)}
        ).status_code
        == 409
    )
    assert (
        shop.client.post(
            "/api/v1/export", json={"library": "papers", "path": "relative"}
        ).status_code
        == 422
    )
    assert (
        shop.client.post(
            "/api/v1/export", json={"library": "papers", "path": "/no/such/folder/x"}
        ).status_code
        == 422
    )
    with site(tmp_path / "other") as other:
        back = done(other, "/api/v1/import", {"path": str(target), "library": "public"})
        assert back.state == "done", back
        stats = other.client.get("/api/v1/collection/stats", params={"library": "public"}).json()
        assert (stats["documents"], stats["embedded"]) == (3, stats["chunks"])
        assert (
            other.client.post("/api/v1/import", json={"path": "/no/such/file"}).status_code == 422
        )
        torn = tmp_path / "torn.documind"
        torn.write_bytes(target.read_bytes()[:-20])
        failed = done(other, "/api/v1/import", {"path": str(torn)})
        assert (failed.state, failed.library) == ("failed", None)
        assert failed.errors[0].startswith("index_damaged")
    assert done(shop, "/api/v1/export", {"library": "public"}).state == "done"


def test_an_import_without_vectors_asks_for_them(shop: Site, tmp_path: Path) -> None:
    path = tmp_path / "bare"
    with IndexStore(IndexOptions(path, path / "chroma"), vector_store="off") as bare:
        bare.writer.write([make_draft("a.txt", "Walruses whistle. " * 20)])
        bare.bundler.export(Library.PAPERS, tmp_path / "bare.documind")

    taken = done(shop, "/api/v1/import", {"path": str(tmp_path / "bare.documind")})

    assert taken.state == "done"
    (backfill,) = [job for job in shop.services.jobs.list() if job.kind == "backfill"]
    assert shop.services.jobs.wait(backfill.id, 30).state == "done"
    counts = shop.services.catalog.counts(Library.PAPERS)
    assert (counts.chunks, counts.embedded) == (2, 2)


def test_a_purge_is_asked_for_by_hand_or_by_the_housekeeper(shop: Site) -> None:
    filled_with(shop)
    jobs = shop.services.jobs
    housekeeper = Housekeeper(shop.services.maintenance, jobs)
    assert housekeeper.look() is False
    assert (
        shop.client.delete("/api/v1/papers/copper.txt", params={"library": "papers"}).status_code
        == 200
    )
    assert housekeeper.look() is False  # a minute has not passed
    with shop.services.store.database.write("test") as sql:
        sql.exec_driver_sql(
            "UPDATE meta SET value = '2026-01-01T00:00:00.000Z' WHERE key LIKE"
            " 'deleted_since_purge/%'"
        )
    assert housekeeper.look() is True
    purged = next(job for job in jobs.list() if job.kind == "purge")
    job = jobs.wait(purged.id, 60)
    assert job.state == "done", job
    assert job.result is not None
    assert list(cast("Sequence[str]", job.result["rebuilt"])) == ["papers"]
    assert housekeeper.look() is False
    assert (
        shop.client.get("/api/v1/search", params={"q": "tides", "library": "papers"}).json()["hits"]
        != []
    )
    assert done(shop, "/api/v1/purge").state == "done"


def test_a_grace_ends_by_itself(shop: Site) -> None:
    filled_with(shop)
    gone = shop.client.delete(
        "/api/v1/papers/copper.txt", params={"library": "papers", "grace_s": 3600}
    ).json()
    keeper = shop.services.maintenance
    assert keeper.end_grace() == 0
    with shop.services.store.database.write("test") as sql:
        sql.exec_driver_sql(
            "UPDATE documents SET purge_at = '2026-01-01T00:00:00.000Z' WHERE state = 'deleted'"
        )
    assert keeper.end_grace() == 1
    assert (
        shop.client.post(
            f"/api/v1/papers/{gone['doc_id']}/restore", params={"library": "papers"}
        ).status_code
        == 404
    )


def test_a_backup_is_written_while_serving(shop: Site, tmp_path: Path) -> None:
    filled_with(shop)
    job = done(shop, "/api/v1/backup", {"path": str(tmp_path / "backup")})
    assert job.state == "done", job
    assert job.result is not None
    assert job.result["originals"] == 3
    assert (
        shop.client.post("/api/v1/backup", json={"path": str(tmp_path / "backup")}).status_code
        == 409
    )
    assert done(shop, "/api/v1/backup").state == "done"


def test_paths_that_no_system_takes_are_bad_requests(shop: Site) -> None:
    path = "/" + "0" * 4000
    bodies: dict[str, dict[str, object]] = {
        "/api/v1/backup": {"path": path},
        "/api/v1/export": {"library": "papers", "path": path},
        "/api/v1/import": {"path": path},
        "/api/v1/bulk": {"action": "index", "source": path},
    }
    for door, body in bodies.items():
        reply = shop.client.post(door, json=body)
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_input"), (
            door,
            reply.text,
        )


def test_a_bulk_source_is_a_file_or_a_folder(shop: Site, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "dump.jsonl")
    for source in ("/dev/zero", str(tmp_path / "dump.jsonl")):
        for action in ("plan", "index"):
            body = {"action": action, "library": "public", "source": source}
            reply = shop.client.post("/api/v1/bulk", json=body)
            assert (reply.status_code, "neither a file" in reply.text) == (422, True), reply.text
