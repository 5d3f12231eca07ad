from __future__ import annotations

from app.generation.candidates import candidates
from tests.unit.generation.passages import evidence


def test_a_sentence_that_a_chunk_cuts_at_an_initial_is_not_whole() -> None:
    text = "The college grew slowly for a hundred years. Following the American Civil War, President Charles W."
    assert [candidate.whole for candidate in candidates(evidence(text))] == [True, False]
    assert [candidate.whole for candidate in candidates(evidence("It was led for forty years by Charles Eliot."))] == [True]
