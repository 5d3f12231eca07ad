from __future__ import annotations

import pytest

from app.answer.writing import choose_outcome, quoted_instead, reads_as_refusal
from app.core.types import REFUSAL, Quote
from app.generation.check.grounding import Grounded, Grounder
from app.generation.prompt.runaway import Runaway
from tests.fakes.readers import WordReader
from tests.unit.generation.passages import evidence

FOUND = evidence(
    "Copper is a soft red metal. Its melting point is 1085 degrees Celsius.", title="Copper"
)
GROUNDER = Grounder(WordReader())


def _ground(text: str) -> Grounded:
    return GROUNDER.ground(text, FOUND)


def _quote(*, leads: bool) -> Quote:
    found = GROUNDER.ground("Its melting point is 1085 degrees Celsius [1].", FOUND, by="engine")
    return Quote(found.text, found.sentences, leads)


def test_a_model_that_is_as_good_speaks_alone() -> None:
    outcome = choose_outcome(
        _quote(leads=False), _ground("Copper is a soft red metal."), None, confident=True
    )
    assert outcome.text == outcome.model_text == "Copper is a soft red metal [1]."
    assert outcome.notice is None


def test_a_weak_model_stands_below_the_quote_and_every_offset_holds() -> None:
    outcome = choose_outcome(
        _quote(leads=True),
        _ground("Copper is a soft red metal. Bananas are blue."),
        None,
        confident=True,
    )
    assert (
        outcome.text
        == "Its melting point is 1085 degrees Celsius [1].\n\nCopper is a soft red metal [1]."
    )
    assert outcome.model_text == "Copper is a soft red metal [1]."
    for sentence in outcome.sentences:
        assert outcome.text[sentence.answer_start : sentence.answer_end] == sentence.text


def test_words_that_repeat_the_quote_are_not_said_twice() -> None:
    outcome = choose_outcome(
        _quote(leads=True),
        _ground("Its melting point is 1085 degrees Celsius."),
        None,
        confident=True,
    )
    assert outcome.text == "Its melting point is 1085 degrees Celsius [1]."
    assert outcome.model_text == outcome.text


def test_what_a_model_began_to_repeat_is_what_it_said() -> None:
    said = _ground("Its melting point is 1085 degrees Celsius.")
    outcome = choose_outcome(_quote(leads=True), said, "repeat", confident=True)
    assert (outcome.text, outcome.quoted) == (_quote(leads=True).text, True)
    assert outcome.model_text == "Its melting point is 1085 degrees Celsius [1]."


@pytest.mark.parametrize(
    ("said", "stopped", "reason"),
    [
        ("Bananas are blue.", None, "no passage says"),
        ("Copper is a soft red metal.", "loop", "repeated itself"),
        ("Copper is a soft red metal.", "leak", "recited its instructions"),
        (REFUSAL, None, "refused"),
        ("The text does not mention the melting point in the given facts.", None, "refused"),
    ],
)
@pytest.mark.parametrize("leads", [True, False])
def test_the_quote_stands_where_the_model_fails(
    said: str, stopped: Runaway | None, reason: str, leads: bool
) -> None:
    quote = _quote(leads=leads)
    outcome = choose_outcome(quote, _ground(said), stopped, confident=True)
    assert (outcome.text, outcome.quoted) == (quote.text, True)
    assert outcome.notice is not None
    assert outcome.notice.code == "quoted_instead"
    assert reason in outcome.notice.message


def test_a_strong_model_may_refuse_what_the_quote_is_not_sure_of() -> None:
    assert (
        choose_outcome(_quote(leads=False), _ground(REFUSAL), None, confident=False).text == REFUSAL
    )


@pytest.mark.parametrize("said", ["Bananas are blue.", REFUSAL])
def test_nothing_that_is_wholly_unsupported_is_an_answer(said: str) -> None:
    assert choose_outcome(None, _ground(said), None, confident=False).text == REFUSAL


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("The provided text does not contain information about the author.", True),
        ("I cannot answer this question from the given facts.", True),
        ("Copper does not conduct as well as silver.", False),
        ("The treaty was not signed in 1911.", False),
    ],
)
def test_refusals_in_a_models_own_words(text: str, refusal: bool) -> None:
    assert reads_as_refusal(text) is refusal


def test_a_quote_that_stands_in_says_why() -> None:
    outcome = quoted_instead(_quote(leads=True), "ollama:x failed (gone)", None)
    assert outcome.notice is not None
    assert outcome.notice.message.startswith("ollama:x failed (gone); ")
