"""Two servers and a worker on one library, as people use them: uploads, conversations, deletions, kills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import requests

from evaluation.campaigns.shared_kills import EACH_ROUND, campaign
from evaluation.lib.served import Served
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.qdrant_double import QdrantDouble
from tests.shared.engines import several

TEXT = b"Walruses\n\nWalruses whistle to their calves in the first week of winter."
QUESTION = "When do walruses whistle to their calves?"


@pytest.fixture
def servers(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[list[Served]]:
    postgres_server.run("CREATE SCHEMA two_servers")
    with QdrantDouble(tmp_path / "engine") as double:
        settings = {
            "DATABASE_URL": postgres_server.url("two_servers"), "SEARCH_URL": double.url,
            "EMBEDDING_PROVIDER": "minilm",
        }  # fmt: skip
        with several(tmp_path, 2, 1, **settings) as (serving, _):
            yield serving


def post(server: Served, path: str, **sent: Any) -> Mapping[str, Any]:  # of requests
    with requests.Session() as session:
        session.trust_env = False
        reply = session.post(f"{server.url}{path}", timeout=60, **sent)
    assert reply.ok, reply.text
    body: Mapping[str, Any] = reply.json()
    return body


def upload(server: Served, name: str, content: bytes) -> None:
    post(server, "/api/v1/ingest?library=papers&wait=true", files={"file": (name, content)})


def found(server: Served, words: str) -> list[Mapping[str, Any]]:
    hits = server.client.search(words, "papers", limit=9)["hits"]
    return cast("list[Mapping[str, Any]]", hits)


def test_what_goes_through_one_server_is_seen_through_the_other(servers: list[Served]) -> None:
    """The servers run no jobs: what they accept is done by the worker, and waited for here."""
    a, b = servers
    upload(a, "walrus.txt", TEXT)
    assert "Walruses whistle" in str(found(b, "walruses"))
    said = post(b, "/api/v1/query", json={"question": QUESTION, "library": "papers"})
    assert "first week of winter" in str(said["answer"])
    assert b.client.stats("papers")["documents"] == a.client.stats("papers")["documents"] == 1
    conversation = post(a, "/api/v1/conversations", json={"title": "shared"})["id"]
    for server, question in ((a, QUESTION), (b, "To whom do they whistle?")):
        asked = {"message": question, "library": "papers", "conversation_id": conversation}
        post(server, "/api/v1/chat", json=asked)
    kept = a.client.get(f"/api/v1/conversations/{conversation}")
    assert len(cast("list[object]", kept["turns"])) == 4
    (row,) = b.client.documents("papers")
    b.client.delete("papers", str(row["doc_id"]))
    assert found(a, "walruses") == []
    assert list(a.client.documents("papers")) == []


def test_kills_lose_no_acknowledged_upload(tmp_path: Path) -> None:
    done, lost, returned, left = campaign(tmp_path, 3, seed=21)  # with a restore, a fill, a cut
    assert (done.done.total(), len(done.done), done.stuck) == (3, 3, 0)
    assert done.cut_connections > 0
    assert len(done.acknowledged) >= 3 * EACH_ROUND
    assert (lost, returned, left, done.failed) == ([], [], [], 0)
    assert done.accepted
