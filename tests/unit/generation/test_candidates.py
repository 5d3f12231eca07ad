from __future__ import annotations

from app.generation.candidates import candidates
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
