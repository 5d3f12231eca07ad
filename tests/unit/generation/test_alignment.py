from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.sentences import sentence_spans
from app.generation.language.claims import (
    MAX_QUOTE_CHARS,
    Alignment,
    Claim,
    ReadPassage,
    WeightedTokens,
    align,
    specifics,
    spelt_figures,
    term_weights,
)

TEXT = (
    "The Normans were descended from Norse raiders. Their leader was Rollo, who came from Denmark."
    " He swore fealty to King"
    " Charles III. Over generations they mixed with the Frankish population."
)
WEIGHTS = term_weights(TEXT[start:end] for start, end in sentence_spans(TEXT))


def aligned(claim: str, text: str, weights: dict[str, float]) -> Alignment | None:
    return align(Claim(claim), ReadPassage.of_text(text), weights)


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        ("Rollo was their leader.", "Their leader was Rollo, who came from Denmark."),
        (
            "They mixed with Frankish people over generations.",
            "Over generations they mixed with the Frankish population.",
        ),
        (
            "Rollo of Denmark swore fealty to Charles.",
            "Their leader was Rollo, who came from Denmark. He swore fealty to King Charles III.",
        ),
    ],
)
def test_the_shortest_window_that_holds_a_claim_is_quoted(claim: str, quote: str) -> None:
    found = aligned(claim, TEXT, WEIGHTS)
    assert found is not None
    assert TEXT[found.start : found.end] == quote


def test_nothing_in_common_is_no_alignment() -> None:
    assert aligned("Photosynthesis needs chlorophyll.", TEXT, WEIGHTS) is None
    assert aligned("", TEXT, WEIGHTS) is None
    assert aligned("Rollo", "", WEIGHTS) is None


def test_term_weights_by_hand() -> None:
    assert term_weights(["red fish", "blue fish"]) == {
        "red": math.log(3),
        "blue": math.log(3),
        "fish": math.log(2),
    }


def test_coverage_by_hand() -> None:
    weights = {"a": 3.0, "b": 1.0}
    assert WeightedTokens(["a", "b"], weights).share({"a"}) == 0.75
    assert (
        WeightedTokens(["a", "unknown"], weights).share({"a"}) == 0.5
    )  # a word never seen weighs as much as the rarest
    assert WeightedTokens([], weights).share({"a"}) == 0.0


@given(st.text(max_size=300), st.text(max_size=3000))
def test_an_alignment_lies_in_its_passage_and_is_short_enough(claim: str, passage: str) -> None:
    found = aligned(claim, passage, term_weights([passage]))
    if found is not None:
        assert 0 <= found.start < found.end <= len(passage)
        assert found.end - found.start <= MAX_QUOTE_CHARS
        assert 0 < found.coverage <= 1


@given(st.integers(0, 4))
def test_a_quoted_sentence_aligns_with_itself(index: int) -> None:
    spans = sentence_spans(TEXT)
    start, end = spans[index % len(spans)]
    found = aligned(TEXT[start:end], TEXT, WEIGHTS)
    assert found is not None
    assert (found.start, found.end, found.coverage) == (start, end, 1.0)


_WORDS = st.sampled_from(
    ["copper", "brass", "melts", "conducts", "silver", "mine", "roof", "Cyprus"]
)
_SENTENCE = st.lists(_WORDS, min_size=1, max_size=4).map(
    lambda words: f"The {' '.join(words)} there."
)


@given(st.lists(_SENTENCE, min_size=1, max_size=8).map(" ".join), _SENTENCE)
@settings(max_examples=200)
def test_no_window_of_three_sentences_is_better(text: str, said: str) -> None:
    """Held against every window; 0.03 a further sentence is the price of a longer one."""
    read, claim = ReadPassage.of_text(text), Claim(said)
    weights = term_weights([text[start:end] for start, end in sentence_spans(text)])
    wanted, pieces = WeightedTokens(claim.wanted, weights), read.pieces
    values = {
        (pieces[first][0], pieces[last][1]): wanted.share(
            frozenset().union(*(tokens for _, _, tokens in pieces[first : last + 1]))
        )
        - 0.03 * (last - first)
        for first in range(len(pieces))
        for last in range(first, min(first + 3, len(pieces)))
    }
    found = align(claim, read, weights)
    if found is None:
        assert not claim.wanted & frozenset().union(*(tokens for _, _, tokens in pieces))
    else:
        assert values[found.start, found.end] == pytest.approx(max(values.values()))


def test_a_sentence_longer_than_a_quote_is_quoted_in_part() -> None:
    long = (
        " ".join(f"word{i}" for i in range(200))
        + " the treaty of Verdun "
        + " ".join(f"more{i}" for i in range(200))
        + "."
    )
    found = aligned("The treaty of Verdun.", long, term_weights([long]))
    assert found is not None
    assert "treaty of Verdun" in long[found.start : found.end]
    assert found.end - found.start <= MAX_QUOTE_CHARS


def test_specifics_read_figures_names_and_denial() -> None:
    found = specifics("In 1,066 the Duke did not lose three ships at Hastings.")
    assert found.figures == {"1066"}
    assert found.names == {"duke", "hast"}
    assert found.negations == 1


def test_spelt_figures_count_as_figures_of_a_source() -> None:
    assert spelt_figures("Three ships in 1066") == {"3", "1066"}
