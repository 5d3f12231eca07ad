"""A library in another language: told, offered, embedded by another model, corrected; over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.api.app import create_app
from app.bootstrap.services import Services, build_services
from app.settings import Settings
from tests.api.conftest import BASE, settings_for

GERMAN = {
    "bruecke.txt": "Die alte Brücke über den Fluss wurde 1932 von polnischen Ingenieuren gebaut.",
    "katzen.txt": "Katzen schlafen bis zu sechzehn Stunden am Tag, weil sie in der Nacht jagen.",
    "wein.txt": "Der Wein aus dem Tal wird im Herbst gelesen und reift in großen Fässern.",
}
QUESTION = "Wann wurden die Brücken gebaut?"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[TestClient, Services]]:
    settings = settings_for(
        tmp_path, samples=False, llm_provider="extractive", refusal_language="question"
    )
    settings.data_dir.mkdir(parents=True)
    held: list[Services] = []

    @contextmanager
    def build(given: Settings) -> Iterator[Services]:
        with build_services(given) as services:
            held.append(services)
            yield services

    app = create_app(settings, build=build, on_failure=lambda _: None)
    with TestClient(app, base_url=BASE) as client:
        assert app.state.edge.startup.wait(60)
        for name, text in GERMAN.items():
            sent = client.post(
                "/api/v1/ingest", files={"file": (name, text.encode())}, data={"library": "papers"}
            )
            assert sent.is_success, sent.text
        yield client, held[0]


def asked(client: TestClient, question: str, **more: object) -> dict[str, object]:
    reply = client.post("/api/v1/query", json={"question": question, "library": "papers", **more})
    assert reply.status_code == 200, reply.text
    found: dict[str, object] = reply.json()
    return found


def codes(found: dict[str, object]) -> set[str]:
    return {notice["code"] for notice in found["notices"]}  # type: ignore[attr-defined]


def test_from_minilm_to_the_multilingual_model(opened: tuple[TestClient, Services]) -> None:
    client, services = opened
    listed = client.get("/api/v1/papers?library=papers").json()["documents"]
    assert {document["language"] for document in listed} == {"de"}
    bridge = next(one["doc_id"] for one in listed if one["filename"] == "bruecke.txt")
    before = asked(client, QUESTION, retrieve_only=True)
    assert before["sources"][0]["doc_id"] == bridge  # type: ignore[index]
    assert "language_differs" in codes(before)
    job = client.post(
        "/api/v1/reembed", json={"library": "papers", "provider": "multilingual"}
    ).json()
    services.jobs.wait(job["id"], 60)
    assert client.get(f"/api/v1/jobs/{job['id']}").json()["state"] == "done"
    after = asked(client, "When was the bridge built?", retrieve_only=True)
    assert str(after["embedder"]).startswith("multilingual")
    assert after["sources"][0]["doc_id"] == bridge  # type: ignore[index]
    assert "language_differs" not in codes(after)


def test_a_language_is_corrected(opened: tuple[TestClient, Services]) -> None:
    client, _ = opened
    found = asked(client, QUESTION, retrieve_only=True)["sources"][0]  # type: ignore[index]
    path = f"/api/v1/papers/{found['doc_id']}?library=papers"
    assert client.patch(path, json={"language": "en"}).json()["language"] == "en"
    assert client.patch(path, json={"language": "German"}).status_code == 422
    assert client.patch(path, json={"title": "Die Brücke"}).json()["language"] == "en"
    assert client.get(path).json()["title"] == "Die Brücke"


def test_the_refusal_is_in_the_language_of_the_question(
    opened: tuple[TestClient, Services],
) -> None:
    client, _ = opened
    refused = asked(client, "Wie hoch ist der Zinssatz der Zentralbank in Australien?")
    assert refused["status"] == "abstained"
    assert str(refused["answer"]).startswith("Die vorhandenen Dokumente")
