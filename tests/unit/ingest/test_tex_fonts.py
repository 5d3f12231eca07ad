from __future__ import annotations

import pytest

from app.ingest.parsers.pdf import assemble as assemble_pages
from app.ingest.parsers.pdf_boxes import align, name_tex_codes, without_ornaments


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("two di\x1berent \x1crst e\x1bects", "two different first effects"),
        ("su\x1eciently ra\x1fe, in\x1duence sti\x1b", "sufficiently raffle, influence stiff"),
        (
            "a \x10de\x1cned\x11 term \x15 here: 1986\x151989",
            "a \u201cdefined\u201d term \u2013 here: 1986\u20131989",
        ),
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
    matched = align(parsed.text, page)
    for word in ("survival", "curves", "from", "the", "one"):
        assert page[matched[parsed.text.index(word)]] == word[0]
    assert page[matched[parsed.text.index("differ")]] == "d"
    assert page[matched[parsed.text.index("first") + 2]] == "r"


_ORNAMENTS = (
    "\u275b\u275c\u275d\u275e\u2761\u2762\u2763\u2764\u2710\u2767\u2660\u2665\u2666\u2663\u2709\u2746\u275a"
    "\u2732\u2733\u270f\u2711\u271b\u271c\u2735\u2736\u2737\u273e"
)
_CODED = dict(zip("abcdefghilmnopuAT-.\x10\x11\x1b\x1c0129", _ORNAMENTS, strict=True))
ORNATE = "".join(
    _CODED.get(char, char)
    for char in "Abstract\r\nThe random e\x1bects of \x10spheri-\r\ncal\x11 groups are de\x1cned"
    " in 2019."
)
"""As PDFium reads a paper whose glyphs are named by their codes; q, r, s, t and P are no names
of ornaments."""


def test_ornaments_that_stand_for_letters_become_letters() -> None:
    parsed = assemble_pages([ORNATE], {})
    assert parsed.text.split() == (
        "Abstract The random effects of \u201cspherical\u201d groups are defined in 2019.".split()
    )


def test_ligatures_of_ornaments_in_the_older_encoding_are_read() -> None:
    assert name_tex_codes(["\u275e\u2761\u261e\u2665\u2761 r\u2761\u270c\u2761\u275d\u275d"]) == [
        "define re\ufb02ecc"
    ]


def test_words_of_ornaments_are_found_on_the_page() -> None:
    text = assemble_pages([ORNATE], {}).text
    matched = align(text, ORNATE)
    for word in ("Abstract", "random", "groups", "2019"):
        at = text.index(word)
        assert [
            without_ornaments(ORNATE)[matched[at + place]] for place in range(len(word))
        ] == list(word)


def test_ornaments_among_words_stay_ornaments() -> None:
    page = (
        "\u2714 done \u2718 failed \u2460 first \u2461 second \u2665 of hearts, in an ordinary text"
    )
    assert name_tex_codes([page]) == [page]
