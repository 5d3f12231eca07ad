"""What a question names, and what of it the passages lack."""
# ruff: noqa: RUF001

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.types import Evidence
from app.generation.quote.candidates import candidates
from app.generation.quote.quote_features import mentions_target, missing_things, named_things
from app.models.minilm import MiniLmEmbedder
from tests.unit.generation.passages import evidence

DUCHY = (
    "The Duchy of Normandy was created in 911 by the Treaty of Saint-Clair-sur-Epte. Rollo was"
    " its first ruler."
)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who did Rollo of Normandy marry in 912?", ("Rollo", "Normandy", "912")),
        ("What does ReAct interleave?", ("ReAct",)),
        ("where is normandy", ()),
        ("Where Is The Duchy Of Normandy", ()),
        ("What is John Lewis's view?", ("John Lewis",)),
        ("", ()),
    ],
)
def test_names_and_numbers_of_a_question(question: str, names: tuple[str, ...]) -> None:
    assert named_things(question) == names


def test_what_no_passage_names_is_missing() -> None:
    found = evidence(DUCHY)
    assert missing_things("When was the Duchy of Normandy created?", found) == ()
    assert missing_things("When did Rollo visit Zanzibar in 1205?", found) == ("Zanzibar", "1205")
    assert missing_things("Who was Roll?", found) == ()  # spelt a little differently
    assert missing_things("When was Rollo born?", ()) == ("Rollo",)


def test_a_list_of_references_names_and_says_nothing() -> None:
    found = evidence(
        "Smith, J.: Voyages to Zanzibar. Journal of Journeys, 1987.", section="references"
    )
    assert missing_things("When did Rollo visit Zanzibar?", found) == ("Rollo", "Zanzibar")


def test_a_number_in_words_is_named() -> None:
    found = evidence("The castle had eight towers and three gates, all of them of stone.")
    assert missing_things("Which castle had 8 towers?", found) == ()


def test_a_name_may_stand_joined_and_an_ordinal_in_words() -> None:
    found = evidence("AppleTalk was the third suite of protocols that the company made.")
    assert missing_things("Was Apple Talk the 3rd suite?", found) == ()
    assert missing_things("Was Apple Talk the 4th suite?", found) == ("4th",)


def _in(language: str, text: str) -> list[Evidence]:
    return [
        replace(
            one,
            hit=replace(
                one.hit,
                passage=replace(
                    one.hit.passage, document=replace(one.hit.passage.document, language=language)
                ),
            ),
        )
        for one in evidence(text)
    ]


def test_german_nouns_are_no_names() -> None:
    assert named_things("Welche Hauptstadt hat das Land seit 1949?") == ("1949",)
    found = _in("de", "Bonn war ab 1949 der Sitz der Regierung.")
    assert missing_things("Welche Hauptstadt hat das Land seit 1949?", found) == ()


def test_names_are_stemmed_as_the_passages_are() -> None:
    found = _in("ru", "Рядом с Варшавой строили мост. Тесла там не был.")
    assert missing_things("Кто строил мост около Варшавы?", found) == ()
    assert missing_things("Кто строил мост около Москвы?", found) == ("Москвы",)


def test_passages_of_another_language_may_spell_a_name_otherwise() -> None:
    assert missing_things("Кто строил мост около Москвы?", evidence("A bridge near Moscow.")) == ()


@pytest.mark.parametrize(
    ("question", "spoken_of"),
    [
        ("Are dogs allowed on the beach?", True),
        ("Are pets allowed on the beach?", True),  # near enough to dogs
        ("Are open fires allowed on the beach?", False),
        ("Is fishing allowed on the beach?", False),
        ("Is it allowed on the beach?", True),  # names nothing
        ("How many dogs may stay?", True),
        ("How many trees stand on the beach?", False),
        ("How many people are on the beach?", True),  # they may be called otherwise
        ("How much does a dog cost?", True),
        ("Who cleans the beach?", False),
        ("Who may stay in the huts?", True),
        ("When is the beach cleaned?", True),
    ],
)
def test_a_quote_speaks_of_the_thing_that_is_asked_about(
    minilm: MiniLmEmbedder, question: str, spoken_of: bool
) -> None:
    found = evidence(
        "Dogs are not allowed on the beach in May. The beach is cleaned on Mondays. Cats may stay."
    )
    passages = [item.hit.passage for item in found]
    best = candidates(found)[1 if "clean" in question else 0]
    assert mentions_target(question, best, passages, minilm) is spoken_of


def test_who_does_it_is_said_by_a_passive_with_by(minilm: MiniLmEmbedder) -> None:
    found = evidence("The beach is cleaned by two men of the harbour.")
    best = candidates(found)[0]
    assert mentions_target("Who cleans the beach?", best, [best.item.hit.passage], minilm)
