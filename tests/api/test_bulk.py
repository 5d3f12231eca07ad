"""A dump over HTTP: plan, index, account, embed; two requests meet."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path

import pytest

from app.cli import bulk
from app.core.types import Job, Library
from app.jobs.runner import JobContext, is_finished
from app.storage.files.lock import DirectoryLock
from scripts.generate_production_corpus import SyntheticEncyclopedia, SyntheticOptions, write_xml
from tests.api.conftest import Site, listening
from tests.unit.cli.test_main import run

SHAPE = SyntheticOptions(articles=120, vocabulary=300, mean_words=60)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    text = io.StringIO()
    write_xml(SyntheticEncyclopedia(SHAPE), text)
    path = tmp_path / "synthetic-20260101-pages-articles.xml"
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


def ask(shop: Site, **body: object) -> tuple[int, dict[str, object]]:
    reply = shop.client.post("/api/v1/bulk", json=body)
    return reply.status_code, reply.json()


def ended(shop: Site, job_id: object) -> Job:
    job = shop.services.jobs.wait(str(job_id), 60)
    assert is_finished(job)
    return job


def until_stopped(context: JobContext) -> None:
    context.cancel.wait(60)
    context.checkpoint()


def test_an_indexed_dump_is_accounted_for_searchable_and_gets_its_vectors(
    shop: Site, dump: Path
) -> None:
    status, job = ask(shop, action="index", source=str(dump), library="public", workers=0)
    assert (status, job["kind"], job["library"]) == (202, "bulk", "public")
    assert ended(shop, job["id"]).state == "done"
    ledger = shop.client.get("/api/v1/bulk/ledger").json()
    assert set(ledger) == {"articles", "indexed", "redirects", "skipped"}
    assert (
        ledger["articles"]
        == SHAPE.articles
        == ledger["indexed"] + ledger["redirects"] + sum(ledger["skipped"].values())
    )
    assert ledger == shop.client.get("/api/v1/bulk/ledger?library=public&source=synthetic").json()
    assert shop.client.get("/api/v1/bulk/ledger?library=papers").json()["articles"] == 0
    stats = shop.client.get("/api/v1/collection/stats?library=public").json()
    assert stats["documents"] == ledger["indexed"]
    title = shop.client.get("/api/v1/papers?library=public&limit=1").json()["documents"][0]["title"]
    found = shop.client.get(
        "/api/v1/search", params={"q": f"What is {title}?", "library": "public", "limit": 3}
    ).json()
    assert title in [hit["title"] for hit in found["hits"]]
    backfill = next(job for job in shop.services.jobs.list() if job.kind == "backfill")
    assert ended(shop, backfill.id).state == "done"
    stats = shop.client.get("/api/v1/collection/stats?library=public").json()
    assert stats["embedded"] == stats["chunks"] > 0


def test_the_most_linked_articles_of_a_dump_are_embedded_first(shop: Site, dump: Path) -> None:
    shop.services.jobs.register("backfill", until_stopped, lane="background")
    ended(shop, ask(shop, action="index", source=str(dump), workers=0)[1]["id"])
    links = Counter(
        target
        for article in SyntheticEncyclopedia(SHAPE)
        for target in {
            link[0].upper() + link[1:] for link in re.findall(r"\[\[([^|\]]+)", article.source)
        }
    )
    waiting = shop.services.writer.pending_vectors(Library.PUBLIC, 5000, "linked")
    linked = [
        links[shop.services.catalog.document(Library.PUBLIC, chunk.doc_id).title]
        for chunk in waiting
    ]
    assert linked == sorted(linked, reverse=True)
    assert linked[0] > 1


def test_the_same_request_joins_and_another_is_refused(
    shop: Site, dump: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"title": "A", "text": "B."}\n', encoding="utf-8")
    shop.services.jobs.register("bulk", until_stopped, lane="background")
    _, first = ask(shop, action="index", source=str(dump))
    status, again = ask(shop, action="index", source=str(dump), workers=2)
    assert (status, again["id"]) == (202, first["id"])
    status, problem = ask(shop, action="index", source=str(other))
    assert (status, problem["code"]) == (409, "conflict")
    assert "synthetic" in str(problem["detail"])
    shop.client.post(f"/api/v1/jobs/{first['id']}/pause")
    assert (
        shop.services.jobs.wait(str(first["id"]), 10, lambda job: job.state == "paused").state
        == "paused"
    )
    status, resumed = ask(shop, action="index", source=str(dump))
    assert (status, resumed["id"], resumed["state"]) == (202, first["id"], "queued")


def test_what_cannot_be_read_is_refused_at_once(shop: Site, tmp_path: Path) -> None:
    wrong = tmp_path / "dump.xml"
    wrong.write_text("<html></html>", encoding="utf-8")
    for source, status, code in (
        (str(tmp_path / "none.xml"), 404, "not_found"),
        ("relative.xml", 422, "invalid_input"),
        (str(wrong), 422, "unreadable"),
        (__file__, 422, "invalid_input"),
    ):
        got, problem = ask(shop, action="index", source=source)
        assert (got, problem["code"]) == (status, code), source
    assert ask(shop, action="index")[0] == 422


def test_a_plan_indexes_nothing(shop: Site, dump: Path) -> None:
    _, job = ask(shop, action="plan", source=str(dump))
    done = ended(shop, job["id"])
    assert done.result is not None
    plan = done.result
    assert (plan["name"], plan["articles"], plan["sampled_share"]) == (
        "synthetic",
        SHAPE.articles,
        1.0,
    )
    assert int(str(plan["text_disk_bytes"])) > 10_000
    assert plan["fits"] is True
    stats = shop.client.get("/api/v1/collection/stats?library=public").json()
    assert stats["documents"] == 0
    ended(shop, ask(shop, action="index", source=str(dump), workers=0)[1]["id"])
    stats = shop.client.get("/api/v1/collection/stats?library=public").json()
    assert (stats["documents"], stats["chunks"]) == (plan["documents"], plan["chunks"])


def test_embedding_takes_an_order_and_a_limit(shop: Site, dump: Path) -> None:
    shop.services.jobs.register("backfill", until_stopped, lane="background")
    _, first = ask(shop, action="embed", order="longest", limit=7)
    assert ask(shop, action="embed", order="longest", limit=7)[1]["id"] == first["id"]
    _, second = ask(shop, action="embed", order="linked", workers=2)
    assert second["id"] != first["id"]
    assert shop.services.jobs.wait(str(first["id"]), 10).state == "cancelled"


def test_the_command_embeds_at_its_end_and_leaves_no_failed_job(
    shop: Site,
    dump: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with listening(shop.app, lifespan="off") as url, DirectoryLock([tmp_path / "lock"], url):
        monkeypatch.setenv("DATA_DIR", str(tmp_path / "lock"))
        assert run(monkeypatch, "bulk", "index", str(dump), "--library", "public") == 0
    counts = shop.services.catalog.counts(Library.PUBLIC)
    assert counts.embedded == counts.chunks > 0
    assert "have no vector" not in capsys.readouterr().out
    assert {job.state for job in shop.services.jobs.list()} <= {"done", "cancelled"}


def test_what_takes_longer_is_left_and_said(
    shop: Site,
    dump: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bulk, "_QUICK_S", 0.0)
    monkeypatch.setattr(bulk, "_TRIAL", 8)
    monkeypatch.setattr("app.jobs.bulk.AUTOMATIC_BACKFILL_CHUNKS", 0)
    with listening(shop.app, lifespan="off") as url, DirectoryLock([tmp_path / "lock"], url):
        monkeypatch.setenv("DATA_DIR", str(tmp_path / "lock"))
        assert run(monkeypatch, "bulk", "index", str(dump), "--library", "public") == 0
    counts = shop.services.catalog.counts(Library.PUBLIC)
    lacking = counts.chunks - counts.embedded
    assert lacking > 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{lacking} passages have no vector" in said.replace(",", "")
    assert "documind bulk embed --library public" in said
