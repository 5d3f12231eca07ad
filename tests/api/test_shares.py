"""Shared answers: what a link shows without a key, what it does not, and how it ends."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from app.core.ids import new_id
from tests.api.conftest import LIBRARY, Site, site
from tests.telling import tells

ADMIN = {"X-API-Key": "adm1n"}
QUESTION = "What is the melting point of copper?"
PLAIN = {"accept": "application/json"}


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Site]:
    """A site with documents that asks for a key."""
    with site(tmp_path, api_key=ADMIN["X-API-Key"]) as shop:
        shop.client.headers.update(ADMIN)
        for name, text in LIBRARY.items():
            assert shop.upload((name, text.encode()))[0] == 201
        del shop.client.headers["X-API-Key"]
        yield shop


def asked(shop: Site) -> str:
    body = {"message": QUESTION, "library": "papers"}
    return str(shop.client.post("/api/v1/chat", json=body, headers=ADMIN).json()["answer_id"])


def shared(shop: Site, answer_id: str) -> dict[str, str]:
    made = shop.client.post(f"/api/v1/answers/{answer_id}/share", headers=ADMIN)
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    body: dict[str, str] = made.json()
    return body


def read(shop: Site, path: str) -> httpx2.Response:
    return shop.client.get(path, headers=PLAIN)


def test_a_link_shows_the_answer_without_a_key_and_nothing_else(closed: Site) -> None:
    answer_id = asked(closed)
    link = shared(closed, answer_id)
    token = link["path"].removeprefix("/shared/")
    assert len(token) == 43  # 256 bits in base64
    found = read(closed, link["path"])
    assert found.status_code == 200, found.text
    assert found.headers["x-robots-tag"] == "noindex, nofollow"
    assert found.headers["cache-control"] == "no-store"
    body = found.json()
    assert set(body) == {
        "question", "answer", "generator", "at", "quote", "sentences", "sources",
    }  # fmt: skip
    assert body["question"] == QUESTION
    quotes = [one["quote"] for each in body["sentences"] for one in each["citations"]]
    assert "Its melting point is 1085 degrees Celsius." in quotes
    # of the document nothing but what is quoted, and the names of what is cited
    assert "conducts well" not in found.text
    assert [source["title"] for source in body["sources"]] == ["Copper"]
    assert set(body["sources"][0]) == {
        "n", "title", "authors", "year", "page", "licence", "source_url",
    }  # fmt: skip
    for path in ("/api/v1/papers", f"/api/v1/answers/{answer_id}", "/api/v1/shares"):
        assert read(closed, path).status_code == 401
        assert closed.client.get(path, headers={"X-API-Key": token}).status_code == 401
    page = closed.client.get(
        link["path"], headers={"accept": "text/html,*/*"}, follow_redirects=False
    )
    assert (page.status_code, page.headers["location"]) == (303, f"/#{link['path']}")
    assert page.headers["x-robots-tag"] == "noindex, nofollow"


def test_a_link_ends_with_its_revocation_and_keeps_no_token(
    closed: Site, caplog: pytest.LogCaptureFixture
) -> None:
    answer_id = asked(closed)
    with caplog.at_level(logging.INFO):
        link = shared(closed, answer_id)
        token = link["path"].removeprefix("/shared/")
        assert read(closed, link["path"]).status_code == 200
        other = shared(closed, asked(closed))
        listed = closed.client.get("/api/v1/shares", headers=ADMIN).json()["shares"]
        assert [one["id"] for one in listed] == [other["id"], link["id"]]
        assert [one["question"] for one in listed] == [QUESTION] * 2
        query = {"answer_id": answer_id}
        of_one = closed.client.get("/api/v1/shares", params=query, headers=ADMIN).json()
        assert [one["id"] for one in of_one["shares"]] == [link["id"]]
        assert token not in json.dumps(listed)
        gone = closed.client.delete(f"/api/v1/shares/{link['id']}", headers=ADMIN)
        assert gone.json()["id"] == link["id"]
    refused = read(closed, link["path"])
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
    assert read(closed, other["path"]).status_code == 200
    again = closed.client.delete(f"/api/v1/shares/{link['id']}", headers=ADMIN)
    assert again.status_code == 404
    ours = [one.getMessage() for one in caplog.records if one.name.startswith("app.")]
    assert "GET /shared/(hidden) 200" in "\n".join(ours)
    assert token not in "\n".join(ours)
    audited = [one.route for one in caplog.records if one.name == "app.audit"]  # type: ignore[attr-defined]
    assert audited[0] == f"POST /api/v1/answers/{answer_id}/share"
    assert audited[-1] == f"DELETE /api/v1/shares/{link['id']}"
    for path in closed.settings.data_dir.rglob("*"):
        assert not path.is_file() or token.encode() not in path.read_bytes()


def test_only_a_key_that_may_read_answers_shares_one(closed: Site) -> None:
    answer_id = asked(closed)
    for name, scopes, libraries, status in (
        ("asks", ["ask"], [], 403),
        ("reads", ["read"], [], 403),
        ("limited", ["read", "ask"], ["papers"], 403),
        ("both", ["read", "ask"], [], 201),
    ):
        body = {"name": name, "scopes": scopes, "libraries": libraries}
        key = closed.client.post("/api/v1/keys", json=body, headers=ADMIN).json()["key"]
        made = closed.client.post(f"/api/v1/answers/{answer_id}/share", headers={"X-API-Key": key})
        assert made.status_code == status, name
    assert closed.client.post(f"/api/v1/answers/{new_id()}/share", headers=ADMIN).status_code == 404


def test_a_copy_stays_as_it_was_but_for_deleted_documents(closed: Site) -> None:
    answer_id = asked(closed)
    link = shared(closed, answer_id)
    before = read(closed, link["path"]).json()
    cited = closed.client.get(f"/api/v1/answers/{answer_id}", headers=ADMIN).json()["sources"][0]
    title = {"title": "Another title"}
    path = f"/api/v1/papers/{cited['doc_id']}?library=papers"
    assert closed.client.patch(path, json=title, headers=ADMIN).status_code == 200
    assert read(closed, link["path"]).json() == before
    closed.client.delete(f"{path}&grace_s=0", headers=ADMIN)
    closed.services.store.writer.purge_due()
    after = read(closed, link["path"]).json()
    assert tells(json.dumps(before), "1085")
    assert not tells(json.dumps(after), "1085")
    assert after["sources"][0]["title"] == ""
    forgotten = closed.client.delete("/api/v1/answers", headers=ADMIN)
    assert forgotten.status_code == 200
    assert read(closed, link["path"]).status_code == 404


def test_a_link_leads_to_the_page_where_a_proxy_serves_it(tmp_path: Path) -> None:
    with site(tmp_path, root_path="/docs") as shop:
        shop.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
        link = shared(shop, asked(shop))
        assert link["path"].startswith("/docs/shared/")
        assert read(shop, link["path"]).json()["question"] == QUESTION
        page = shop.client.get(
            link["path"], headers={"accept": "text/html"}, follow_redirects=False
        )
        assert page.headers["location"] == f"/docs/#{link['path'].removeprefix('/docs')}"


def test_what_is_kept_as_hashes_is_not_shared(tmp_path: Path) -> None:
    with site(tmp_path, store_answers="hash") as shop:
        shop.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
        refused = shop.client.post(f"/api/v1/answers/{asked(shop)}/share")
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
