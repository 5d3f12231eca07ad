"""Phrases, names of files, codes and beginnings of words find what holds them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.trace import Trace
from app.core.types import Library, Passage
from app.retrieval.request import SearchRequest
from app.retrieval.wording import as_written, named_files, quotes
from tests.stores import passage
from tests.unit.retrieval.conftest import Shelve, StockedLibrary

PAPERS = Library.PAPERS


def _in_file(filename: str, text: str) -> Passage:
    found = passage(text, key=filename, title="Meeting")
    return replace(found, document=replace(found.document, filename=filename))


def _first(shelf: StockedLibrary, asked: str) -> str:
    request = SearchRequest(asked, PAPERS, keep_weak=True, top_k=3)
    return shelf.retriever().retrieve(request, Trace()).hits[0].passage.document.filename


TEXTS = {
    "pond": "The old mill pond is drained each autumn.",
    "mill": "The pond near the mill is old. Old pond, mill, old mill. A warden rakes the leaves from it in winter with his two sons.",
    "capacitor": "The filter needs a capacitor of 10 \u00b5F.",
    "coil": "The coil of 47 \u00b5F hangs on a bolt of 5 kg.",
    "flaw": "CVE-2021-44228 was found in 2021; CVE202023456 before it.",
    "book": "The book has the number 978-3-16-148410-0 on its back, the other 9780262046305.",
    "form": "Goods from the U.S.A. need form C-8 and the commit 9f3ac71e2b.",
}


@pytest.fixture
def shelf(stock: Shelve) -> StockedLibrary:
    return stock([passage(text, key=key) for key, text in TEXTS.items()], own=True)


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("10uF", "10 \u00b5F"),
        ("a 10\u00b5F filter", "a 10 \u00b5F filter"),
        ("5kg bolt", "5 kg bolt"),
        ("CVE202144228", "CVE-2021-44228"),
        ("What is CVE-2020-23456?", "What is CVE202023456?"),
        ("9783161484100", "978-3-16-148410-0"),
        ("ISBN 978-0-262-04630-5", "ISBN 9780262046305"),
        ("form C8", "form C-8"),
        ("USA goods", "U.S.A goods"),
        ("capaci", "capacitor"),
        ("9f3ac71", "9f3ac71e2b"),
    ],
)
def test_a_code_or_a_beginning_becomes_what_the_library_has(
    shelf: StockedLibrary, asked: str, written: str
) -> None:
    assert as_written(asked, PAPERS, shelf.lexical, shelf.catalog) == written


@pytest.mark.parametrize(
    "asked",
    [
        "CVE-2021-44228",
        "CVE202144229",
        "9783161484101",
        "47 \u00b5F",
        "15kg",
        "What is a capaci?",  # a question: the name in it is another thing
        "old capaci",
        "xylo",
        "",
        "? 1.2.3 :",
    ],
)
def test_what_is_held_or_is_nowhere_stays(shelf: StockedLibrary, asked: str) -> None:
    assert as_written(asked, PAPERS, shelf.lexical, shelf.catalog) == asked


def test_a_phrase_in_quotes_is_exact(shelf: StockedLibrary) -> None:
    assert _first(shelf, '"old mill pond"') == "pond.txt"
    assert _first(shelf, "Where is the \u201cold mill\u201d drained?") == "pond.txt"
    assert _first(shelf, '"old pond mill"') == "mill.txt"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('a "b c" d', [" b c "]),
        ("\u201eb-c\u201c \u00abD e\u00bb", [" b c ", " d e "]),
        ('5" pipe', []),
        ('""', []),
    ],
)
def test_quotes(text: str, found: list[str]) -> None:
    assert quotes(text) == found


MINUTES = [
    _in_file(f"minutes-2024-{month:02}.md", f"Present were {month} members. The bell was voted.")
    for month in range(1, 13)
] + [
    _in_file("Shore walk.docx", "The path along the shore is steep."),
    _in_file("lamp.txt", "The bell is next to the lamp, as minutes of 2024 say: 06, md."),
]


@pytest.fixture
def minutes(stock: Shelve) -> StockedLibrary:
    return stock(MINUTES, own=True)


@pytest.mark.parametrize(
    ("asked", "filename"),
    [
        ("minutes-2024-06.md", "minutes-2024-06.md"),
        ("MINUTES-2024-06", "minutes-2024-06.md"),
        ("What does minutes-2024-06.md say about the bell?", "minutes-2024-06.md"),
        ("Who was present according to minutes-2024-11?", "minutes-2024-11.md"),
        ("What does Shore walk.docx say about the bell?", "Shore walk.docx"),
        ("minutes 2024 07", "minutes-2024-07.md"),
        ("What does minutes-2025-06.md say about the lamp?", "lamp.txt"),
    ],
)
def test_a_file_is_found_by_its_name(minutes: StockedLibrary, asked: str, filename: str) -> None:
    assert _first(minutes, asked) == filename


def test_names_of_files_in_a_question(minutes: StockedLibrary) -> None:
    both = named_files("Compare minutes-2024-01.md and lamp.txt.", PAPERS, minutes.catalog)
    assert len(both) == 2
    assert named_files("e.g. the well-known lamp of 1.5 kg", PAPERS, minutes.catalog) == ()
