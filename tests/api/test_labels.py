"""Tags and own metadata through the doors: upload, correction, filters of search and ask."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.conftest import Site

TIDES = ("tides.md", b"# Tides\n\nThe Bay of Fundy has the largest tidal range in the world.\n")
MOON = ("moon.md", b"# Moon\n\nThe moon causes the tidal range of every sea.\n")


def titles(shop: Site, **filters: object) -> list[str]:
    """Return the titles of what a search finds under filters."""
    asked = {"q": "tidal range", "library": "papers", **filters}
    reply = shop.client.get("/api/v1/search", params=asked)  # type: ignore[arg-type]
    assert reply.status_code == 200, reply.text
    return sorted(hit["title"] for hit in reply.json()["hits"])


@pytest.fixture
def tagged(shop: Site) -> Site:
    """Upload one document with labels of all files, and one with labels of its own."""
    metadata = json.dumps({"rating": 5, "due": "2026-02-01", "project": "Apollo"})
    status, body = shop.upload(TIDES, tags=["Sea, ocean", "water"], metadata=metadata)
    assert status == 201, body
    own = json.dumps({"tags": ["sky"], "metadata": {"rating": 3}})
    status, body = shop.upload(MOON, tags=["dropped"], labels=own)
    assert status == 201, body
    return shop


def test_an_upload_gives_labels_and_filters_find_them(tagged: Site) -> None:
    listed = tagged.client.get("/api/v1/papers?library=papers").json()["documents"]
    assert {one["filename"]: (one["tags"], one["metadata"]) for one in listed} == {
        "tides.md": (
            ["Sea", "ocean", "water"],
            {"rating": 5, "due": "2026-02-01", "project": "Apollo"},
        ),
        "moon.md": (["sky"], {"rating": 3}),
    }
    assert titles(tagged, tags="SEA") == titles(tagged, metadata="project=apollo") == ["Tides"]
    assert titles(tagged, tags=["sea", "sky"]) == ["Moon", "Tides"]
    assert titles(tagged, metadata=["rating=3..", "due=..2026-03-01"]) == ["Tides"]
    assert titles(tagged, metadata="rating=1..4") == ["Moon"]
    assert titles(tagged, tags="dropped") == []

    def of_tags(*tags: str) -> list[str]:
        found: list[str] = []
        cursor = ""
        while len(found) < 3:
            asked: dict[str, Any] = {"library": "papers", "tag": list(tags), "cursor": cursor}
            page = tagged.client.get("/api/v1/papers?limit=1", params=asked).json()
            found += [one["filename"] for one in page["documents"]]
            cursor = page["next_cursor"] or ""
            if not cursor:
                break
        return found

    assert of_tags("SEA") == of_tags("sea", "water", "dropped") == ["tides.md"]
    assert of_tags("sky", "ocean") == of_tags("") == ["moon.md", "tides.md"]


def test_a_question_is_answered_from_what_the_filter_allows(tagged: Site) -> None:
    def ask(filters: dict[str, object]) -> dict[str, object]:
        body = {"question": "What is the largest tidal range?", "library": "papers"}
        reply = tagged.client.post("/api/v1/query", json={**body, "filters": filters})
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    found = ask({"tags": ["sea"], "metadata": {"rating": {"from": 4}, "project": "apollo"}})
    assert "Bay of Fundy" in str(found["answer"])
    assert ask({"tags": ["sky"], "metadata": {"rating": 5}})["status"] == "abstained"


def test_a_correction_changes_labels_and_says_what_is_wrong(tagged: Site) -> None:
    path = "/api/v1/papers/tides.md?library=papers"
    given = {"tags": ["Coast"], "metadata": {"rating": None, "depth": 1.5}, "year": 1999}
    changed = tagged.client.patch(path, json=given).json()
    assert (changed["tags"], changed["year"]) == (["Coast"], 1999)
    assert changed["metadata"] == {"due": "2026-02-01", "project": "Apollo", "depth": 1.5}
    assert titles(tagged, tags="sea") == []
    for wrong in (
        {"metadata": {"due": "soon"}},
        {"metadata": {"depth": True}},
        {"tags": ["a,b"]},
        {"tags": ["x"] * 65},
    ):
        reply = tagged.client.patch(path, json=wrong)
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_input")
    assert tagged.client.get(path).json()["tags"] == ["Coast"]


@pytest.mark.parametrize(
    "fields",
    [
        {"metadata": "[]"},
        {"metadata": '{"rating": "five"}'},
        {"metadata": '{"a": 1}', "labels": ["{}", "{}"]},
        {"labels": '{"tag": []}'},
        {"tags": "x" * 65},
    ],
    ids=str,
)
def test_labels_that_cannot_be_given_refuse_the_upload(
    tagged: Site, fields: dict[str, Any]
) -> None:
    status, body = tagged.upload(("new.txt", b"Copper is red."), **fields)
    assert isinstance(body, dict)
    assert (status, body["code"]) == (422, "invalid_input")
    assert tagged.client.get("/api/v1/papers/new.txt?library=papers").status_code == 404


@pytest.mark.parametrize("metadata", ["rating", "=5", "due=1..2026-01-01"])
def test_a_condition_that_says_nothing_is_refused(tagged: Site, metadata: str) -> None:
    asked = {"q": "tides", "library": "papers", "metadata": metadata}
    reply = tagged.client.get("/api/v1/search", params=asked)
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_input")


def test_tags_are_listed_renamed_and_deleted(tagged: Site) -> None:
    client = tagged.client

    def listed(library: str = "papers") -> dict[str, int]:
        reply = client.get("/api/v1/tags", params={"library": library}).json()
        return {one["tag"]: one["documents"] for one in reply["tags"]}

    assert listed() == {"ocean": 1, "Sea": 1, "sky": 1, "water": 1}
    assert listed("public") == {}
    renamed = client.patch("/api/v1/tags/SKY", json={"name": "sea"})
    assert renamed.json() == {"tag": "sea", "documents": 1}
    assert listed() == {"ocean": 1, "Sea": 2, "water": 1}
    assert titles(tagged, tags="sea") == ["Moon", "Tides"]
    merged = client.patch("/api/v1/tags/ocean?library=papers", json={"name": "Sea"})
    assert merged.json()["documents"] == 1
    tides = client.get("/api/v1/papers/tides.md?library=papers").json()
    assert tides["tags"] == ["Sea", "water"]
    assert client.delete("/api/v1/tags/sea").json() == {"tag": "sea", "documents": 2}
    assert listed() == {"water": 1}
    assert client.delete("/api/v1/tags/sea").status_code == 404
    assert client.patch("/api/v1/tags/water", json={"name": "a,b"}).status_code == 422
    assert client.delete("/api/v1/tags/water?library=public").status_code == 404
    page = client.get("/api/v1/papers?library=papers&tag=Water").json()["documents"]
    assert [one["filename"] for one in page] == ["tides.md"]


def test_a_saved_filter_is_a_collection(tagged: Site) -> None:
    client, path = tagged.client, "/api/v1/collections/good%20ones"
    body = {"tags": ["sea", "sky"], "metadata": {"rating": {"from": 4}}}
    saved = client.put(path, json=body).json()
    assert saved["filters"]["metadata"] == ["rating=4.."]
    assert client.get("/api/v1/collections").json() == {"collections": [saved]}
    assert titles(tagged, collection="good ones") == ["Tides"]
    assert titles(tagged, collection="good ones", metadata="rating=..9") == ["Tides"]
    assert titles(tagged, collection="good ones", tags="sky") == []
    asked = {
        "question": "What is the largest tidal range?",
        "library": "papers",
        "filters": {"collection": "good ones"},
    }
    assert "Bay of Fundy" in client.post("/api/v1/query", json=asked).json()["answer"]
    tagged.client.patch("/api/v1/papers/moon.md?library=papers", json={"metadata": {"rating": 4}})
    assert titles(tagged, collection="good ones") == ["Moon", "Tides"]
    for wrong in ({}, {"collection": "good ones"}):
        assert client.put(path, json=wrong).status_code == 422
    assert client.delete(path).json() == saved
    assert client.delete(path).status_code == 404
    for kind in ("query", "chat"):
        text = {"question" if kind == "query" else "message": "Which?"}
        reply = client.post(f"/api/v1/{kind}", json={**text, "filters": asked["filters"]})
        assert (reply.status_code, reply.json()["code"]) == (404, "not_found")
