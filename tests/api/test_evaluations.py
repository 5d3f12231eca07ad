"""Evaluations over HTTP: started, watched, stopped, gone on with, read."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.evaluation.arms import Arm
from app.evaluation.runner import RankedPassages
from app.evaluation.session import PlaceSearch
from tests.api.conftest import Site, site

TEXTS = {
    "copper": "Copper is a soft red metal of high conductivity, and its melting point is 1085"
    " degrees Celsius.",
    "tides": "Tides are the regular rise and fall of the level of the sea, caused mainly by the"
    " pull of the Moon.",
    "lions": "Lions live in prides on the savannah, hunt antelopes at night and sleep some twenty"
    " hours of every day.",
    "mills": "Windmills turned grain into flour for centuries before engines of steam replaced"
    " their wooden sails.",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("evaluations")) as opened:
        status, body = opened.upload(
            *((f"{name}.txt", text.encode()) for name, text in TEXTS.items())
        )
        assert status == 201, body
        yield opened


def _finish(shop: Site, job: Mapping[str, object], seconds: float = 60.0) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found: dict[str, Any] = shop.client.get(f"/api/v1/jobs/{job['id']}").json()
        if found["state"] in ("done", "failed", "cancelled"):
            return found
        time.sleep(0.02)
    raise AssertionError(f"job {job['id']} did not end")


def _run(shop: Site, **body: object) -> dict[str, Any]:
    reply = shop.client.post("/api/v1/evaluations", json=body)
    assert reply.status_code == 202, reply.text
    job = _finish(shop, reply.json())
    assert job["state"] == "done", job
    found: dict[str, Any] = shop.client.get(f"/api/v1/evaluations/{job['id']}").json()
    return found


def _beir(folder: Path) -> Path:
    folder.mkdir()
    (folder / "corpus.jsonl").write_text(
        "".join(
            json.dumps({"_id": name, "title": "", "text": text}) + "\n"
            for name, text in TEXTS.items()
        )
    )
    asked = {
        "q1": ("What is the melting point of copper?", "copper"),
        "q2": ("What causes tides?", "tides"),
    }
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": q, "text": text}) + "\n" for q, (text, _) in asked.items())
    )
    (folder / "qrels.tsv").write_text(
        "".join(f"{q}\t{gold}\t1\n" for q, (_, gold) in asked.items())
    )
    return folder


def test_an_empty_body_compares_the_steps_on_ones_own_documents(shop: Site) -> None:
    report = _run(shop)
    (experiment,) = report["experiments"]
    assert experiment["baseline"] == "rrf"
    assert {"dense", "bm25", "rrf", "default", "mmr"} <= {arm["name"] for arm in experiment["arms"]}
    assert experiment["passages"] == len(TEXTS)
    assert experiment["measure"] == "nDCG@10"
    first = next(iter(experiment["question_texts"]))
    named = experiment["found"]["default"][first]
    assert experiment["previews"][named[0]][:10] in "".join(TEXTS.values())
    assert set(report["timings"][experiment["collection"]]) == {
        arm["name"] for arm in experiment["arms"]
    }
    assert report["provenance"]["git_sha"] == "0123456789abcdef"
    assert "known items" in report["remarks"][0]


def test_a_collection_is_indexed_beside_the_libraries_and_cut_as_the_arms_say(
    shop: Site, tmp_path: Path
) -> None:
    folder = _beir(tmp_path / "toy")
    before = shop.client.get("/api/v1/libraries").json()
    report = _run(
        shop,
        kind="ablation",
        collection=str(folder),
        axes={"chunk_size": [100, 1000], "chunker": ["headings", "recursive"]},
    )
    (experiment,) = report["experiments"]
    assert {arm["name"] for arm in experiment["arms"]} == {
        "configured",
        *(
            f"chunk_size={size} chunker={chunker}"
            for size in (100, 1000)
            for chunker in ("headings", "recursive")
        ),
    }
    assert experiment["baseline"] == "configured"
    assert all(arm["measures"]["R@10"]["mean"] == 1.0 for arm in experiment["arms"])
    assert set(experiment["found"]["configured"]["q1"]) <= set(TEXTS)
    assert shop.client.get("/api/v1/libraries").json() == before
    assert len(report["provenance"]["fingerprint"].split(", ")) == 5


def test_a_collection_may_be_parquet(shop: Site, tmp_path: Path) -> None:
    folder = _beir(tmp_path / "tables")
    for name in ("corpus", "queries"):
        rows = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    cells = [line.split("\t") for line in (folder / "qrels.tsv").read_text().splitlines()]
    judged = [
        {"query-id": question, "corpus-id": gold, "score": int(grade)}
        for question, gold, grade in cells
    ]
    pq.write_table(pa.Table.from_pylist(judged), folder / "qrels.parquet")
    for path in (*folder.glob("*.jsonl"), folder / "qrels.tsv"):
        path.unlink()
    report = _run(shop, kind="retrieval", collection=str(folder), half="odd")
    (experiment,) = report["experiments"]
    assert experiment["question_texts"] == {"q1": "What is the melting point of copper?"}
    assert experiment["found"]["configured"]["q1"][0] == "copper"


def test_strategies_are_searched_by_the_whole_use_case(shop: Site) -> None:
    report = _run(shop, axes={"strategy": ["baseline", "hyde"], "top_k": [1, 3]}, questions=3)
    assert any("in 3 of 3 questions hyde was not possible" in one for one in report["remarks"])
    (experiment,) = report["experiments"]
    by_name = {arm["name"]: arm for arm in experiment["arms"]}
    assert all(len(names) == 1 for names in experiment["found"]["top_k=1 strategy=hyde"].values())
    assert (
        by_name["top_k=3 strategy=hyde"]["per_question"]
        == by_name["top_k=3 strategy=baseline"]["per_question"]
    )


def test_ones_own_documents_are_cut_anew(shop: Site) -> None:
    report = _run(shop, axes={"chunk_size": [200]}, questions=2)
    (experiment,) = report["experiments"]
    assert [arm["name"] for arm in experiment["arms"]] == ["configured", "chunk_size=200"]
    assert experiment["passages"] == len(TEXTS)


CASES: list[dict[str, Any]] = [
    {
        "question": "What is the melting point of copper?",
        "library": "papers",
        "expected_substrings": ["1085"],
        "keywords": ["Celsius", "gold"],
        "expected_docs": ["copper.txt"],
    },
    {"question": "Hello!", "library": "papers", "intent": "chitchat"},
    {"question": "Which quarterback threw most touchdowns?", "library": "papers", "oos": True},
]


def test_an_answer_set_is_answered_and_measured(shop: Site) -> None:
    report = _run(shop, kind="answers", cases=CASES, judge=True)
    (experiment,) = report["experiments"]
    (arm,) = experiment["arms"]
    measures = {name: interval["mean"] for name, interval in arm["measures"].items()}
    assert experiment["measure"] == "right"
    assert measures["intent accuracy"] == 1.0
    assert (
        measures["recall"] == measures["answer accuracy"] == measures["citation precision"] == 1.0
    )
    assert measures["keyword coverage"] == 0.5
    assert measures["out-of-scope refusal"] == 1.0
    assert measures["wrong refusal"] == 0.0
    assert arm["per_question"] == {"case-1": 1.0, "case-2": 1.0, "case-3": 1.0}
    assert "No model was there to judge the answers." in report["remarks"]
    assert "1085" in experiment["previews"][experiment["found"]["baseline"]["case-1"][0]]


def test_an_answer_set_gives_questions_for_retrieval(shop: Site) -> None:
    report = _run(shop, kind="retrieval", library="papers", cases=CASES)
    (experiment,) = report["experiments"]
    assert [arm["name"] for arm in experiment["arms"]] == [
        "configured",
        "dense",
        "bm25",
        "rrf",
        "min-max",
    ]
    assert experiment["question_texts"] == {"case-1": CASES[0]["question"]}
    assert experiment["arms"][0]["grounded_rate"] == 1.0


def test_a_report_comes_as_files_too(shop: Site) -> None:
    report = _run(shop, kind="retrieval", questions=2)
    listed = shop.client.get("/api/v1/evaluations").json()["evaluations"]
    assert listed[0]["title"] == report["title"]
    base = f"/api/v1/evaluations/{listed[0]['id']}/report"
    page = shop.client.get(f"{base}.html")
    assert page.headers["content-type"].startswith("text/html")
    assert "attachment" in page.headers["content-disposition"]
    assert page.text.count("<svg") == 1
    assert "| configured |" in shop.client.get(f"{base}.md").text
    assert shop.client.get(f"{base}.csv").text.startswith("collection,arm,")
    assert shop.client.get("/api/v1/evaluations/nobody").json()["code"] == "not_found"
    assert shop.client.get("/api/v1/evaluations/nobody/report.md").status_code == 404


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"kind": "answers"}, "needs cases"),
        ({"kind": "retrieval", "axes": {"top_k": [3]}}, "axes belong to an ablation"),
        ({"collection": "/a", "dataset": "b/c"}, "not both"),
        (
            {"axes": {"top_k": list(range(1, 13)), "dense_weight": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}},
            "at most 64",
        ),
        ({"axes": {"fusion": ["best"]}}, "fusion"),
        ({"answer_set": "x"}, "answer_set"),
    ],
)
def test_what_makes_no_sense_is_refused(shop: Site, body: dict[str, object], said: str) -> None:
    reply = shop.client.post("/api/v1/evaluations", json=body)
    assert reply.status_code == 422
    assert said in reply.text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"collection": "/nowhere/at/all"}, "is no folder"),
        ({"library": "public"}, "has no question"),
    ],
)
def test_what_turns_out_impossible_fails_the_job_with_its_cure(
    shop: Site, body: dict[str, object], said: str
) -> None:
    job = _finish(shop, shop.client.post("/api/v1/evaluations", json=body).json())
    assert job["state"] == "failed"
    assert said in str(job["errors"])


def test_a_run_is_cancelled_between_questions(shop: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    started = threading.Event()
    ids: list[str] = []

    def cancel_at_two(self: PlaceSearch, arm: Arm, question: str, top_k: int) -> RankedPassages:
        asked.append(question)
        if len(asked) == 2:
            assert started.wait(10)
            shop.client.delete(f"/api/v1/jobs/{ids[0]}")
        return RankedPassages((), (), 1.0, {})

    monkeypatch.setattr(PlaceSearch, "__call__", cancel_at_two)
    job = shop.client.post("/api/v1/evaluations", json={"kind": "retrieval", "questions": 4}).json()
    ids.append(job["id"])
    started.set()
    assert _finish(shop, job)["state"] == "cancelled"
    assert len(asked) == 2
    assert job["id"] not in [
        row["id"] for row in shop.client.get("/api/v1/evaluations").json()["evaluations"]
    ]


def test_a_run_goes_on_after_a_restart_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []
    real = PlaceSearch.__call__
    body: dict[str, object] = {"kind": "retrieval", "questions": 4}
    with site(tmp_path) as first:
        first.upload(*((f"{name}.txt", text.encode()) for name, text in TEXTS.items()))
        started = threading.Event()
        ids: list[str] = []

        def pause_at_seven(
            self: PlaceSearch, arm: Arm, question: str, top_k: int
        ) -> RankedPassages:
            asked.append((arm.name, question))
            if len(asked) == 7:
                assert started.wait(10)
                first.client.post(f"/api/v1/jobs/{ids[0]}/pause")
            return real(self, arm, question, top_k)

        monkeypatch.setattr(PlaceSearch, "__call__", pause_at_seven)
        job_id = first.client.post("/api/v1/evaluations", json=body).json()["id"]
        ids.append(job_id)
        started.set()
        deadline = time.monotonic() + 30
        while first.client.get(f"/api/v1/jobs/{job_id}").json()["state"] != "paused":
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert len(asked) == 7
    outcomes = tmp_path / "data" / "evaluations" / job_id / "outcomes.jsonl"
    with outcomes.open("a") as torn:
        torn.write('{"arm": "half a li')
    with site(tmp_path) as second:
        second.client.post(f"/api/v1/jobs/{job_id}/resume")
        job = _finish(second, {"id": job_id})
        assert job["state"] == "done", job
        report = second.client.get(f"/api/v1/evaluations/{job_id}").json()
        again = _run(second, **body)
    total = sum(len(arm["per_question"]) for arm in report["experiments"][0]["arms"])
    assert (
        len(asked) == 2 * total
    )  # the resumed run asked each question once, the fresh one all of them
    assert not outcomes.exists()
    report.pop("timings")
    again.pop("timings")
    assert report == again


def test_what_reports_quote_of_deleted_documents_goes_with_them(tmp_path: Path) -> None:
    with site(tmp_path) as own:
        own.upload(*((f"{name}.txt", text.encode()) for name, text in TEXTS.items()))
        _run(own, kind="retrieval", questions=4)
        _run(own, kind="answers", cases=CASES)
        _run(own, kind="ablation", axes={"chunk_size": [300]}, questions=4)
        folder = own.settings.data_dir / "evaluations"
        assert b"1085" in _everything(folder)
        copper = next(
            d
            for d in own.client.get("/api/v1/papers?library=papers").json()["documents"]
            if "copper" in str(d).lower()
        )
        own.client.delete(f"/api/v1/papers/{copper['doc_id']}?library=papers")
        job = _finish(own, own.client.post("/api/v1/purge").json())
        assert job["state"] == "done"
        assert job["result"]["report_passages"] > 0
        left = _everything(folder)
        for words in (b"1085 degrees", b"soft red metal", b"conductivity"):
            assert words not in left
        assert b"Lions live in prides" in left  # documents that are still there keep their passages
        for entry in own.client.get("/api/v1/evaluations").json()["evaluations"]:
            assert own.client.get(f"/api/v1/evaluations/{entry['id']}").status_code == 200
            assert (
                "soft red metal"
                not in own.client.get(f"/api/v1/evaluations/{entry['id']}/report.html").text
            )


def _everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_what_a_killed_run_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    left = tmp_path / "data" / "evaluations" / "documind-bench-killed"
    left.mkdir(parents=True)
    (left / "catalog.db").write_bytes(b"half an index")
    with site(tmp_path):
        assert not left.exists()
