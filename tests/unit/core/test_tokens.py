"""The lexical tokenizer against the plain way to say what it does."""

from __future__ import annotations

import threading

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from app.core.text import MAX_TOKEN_BYTES, tokenise, words


def _plainly(text: str) -> list[str]:
    stemmer = Stemmer.Stemmer("english")
    return [stemmer.stemWord(word) for word in words(text) if len(word.encode()) <= MAX_TOKEN_BYTES]


@given(st.one_of(st.text(), st.text(st.characters(max_codepoint=127)), st.from_regex(r"[A-Za-z0-9_ ]{0,60}")))
def test_fast_paths_change_nothing(text: str) -> None:
    assert tokenise(text) == _plainly(text)


def test_words_are_stemmed_and_long_ones_dropped() -> None:
    assert tokenise("Running, the runners RAN under_scored x1") == ["run", "the", "runner", "ran", "under", "score", "x1"]
    assert tokenise("a" * 41 + " kept") == ["kept"]


def test_threads_do_not_share_a_stemmer() -> None:
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(tokenise("conquered dukes"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["conquer", "duke"]] * 4


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("\u201cCaf\u00e9\u201d \u2014 na\u00efve\u2026", "'Cafe' - naive..."),
        ("it\u2019s 5\u00a0km\u2013wide", "it's 5 km-wide"),
        ("\ufb01nd \uff21\uff22\uff23", "find ABC"),
    ],
)
def test_typographic_signs_and_accents_do_not_change_the_tokens(written: str, plain: str) -> None:
    assert tokenise(written) == tokenise(plain)
    assert tokenise(f"{written} \u03b1") == [*tokenise(plain), "\u03b1"], "with a letter beyond ASCII, on the other path, the same"
