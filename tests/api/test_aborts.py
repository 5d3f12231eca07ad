"""Leaving at any door, at any moment, closes the model's connection; no place is lost.

A real server asks the Ollama double, which holds every answer back; the reader hangs up, and the
double notes when its own connection is closed. The server may write four answers and call two
models at once, so that one lost place would show as a refusal; at the end it must still answer.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Literal

import pytest

from app.client import DocuMindClient, FileToSend
from app.models.ollama import OllamaHost
from app.models.ollama_adapters import OllamaGenerator
from app.models.retries import CallSlots
from tests.api.conftest import listening, site
from tests.fakes.generators import FixedModels
from tests.fakes.ollama_double import OllamaDouble
from tests.fakes.ollama_double.models import Fault

COUNT = 10
LIMIT_S = 5.0
"""Generous: this machine may be busy; a model that runs on is another matter."""
WAIT_S = 20.0
TEXT = (
    "Copper\n\nCopper is a soft red metal. Its melting point is 1085 degrees Celsius. Copper"
    " conducts electricity well."
)
QUESTION = "What is the melting point of copper?"
MAX_STREAMS, MAX_MODEL_CALLS = 4, 2

Moment = Literal["before the reply", "before the first token", "after the first token"]
FAULTS: Mapping[Moment, Fault] = {
    "before the reply": Fault("slow", delay_s=3600),
    "before the first token": Fault("stall", after=0),
    "after the first token": Fault("stall", after=4),
}


@dataclass(frozen=True, slots=True)
class Door:
    path: str
    body: Mapping[str, object]
    first_token: bytes = b""
    """What a stream sends with its first token; empty where nothing is sent before the end."""


_PAPERS = {"question": QUESTION, "library": "papers"}
_CHAT = {"message": QUESTION, "library": "papers", "stream": True}
_OPENAI = {"model": "documind-papers", "stream": True}
DOORS = (
    Door("/api/v1/query", {**_PAPERS, "stream": True}, b"event: token"),
    Door("/api/v1/chat", _CHAT, b"event: token"),
    Door("/api/v1/query", _PAPERS),
    Door(
        "/v1/chat/completions",
        {**_OPENAI, "messages": [{"role": "user", "content": QUESTION}]},
        b'"delta":{"content":',
    ),
)


def abort(url: str, double: OllamaDouble, door: Door, moment: Moment) -> float:
    """Ask, hang up at the moment, and return the seconds until the double saw it.

    Raises:
        RuntimeError: The server refused, or the model was never asked or never let go.
    """
    calls, seen = len(double.bodies("/api/chat")), double.aborted
    double.fail("/api/chat", FAULTS[moment])
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=WAIT_S)
    heads = {"Content-Type": "application/json"}
    connection.request("POST", door.path, json.dumps(door.body), heads)
    deadline = time.monotonic() + WAIT_S
    while len(double.bodies("/api/chat")) == calls:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{door.path}: the model was not asked")
        time.sleep(0.001)
    if door.first_token:
        reply = connection.getresponse()
        if reply.status != 200:
            raise RuntimeError(f"{door.path} answered {reply.status}: {reply.read()!r}")
        read = b""
        while moment == "after the first token" and door.first_token not in read:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{door.path}: no token came, only {read!r}")
            read += reply.read1(4096)
        reply.close()
    elif moment == "after the first token":
        time.sleep(0.02)  # nothing is shown to wait for
    left = time.monotonic()
    connection.close()
    if not double.wait_for_abort(seen + 1, WAIT_S):
        raise RuntimeError(
            f"{door.path}: the model still runs {WAIT_S:.0f} s after its reader left, {moment}"
        )
    return time.monotonic() - left


def campaign(url: str, double: OllamaDouble, count: int) -> dict[Moment, list[float]]:
    """Return the times of `count` aborts at each moment, the doors taking turns."""
    return {
        moment: [abort(url, double, door, moment) for door in islice(cycle(DOORS), count)]
        for moment in FAULTS
    }


def fill(client: DocuMindClient, folder: Path) -> None:
    """Index the one document that is asked about."""
    paper = folder / "copper.txt"
    paper.write_text(TEXT, "utf-8")
    client.ingest([FileToSend(paper)], "papers")


def answers_still(url: str, at_once: int) -> int:
    """Return how many of `at_once` questions the model gets without a host failure."""

    def ask(_: int) -> bool:
        with DocuMindClient(url, timeout_s=WAIT_S) as client:
            answer = client.query(QUESTION, library="papers")
        asked_once = '"llm_calls": 1,' in json.dumps(answer["trace"])
        failed = " failed (" in json.dumps(answer["notices"])
        return answer["status"] == "answered" and asked_once and not failed

    with ThreadPoolExecutor(at_once) as pool:
        return sum(pool.map(ask, range(at_once)))


@dataclass
class Behind:
    """A server, and the double behind it."""

    url: str
    double: OllamaDouble


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Behind]:
    with OllamaDouble() as double:
        host = OllamaHost(double.url, connect_timeout_s=1.0, read_timeout_s=30.0)
        models = FixedModels(
            OllamaGenerator(host, "llama3.2", slots=CallSlots(MAX_MODEL_CALLS, 2.0, host.name))
        )
        with (
            site(tmp_path, models, max_streams=MAX_STREAMS) as opened,
            listening(opened.app, lifespan="off") as url,
        ):
            with DocuMindClient(url) as client:
                fill(client, tmp_path)
            yield Behind(url, double)
            assert opened.app.state.edge.streams.taken == 0
        host.http.close()


def test_every_abort_reaches_the_model_and_frees_its_places(behind: Behind) -> None:
    assert len(DOORS) * 2 < COUNT, "every door at least twice at every moment"
    times = campaign(behind.url, behind.double, COUNT)
    assert {len(found) for found in times.values()} == {COUNT}
    assert max(max(found) for found in times.values()) < LIMIT_S
    assert behind.double.aborted == len(times) * COUNT
    assert answers_still(behind.url, MAX_MODEL_CALLS) == MAX_MODEL_CALLS
