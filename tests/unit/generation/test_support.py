from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.types import FloatArray, Passage
from app.generation.alignment import align, token_weights
from app.generation.reading import Claim, ReadPassage
from app.generation.support import SupportJudge, SupportModel
from app.generation.support_rows import FEATURES, contradicts, longest_run, support_row
from tests.fakes.embedders import HashEmbedder
from tests.unit.generation.passages import evidence

TEXT = (
    "Braddock led about 1,500 army troops on an expedition in June 1755 to take Fort Duquesne. The"
    " expedition was a disaster."
    " The Presiding Officer of the British Parliament was not told."
)
PASSAGE: Passage = evidence(TEXT, title="French and Indian War")[0].hit.passage
READ = ReadPassage(PASSAGE)
WEIGHTS = token_weights(READ.sentence_tokens)


def features(claim: str) -> dict[str, float]:
    found = align(Claim(claim), READ, WEIGHTS)
    assert found is not None
    return dict(zip(FEATURES, support_row(Claim(claim), READ, found).tolist(), strict=True))


def test_a_sentence_of_the_passage_is_supported_for_certain() -> None:
    support = SupportJudge(None).judge("The expedition was a disaster.", PASSAGE)
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
    assert (
        contradicts(Claim(claim), READ, found, support_row(Claim(claim), READ, found))
        is contradicted
    )


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
@pytest.mark.parametrize("judge", [SupportJudge(None), SupportJudge(HashEmbedder())])
def test_the_right_claim_has_more_support(judge: SupportJudge, right: str, wrong: str) -> None:
    high, low = judge.judge(right, PASSAGE), judge.judge(wrong, PASSAGE)
    assert high is not None
    assert low is not None
    assert high.score > max(0.45, low.score)


@given(st.text(max_size=200))
def test_support_is_a_probability(claim: str) -> None:
    support = SupportJudge(None).judge(claim, PASSAGE)
    assert support is None or 0 <= support.score <= 1


def test_longest_run_by_hand() -> None:
    assert longest_run("a b c d".split(), "x b c y b c d".split()) == 3
    assert longest_run([], ["a"]) == 0


def test_weights_for_other_features_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "grounding.json"
    path.write_text(json.dumps({"features": ["old"], "command": "make it"}))
    with pytest.raises(ValueError, match="run: make it"):
        SupportModel.load(path)


class _Counting(HashEmbedder):
    """Counts calls; its name is that of the model whose cosines the packaged weights are for."""

    def __init__(self) -> None:
        super().__init__(model="all-MiniLM-L6-v2")
        self.calls = 0

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        self.calls += 1
        return super().embed_passages(texts)


CLAIMS = (
    "Braddock led 1,500 men to take the fort.",
    "The whole expedition was a disaster for the army.",
    "In June 1755 Braddock led army troops to Fort Niagara.",
    "The Presiding Officer of Parliament knew nothing.",
    "Photosynthesis was a disaster for chlorophyll.",
    "Nobody in the British Parliament was told about the troops.",
)


def test_the_claims_of_an_answer_are_embedded_together_and_each_text_once() -> None:
    embedder = _Counting()
    examination = SupportJudge(embedder).examine([READ])
    compared = [
        one for claim in (*CLAIMS, *CLAIMS) if (one := examination.compare(Claim(claim), READ))
    ]
    examination.settle(compared)
    assert all(one.settled for one in compared)
    assert embedder.calls == 1
    assert len(embedder.embedded) == len(set(embedder.embedded)) >= len(CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("floor", [0.05, 0.3, 0.45, 0.7, 0.95])
def test_a_floor_spares_vectors_and_changes_no_decision(claim: str, floor: float) -> None:
    exact = SupportJudge(_Counting()).judge(claim, PASSAGE)
    examination = SupportJudge(_Counting()).examine([READ], floor)
    one = examination.compare(Claim(claim), READ)
    assert exact is not None
    assert one is not None
    spared = one.settled
    examination.settle([one])
    assert (one.score >= floor) == (exact.score >= floor)
    assert spared or one.score == exact.score


def test_a_contradicted_claim_needs_no_vectors() -> None:
    embedder = _Counting()
    examination = SupportJudge(embedder).examine([READ], floor=0.45)
    examination.settle(
        [one for one in [examination.compare(Claim("Braddock led 1,600 troops."), READ)] if one]
    )
    assert embedder.calls == 0


def test_a_text_too_long_for_the_embedder_has_no_similarity() -> None:
    short = HashEmbedder(model="all-MiniLM-L6-v2", max_tokens=4)
    examination = SupportJudge(short).examine([READ])
    one = examination.compare(Claim("The whole expedition was a disaster for the army."), READ)
    assert one is not None
    examination.settle([one])
    assert one.row[FEATURES.index("similarity")] == 0.0
    assert short.embedded == []
