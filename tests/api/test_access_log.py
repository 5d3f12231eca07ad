"""The log of a server at INFO, as JSON: every request with its fields, and no word of what people ask or own."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.api.serving import configure
from app.core.errors import ProviderUnreachable
from tests.api.conftest import LIBRARY, site
from tests.fakes.generators import FixedModels, ScriptedGenerator
from tests.telling import tells

SECRET = "xylograph"
QUESTION = f"What is the melting point of {SECRET} copper?"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Log lines of this process at INFO as JSON; the loggers are as before afterwards."""
    root, ours, stream = logging.getLogger(), logging.getLogger("app"), io.StringIO()
    handlers, levels = root.handlers[:], (root.level, ours.level)
    configure("INFO", as_json=True, stream=stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def test_every_request_is_a_line_with_its_fields_and_nothing_asked_is_in_it(
    log: io.StringIO, tmp_path: Path
) -> None:
    failing = ScriptedGenerator(
        "Copper melts at 1085 degrees. [1]",
        ProviderUnreachable("the host is gone"),
        "Yes. [1]",
        "Yes. [1]",
    )
    with site(tmp_path, models=FixedModels(failing)) as shop:
        shop.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
        asked = {"question": QUESTION, "library": "papers"}
        first = shop.client.post("/api/v1/query", json=asked, headers={"X-Request-ID": "mine-1"})
        shop.client.post("/api/v1/query", json={**asked, "stream": True})
        shop.client.post("/api/v1/query", json={**asked, "strategy": SECRET})
        shop.client.post("/api/v1/chat", json={"message": QUESTION, "library": "papers"})
        shop.client.get("/api/v1/search", params={"q": QUESTION, "library": "papers"})
        shop.client.get(f"/api/v1/answers/{first.json()['answer_id']}")
        shop.client.post(
            "/v1/chat/completions",
            json={"model": "documind-papers", "messages": [{"role": "user", "content": QUESTION}]},
        )
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    access = [line for line in lines if line["logger"] == "app.access"]
    assert len(access) == 8
    for line in access:
        assert set(line) >= {
            "time",
            "level",
            "message",
            "request_id",
            "method",
            "path",
            "status",
            "duration_ms",
        }
        assert line["time"].endswith("Z")
        assert line["level"] == "INFO"
        assert isinstance(line["duration_ms"], float)
    mine = next(line for line in access if line["request_id"] == "mine-1")
    assert (mine["method"], mine["path"], mine["status"]) == ("POST", "/api/v1/query", 200)
    assert {line["status"] for line in access} >= {200, 201, 422}
    assert SECRET not in log.getvalue()
    assert not tells(log.getvalue(), "1085")
