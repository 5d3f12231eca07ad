"""A model host that is suspended, not ended: connections open, nothing is answered."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from tests.browser.servers import ROOT, DocuMind

COPPER = ("copper.txt", b"Copper is a soft red metal. It melts at 1085 degrees Celsius.")
QUESTION = "At what temperature does copper melt?"


class Double:
    """The Ollama double in a process of its own, which can be suspended."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.ollama_double"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[3]

    def suspend(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def double() -> Iterator[Double]:
    running = Double()
    yield running
    running.end()


def _until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def _codes(server: DocuMind, *, retrieve_only: bool = True) -> list[str]:
    reply = requests.post(
        f"{server.base}/api/v1/query",
        json={"question": QUESTION, "library": "papers", "retrieve_only": retrieve_only},
        timeout=60,
    )
    assert reply.ok, reply.text
    assert reply.json()["sources"]
    return [notice["code"] for notice in reply.json()["notices"]]


def _embedded(server: DocuMind) -> bool:
    rows = requests.get(f"{server.base}/api/v1/libraries", timeout=60).json()["libraries"]
    (papers,) = (row for row in rows if row["library"] == "papers")
    return bool(papers["embedded"] == papers["chunks"] != 0)


@pytest.mark.timeout(300)
def test_a_suspended_host_holds_no_question(double: Double, tmp_path: Path) -> None:
    """The client's 60 seconds are far under OLLAMA_REQUEST_TIMEOUT_SEC, which a question waited for."""
    with DocuMind(tmp_path / "data", OLLAMA_BASE_URL=double.url) as server:
        server.upload(COPPER)
        _until(lambda: _embedded(server))
        assert "embedder_unavailable" not in _codes(server)
        double.suspend()
        assert "embedder_unavailable" in _codes(server)
        assert "embedder_unavailable" in _codes(server)
        double.resume()
        _until(lambda: "embedder_unavailable" not in _codes(server))


@pytest.mark.timeout(300)
def test_the_quote_stands_and_a_late_model_says_what_it_waits_for(
    double: Double, tmp_path: Path
) -> None:
    settings = {"OLLAMA_BASE_URL": double.url, "EMBEDDING_PROVIDER": "minilm"}
    with DocuMind(tmp_path / "data", **settings, FIRST_TOKEN_TARGET_S="0.2") as server:
        server.upload(COPPER)
        _codes(server, retrieve_only=False)
        double.suspend()
        seen: list[tuple[str, dict[str, object]]] = []
        with requests.post(
            f"{server.base}/api/v1/query",
            json={"question": QUESTION, "library": "papers", "stream": True},
            stream=True,
            timeout=60,
        ) as stream:
            name = ""
            for line in stream.iter_lines(decode_unicode=True):
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    seen.append((name, json.loads(line.removeprefix("data: "))))
                    if name == "reading" and seen[-1][1]["waits_for"] == "silent":
                        double.resume()
                    if name == "final":
                        break
        names = [name for name, _ in seen]
        assert "quote" in names
        assert names.index("quote") < names.index("reading")
        assert seen[-1][1]["status"] == "answered"
        assert [event["waits_for"] for name, event in seen if name == "reading"][:2] == [
            None,
            "silent",
        ]
