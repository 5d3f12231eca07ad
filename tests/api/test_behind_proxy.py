"""Behind a TLS proxy with a path prefix: hosts, origins, key, documentation pages, and events as they happen."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import LIBRARY, listening, site
from tests.api.test_streaming import SlowModel
from tests.fakes.generators import FixedModels
from tests.fakes.tls_proxy import TlsProxy, make_certificate

NAME = "docs.example"
KEY = {"X-API-Key": "k3y"}
WAIT_S = 20.0


@dataclass
class Front:
    """The proxy's end: what a browser elsewhere would reach."""

    port: int
    certificate: Path
    model: SlowModel

    def open(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.certificate))
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=WAIT_S, context=context)

    def ask(
        self, method: str, path: str, body: object = None, *, host: str = NAME, **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = self.open()
        sent = {
            "Host": host,
            **KEY,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        content = None if body is None else json.dumps(body)
        if content is not None:
            sent["Content-Type"] = "application/json"
        connection.request(method, path, content, sent)
        reply = connection.getresponse()
        found = (
            reply.status,
            reply.read(),
            {name.lower(): value for name, value in reply.getheaders()},
        )
        connection.close()
        return found


@pytest.fixture(scope="module", params=["", "/rag"], ids=["prefix passed on", "prefix stripped"])
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    directory = tmp_path_factory.mktemp("proxied")
    model = SlowModel()
    settings: dict[str, Any] = {
        "root_path": "/rag",
        "trusted_hosts": (NAME,),
        "api_key": "k3y",
        "forwarded_allow_ips": "127.0.0.1",
    }
    with site(directory, FixedModels(model), **settings) as opened:
        opened.client.headers.update(KEY)
        assert opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))[0] == 201
        certificate = make_certificate(directory, NAME)
        with (
            listening(opened.app, lifespan="off") as url,
            TlsProxy(url, certificate, strips=request.param) as proxy,
        ):
            yield Front(proxy.port, certificate, model)


def test_the_api_is_reached_under_the_prefix(front: Front) -> None:
    status, body, headers = front.ask("GET", "/rag/api/v1/libraries")
    assert status == 200, body
    assert headers["x-content-type-options"] == "nosniff"
    assert front.ask("GET", "/rag/health/live")[0] == 200


def test_the_key_is_asked_for_under_the_prefix(front: Front) -> None:
    assert front.ask("GET", "/rag/api/v1/libraries", X_API_Key="wrong")[0] == 401


@pytest.mark.parametrize("host", ["evil.example", "docs.example.evil.example", "203.0.113.9", ""])
def test_the_host_check_holds_behind_the_proxy(front: Front, host: str) -> None:
    status, body, _ = front.ask("GET", "/rag/api/v1/libraries", host=host)
    assert status in {400, 403}, body  # an empty Host header is not even HTTP/1.1 to some servers
    assert b"libraries" not in body


def test_the_page_is_its_own_origin_and_others_are_foreign(front: Front) -> None:
    body = {"question": "hello"}
    assert front.ask("POST", "/rag/api/v1/query", body, Origin=f"https://{NAME}")[0] == 200
    for origin in (f"http://{NAME}", "https://evil.example", f"https://{NAME}:444", "null"):
        status, text, _ = front.ask("POST", "/rag/api/v1/query", body, Origin=origin)
        assert (status, json.loads(text)["code"]) == (403, "origin_refused"), origin


def test_documentation_pages_name_their_assets_with_the_prefix(front: Front) -> None:
    status, text, _ = front.ask("GET", "/rag/docs")
    assert status == 200
    assert b'"/rag/docs-assets/swagger-ui.css"' in text
    assert front.ask("GET", "/rag/docs-assets/swagger-ui.css")[0] == 200


def test_links_lead_back_under_the_prefix(front: Front) -> None:
    _, body, _ = front.ask("GET", "/rag/api/v1/search?q=copper&library=papers")
    assert json.loads(body)["hits"][0]["view_url"].startswith("/rag/?library=papers&doc=")


def test_the_prefix_without_its_slash_leads_to_the_page(front: Front) -> None:
    status, _, headers = front.ask("GET", "/rag?library=papers")
    assert (status, headers["location"]) == (307, "/rag/?library=papers")
    assert front.ask("GET", "/rag/")[0] == 200


def test_events_come_as_they_happen(front: Front) -> None:
    """The model goes on only after its first words were read at the far end: a proxy or server that buffers would stand still."""
    connection = front.open()
    body = {"question": "What is the melting point of copper?", "library": "papers", "stream": True}
    connection.request(
        "POST",
        "/rag/api/v1/query",
        json.dumps(body),
        {"Host": NAME, **KEY, "Content-Type": "application/json", "Accept-Encoding": "gzip"},
    )
    reply = connection.getresponse()
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in reply.headers
    seen = b""
    while b"Copper melts" not in seen:
        seen += reply.read1(65536)
    assert b"event: final" not in seen
    front.model.go.set()
    rest = reply.read()
    front.model.go.clear()
    assert b"1085 degrees Celsius" in rest
    connection.close()
