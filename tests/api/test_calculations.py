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
        "/api/v1/query", json={"question": asked, "library": "papers", "doc_ids": [kept["doc_id"]]}
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


def test_a_table_that_is_a_data_set_is_not_calculated_with(shop: Site) -> None:
    rows = "".join(f"North line {n},{n},{n + 5},along the old wall {n}\n" for n in range(9000))
    table = f"Ferry,Passengers 2018,Passengers 2019,Remark\n{rows}"
    kept = shop.client.post(
        "/api/v1/ingest?wait=true",
        files=[("file", ("ferries.csv", table.encode(), "text/csv"))],
        data={"library": "papers"},
    ).json()["documents"][0]
    asked = "What is the change in passengers of the North line 7 between 2018 and 2019?"
    answer = shop.client.post(
        "/api/v1/query", json={"question": asked, "library": "papers", "doc_ids": [kept["doc_id"]]}
    ).json()
    assert answer["status"] == "answered"
    assert not answer["answer"].startswith("**")


def test_a_large_table_is_found_by_labels_that_all_of_its_passages_have(shop: Site) -> None:
    cities = ("Lyon", "Ghent", "Porto")
    rows = [f"O-{n},Keller {n},{cities[n % 3]},{n * 7 % 1000}.5,open" for n in range(300)]
    shop.upload(("orders.csv", "\n".join(["order,customer,city,amount,status", *rows]).encode()))
    shop.upload(("tour.txt", b"The tour goes from Basel to Strasbourg in three stages."))
    where = {"library": "papers"}
    for question, begins in (
        ("Which customer has the highest amount?", "**Keller 285**"),
        ("How many orders are from Ghent?", "**100**"),
        ("What is the total amount of the orders in Porto?", "**47,400.0** = sum of 100 figures"),
        (
            "Which three customers have the highest amount?",
            "**Keller 285, Keller 142, Keller 284**",
        ),
    ):
        answer = shop.client.post("/api/v1/query", json={"question": question, **where}).json()
        assert answer["answer"].startswith(begins), (question, answer["answer"][:200])
        assert answer["sentences"][0]["citations"][0]["quote"].startswith("order: O-")
    other = {"question": "Which supplier has the highest discount?", **where}
    assert shop.client.post("/api/v1/query", json=other).json()["status"] == "abstained"
