"""The lexical tokenizer against the plain way to say what it does."""

from __future__ import annotations

import re
import threading

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from app.core.text import (
    _ALPHABETIC_MARKS,
    MAX_TOKEN_BYTES,
    _folded,
    identifiers,
    lexical_form,
    tokenise,
    word_count,
    words,
)

_LATIN = st.text(
    st.one_of(
        st.characters(max_codepoint=0x24F),
        st.sampled_from("\u0301\u0316\u2014\u201c\u2026\ufb01\u0344\u2260"),
    )
)


def _plain_words(text: str) -> list[str]:
    return [
        word.lower() for word in re.findall(f"(?:[^\\W_]|[{_ALPHABETIC_MARKS}])+", _folded(text))
    ]


def _plainly(text: str) -> list[str]:
    stemmer = Stemmer.Stemmer("english")
    return [
        stemmer.stemWord(word)
        for word in _plain_words(text)
        if len(word.encode()) <= MAX_TOKEN_BYTES
    ]


@given(
    st.one_of(
        st.text(),
        _LATIN,
        st.text(st.characters(max_codepoint=127)),
        st.from_regex(r"[A-Za-z0-9_ ]{0,60}"),
    )
)
def test_fast_paths_change_nothing(text: str) -> None:
    assert tokenise(text) == _plainly(text)
    assert words(text) == _plain_words(text)


def test_every_character_means_the_same_on_the_fast_path() -> None:
    for point in (*range(0x80, 0x3000), *range(0x3000, 0xD800, 37), *range(0xE000, 0x30000, 37)):
        text = f"ab{chr(point)}cd e{chr(point)} {chr(point) * 2}x"
        assert tokenise(text) == _plainly(text), hex(point)


def test_a_text_of_many_different_runs_takes_the_plain_path() -> None:
    many = " ".join(f"caf\u00e9{chr(0x2010 + n % 20)}{chr(0x2030 + n // 20)}" for n in range(200))
    assert lexical_form(many) == _folded(many)
    assert tokenise(many) == _plainly(many)


def test_words_are_stemmed_and_long_ones_dropped() -> None:
    assert tokenise("Running, the runners RAN under_scored x1") == [
        "run",
        "the",
        "runner",
        "ran",
        "under",
        "score",
        "x1",
    ]
    assert tokenise("a" * 41 + " kept") == ["kept"]


def test_threads_do_not_share_a_stemmer() -> None:
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: found.append(tokenise("conquered dukes"))) for _ in range(4)
    ]
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
    assert tokenise(f"{written} \u03b1") == [*tokenise(plain), "\u03b1"], (
        "with a letter beyond ASCII, on the other path, the same"
    )


def test_words_of_han_and_kana_go_on_over_spaces_and_line_ends() -> None:
    whole = tokenise("\u6d41\u4f53\u529b\u5b66")
    assert (
        tokenise("\u6d41 \u4f53\u529b\u5b66")
        == tokenise("\u6d41\u4f53 \n\u529b\u5b66")
        == whole
        == ["\u6d41\u4f53", "\u4f53\u529b", "\u529b\u5b66"]
    )
    assert tokenise("\u6d41\u4f53\n\n\u529b\u5b66") == ["\u6d41\u4f53", "\u529b\u5b66"], (
        "paragraphs"
    )
    assert tokenise("\ud55c\uad6d \uc0ac\ub78c") == ["\ud55c\uad6d", "\uc0ac\ub78c"], (
        "Hangul has spaces"
    )


def test_words_are_counted_as_a_reader_does() -> None:
    assert word_count("plain words, three of") == 4
    assert word_count("\u534e\u6c99\u662f\u6ce2\u5170\u7684\u9996\u90fd \u3002") == 2 + 4
    assert word_count("caf\u00e9 \u00fcber") == 2


def test_codes_are_letters_with_digits_or_three_numbers() -> None:
    text = (
        "Orders WO-24-0346/b and CVE-2021-44228 at 10.0.28.5: 3.5 of 24-hour well-known A4 sheets."
    )
    assert identifiers(text) == ["wo-24-0346/b", "cve-2021-44228", "10.0.28.5", "24-hour"]
    assert identifiers("10.0.0.1, 10.0.0.10") == ["10.0.0.1", "10.0.0.10"]
