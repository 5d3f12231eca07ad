"""Function words: one list, left out of questions, and never all of a question."""

from __future__ import annotations

from app.core.text import CLAIMLESS_WORDS, content_or_all, function_words, tokenise


def test_a_question_keeps_what_it_is_about() -> None:
    assert content_or_all(tokenise("When was the Berlin Wall built?")) == [
        "berlin",
        "wall",
        "built",
    ]


def test_a_question_of_function_words_keeps_them() -> None:
    assert content_or_all(tokenise("To be or not to be")) == ["to", "be", "or", "not", "to", "be"]


def test_a_language_without_a_list_keeps_all() -> None:
    assert content_or_all(["the", "wall"], "fi") == ["the", "wall"]


def test_a_claim_has_no_function_words() -> None:
    assert function_words("en") < CLAIMLESS_WORDS["en"]
    assert "most" not in function_words("en")
