"""What Prometheus reads, and that the dashboard asks for nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.api.conftest import LIBRARY, Site, site
from tests.fakes.generators import FixedModels, ScriptedGenerator

ROOT = Path(__file__).parents[2]


def scraped(
    opened: Site, headers: dict[str, str] | None = None
) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    reply = opened.client.get("/metrics", headers=headers)
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(reply.text)
        for sample in family.samples
    }


def value(
    found: dict[tuple[str, frozenset[tuple[str, str]]], float], name: str, **labels: str
) -> float:
    return found[name, frozenset(labels.items())]


def test_requests_answers_stages_models_jobs_and_projections(tmp_path: Path) -> None:
    models = FixedModels()
    with site(tmp_path, models) as shop:
        assert shop.upload(*((name, text.encode()) for name, text in LIBRARY.items()))[0] == 201
        models.model = ScriptedGenerator("Copper melts at 1085 degrees Celsius [1].")
        asked = {"question": "What is the melting point of copper?", "library": "papers"}
        answer = shop.client.post("/api/v1/query", json=asked).json()
        assert answer["status"] == "answered"
        assert (
            shop.client.post("/api/v1/query", json={**asked, "retrieve_only": True}).status_code
            == 200
        )
        for name in ("a", "b"):
            assert (
                shop.client.get(f"/api/v1/papers/{name}", params={"library": "papers"}).status_code
                == 404
            )
            assert shop.client.get(f"/wp-admin/{name}.php").status_code == 404
        assert shop.client.get("/health", headers={"Host": "evil.example"}).status_code == 403
        found = scraped(shop)

        def requests(method: str, route: str, status: int) -> float:
            return value(
                found, "documind_requests_total", method=method, route=route, status=str(status)
            )

        assert requests("POST", "/api/v1/query", 200) == 2
        assert requests("GET", "/api/v1/papers/{doc_id}", 404) == 2
        assert (requests("GET", "other", 404), requests("GET", "other", 403)) == (2, 1)
        assert (
            value(
                found,
                "documind_request_duration_seconds_count",
                method="POST",
                route="/api/v1/query",
            )
            == 2
        )
        assert value(found, "documind_answers_total", status="answered", strategy="baseline") == 1
        assert value(found, "documind_answers_total", status="retrieved", strategy="baseline") == 1
        assert value(found, "documind_first_token_seconds_count") == 1
        stages = {stage["name"] for stage in answer["trace"]["stages"]}
        assert stages
        assert all(
            value(found, "documind_stage_duration_seconds_count", stage=stage) >= 1
            for stage in stages
        )
        assert (
            value(found, "documind_model_calls_total", generator=answer["generator"])
            == answer["trace"]["llm_calls"]
            >= 1
        )
        assert value(found, "documind_documents", library="papers") == 3
        assert (
            value(found, "documind_chunks", library="papers")
            == value(found, "documind_embedded_chunks", library="papers")
            > 0
        )
        assert value(found, "documind_jobs", kind="ingest", state="done") == 1
        newest = value(found, "documind_changes")
        marks = {
            labels: mark
            for (name, labels), mark in found.items()
            if name == "documind_projection_watermark"
        }
        # Chroma opens in the background: its mark may not be there yet
        assert {dict(labels)["projection"] for labels in marks} - {"chroma"} == {"lexical"}
        assert all(newest >= mark for mark in marks.values())
        lags = {
            labels: lag
            for (name, labels), lag in found.items()
            if name == "documind_projection_lag"
        }
        assert lags.keys() == marks.keys()
        # nothing was written into public, so nothing is behind there, however far the shared
        # numbers have come
        assert {lag for labels, lag in lags.items() if dict(labels)["projection"] != "chroma"} == {
            0
        }
        assert value(found, "documind_lane_jobs", lane="interactive", state="queued") == 0
        for board in BOARDS:
            for target in dashboard_names(board) - OF_ENGINES:
                assert any(name == target for name, _ in found), target


BOARDS = ("documind", "shared")
OF_ENGINES = {f"documind_engine_{name}_total" for name in ("calls", "seconds", "failures")}
"""Without engines there are none; tests/shared/test_engines.py reads them from a server that has all three."""


def test_boards_have_names_of_their_own_and_jobs_that_prometheus_knows() -> None:
    files = list((ROOT / "deploy/grafana/dashboards").glob("*.json"))
    boards = [json.loads(file.read_text("utf-8")) for file in files]
    assert len({board["uid"] for board in boards}) == len(boards) == len(BOARDS)
    assert dashboard_names("shared") >= OF_ENGINES
    scrapes = yaml.safe_load((ROOT / "deploy/prometheus/shared.yml").read_text("utf-8"))
    (job,) = scrapes["scrape_configs"]
    asked = (ROOT / "deploy/grafana/dashboards/shared.json").read_text("utf-8")
    assert set(re.findall(r'job=\\"(\w+)\\"', asked)) == {job["job_name"]}


def dashboard_names(name: str) -> set[str]:
    """The metrics that a Grafana dashboard asks for."""
    board = json.loads((ROOT / f"deploy/grafana/dashboards/{name}.json").read_text("utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    assert len(asked) >= 12
    return {
        name for text in asked for name in re.findall(r"\b(?:documind|process)_[a-z_]+", text)
    } - {"documind_tokens_total"}


def test_counts_are_for_those_with_the_key(tmp_path: Path) -> None:
    with site(tmp_path, api_key="k3y") as locked:
        assert not any(name == "documind_documents" for name, _ in scraped(locked))
        seen = scraped(locked, {"Authorization": "Bearer k3y"})
        assert value(seen, "documind_documents", library="papers") == 0
