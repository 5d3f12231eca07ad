"""Files sent again after an upgrade."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.conftest import Site, site

COPPER = ("copper.txt", b"Copper is a soft red metal. Its melting point is 1085 degrees Celsius.")


def send(shop: Site) -> tuple[str, int]:
    """Send the file and return what became of it and how many vectors it has."""
    code, body = shop.upload(COPPER)
    assert code in {200, 201}
    assert isinstance(body, dict)
    (row,) = body["documents"]
    (document,) = shop.client.get("/api/v1/papers", params={"library": "papers"}).json()[
        "documents"
    ]
    return row["status"], document["embedded"]


def test_what_an_older_release_read_is_replaced_and_its_citations_still_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with site(tmp_path) as shop:
        with monkeypatch.context() as older:
            older.setattr("app.ingest.pipeline.PARSER_EDITION", "reader 0")
            assert send(shop) == ("indexed", 1)
        question = {"question": "What is the melting point of copper?", "library": "papers"}
        source = shop.client.post("/api/v1/query", json=question).json()["sources"][0]
        assert send(shop) == ("replaced", 1)
        assert send(shop) == ("unchanged", 1)
        span = {"library": "papers", "revision": 1, "start": source["start"], "end": source["end"]}
        kept = shop.client.get(f"/api/v1/documents/{source['doc_id']}/text", params=span)
        assert kept.json()["text"] == COPPER[1].decode()[source["start"] : source["end"]]
