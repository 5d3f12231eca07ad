"""tantivy's analyzer and `core.text.tokenise` are one tokenizer."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.normalisation import normalise
from app.core.text import lexical_form, tokenise
from app.storage.words.tantivy import build_analyzer

ANALYZER = build_analyzer()


@settings(max_examples=400)
@given(st.text(alphabet=st.characters(max_codepoint=0xFFFF, exclude_categories=("Cs", "Cn"))))
def test_agree_on_any_text(text: str) -> None:
    text = normalise(text)[0]
    assert ANALYZER.analyze(lexical_form(text)) == tokenise(text)


@pytest.mark.parametrize(
    "text",
    [
        "Running dogs' x_y C++ naïve café",
        "ΟΔΟΣ οδός Σίσυφος",
        "हिन्दी में लिखा",
        "कि את־השלום شَكَرَ",
        "日本語の文章 한국어",
        "a" * 40 + " " + "b" * 41 + " " + "é" * 21,
        "① ½ ǅ ß İstanbul ﬁne",
    ],
)
def test_agree_on_hard_words(text: str) -> None:
    form = lexical_form(text)
    assert ANALYZER.analyze(form) == tokenise(text)


def test_agree_on_every_single_character_of_the_basic_plane() -> None:
    differing = [
        chr(point)
        for point in range(0x20, min(sys.maxunicode, 0xFFFF))
        if unicodedata.category(chr(point)) not in ("Cs", "Cn")
        and ANALYZER.analyze(lexical_form(chr(point))) != tokenise(chr(point))
    ]
    assert differing == []
