from __future__ import annotations

import pytest

from app.ingest.parsers.boxes import align
from app.ingest.parsers.pdf import _assemble as assemble_pages
from app.ingest.parsers.tex_fonts import name_tex_codes


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("two di\x1berent \x1crst e\x1bects", "two different first effects"),
        ("su\x1eciently ra\x1fe, in\x1duence sti\x1b", "sufficiently raffle, influence stiff"),
        ("a \x10de\x1cned\x11 term \x15 here: 1986\x151989", "a \u201cdefined\u201d term \u2013 here: 1986\u20131989"),
        ("as de\x1cned\x16here", "as defined\u2014here"),
    ],
)
def test_codes_of_the_cork_encoding_are_named(page: str, text: str) -> None:
    assert name_tex_codes([page]) == [text]


def test_codes_of_the_older_encoding_are_named() -> None:
    assert name_tex_codes(["de\x0cned", "the \x0crst e\x0eciency of di\x0berence"]) == [
        "defined",
        "the first efficiency of difference",
    ]


def test_codes_of_formulas_stay() -> None:
    formulas = ["= max\r\n\x0c\r\n\x0c\r\nt - u", "\x12\r\nH1\r\n\x13", "X\n\x10\nY\n\x11-1"]
    assert name_tex_codes(formulas) == formulas
    assert name_tex_codes([*formulas, "di\x1berent"])[:3] == formulas


def test_a_paper_of_such_fonts_reads_well_and_its_words_are_found_on_the_page() -> None:
    page = "survival curves di\x1ber\r\nfrom the \x1crst one"
    parsed = assemble_pages([page], {})
    assert parsed.text.split() == ["survival", "curves", "differ", "from", "the", "first", "one"]
    matched = align(parsed.text, [ord(char) for char in page])
    for word in ("survival", "curves", "from", "the", "one"):
        assert page[matched[parsed.text.index(word)]] == word[0]
    assert page[matched[parsed.text.index("differ")]] == "d"
    assert page[matched[parsed.text.index("first") + 2]] == "r"
