"""A library that the embedded model made, embedded anew by a model of Ollama, over HTTP with the real composition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from starlette.testclient import TestClient

from app.api.app import create_app
from app.bootstrap.services import Services, build_services
from app.core.types import Library
from app.settings import Settings
from tests.api.conftest import BASE, LIBRARY, settings_for
from tests.fakes.ollama_double import OllamaDouble
from tests.fakes.ollama_double.models import DEFAULT_MODELS, DoubleModel

Json = dict[str, object]


@dataclass
class Server:
    """The real app, with the double as its model host."""

    client: TestClient
    services: Services
    double: OllamaDouble

    def job(self, body: Json) -> Json:
        accepted = self.client.post("/api/v1/reembed", json={"library": "papers", **body})
        assert accepted.status_code == 202, accepted.text
        self.services.jobs.wait(accepted.json()["id"], 60)
        return cast("Json", self.client.get(f"/api/v1/jobs/{accepted.json()['id']}").json())

    def result(self, **body: object) -> Json:
        job = self.job(body)
        assert job["state"] == "done", job
        return cast("Json", job["result"])

    def embedder(self) -> str:
        reply = self.client.post(
            "/api/v1/query",
            json={
                "question": "How long do lions sleep?",
                "library": "papers",
                "retrieve_only": True,
            },
        )
        assert reply.status_code == 200, reply.text
        found = reply.json()
        assert "Lions" in [source["title"] for source in found["sources"]]
        noticed = {notice["code"] for notice in found["notices"]} - {"bands_not_calibrated"}
        assert not noticed  # four documents are too few to calibrate
        return str(found["embedder"])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with OllamaDouble() as double:
        settings = settings_for(
            tmp_path,
            samples=False,
            embedding_provider="minilm",
            llm_provider="extractive",
            ollama_base_url=double.url,
        )
        settings.data_dir.mkdir(parents=True)
        opened: list[Services] = []

        @contextmanager
        def build(given: Settings) -> Iterator[Services]:
            with build_services(given) as services:
                opened.append(services)
                yield services

        app = create_app(settings, build=build, on_failure=lambda _: None)
        with TestClient(app, base_url=BASE) as client:
            assert app.state.edge.startup.wait(60)
            for name, text in LIBRARY.items():
                assert client.post(
                    "/api/v1/ingest",
                    files={"file": (name, text.encode())},
                    data={"library": "papers"},
                ).is_success
            yield Server(client, opened[0], double)


def test_from_the_embedded_model_to_ollama_and_back(server: Server) -> None:
    assert server.embedder().startswith("minilm")
    found = server.result(provider="ollama", model="nomic-embed-text")
    assert (found["outcome"], found["after"]) == ("swapped", "nomic-embed-text")
    assert server.embedder() == "ollama:nomic-embed-text"
    libraries = {
        row["library"]: row for row in server.client.get("/api/v1/libraries").json()["libraries"]
    }
    assert libraries["papers"]["embedded"] == libraries["papers"]["chunks"]
    added = server.client.post(
        "/api/v1/ingest",
        files={"file": ("new.txt", b"Otters hold hands.")},
        data={"library": "papers"},
    )
    assert added.json()["documents"][0]["receipt"]["vectors"] == 1
    assert server.result(action="rollback")["outcome"] == "rolled_back"
    assert server.embedder().startswith("minilm")
    for job in server.services.jobs.list(20):
        if job.kind == "backfill":
            server.services.jobs.wait(job.id, 60)
    counts = server.services.catalog.counts(Library.PAPERS)
    assert counts.embedded == counts.chunks
    assert server.result(action="discard")["outcome"] == "discarded"


def test_a_better_embedder_is_told_but_not_the_one_that_a_person_left(server: Server) -> None:
    def told() -> bool:
        rows = server.client.get("/api/v1/libraries").json()["libraries"]
        row = next(row for row in rows if row["library"] == "papers")
        return "better_embedder" in [notice["code"] for notice in row["notices"]]

    other = DoubleModel("mxbai-embed-large:latest", "bert", 512, dimension=1024)
    server.double.models = [*DEFAULT_MODELS, other]
    assert not told()  # MiniLM is configured, and serves
    server.result(provider="ollama", model="nomic-embed-text")
    assert not told()  # a person went from MiniLM just now
    server.result(provider="ollama", model="mxbai-embed-large")
    assert told()
    server.result(provider="minilm")
    assert not told()


def test_what_cannot_be_done_says_why(server: Server) -> None:
    post = server.client.post
    assert (
        post(
            "/api/v1/reembed", json={"library": "papers", "provider": "carrier pigeon"}
        ).status_code
        == 422
    )
    older = post("/api/v1/reembed", json={"library": "papers", "force": True})
    assert (older.status_code, "force" in older.json()["detail"]) == (422, True)
    for body, code in (
        ({"provider": "ollama", "model": "no-such-model"}, "model_not_installed"),
        ({"provider": "minilm"}, "conflict"),
        ({"action": "rollback"}, "conflict"),
    ):
        job = server.job(cast("Json", body))
        assert (job["state"], str(cast("list[str]", job["errors"])[0]).split(":")[0]) == (
            "failed",
            code,
        )
    assert server.embedder().startswith("minilm")
