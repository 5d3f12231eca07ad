from __future__ import annotations

import pytest

from app.generation.candidates import candidates
from app.generation.quoting import ExtractiveGenerator, quoted_text
from tests.unit.generation.passages import evidence


def test_a_sentence_that_a_chunk_cuts_at_an_initial_is_not_whole() -> None:
    text = (
        "The college grew slowly for a hundred years. Following the American Civil War,"
        " President Charles W."
    )
    assert [candidate.whole for candidate in candidates(evidence(text))] == [True, False]
    assert [
        candidate.whole
        for candidate in candidates(evidence("It was led for forty years by Charles Eliot."))
    ] == [True]


def test_the_head_of_a_page_is_no_candidate() -> None:
    title = "Slow crystals: a study of lattices that walk in their sleep"
    text = f"12 {title}\n\nThe lattices of these crystals stop walking when they are cold."
    assert [candidate.text for candidate in candidates(evidence(text, title=title))] == [
        "The lattices of these crystals stop walking when they are cold."
    ]
    assert len(candidates(evidence(text, title="Another paper"))) == 2


TABLE = """Cities of the north

City | Country | Population
City: Oslo | Country: Norway | Population: 709,000
City: Bergen | Country: Norway | Population: 289,000
City: Stockholm | Country: Sweden | Population: 984,000"""


def test_a_row_of_a_table_is_quoted_alone_with_its_labels() -> None:
    chosen = (
        ExtractiveGenerator().select("What is the population of Bergen?", evidence(TABLE)).chosen
    )
    assert quoted_text(chosen) == "City: Bergen | Country: Norway | Population: 289,000 [1]."


def test_several_rows_that_answer_stand_in_a_list() -> None:
    rows = [one for one in candidates(evidence(TABLE)) if one.row]
    assert len(rows) == 3
    assert quoted_text(rows[:2]).splitlines() == [
        "- City: Oslo | Country: Norway | Population: 709,000 [1].",
        "- City: Bergen | Country: Norway | Population: 289,000 [1].",
    ]


def test_a_short_table_without_labels_stays_whole_and_a_row_of_two_words_is_read() -> None:
    table = "in euro | 2019 | 2018\nopening balance | 36 | 42\nclosing balance | 40 | 36"
    assert [one.text for one in candidates(evidence(table))] == [" ".join(table.split("\n"))]
    labelled = "Item: Rent | 2019: 130\nItem: Power | 2019: 45"
    assert [one.text for one in candidates(evidence(labelled))] == labelled.split("\n")
    assert [one.text for one in candidates(evidence("Rent | 130"))] == ["Rent | 130"]


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("The lighthouse of Skerry was built in 1854 by Thomas Stevenson.", "Who built the lighthouse?"),
        ("It was built at Skerry in 1854 by Thomas Stevenson.", "When was it built at Skerry?"),
    ],
)  # fmt: skip
def test_rows_and_heads_of_tables_do_not_fill_an_answer_in_prose(said: str, question: str) -> None:
    chosen = ExtractiveGenerator().select(question, evidence(f"{TABLE}\n\n{said}")).chosen
    assert quoted_text(chosen) == f"{said[:-1]} [1]."
