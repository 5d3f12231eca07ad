"""Calculations over HTTP: a table in, a result out, with the rows that it was made of."""

from __future__ import annotations

from tests.api.conftest import Site


def test_what_a_table_does_not_state_is_calculated_and_its_rows_are_cited(shop: Site) -> None:
    table = b"Ferry,Passengers 2018,Passengers 2019\nNorth line,4000,5500\nSouth line,3000,2400\n"
    kept = shop.client.post(
        "/api/v1/ingest?wait=true",
        files=[("file", ("ferries.csv", table, "text/csv"))],
        data={"library": "papers"},
    ).json()["documents"][0]
    asked = "What is the change in passengers of the North line between 2018 and 2019?"
    answer = shop.client.post(
        "/api/v1/query",
        json={"question": asked, "library": "papers", "doc_ids": [kept["doc_id"]]},
    ).json()
    assert answer["answer"].startswith("**1,500** = 5,500 - 4,000\n\n- Ferry: North line | ")
    (sentence,) = answer["sentences"]
    (citation,) = sentence["citations"]
    text = shop.client.get(
        f"/api/v1/documents/{kept['doc_id']}/text",
        params={"library": "papers", "start": citation["start"], "end": citation["end"]},
    ).json()["text"]
    assert text == citation["quote"]
    assert (sentence["verdict"], "North line" in text) == ("supported", True)


def test_nothing_is_calculated_from_a_part_of_a_large_table(shop: Site) -> None:
    rows = "".join(
        f"Berth {n},{n % 90},a quiet place beside the old wall {n}\n" for n in range(9000)
    )
    kept = shop.client.post(
        "/api/v1/ingest?wait=true",
        files=[("file", ("berths.csv", f"Name,Boats,Remark\n{rows}".encode(), "text/csv"))],
        data={"library": "papers"},
    ).json()["documents"][0]
    answer = shop.client.post(
        "/api/v1/query",
        json={
            "question": "What is the average number of boats of a berth?",
            "library": "papers",
            "doc_ids": [kept["doc_id"]],
        },
    ).json()
    assert not answer["answer"].startswith("**")
