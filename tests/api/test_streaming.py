"""Streams over a real socket: order, transcript, leaving, the cap, and our own client on the other end."""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.client import DocuMindClient, FileToSend, ServerEvent
from app.core.cancel import CancelToken
from app.core.errors import (
    Busy,
    InvalidInput,
    NotFound,
    ProviderUnreachable,
    Unauthorized,
    UnsupportedType,
)
from app.core.types import Prompt, Token
from tests.api.conftest import LIBRARY, Site, listening, site
from tests.fakes.generators import FixedModels

WAIT_S = 10.0


class SlowModel:
    """Writes the first words, then waits until it is stopped or let go; counts who is still being served."""

    def __init__(self, before: str = "Copper melts at") -> None:
        self.before = before
        self.go = threading.Event()
        self.started = threading.Semaphore(0)
        self.active = 0
        self.stopped = 0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return "fake:slow"

    @property
    def context_tokens(self) -> int:
        return 8192

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        cancel.on_cancel(self.go.set)
        with self._lock:
            self.active += 1
        try:
            if self.before:
                yield Token(self.before)
            self.started.release()
            assert self.go.wait(WAIT_S)
            if cancel.cancelled:
                self.stopped += 1
                self.go.clear()
            cancel.raise_if_cancelled()
            yield Token(
                " 1085 degrees Celsius [1]."
                if self.before
                else "Copper melts at 1085 degrees Celsius [1].",
                finish="stop",
            )
        finally:
            with self._lock:
                self.active -= 1


@dataclass
class Served:
    """A site behind a socket."""

    site: Site
    url: str
    model: SlowModel

    def client(self, key: str = "") -> DocuMindClient:
        return DocuMindClient(self.url, key, timeout_s=WAIT_S)

    def abort(self, body: dict[str, object], until: bytes) -> None:
        """Ask, read until some bytes have come, hang up, and wait until the model has stopped."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=WAIT_S)
        connection.request(
            "POST", "/api/v1/query", json.dumps(body), {"Content-Type": "application/json"}
        )
        if until:
            reply = connection.getresponse()
            seen = b""
            while until not in seen:
                seen += reply.read1(4096)
            assert self.model.started.acquire(timeout=WAIT_S)
            reply.close()
        else:
            assert self.model.started.acquire(timeout=WAIT_S)
        left = time.monotonic()
        connection.close()
        while self.model.active or self.site.app.state.edge.streams.taken:
            assert time.monotonic() - left < WAIT_S
            threading.Event().wait(0.002)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    model = SlowModel()
    with site(tmp_path, FixedModels(model=model), max_streams=2) as opened:
        status, _ = opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
        assert status == 201
        # One lifespan is enough: the socket serves the app that the in-process client has started.
        with listening(opened.app, lifespan="off") as url:
            yield Served(opened, url, model)


QUESTION = {"question": "What is the melting point of copper?", "library": "papers"}


def scrubbed(transcript: str) -> str:
    """Replace what differs from run to run: ids, times, scores."""
    transcript = re.sub(r'"(answer_id|request_id)":"[0-9a-f]{32}"', r'"\1":"*"', transcript)
    return re.sub(
        r'"(ms|score|confidence|support|dense|bm25|overlap|sentence|distance|similarity'
        r'|[a-z]+_seconds)":-?[0-9.e-]+',
        r'"\1":0',
        transcript,
    )


def test_the_transcript_of_a_stream(served: Served) -> None:
    served.model.go.set()
    connection = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=WAIT_S)
    connection.request(
        "POST",
        "/api/v1/query",
        json.dumps({**QUESTION, "stream": True, "top_k": 1}),
        {"Content-Type": "application/json"},
    )
    reply = connection.getresponse()
    assert reply.getheader("Content-Type", "").startswith("text/event-stream")
    assert reply.getheader("X-Accel-Buffering") == "no"
    assert reply.getheader("Content-Encoding") is None
    transcript = scrubbed(reply.read().decode())
    connection.close()
    expected = Path(__file__).with_name("stream_transcript.txt")
    assert transcript == expected.read_text("utf-8"), (
        "if this change of the contract is meant, update tests/api/stream_transcript.txt"
    )


def test_the_last_event_is_what_json_would_have_been(served: Served) -> None:
    served.model.go.set()
    with served.client() as client:
        with client.query_stream(**QUESTION) as events:
            got = list(events)
        plain = client.query(**QUESTION)
    names = [event.name for event in got]
    assert names[:2] == ["meta", "sources"]
    assert names[-1] == "final"
    assert names[2:4] == ["quote", "reading"]
    assert set(names[4:-1]) == {"token"}
    final = got[-1].data
    for changing in ("answer_id", "request_id", "trace", "usage"):
        assert changing in final
    same = set(plain) - {"answer_id", "request_id", "trace"}
    assert {name: final[name] for name in same} == {name: plain[name] for name in same}
    assert got[1].data["sources"] == final["sources"]


@pytest.mark.parametrize(
    ("body", "until", "before"),
    [
        ({**QUESTION, "stream": True}, b"Copper melts", "Copper melts at"),
        ({**QUESTION, "stream": True}, b"event: reading", ""),
        (QUESTION, b"", "Copper melts at"),
    ],
    ids=["after the first token", "before the first token", "while waiting for JSON"],
)
def test_hanging_up_stops_the_model(
    served: Served, body: dict[str, object], until: bytes, before: str
) -> None:
    served.model.before = before
    for _ in range(10):
        served.abort(body, until)
    assert served.model.stopped == 10
    assert served.site.app.state.edge.streams.taken == 0


def test_answers_over_the_cap_are_refused_at_once_and_searches_are_not(served: Served) -> None:
    with served.client() as one, served.client() as two, served.client() as three:
        with one.query_stream(**QUESTION) as first, two.query_stream(**QUESTION) as second:
            assert next(first).name == next(second).name == "meta"
            with pytest.raises(Busy) as refused:
                three.query(**QUESTION)
            assert refused.value.retry_after_s is not None
            assert three.query(**QUESTION, retrieve_only=True)["status"] == "retrieved"
            assert three.health()["status"] == "ready"
            served.model.go.set()
        served.model.go.set()
        deadline = time.monotonic() + WAIT_S
        while served.site.app.state.edge.streams.taken:
            assert time.monotonic() < deadline
            threading.Event().wait(0.002)
        served.model.go.set()
        assert three.query(**QUESTION)["status"] == "answered"


def test_the_client_does_everything_the_command_line_needs(served: Served, tmp_path: Path) -> None:
    served.model.go.set()
    paper, odd = tmp_path / "zinc.txt", tmp_path / 'od"d.txt'
    paper.write_text("Zinc is a bluish metal.")
    odd.write_text("Tin is grey.")
    with served.client() as client:
        assert client.ready()["status"] == "ready"
        done = client.ingest([FileToSend(paper), FileToSend(odd)], "papers")
        assert [row["filename"] for row in done["documents"]] == ["zinc.txt", 'od"d.txt']
        accepted = client.ingest([FileToSend(paper, "metals/zinc.txt")], "papers", wait="false")
        seen: list[object] = []
        job = client.follow(str(accepted["job_id"]), lambda job: seen.append(job["state"]))
        assert (job["state"], seen[-1]) == ("done", "done")
        assert client.job(str(job["id"])) == job
        listed = [document["source_key"] for document in client.documents("papers", limit=2)]
        assert sorted(map(str, listed)) == sorted(
            [*LIBRARY, "zinc.txt", 'od"d.txt', "metals/zinc.txt"]
        )
        assert client.document("papers", "metals/zinc.txt")["duplicate_of"] is not None
        assert client.search("bluish", "papers", limit=1)["hits"]
        assert client.text("papers", "zinc.txt", 0, 4)["text"] == "Zinc"
        assert client.delete("papers", 'od"d.txt')["purged"] is True
        assert client.stats("papers")["documents"] == 5
        assert len(client.libraries()["libraries"]) == 2
        assert client.diagnostics()["default_library"] == "auto"
        assert client.jobs()["jobs"]
        assert client.clear("papers")["documents"] == 5


def test_errors_of_the_server_are_our_errors_again(served: Served, tmp_path: Path) -> None:
    exe = tmp_path / "x.pdf"
    exe.write_bytes(b"MZ\x90\x00" + bytes(500))
    with served.client() as client:
        with pytest.raises(NotFound, match="'nope'"):
            client.document("papers", "nope")
        with pytest.raises(UnsupportedType):
            client.ingest([FileToSend(exe)], "papers")
        with pytest.raises(InvalidInput, match="top_k"):
            client.query("x", top_k=0)
        with pytest.raises(InvalidInput, match="top_k"), client.query_stream("x", top_k=0) as _:
            pass
        with pytest.raises(NotFound):
            client.follow("nope")
    with (
        DocuMindClient("http://127.0.0.1:9", connect_timeout_s=1) as nobody,
        pytest.raises(ProviderUnreachable, match="documind serve"),
    ):
        nobody.health()


def test_an_error_in_a_stream_is_raised_where_it_is_read(served: Served) -> None:
    events: list[ServerEvent] = []
    with (
        served.client() as client,
        pytest.raises(NotFound),
        client.chat_stream("copper?", "no-such-conversation") as stream,
    ):
        events.extend(stream)
    assert events == []


def test_the_key_is_sent(tmp_path: Path) -> None:
    with site(tmp_path, api_key="k3y") as opened, listening(opened.app, lifespan="off") as url:
        with DocuMindClient(url, "k3y") as right:
            assert right.libraries()["default_library"] == "public"
        with DocuMindClient(url, "wrong") as wrong, pytest.raises(Unauthorized):
            wrong.libraries()
