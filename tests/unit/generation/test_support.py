"""A sentence is held against passages: copies are read off, figures compared, the rest is read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.ports import Reader
from app.core.types import Stance, Verdict
from app.generation.check.support import (
    CONTRADICTED_FROM,
    MOST_READ,
    SUPPORTED_FROM,
    ClaimComparer,
    longest_run,
    verdict_of,
)
from app.generation.language.claims import Claim, ReadPassage

TEXT = (
    "Braddock led about 1,500 army troops on an expedition in June 1755 to take Fort Duquesne. The"
    " expedition was a disaster. No member may burn garden waste in May."
)


class Says:
    """Takes the same stance on everything, and keeps what it read."""

    def __init__(self, supported: float, contradicted: float = 0.0) -> None:
        self.stance = Stance(supported, contradicted, 1 - supported - contradicted)
        self.read: list[tuple[str, str]] = []

    @property
    def name(self) -> str:
        return "says"

    def answers(self, question: str, units: Sequence[str]) -> list[float]:
        raise AssertionError("nothing is asked here")

    def stances(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        self.read += pairs
        return [self.stance] * len(pairs)


def judged(claim: str, reader: Reader | None, *texts: str) -> Verdict:
    passages = [ReadPassage.of_text(text) for text in texts or (TEXT,)]
    found = ClaimComparer(passages, reader).compare(Claim(claim), passages)
    return verdict_of(found.values())[0]


@pytest.mark.parametrize(
    ("stance", "verdict"),
    [
        (Says(SUPPORTED_FROM), "supported"),
        (Says(SUPPORTED_FROM - 0.01), "not_found"),
        (Says(0.0, CONTRADICTED_FROM), "contradicted"),
    ],
)
def test_what_stands_there_in_other_words_is_read(stance: Says, verdict: Verdict) -> None:
    claim = "The campaign of Braddock went badly."
    assert judged(claim, stance) == verdict
    assert stance.read == [(claim, TEXT)]


def test_a_figure_under_another_head_is_not_supported_by_the_reader_alone() -> None:
    row = "Loan: Farms | Spring 2009 $000's: 361 | Autumn 2010 $000's: 331"
    assert judged("Farms had loans of 361 in Autumn 2010.", Says(0.9), row) == "unsure"
    assert judged("Farms had loans of 331 in Autumn 2010.", Says(0.9), row) == "supported"


def test_what_shares_most_words_and_is_not_stated_is_unsure() -> None:
    claim = "Army troops on the expedition in June 1755 came to take Fort Duquesne."
    assert judged(claim, Says(0.0)) == "unsure"


def test_what_is_read_off_needs_no_reader() -> None:
    denies = Says(0.0, 1.0)
    for said in ("The expedition was a disaster.", "No member may burn garden waste in May."):
        assert judged(said, denies) == judged(said, None) == "supported"
    assert denies.read == []


def test_another_language_than_english_is_not_read() -> None:
    reader, text = (
        Says(1.0),
        "Der Pachtvertrag endet am letzten Tag des Jahres und wird nicht verlängert.",
    )
    assert judged("Der Vertrag wird nicht erneuert.", reader, text) == "unsure"
    assert judged(text, reader, text) == "supported"
    assert reader.read == []


def test_a_part_of_a_long_sentence_is_no_copy_of_it() -> None:
    assert judged("Member may burn garden waste in May.", Says(0.0, 1.0)) == "contradicted"


@pytest.mark.parametrize(
    "claim",
    [
        "Braddock went with 1,600 army troops in June 1755.",
        "Braddock went with fifteen army troops in June.",
        "In June Braddock did not go to take Fort Duquesne.",
    ],
)
def test_what_differs_in_form_is_never_supported_by_the_readers_word(claim: str) -> None:
    assert judged(claim, Says(0.99)) == "unsure"
    assert judged(claim, Says(0.0)) == judged(claim, None) == "contradicted"


def test_without_a_reader_what_is_not_read_off_is_unsure() -> None:
    assert judged("The campaign of Braddock went badly.", None) == "unsure"
    assert judged("Bananas ripen quickly.", None) == "not_found"


def test_the_passages_that_share_most_words_are_read() -> None:
    reader, others = Says(0.0), [f"The pump {n} is blue." for n in range(9)]
    claim = "For the pump people paid 800 euros."
    assert judged(claim, reader, *others, "The pump costs 800 euros.") == "unsure"
    assert len(reader.read) == MOST_READ
    assert reader.read[0] == (claim, "The pump costs 800 euros.")


def test_of_several_passages_one_that_says_it_decides() -> None:
    class ByFigure(Says):
        def stances(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
            return [
                Stance(0.9, 0.05, 0.05) if "800" in window else Stance(0.1, 0.8, 0.1)
                for _, window in pairs
            ]

    passages = ("The pump is sold for 900 euros.", "The pump is sold for 800 euros.")
    assert judged("The pump costs 800 euros.", ByFigure(0.0), *passages) == "supported"
    assert judged("The pump costs 900 euros.", ByFigure(0.0), *passages[:1]) == "contradicted"


@given(st.text(max_size=200))
def test_support_is_a_probability(claim: str) -> None:
    passage = ReadPassage.of_text(TEXT)
    for one in ClaimComparer([passage], Says(0.7, 0.2)).compare(Claim(claim), [passage]).values():
        assert 0 <= one.score <= 1


def test_longest_run_by_hand() -> None:
    assert longest_run("a b c d".split(), "x b c y b c d".split()) == 3
    assert longest_run([], ["a"]) == 0
