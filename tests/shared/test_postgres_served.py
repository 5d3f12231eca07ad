"""A server whose catalog is in PostgreSQL, as a person uses it: documents, questions, stops, kills."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from app.core.errors import ProviderUnreachable
from evaluation.lib.served import Served
from tests.fakes.postgres_server import PASSWORD, PostgresServer, running_server
from tests.shared.engines import IMPATIENT, DoubleProcess

TEXT = (
    b"Walruses\n\nWalruses whistle to their calves in the first week of winter, at forty metres.\n"
)
CUT = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE application_name = 'documind'"
)
QUESTION = "When do walruses whistle to their calves?"


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that the test may stop."""
    with running_server() as server:
        yield server


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def post(server: Served, path: str, **sent: Any) -> requests.Response:  # of requests
    with requests.Session() as session:
        session.trust_env = False
        return session.post(f"{server.url}{path}", timeout=60, **sent)


def upload(server: Served, name: str, content: bytes = TEXT) -> requests.Response:
    return post(server, "/api/v1/ingest?library=papers&wait=true", files={"file": (name, content)})


def ask(server: Served, question: str = QUESTION) -> Mapping[str, Any]:
    return server.client.query(question, library="papers")


def faults(server: Served) -> object:
    """What a check of everything finds."""
    job: Mapping[str, Any] = server.client.follow(post(server, "/api/v1/fsck").json()["id"])
    return job["result"]["faults"]


def test_documents_questions_and_deletions_outlive_a_restart_and_a_kill(
    data: Path, database_url: str, engine_url: str
) -> None:
    with Served(data, DATABASE_URL=database_url, SEARCH_URL=engine_url) as server:
        assert upload(server, "walrus.txt").status_code == 201
        assert upload(server, "gone.txt", b"Penguins parade past the pier.").status_code == 201
        answer = ask(server)
        assert "first week of winter" in str(answer["answer"])
        conversation = post(server, "/api/v1/conversations", json={"title": "kept"}).json()["id"]
        gone = next(iter(server.client.documents("papers", "gone")))
        server.client.delete("papers", str(gone["doc_id"]))
    assert not list(data.glob("catalog.sqlite3*"))
    with Served(data, DATABASE_URL=database_url, SEARCH_URL=engine_url) as server:
        assert "first week of winter" in str(ask(server)["answer"])
        server.kill()
    with Served(data, DATABASE_URL=database_url, SEARCH_URL=engine_url) as server:
        assert [row["filename"] for row in server.client.documents("papers")] == ["walrus.txt"]
        assert "first week of winter" in str(ask(server)["answer"])
        held = server.client.get(f"/api/v1/conversations/{conversation}")
        assert held["title"] == "kept"
        stored = server.client.get(f"/api/v1/answers/{answer['answer_id']}")
        assert stored["answer"] == answer["answer"]
        assert faults(server) == []
    assert PASSWORD not in server.log.read_text()


def test_requests_hear_what_is_missing_and_work_goes_on_when_it_is_back(
    data: Path, own_server: PostgresServer, engine_url: str
) -> None:
    with Served(data, DATABASE_URL=own_server.url(), SEARCH_URL=engine_url) as server:
        assert upload(server, "walrus.txt").status_code == 201
        own_server.stop(kill=True)
        for reply in (
            post(server, "/api/v1/query", json={"question": QUESTION, "library": "papers"}),
            upload(server, "late.txt", b"Penguins parade past the pier."),
        ):
            body = reply.json()
            assert (reply.status_code, body["code"]) == (503, "database_away"), body
            assert reply.headers["Retry-After"] == "5"
            assert f"127.0.0.1:{own_server.port}" in body["detail"]
            assert PASSWORD not in reply.text
        ready = server.client.ready()
        assert ready["status"] == "failed"
        assert "database postgresql://documind:***@127.0.0.1" in str(ready["missing"])
        own_server.start()
        while server.client.ready()["status"] != "ready":
            time.sleep(0.1)
        assert "first week of winter" in str(ask(server)["answer"])
        assert upload(server, "late.txt", b"Penguins parade past the pier.").status_code == 201
        assert len(list(server.client.documents("papers"))) == 2


def test_nothing_acknowledged_is_lost_when_postgresql_is_killed_under_uploads(
    data: Path, own_server: PostgresServer, engine_url: str
) -> None:
    acknowledged: list[str] = []
    stop = threading.Event()

    def write(server: Served) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            name = f"doc{number}.txt"
            if upload(server, name, f"Number {number} is a walrus.".encode()).status_code == 201:
                acknowledged.append(name)

    with Served(data, DATABASE_URL=own_server.url(), SEARCH_URL=engine_url) as server:
        writer = threading.Thread(target=write, args=(server,))
        writer.start()
        try:
            for kills in range(1, 4):
                while len(acknowledged) < 3 * kills and writer.is_alive():
                    time.sleep(0.02)
                own_server.stop(kill=True)
                own_server.start()
            while len(acknowledged) < 12 and writer.is_alive():
                time.sleep(0.02)
        finally:
            stop.set()
            writer.join()
        assert len(acknowledged) >= 12
        held = {str(row["filename"]) for row in server.client.documents("papers")}
        assert set(acknowledged) <= held
    with Served(data, DATABASE_URL=own_server.url(), SEARCH_URL=engine_url) as server:
        # The start removed originals of uploads that were refused while the database was away.
        assert faults(server) == []


def test_a_database_that_does_not_answer_ends_the_start_with_2(data: Path, engine_url: str) -> None:
    url = f"postgresql://me:{PASSWORD}@127.0.0.1:9/library"
    server = Served(data, DATABASE_URL=url, SEARCH_URL=engine_url)
    server.command = IMPATIENT
    server.start()
    assert server.process.wait(100) == 2
    server.client.close()
    said = server.log.read_text()
    assert "DATABASE_URL" in said
    assert "127.0.0.1:9/library" in said
    assert PASSWORD not in said


def wait_said(server: Served, words: str) -> None:
    """Wait until a server that starts says for what it waits."""
    while True:
        assert server.process.poll() is None, server.log.read_text()
        with suppress(ProviderUnreachable):  # it does not listen yet
            ready = server.client.ready()
            assert ready["status"] == "starting"
            if words in str(ready["detail"]):
                return
        time.sleep(0.02)


def test_a_start_waits_for_a_database_and_an_engine_that_come_later(
    data: Path, tmp_path: Path, own_server: PostgresServer
) -> None:
    engine = DoubleProcess(tmp_path / "engine")
    own_server.stop()
    server = Served(data, DATABASE_URL=own_server.url(), SEARCH_URL=engine.url)
    server.start()
    try:
        wait_said(server, "SEARCH_URL")
        engine.start()
        wait_said(server, "DATABASE_URL")
        own_server.start()
        server.wait_ready()
        assert upload(server, "walrus.txt").status_code == 201
        assert PASSWORD not in server.log.read_text()
    finally:
        server.close()
        engine.kill()


def test_a_start_whose_connections_are_cut_goes_on(
    data: Path, own_server: PostgresServer, engine_url: str
) -> None:
    with Served(data, DATABASE_URL=own_server.url(), SEARCH_URL=engine_url) as server:
        assert upload(server, "walrus.txt").status_code == 201
    server.start()
    cuts = 0
    while cuts < 5:
        assert server.process.poll() is None, server.log.read_text()
        cuts += own_server.run(CUT) != "0"
    server.wait_ready()
    assert "first week of winter" in str(ask(server)["answer"])
    server.close()


def test_a_database_without_a_search_engine_is_refused_with_the_ways_out(
    data: Path, database_url: str
) -> None:
    server = Served(data, DATABASE_URL=database_url)
    server.start()
    assert server.process.wait(100) == 2
    server.client.close()
    said = server.log.read_text()
    for word in ("SEARCH_URL", "documind export", "documind import"):
        assert word in said
