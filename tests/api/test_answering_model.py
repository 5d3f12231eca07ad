"""Which of a host's models answers, on the way a user goes: over HTTP, with the real composition."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import cast

import pytest
from starlette.testclient import TestClient

from app.api.app import create_app
from app.bootstrap.services import build_services
from app.cli.models import answering
from app.generation.prompt.prompts import PromptLibrary
from tests.api.conftest import BASE, settings_for
from tests.fakes.ollama_double import DoubleModel, OllamaDouble
from tests.fakes.openai_double import OpenAIDouble, finish, piece, sse

Json = dict[str, object]
EMBEDS = DoubleModel("nomic-embed-text:latest", "nomic-bert", 2048, dimension=64)
SMALL = DoubleModel("qwen2.5:0.5b", parameter_size="494M")
MIDDLE = DoubleModel("qwen2.5:7b", parameter_size="7.6B")
LARGE = DoubleModel("llama3.3:70b", parameter_size="70.6B")
COPPER = ("copper.txt", b"Copper is a soft red metal. It melts at 1085 degrees Celsius.")

Serve = Callable[..., AbstractContextManager[TestClient]]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Run a server over the same data directory, as often as a test likes."""
    monkeypatch.setattr("app.models.ollama._FRESH_S", 0.0)

    @contextmanager
    def run(url: str, **values: object) -> Iterator[TestClient]:
        settings = settings_for(
            tmp_path, ollama_base_url=url, embedding_provider="minilm", **values
        )
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        app = create_app(settings, build=build_services, on_failure=lambda _: None)
        with TestClient(app, base_url=BASE) as client:
            assert app.state.edge.startup.wait(60)
            yield client

    return run


def _until(happened: Callable[[], bool]) -> None:
    """Look again for two minutes: a busy host answers its probe late once."""
    end = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


def _health(client: TestClient) -> tuple[str, str]:
    found = client.get("/health").json()
    return found["generator"], found["generator_why"]


def _choose(client: TestClient, model: str | None) -> Json:
    reply = client.put("/api/v1/models/answering", json={"model": model})
    return {"status": reply.status_code, **reply.json()}


def _asked(client: TestClient) -> Json:
    reply = client.post(
        "/api/v1/query",
        json={"question": "At what temperature does copper melt?", "library": "papers"},
    )
    assert reply.is_success, reply.text
    return reply.json()  # type: ignore[no-any-return]


def _notices(answer: Json) -> list[str]:
    return [notice["code"] for notice in answer["notices"]]  # type: ignore[attr-defined]


def test_without_a_host_the_documents_are_quoted(serve: Serve) -> None:
    with serve("http://127.0.0.1:9") as client:
        generator, why = _health(client)
    assert generator == "extractive"
    assert "start it: documind up" in why


@pytest.mark.parametrize("models", [[], [EMBEDS]], ids=["no model", "only embedding models"])
def test_a_host_without_a_chat_model_is_told_what_to_fetch_once(
    serve: Serve, models: list[DoubleModel]
) -> None:
    with OllamaDouble(models) as double, serve(double.url) as client:
        generator, why = _health(client)
        assert generator == "extractive"
        assert why.endswith("run: ollama pull llama3.2")
        client.post("/api/v1/ingest", files={"file": COPPER}, data={"library": "papers"})
        assert "generator_unavailable" in _notices(_asked(client))
        assert "generator_unavailable" not in _notices(_asked(client))
        double.models.append(SMALL)  # one that appears later
        _until(lambda: _health(client) == ("ollama:qwen2.5:0.5b", "the only chat model"))
        assert any(request.path == "/api/chat" for request in double.requests) is False
        _asked(client)
        assert any(request.path == "/api/chat" for request in double.requests)


@pytest.mark.parametrize("release", ["0.33.0", "0.24.0"], ids=["listed", "asked one by one"])
def test_the_only_chat_model_answers_and_an_embedding_model_never_does(
    serve: Serve, release: str
) -> None:
    with OllamaDouble([EMBEDS, SMALL], version=release) as double, serve(double.url) as client:
        assert _health(client) == ("ollama:qwen2.5:0.5b", "the only chat model")
        found = client.get("/api/v1/models").json()
        assert {row["name"]: row["chats"] for row in found["installed"]} == {
            "nomic-embed-text:latest": False,
            "qwen2.5:0.5b": True,
        }
        refused = _choose(client, "nomic-embed-text")
        assert refused["status"] == 422
        assert "cannot chat" in str(refused["detail"])


def test_what_the_host_lists_wrongly_is_asked_of_the_model(serve: Serve) -> None:
    own = DoubleModel("own-vectors", "bert", dimension=8, listed=("completion",))
    with OllamaDouble([own, SMALL]) as double, serve(double.url) as client:
        assert _health(client) == ("ollama:qwen2.5:0.5b", "the only chat model")
        found = client.get("/api/v1/models").json()
        assert [row["chats"] for row in found["installed"]] == [False, True]
        refused = _choose(client, "own-vectors")
        assert (refused["status"], "cannot chat" in str(refused["detail"])) == (422, True)


def test_of_several_the_largest_that_fits_answers_until_one_is_chosen(serve: Serve) -> None:
    with OllamaDouble([SMALL, LARGE, MIDDLE, EMBEDS]) as double:
        with serve(double.url) as client:
            generator, why = _health(client)
            assert generator == "ollama:qwen2.5:7b"
            assert "largest" in why
            chosen = _choose(client, "qwen2.5:0.5b")
            assert (chosen["status"], chosen["decided_by"]) == (200, "choice")
            assert answering(chosen).startswith("ollama:qwen2.5:0.5b (it was chosen); also")
            assert _health(client)[0] == "ollama:qwen2.5:0.5b"
            assert _choose(client, "nothing:1b")["code"] == "model_not_installed"
        with serve(double.url) as client:
            assert _health(client) == ("ollama:qwen2.5:0.5b", "it was chosen")
            double.models.remove(SMALL)
            generator, why = _health(client)
            assert generator == "ollama:qwen2.5:7b"
            assert why.endswith("'qwen2.5:0.5b', which was chosen, is not installed")
            double.models.append(SMALL)
            assert _health(client)[0] == "ollama:qwen2.5:0.5b"
            assert _choose(client, None)["decided_by"] == "server"
            assert _health(client)[0] == "ollama:qwen2.5:7b"


def test_a_named_model_is_the_environments_and_its_lack_is_said_once(serve: Serve) -> None:
    with OllamaDouble([SMALL]) as double, serve(double.url, llm_model="phi4") as client:
        client.post("/api/v1/ingest", files={"file": COPPER}, data={"library": "papers"})
        generator, why = _health(client)
        assert generator == "extractive"
        assert why.endswith("run: ollama pull phi4")
        refused = _choose(client, "qwen2.5:0.5b")
        assert (refused["status"], refused["code"]) == (409, "conflict")
        assert "LLM_MODEL=phi4 decides" in str(refused["detail"])
        first, second = _asked(client), _asked(client)
        assert "generator_unavailable" in _notices(first)
        assert "generator_unavailable" not in _notices(second)
        assert second["answer"] == first["answer"]
        assert client.get("/api/v1/models").json()["decided_by"] == "environment"


def test_what_is_set_reaches_the_model(serve: Serve) -> None:
    """Where the prompts of small models would have figures of their own."""
    set_to = {"llm_temperature": 0.6, "llm_max_tokens": 77}
    with OllamaDouble([SMALL]) as double, serve(double.url, **set_to) as client:
        client.post("/api/v1/ingest", files={"file": COPPER}, data={"library": "papers"})
        _asked(client)
        asked = [request for request in double.requests if request.path == "/api/chat"]
    assert asked
    for request in asked:
        options = cast("Json", request.body["options"])
        assert (options["temperature"], options["num_predict"]) == (0.6, 77)


NOWHERE = "http://127.0.0.1:9"


def _answered_by(client: TestClient) -> tuple[str, list[str]]:
    body = {"question": "What does copper melt at?", "library": "papers"}
    reply = client.post("/api/v1/query", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()["generator"], [one["code"] for one in reply.json()["notices"]]


def test_a_host_chosen_on_the_page_answers_at_once_and_its_key_is_nowhere_else(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = tmp_path / "data" / "hosted.json"
    with OpenAIDouble() as double, caplog.at_level("DEBUG"):
        said = sse(piece("Copper melts at 1085 degrees Celsius [1]."), finish("stop"))
        chosen = {"base_url": f"{double.url}/v1", "model": "chat-1", "api_key": double.key}
        with serve(NOWHERE) as client:
            client.post("/api/v1/ingest", files={"file": COPPER}, data={"library": "papers"})
            none = {"base_url": "", "model": "", "has_key": False, "overruled_by": ""}
            assert client.get("/api/v1/models/host").json() == none
            assert _answered_by(client)[0] == "extractive"
            shown = client.put("/api/v1/models/host", json=chosen)
            assert shown.json() == {
                "base_url": chosen["base_url"], "model": "chat-1", "has_key": True,
                "overruled_by": "",
            }  # fmt: skip
            assert kept.stat().st_mode & 0o777 == 0o600
            double.queue(said)
            assert _answered_by(client) == ("openai_compatible:chat-1", [])
            assert double.asked[-1].headers["Authorization"] == f"Bearer {double.key}"
            listed = client.get("/api/v1/models").json()
            assert listed["decided_by"] == "choice"
            again = {"base_url": chosen["base_url"], "model": "chat-2"}  # the key stays
            assert client.put("/api/v1/models/host", json=again).json()["has_key"] is True
            assert client.put("/api/v1/models/host", json=chosen).status_code == 200
            for path in ("/api/v1/models/host", "/api/v1/diagnostics", "/health"):
                assert double.key not in client.get(path).text
            target = tmp_path / "copy"
            job = client.post("/api/v1/backup", json={"path": str(target)}).json()
            _until(lambda: client.get(f"/api/v1/jobs/{job['id']}").json()["state"] == "done")
            elsewhere = {"base_url": "http://127.0.0.1:9/v1", "model": "chat-1"}
            assert client.put("/api/v1/models/host", json=elsewhere).json()["has_key"] is False
            assert client.put("/api/v1/models/host", json=chosen).status_code == 200
            refused = client.put("/api/v1/models/host", json={**chosen, "base_url": "ftp://x"})
            assert (refused.status_code, double.key in refused.text) == (422, False)
        with serve(NOWHERE) as client:
            double.queue(said)
            assert _answered_by(client)[0] == "openai_compatible:chat-1"
        with serve(NOWHERE, hosted_model="other") as client:
            named = "HOSTED_URL, HOSTED_KEY or HOSTED_MODEL"
            assert client.get("/api/v1/models/host").json()["overruled_by"] == named
            assert client.put("/api/v1/models/host", json=chosen).status_code == 409
            assert _answered_by(client)[0] == "extractive"
        with serve(NOWHERE) as client:
            back = client.put("/api/v1/models/answering", json={"model": None})
            assert back.status_code == 200
            assert _answered_by(client)[0] == "extractive"
            assert not kept.exists()
    assert double.key not in caplog.text
    assert target.exists()
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or double.key.encode() not in file.read_bytes(), file


def test_the_prompt_of_a_kind_of_answer_is_shown_as_it_is_sent(
    serve: Serve, tmp_path: Path
) -> None:
    own = tmp_path / "prompts"
    own.mkdir()
    packaged = PromptLibrary.load().sources["compare.yml"].read_text("utf-8")
    (own / "compare.yml").write_text(packaged, "utf-8")
    with serve(NOWHERE, prompts_dir=own) as client:
        shown = client.get("/api/v1/models/prompts?query_mode=compare").json()
        assert shown["own"] == ["compare.yml"]
        for size in ("full", "compact"):
            *_, last = shown[size]
            assert last["role"] == "user"
            assert "{question}" in last["content"]
            assert "{passages}" in "".join(one["content"] for one in shown[size])
        none = client.get("/api/v1/models/prompts?query_mode=datasets")
        assert (none.status_code, none.json()["code"]) == (422, "invalid_input")
