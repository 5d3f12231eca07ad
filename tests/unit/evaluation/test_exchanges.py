"""False sentences by one exchange: what each kind makes, and where none is made."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from evaluation.training.exchanges import KINDS, exchanges, rows_of

ENGLISH = Path(__file__).parents[3] / "evaluation" / "two_rates" / "english.json"
TABLE = (
    "| Boat | Length | Skipper | Season |\n|---|---|---|---|\n"
    "| Heron | 12 m | Ruth Amsel | May to June |\n"
    "| Otter | 9 m | Paul Brook | July to August |"
)


def made(claim: str, passage: str = "") -> dict[str, set[str]]:
    """Return all that some seed makes of a sentence, by kind."""
    found: dict[str, set[str]] = {}
    for seed in range(60):
        for sentence, kind in exchanges(claim, passage or claim, random.Random(seed)):
            found.setdefault(kind, set()).add(sentence)
    return found


@pytest.mark.parametrize(
    ("claim", "passage", "kind", "false"),
    [
        ("The Heron is 12 metres long.", TABLE, "row", {"The Heron is 9 metres long."}),
        ("Ruth Amsel sails the Heron.", TABLE, "row", {"Paul Brook sails the Heron."}),
        (
            "Adults pay 8 euros at the door.",
            "Adults pay 8 euros, children pay 3 euros.",
            "number",
            {f"Adults pay {price} euros at the door." for price in (3, 4, 12, 16, 24)},
        ),
        (
            "It was built in 1911.",
            "It was built in 1911. It burned down in 1950.",
            "number",
            {f"It was built in {y}." for y in (1950, 1851, 1877, 1893, 1902, 1920, 1929, 1945, 1971)},
        ),
        (
            "The district paid two thirds of the cost.",
            "",
            "number",
            {"The district paid one third of the cost."},
        ),
        (
            "The filter lasts six weeks.",
            "",
            "unit",
            {f"The filter lasts six {unit}." for unit in ("hours", "days", "months", "years")},
        ),
        (
            "The parcel weighs 40 grams.",
            "",
            "unit",
            {"The parcel weighs 40 kilograms.", "The parcel weighs 40 tonnes."},
        ),
        (
            "The prize went to Olga Stern.",
            "The prize went to Olga Stern. The speech was left to Ivan Petrov.",
            "name",
            {"The prize went to Ivan Petrov."},
        ),
        (
            "According to Olga Stern, the roof leaks.",
            "Olga Stern said that the roof leaks. Ivan Petrov complained about the noise.",
            "attribution",
            {"According to Ivan Petrov, the roof leaks."},
        ),
        (
            "Olga Stern taught Ivan Petrov to ride.",
            "Olga Stern taught Ivan Petrov to ride. Ivan Petrov thanked her.",
            "role",
            {"Ivan Petrov taught Olga Stern to ride."},
        ),
        ("The tenant pays the landlord.", "", "role", {"The landlord pays the tenant."}),
        (
            "The train runs from Lund to Malmo.",
            "",
            "role",
            {"The train runs from Malmo to Lund."},
        ),
        (
            "Wash the rice before you cook it.",
            "",
            "order",
            {"Wash the rice after you cook it."},
        ),
        (
            "Prices fell from 30 to 20 euros.",
            "",
            "order",
            {"Prices fell from 20 to 30 euros."},
        ),
        (
            "The northern shore is colder.",
            "",
            "direction",
            {"The southern shore is colder.", "The northern shore is warmer."},
        ),
        (
            "Visitors took more photographs than notes.",
            "",
            "direction",
            {"Visitors took fewer photographs than notes."},
        ),
        (
            "Most of the lockers are broken.",
            "",
            "quantifier",
            {"All of the lockers are broken.", "Hardly any of the lockers are broken."},
        ),
        ("Every hut has a stove.", "", "quantifier", {"Not every hut has a stove."}),
        ("Guests may use the stairs.", "", "modality", {"Guests must use the stairs."}),
        (
            "The owner has to repair the roof.",
            "",
            "modality",
            {"The owner does not have to repair the roof."},
        ),
        (
            "The firm plans to sell its shop.",
            "",
            "plan_for_fact",
            {"The firm has sold its shop."},
        ),
        (
            "The canal was widened for larger ships.",
            "",
            "plan_for_fact",
            {"The canal is to be widened for larger ships."},
        ),
        ("The glue can be heated.", "", "negation", {"The glue cannot be heated."}),
        ("The shop did not sell bread.", "", "negation", {"The shop sold bread."}),
        ("The farmer carried the hay home.", "", "negation", {"The farmer did not carry the hay home."}),
        ("No visitor may feed the seals.", "", "negation", {"A visitor may feed the seals."}),
        ("Parking is forbidden here.", "", "negation", {"Parking is allowed here."}),
    ],
)  # fmt: skip
def test_a_kind_makes_these_sentences_and_no_others(
    claim: str, passage: str, kind: str, false: set[str]
) -> None:
    assert made(claim, passage)[kind] == false


@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        ("Groups of more than 20 people need a guide.", "number"),
        ("Version 4 reads the old files.", "number"),
        ("The ice moves by more than 40 metres a day.", "unit"),
        ("The figures are invented for a test.", "order"),
        ("None of the boats was sold.", "quantifier"),
        ("Each declares its weight.", "quantifier"),
        ("The museum is free for children under 6.", "number"),
        ("The road between 12 and 40 metres is steep.", "number"),
        ("Olga Stern married Ivan Petrov.", "role"),
        ("The rain is no longer heavy.", "direction"),
        ("The street was named after a general.", "order"),
        ("The bottle keeps after three days.", "order"),
        ("It is the most expensive part of the boat.", "quantifier"),
        ("Some lockers are broken.", "negation"),
        ("The hall is closed because it is cold.", "negation"),
        ("Only members may bring guests.", "modality"),
        ("The city was known for its bells.", "plan_for_fact"),
        ("The shop does not open before ten.", "order"),
    ],
)
def test_a_sentence_that_could_stay_true_or_break_makes_nothing(claim: str, kind: str) -> None:
    assert kind not in made(claim)


def test_what_a_list_says_of_all_its_names_is_not_exchanged() -> None:
    passage = "Olga Stern, Ivan Petrov and Lena Wolf were present. Max Horn wrote the minutes."
    assert made("In the hall sat Olga Stern.", passage).get("name", set()) <= {
        "In the hall sat Max Horn."
    }


def test_the_article_follows_the_exchanged_word() -> None:
    assert made("It shows an increase in sales.")["direction"] == {"It shows a decrease in sales."}


def test_equal_seeds_make_equal_sentences_and_a_kind_stands_once() -> None:
    for entry in json.loads(ENGLISH.read_text(encoding="utf-8")):
        for one in entry["claims"]:
            if one["true"]:
                first = exchanges(one["claim"], entry["text"], random.Random(3))
                assert first == exchanges(one["claim"], entry["text"], random.Random(3))
                kinds = [kind for _, kind in first]
                assert kinds == [kind for kind in KINDS if kind in kinds]
                for sentence, _ in first:
                    assert sentence[0].isupper()
                    assert sentence.endswith(".")
                    assert sentence != one["claim"]
                    assert "  " not in sentence


def test_rows_of_both_sorts_of_table_are_read() -> None:
    lines = "Boat: Heron | Length: 12 m\nBoat: Otter | Length: 9 m"
    assert rows_of(lines) == [
        {"Boat": "Heron", "Length": "12 m"},
        {"Boat": "Otter", "Length": "9 m"},
    ]
    assert rows_of(f"Two boats.\n\n{TABLE}\n")[1]["Skipper"] == "Paul Brook"
