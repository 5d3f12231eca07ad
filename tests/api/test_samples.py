"""Documents that came with the program: labelled everywhere, and removed without a person's own."""

from __future__ import annotations

from tests.api.conftest import Site

OWN = (
    "sample_notes.txt",
    b"Copper is a soft red metal. Its melting point is 1085 degrees Celsius.",
)


def test_samples_are_labelled_and_removed_alone(shop: Site) -> None:
    indexed = shop.client.post("/api/v1/samples")
    assert indexed.status_code == 201
    for row in indexed.json()["documents"]:
        assert row["receipt"]["vectors"] == row["receipt"]["chunks"] > 0
    assert shop.upload(OWN)[0] == 201
    libraries = {
        row["library"]: row for row in shop.client.get("/api/v1/libraries").json()["libraries"]
    }
    assert (libraries["public"]["samples"], libraries["papers"]["samples"]) == (41, 6)
    listed = shop.client.get("/api/v1/papers", params={"library": "papers"}).json()["documents"]
    assert [row["filename"] for row in listed if not row["sample"]] == ["sample_notes.txt"]
    hits = shop.client.get(
        "/api/v1/search", params={"q": "alignment of citations", "library": "papers"}
    ).json()["hits"]
    assert hits[0]["sample"] is True
    answer = shop.client.post(
        "/api/v1/query",
        json={"question": "At what temperature does copper melt?", "library": "papers"},
    ).json()
    assert [
        source["sample"] for source in answer["sources"] if source["title"] == "Sample Notes"
    ] in ([False], [])
    assert shop.client.delete("/api/v1/samples").json() == {"public": 41, "papers": 6}
    assert shop.client.delete("/api/v1/samples").json() == {"public": 0, "papers": 0}
    left = shop.client.get("/api/v1/papers", params={"library": "papers"}).json()["documents"]
    assert [row["filename"] for row in left] == ["sample_notes.txt"]
