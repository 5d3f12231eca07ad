"""The closed doors of the whole app: hosts, origins, key, bodies, starting up, and one shape for every error."""

from __future__ import annotations

import errno
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.api.app import create_app
from app.bootstrap.services import Services
from app.core.errors import Locked
from app.settings import Settings
from tests.api.conftest import BASE, Site, settings_for, site
from tests.fakes.services import local_services

PROBLEM = {"type", "title", "status", "detail", "code", "retryable", "request_id"}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with a key, a proxy's name, and small files."""
    directory = tmp_path_factory.mktemp("locked")
    with site(
        directory, api_key="k3y", trusted_hosts=("docs.example",), max_file_size_mb=1
    ) as opened:
        yield opened


KEY = {"X-API-Key": "k3y"}


def test_every_route_of_the_api_wants_the_key(locked: Site) -> None:
    document = locked.client.get("/openapi.json").json()
    protected = [path for path in document["paths"] if path.startswith(("/api/", "/v1/", "/mcp"))]
    assert len(protected) > 15
    for path in protected:
        for method in document["paths"][path]:
            reply = locked.client.request(method, re.sub(r"\{.*?\}", "x", path))
            assert reply.status_code == 401, (method, path)
            said = (
                reply.json()["error"]["code"] if path.startswith("/v1/") else reply.json()["code"]
            )
            assert said == ("invalid_api_key" if path.startswith("/v1/") else "unauthorized"), (
                method,
                path,
            )
            assert reply.headers["www-authenticate"] == "Bearer"


def test_probes_page_and_docs_do_not_but_health_shows_less(locked: Site) -> None:
    for path in ("/", "/health/live", "/health/ready", "/docs", "/redoc", "/openapi.json"):
        assert locked.client.get(path).status_code == 200, path
    assert locked.client.get("/health").json()["libraries"] is None
    assert len(locked.client.get("/health", headers=KEY).json()["libraries"]) == 2


@pytest.mark.parametrize(
    "path", ["/", "/health", "/api/v1/libraries", "/docs", "/openapi.json", "/nowhere"]
)
def test_foreign_hosts_get_nothing_at_all(locked: Site, path: str) -> None:
    reply = locked.client.get(path, headers={**KEY, "Host": "evil.example"})
    assert (reply.status_code, reply.json()["code"]) == (403, "host_refused")
    assert locked.client.get(path, headers={**KEY, "Host": "docs.example"}).status_code in {
        200,
        404,
    }


def test_a_foreign_page_cannot_upload_or_ask(locked: Site) -> None:
    headers = {**KEY, "Origin": "http://evil.example"}
    upload = locked.client.post(
        "/api/v1/ingest", files={"file": ("a.txt", b"text")}, headers=headers
    )
    asked = locked.client.post(
        "/api/v1/query",
        content=b'{"question":"x"}',
        headers={**headers, "Content-Type": "text/plain"},
    )
    assert (upload.json()["code"], asked.json()["code"]) == ("origin_refused", "origin_refused")
    assert "access-control-allow-origin" not in upload.headers


def test_a_configured_origin_may_use_every_method_that_routes_have(locked: Site) -> None:
    paths = locked.app.openapi()["paths"].values()
    for method in {one.upper() for path in paths for one in path}:
        asked = {"Origin": "http://localhost:5173", "Access-Control-Request-Method": method}
        reply = locked.client.options("/api/v1/query", headers=asked)
        assert reply.status_code == 200, method


def test_a_configured_origin_may_and_its_preflight_says_so(locked: Site) -> None:
    preflight = locked.client.options(
        "/api/v1/query",
        headers={
            "Origin": "http://localhost:5173",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "x-api-key,content-type",
        },
    )
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == "http://localhost:5173"
    reply = locked.client.get(
        "/api/v1/libraries", headers={**KEY, "Origin": "http://localhost:5173"}
    )
    assert reply.headers["access-control-allow-origin"] == "http://localhost:5173"


@pytest.mark.parametrize(
    "body",
    [
        b'{"question":"x","zzz":1}',
        b"{",
        b"",
        b"[]",
        b'{"question":""}',
        b'{"question":" \\u200b "}',
        b'{"question":"x","top_k":100000}',
        b'{"question":"x","library":"nope"}',
        b'{"question":"x","filters":{"section":"not a list"}}',
        b'{"question":"x","history":[{"role":"system","content":"y"}]}',
        b'{"question":"' + b"x" * 4001 + b'"}',
        b'{"question":"\\ud800"}',
        b'{"question":"\xff\xfe"}',
    ],
)
def test_bad_questions_are_422_in_the_one_shape(locked: Site, body: bytes) -> None:
    reply = locked.client.post(
        "/api/v1/query", content=body, headers={**KEY, "Content-Type": "application/json"}
    )
    assert reply.status_code == 422, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert set(reply.json()) == PROBLEM
    assert reply.json()["code"] == "invalid_input"


def test_an_unknown_field_names_the_missing_one_that_was_meant(locked: Site) -> None:
    for path, body, meant in (
        (
            "/api/v1/query",
            {"query": "What is copper?"},
            "query is not known here (got 'What is copper?'); did you mean 'question'?",
        ),
        (
            "/api/v1/query",
            {"q": "x", "k": 3},
            "q is not known here (got 'x'); did you mean 'question'?",
        ),
        (
            "/api/v1/chat",
            {"question": "x"},
            "question is not known here (got 'x'); did you mean 'message'?",
        ),
    ):
        reply = locked.client.post(path, json=body, headers=KEY)
        assert (reply.status_code, meant in reply.json()["detail"]) == (422, True), reply.text
    extra = locked.client.post("/api/v1/query", json={"question": "x", "zzz": 1}, headers=KEY)
    assert "did you mean" not in extra.json()["detail"]


def test_a_word_that_was_respelt_is_said_and_a_name_stays(tmp_path: Path) -> None:
    with site(tmp_path) as opened:
        opened.upload(("pisa.md", b"# Towers\n\nLeonardo of Pisa measured the leaning tower."))
        for question, searched in (
            ("Who measured the leening tower?", "Who measured the leaning tower?"),
            ("What is PaSa?", None),
        ):
            asked = {"question": question, "library": "all"}
            answer = opened.client.post("/api/v1/query", json=asked).json()
            assert answer["rewritten_query"] == searched


def test_nul_in_a_question_is_read_over(locked: Site) -> None:
    reply = locked.client.post("/api/v1/query", json={"question": "what is a\x00b?"}, headers=KEY)
    assert reply.status_code == 200


def test_unknown_paths_and_methods_are_problems_too(locked: Site) -> None:
    for method, path, status in (
        ("GET", "/api/v1/nope", 404),
        ("PUT", "/api/v1/query", 405),
        ("GET", "/nope.js", 404),
    ):
        reply = locked.client.request(method, path, headers=KEY)
        assert reply.status_code == status
        assert set(reply.json()) == PROBLEM


def test_large_bodies_are_refused_declared_or_not(locked: Site) -> None:
    large = b'{"question":"' + b"x" * (5 * 2**20) + b'"}'
    declared = locked.client.post(
        "/api/v1/query", content=large, headers={**KEY, "Content-Type": "application/json"}
    )
    chunked = locked.client.post(
        "/api/v1/query", content=iter([large]), headers={**KEY, "Content-Type": "application/json"}
    )
    assert (declared.status_code, chunked.status_code) == (413, 413)
    total = locked.client.post(
        "/api/v1/ingest",
        content=(b"x" * 2**20 for _ in range(60)),
        headers={**KEY, "Content-Type": "multipart/form-data; boundary=b"},
    )
    assert total.status_code in {413, 422}


def test_the_headers_are_on_every_kind_of_reply(locked: Site) -> None:
    for path in ("/", "/api/v1/libraries", "/nope", "/docs", "/health/live"):
        headers = locked.client.get(path).headers
        for name in (
            "x-request-id",
            "x-content-type-options",
            "x-frame-options",
            "referrer-policy",
            "content-security-policy",
        ):
            assert name in headers, (path, name)


def test_documentation_pages_load_nothing_from_elsewhere(locked: Site) -> None:
    for path in ("/docs", "/redoc"):
        reply = locked.client.get(path)
        links = re.findall(r'(?:src|href)="([^"]+)"', reply.text)
        assert links
        for link in links:
            assert link.startswith("/docs-assets/"), link
            assert locked.client.get(link).status_code == 200
        assert "http" not in reply.headers["content-security-policy"]
    csp = locked.client.get("/docs").headers["content-security-policy"]
    assert "'sha256-" in csp
    assert "script-src 'self' 'unsafe" not in csp
    assert "'unsafe-inline'" not in locked.client.get("/").headers["content-security-policy"]


def test_without_openapi_there_are_no_docs(tmp_path: Path) -> None:
    with site(tmp_path, disable_openapi=True) as opened:
        for path in ("/docs", "/redoc", "/openapi.json"):
            assert opened.client.get(path).status_code == 404
        assert opened.client.get("/api/v1/libraries").status_code == 200


def test_behind_a_proxy_with_a_prefix(tmp_path: Path) -> None:
    with site(tmp_path, root_path="/rag", trusted_hosts=("docs.example",), api_key="k3y") as opened:
        headers = {"Host": "docs.example"}
        assert opened.client.get("/health/live", headers=headers).status_code == 200
        assert opened.client.get("/api/v1/libraries", headers=headers).status_code == 401
        assert opened.client.get("/rag/api/v1/libraries", headers=headers).status_code == 401
        assert (
            opened.client.get("/rag/api/v1/libraries", headers={**headers, **KEY}).status_code
            == 200
        )
        assert (
            '"/rag/docs-assets/swagger-ui.css"' in opened.client.get("/docs", headers=headers).text
        )
        origin = {"Origin": "https://docs.example", **headers, **KEY}
        assert (
            opened.client.post(
                "/api/v1/query", json={"question": "hello"}, headers=origin
            ).status_code
            == 200
        )


@pytest.mark.parametrize("stream", [False, True])
def test_a_citation_leads_to_the_page_behind_a_prefix(tmp_path: Path, *, stream: bool) -> None:
    asked = {
        "model": "documind-papers",
        "stream": stream,
        "messages": [{"role": "user", "content": "At how many degrees does copper melt?"}],
    }
    with site(tmp_path, root_path="/rag", trusted_hosts=("docs.example",)) as opened:
        opened.upload(("copper.txt", b"Copper melts at 1085 degrees Celsius, and so it is poured."))
        headers = {"Host": "docs.example"}
        told = opened.client.post("/rag/v1/chat/completions", json=asked, headers=headers).text
        (address,) = set(re.findall(r'"url": ?"([^"]+)"', told))
        assert address.startswith("http://docs.example/rag/?library=papers&doc=")
        shown = opened.client.get(address.removeprefix("http://docs.example"), headers=headers)
        assert shown.status_code == 200


def test_probes_answer_while_the_services_are_built(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    go = threading.Event()

    @contextmanager
    def slow(given: Settings) -> Iterator[Services]:
        assert go.wait(20)
        with local_services(given) as services:
            yield services

    app = create_app(settings, build=slow, on_failure=lambda _: None)
    with TestClient(app, base_url=BASE) as client:
        assert client.get("/health/live").json() == {"status": "ok"}
        ready = client.get("/health/ready")
        assert (ready.status_code, ready.json()["missing"]) == (503, ["index", "embedder"])
        assert client.get("/health").json()["status"] == "starting"
        refused = client.get("/api/v1/libraries")
        assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (
            503,
            "busy",
            "1",
        )
        go.set()
        assert app.state.edge.startup.wait(20)
        assert client.get("/health/ready").json() == {
            "status": "ready",
            "missing": [],
            "detail": "",
            "degraded": [],
        }
        assert client.get("/api/v1/libraries").status_code == 200


def test_services_that_cannot_be_built_end_the_process_and_say_why(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    @contextmanager
    def broken(_: Settings) -> Iterator[Services]:
        raise Locked("the data directory is used by process 1")
        yield  # type: ignore[unreachable]  # a generator, for contextmanager

    app = create_app(settings_for(tmp_path), build=broken, on_failure=failures.append)
    with TestClient(app, base_url=BASE) as client:
        assert app.state.edge.startup.wait(20)
        ready = client.get("/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "failed")
        assert "process 1" in ready.json()["detail"]
    assert [type(error) for error in failures] == [Locked]


def test_a_directory_that_cannot_be_written_is_said_without_a_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @contextmanager
    def refused(_: Settings) -> Iterator[Services]:
        raise PermissionError(errno.EROFS, "Read-only file system", "/data/originals")
        yield  # type: ignore[unreachable]  # a generator, for contextmanager

    app = create_app(settings_for(tmp_path), build=refused, on_failure=lambda _: None)
    with TestClient(app, base_url=BASE) as client:
        assert app.state.edge.startup.wait(20)
        assert "make the data directory writable" in client.get("/health/ready").json()["detail"]
    assert "Traceback" not in caplog.text


def test_unfinished_uploads_of_an_earlier_process_are_removed(tmp_path: Path) -> None:
    orphan = tmp_path / "data" / "uploads" / "tmp1" / "0000.part"
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"half")
    with site(tmp_path):
        assert not orphan.exists()
