from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.generation.prompt.runaway import RunawayGuard

TOLD = "Copy names, figures, dates and units exactly as the passages give them."


def _through(text: str, guard: RunawayGuard) -> str:
    shown = "".join(guard.feed(piece) for piece in re.findall(r"\s*\S+|\s+", text))
    return shown + guard.close()


def test_the_third_time_a_sentence_comes_ends_the_stream_and_no_repetition_is_shown() -> None:
    guard = RunawayGuard([])
    shown = _through("Copper melts at 1085 degrees. " * 3 + "It is red.", guard)
    assert guard.stopped == "loop"
    assert shown.count("Copper melts") == 1
    assert guard.text == shown
    assert guard.feed("More.") == ""


def test_a_sentence_that_comes_twice_is_shown_once_and_the_stream_goes_on() -> None:
    guard = RunawayGuard([])
    shown = _through(
        "Copper melts at 1085 degrees [1]. Copper melts at 1085 degrees [2]. It is red.", guard
    )
    assert guard.stopped is None
    assert shown == "Copper melts at 1085 degrees [1]. It is red."


def test_a_phrase_that_turns_round_without_an_end_is_a_loop() -> None:
    guard = RunawayGuard([])
    _through("the red metal is used in wires and pipes and " * 9, guard)
    assert guard.stopped == "loop"


def test_eight_words_of_the_instructions_end_the_stream_before_they_are_shown() -> None:
    guard = RunawayGuard([TOLD])
    shown = _through(f"Well then. {TOLD}", guard)
    assert guard.stopped == "leak"
    assert "dates and units" not in shown
    assert shown.startswith("Well then.")


def test_what_passages_and_question_say_may_be_said() -> None:
    guard = RunawayGuard([TOLD], allowed=[f"The style guide says: {TOLD}"])
    assert _through(TOLD, guard) == TOLD
    assert guard.stopped is None


def test_a_run_of_the_instructions_that_breaks_off_is_shown_in_the_end() -> None:
    guard = RunawayGuard([TOLD])
    text = "Copy names, figures, dates into the table."
    assert _through(text, guard) == text


@pytest.mark.parametrize("text", ["Yes. Yes. Yes. Yes.", "| a | 1 |\n| a | 1 |\n| b | 2 |\n"])
def test_short_sentences_and_cells_may_come_again(text: str) -> None:
    guard = RunawayGuard([])
    _through(text, guard)
    assert guard.stopped is None


@given(
    st.lists(
        st.text(alphabet="abcdefgh", min_size=2, max_size=9), min_size=1, max_size=30, unique=True
    )
)
def test_text_that_repeats_nothing_comes_through_whole(words: list[str]) -> None:
    text = " ".join(words) + "."
    assert _through(text, RunawayGuard([TOLD])) == text


ABOVE = "The tunnel under the river was opened to trains on 3 May 1869 [1]."


def test_a_model_that_says_what_stands_above_is_ended_and_the_sentence_is_named() -> None:
    guard = RunawayGuard([], above=["It is long [1].", ABOVE])
    assert _through("The tunnel under the river was opened to trains on 3 May 1869.", guard) == ""
    assert (guard.stopped, guard.repeated) == ("repeat", ABOVE)


def test_a_model_that_goes_another_way_within_eight_words_is_shown() -> None:
    guard = RunawayGuard([], above=[ABOVE])
    text = "The tunnel under the river was closed in 1870."
    assert _through(text, guard) == text
    assert (guard.stopped, guard.repeated) == (None, "")
