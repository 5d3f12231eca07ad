"""A model host that comes after the documents, over HTTP with the real composition."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from starlette.testclient import TestClient

from app.api.app import create_app
from app.bootstrap.services import build_services
from app.cli.doctor import library as check_library
from tests.api.conftest import BASE, settings_for
from tests.fakes.ollama_double import OllamaDouble
from tests.fakes.ollama_double.models import DEFAULT_MODELS

Json = dict[str, object]
NOMIC, MINILM = "ollama:nomic-embed-text", "minilm:all-MiniLM-L6-v2"
COPPER = ("copper.txt", b"Copper is a soft red metal. It melts at 1085 degrees Celsius.")


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Iterator[TestClient]]:
    """Run a server over the same data directory, as often as a test likes."""
    monkeypatch.setattr("app.bootstrap.embedders.CALIBRATION_CHECK_S", 0.1)
    monkeypatch.setattr("app.models.ollama._FRESH_S", 0.05)

    @contextmanager
    def run(**values: object) -> Iterator[TestClient]:
        settings = settings_for(
            tmp_path,
            llm_provider="extractive",
            **{"ollama_base_url": "http://127.0.0.1:9", **values},
        )
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        app = create_app(settings, build=build_services, on_failure=lambda _: None)
        with TestClient(app, base_url=BASE) as client:
            assert app.state.edge.startup.wait(60)
            yield client

    return run  # type: ignore[return-value]  # a context manager


def _library(client: TestClient, name: str = "papers") -> Json:
    rows = client.get("/api/v1/libraries").json()["libraries"]
    return next(row for row in rows if row["library"] == name)


def _upload(client: TestClient, name: str, content: bytes) -> Json:
    reply = client.post(
        "/api/v1/ingest", files={"file": (name, content)}, data={"library": "papers"}
    )
    assert reply.is_success, reply.text
    return cast("Json", reply.json()["documents"][0])


def _until(happened: Callable[[], bool], timeout_s: float = 90) -> None:
    end = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


def _codes(client: TestClient) -> set[str]:
    return {str(notice["code"]) for notice in cast("list[Json]", _library(client)["notices"])}


def _embeds(client: TestClient, name: str, embedder: str) -> bool:
    """Whether all of a library has vectors of one embedder."""
    row = _library(client, name)
    return (
        cast("Json", row["embedding"])["embedder"] == embedder
        and row["embedded"] == row["chunks"] != 0
    )


def test_an_embedder_is_calibrated_by_itself(serve: Callable[..., object]) -> None:
    with OllamaDouble() as double, serve(ollama_base_url=double.url, samples=False) as client:  # type: ignore[attr-defined]
        assert client.post("/api/v1/samples").is_success
        _until(lambda: all(_embeds(client, name, NOMIC) for name in ("public", "papers")))
        _until(lambda: "bands_not_calibrated" not in _codes(client))  # by a job of its own
        acting = client.get("/api/v1/diagnostics").json()["acting"]["papers"]
        assert (acting["closeness_threshold"], acting["similarity_scale"] != 1.0) == (0.375, True)
        answer = client.post(
            "/api/v1/query", json={"question": "What does alignment catch?", "library": "papers"}
        ).json()
        assert (answer["embedder"], answer["notices"]) == (NOMIC, [])
        assert _codes(client) == set()
        assert client.get("/health").json()["embedding"]["papers"] == {
            "embedder": NOMIC,
            "reachable": True,
            "detail": "",
        }


def test_a_model_that_came_is_told_and_one_command_takes_it(serve: Callable[..., object]) -> None:
    with (
        OllamaDouble(models=[]) as double,
        serve(ollama_base_url=double.url, samples=False) as client,  # type: ignore[attr-defined]
    ):
        _upload(client, *COPPER)
        assert _library(client)["notices"] == []
        double.models = list(DEFAULT_MODELS)
        _until(lambda: _codes(client) == {"better_embedder"})
        row = _library(client)
        assert cast("Json", row["embedding"])["embedder"] == MINILM  # it keeps its vectors
        finding = next(iter(check_library(row, [])))
        assert (finding.state, "documind reembed --library papers" in finding.cure) == (
            "note",
            True,
        )
        found = client.get("/api/v1/search", params={"q": "copper", "library": "papers"}).json()
        assert found["notices"] == []  # once, where libraries are listed
        assert client.post("/api/v1/reembed", json={"library": "papers"}).status_code == 202
        _until(lambda: _embeds(client, "papers", NOMIC))
        (notice,) = cast("list[Json]", _library(client)["notices"])
        assert notice["code"] == "bands_not_calibrated"  # one document is too little to learn from
        refused = client.post("/api/v1/calibrate", json={"library": "papers"}).json()["id"]
        _until(lambda: client.get(f"/api/v1/jobs/{refused}").json()["state"] == "failed")
        assert "20 are needed" in client.get(f"/api/v1/jobs/{refused}").json()["errors"][0]


def test_an_emptied_library_takes_what_is_there_now_and_says_when_it_goes(
    serve: Callable[..., object],
) -> None:
    with serve(samples=False) as client:  # type: ignore[attr-defined]
        _upload(client, *COPPER)
        assert client.delete("/api/v1/libraries/papers/documents?confirm=papers").is_success
    with OllamaDouble() as double, serve(ollama_base_url=double.url, samples=False) as client:  # type: ignore[attr-defined]
        receipt = cast("Json", _upload(client, *COPPER)["receipt"])
        assert receipt["vectors"] == 1
        assert _embeds(client, "papers", NOMIC)
    with serve(samples=False) as client:  # type: ignore[attr-defined]
        state = cast("Json", _library(client)["embedding"])
        assert (state["embedder"], state["reachable"]) == (NOMIC, False)
        assert client.get("/health").json()["embedder"] != NOMIC  # of public, which is empty
        assert client.get("/health").json()["embedding"]["papers"]["reachable"] is False
        finding = next(iter(check_library(_library(client), [])))
        assert (finding.state, "ollama serve" in finding.cure) == ("problem", True)
