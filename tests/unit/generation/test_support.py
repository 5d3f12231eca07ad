from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.types import Passage
from app.generation.reading import Claim, ReadPassage, align, token_weights
from app.generation.support import (
    FEATURES,
    Comparison,
    Placed,
    SupportModel,
    contradicts,
    longest_run,
    support_row,
    verdict_of,
)
from tests.unit.generation.passages import evidence

TEXT = (
    "Braddock led about 1,500 army troops on an expedition in June 1755 to take Fort Duquesne. The"
    " expedition was a disaster."
    " The Presiding Officer of the British Parliament was not told."
)
PASSAGE: Passage = evidence(TEXT, title="French and Indian War")[0].hit.passage
READ = ReadPassage(PASSAGE)
WEIGHTS = token_weights(READ.sentence_tokens)


def compared(claim: str, passage: Passage) -> Comparison | None:
    read = ReadPassage(passage)
    return SupportModel.load().examine([read]).compare(Claim(claim), read)


def features(claim: str) -> dict[str, float]:
    found = align(Claim(claim), READ, WEIGHTS)
    assert found is not None
    return dict(zip(FEATURES, support_row(Placed(Claim(claim), READ, found)).tolist(), strict=True))


def test_a_sentence_of_the_passage_is_supported_for_certain() -> None:
    support = compared("The expedition was a disaster.", PASSAGE)
    assert support is not None
    assert support.score == 1.0


def test_features_by_hand() -> None:
    row = features("The expedition was a disaster.")
    assert (row["coverage"], row["run"], row["unknown"], row["names"]) == (1, 1, 0, 0)
    assert row["length"] == 0.2


@pytest.mark.parametrize(
    ("claim", "contradicted"),
    [
        ("Braddock led 1,500 troops to take Fort Duquesne.", False),
        ("Braddock led 1,600 troops to take Fort Duquesne.", True),
        ("The expedition was not a disaster.", True),
        ("The Presiding Officer was not told.", False),
        ("Braddock led about 1,500 army troops to take Fort Niagara.", True),
    ],
)
def test_another_figure_or_a_denial_contradicts(claim: str, contradicted: bool) -> None:
    found = align(Claim(claim), READ, WEIGHTS)
    assert found is not None
    placed = Placed(Claim(claim), READ, found)
    assert contradicts(placed, support_row(placed)) is contradicted


def test_a_strange_name_shows() -> None:
    assert features("In 1755 Braddock led troops to take Fort Ticonderoga.")["names"] == 1


def test_names_in_another_form_are_known() -> None:
    for same in (
        "Fort Dusquesne was to be taken.",
        "The Parliament of Britain was told.",
        "In June the PO was told.",
    ):
        assert features(same)["names"] == 0, same


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Braddock led 1,500 troops in June 1755.", "Braddock led 1,500 troops in June 1759."),
        (
            "In 1755 Braddock went to take Fort Duquesne.",
            "In 1755 Braddock went to take Fort Niagara.",
        ),
        (
            "The expedition of Braddock was a disaster.",
            "The expedition of Braddock was never a disaster.",
        ),
        (
            "The expedition of Braddock was a disaster.",
            "Photosynthesis was a disaster for chlorophyll pigments.",
        ),
    ],
)
def test_the_right_claim_has_more_support(right: str, wrong: str) -> None:
    high, low = compared(right, PASSAGE), compared(wrong, PASSAGE)
    assert high is not None
    assert low is not None
    assert high.score > low.score
    assert high.verdict(0.45) in ("supported", "weak")


@given(st.text(max_size=200))
def test_support_is_a_probability(claim: str) -> None:
    support = compared(claim, PASSAGE)
    assert support is None or 0 <= support.score <= 1


def test_longest_run_by_hand() -> None:
    assert longest_run("a b c d".split(), "x b c y b c d".split()) == 3
    assert longest_run([], ["a"]) == 0


def test_weights_for_other_features_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "grounding.json"
    path.write_text(json.dumps({"features": ["old"], "command": "make it"}))
    with pytest.raises(ValueError, match="run: make it"):
        SupportModel.load(path)


def test_a_part_of_a_long_sentence_is_no_copy_of_it() -> None:
    denied = evidence("No member may burn garden waste in May.")[0].hit.passage
    found = compared("Member may burn garden waste in May.", denied)
    assert found is not None
    assert (found.copied, found.verdict(0.45)) == (False, "contradicted")


def test_of_several_passages_one_that_says_it_decides() -> None:
    passages = [
        ReadPassage(one.hit.passage)
        for one in evidence("The pump costs 900 euros.", "The pump costs 800 euros.", "Bees fly.")
    ]
    examination = SupportModel.load().examine(passages)

    def verdict(claim: str) -> str:
        compared = [examination.compare(Claim(claim), one) for one in passages]
        return verdict_of([one for one in compared if one], 0.45)[0]

    assert verdict("The pump costs 800 euros.") == "supported"
    assert verdict("The pump costs 700 euros.") == "contradicted"
    assert verdict("Bananas ripen in Ecuador.") == "not_found"
