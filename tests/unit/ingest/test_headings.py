"""Headings of text without mark-up: which numbered lines are some."""

from __future__ import annotations

from app.core.types import PageSpan, ParsedDocument
from app.ingest.chunking import section_name, sections
from app.ingest.parsers.headings import OutlineEntry, find_headings, with_outline

BODY = "\n" + "It is said in plain words that crystals walk at night. " * 10 + "\n"


def levels(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.title) for heading in find_headings(text)]


def test_roman_sections_with_letters_below_them_as_ieee_and_aps_set_papers() -> None:
    text = BODY.join(
        [
            "Abstract", "I. INTRODUCTION", "II. RELATED WORK", "A. Slow Crystals", "1. Quartz", "2. Salt", "B. Fast Crystals",
            "1. Quartz once more", "III. METHOD", "A. Cooling", "D. Out of order", "IV. CONCLUSION", "ACKNOWLEDGMENT", "REFERENCES",
            "V. Petrov and others write of quartz", "",
        ]
    )  # fmt: skip
    assert levels(text) == [
        (1, "Abstract"), (1, "I. INTRODUCTION"), (1, "II. RELATED WORK"), (2, "A. Slow Crystals"), (3, "1. Quartz"), (3, "2. Salt"),
        (2, "B. Fast Crystals"), (3, "1. Quartz once more"), (1, "III. METHOD"), (2, "A. Cooling"), (1, "IV. CONCLUSION"),
        (1, "ACKNOWLEDGMENT"), (1, "REFERENCES"),
    ]  # fmt: skip


def test_roman_numbers_may_go_on_with_their_letters_and_the_first_may_be_missed() -> None:
    text = BODY.join(
        [
            "",
            "II. MATH",
            "II.A. Many lines",
            "II.A.1. Wide ones",
            "III. FIGURES",
            "III.A. Small ones",
            "",
        ]
    )
    assert [level for level, _ in levels(text)] == [1, 2, 3, 1, 2]


def test_an_initial_is_no_roman_number_where_sections_have_arabic_ones() -> None:
    text = BODY.join(
        [
            "",
            "1 Introduction",
            "2 Method",
            "I. Newton and the rest",
            "2.1 Cooling",
            "II. Second of its name",
            "3 Results",
            "",
        ]
    )
    assert [title for _, title in levels(text)] == [
        "1 Introduction",
        "2 Method",
        "2.1 Cooling",
        "3 Results",
    ]


def test_a_table_of_contents_does_not_count() -> None:
    contents = (
        "1 Introduction 3\n1.1 Aims . . . . . . . 3\n2 Crystals that walk 4\n3 Ends \u00b7 9\n"
    )
    chapters = BODY.join(
        ["", "1 Introduction", "1.1 Aims", "2 Crystals that walk", "3 Ends of all of them", ""]
    )
    expected = ["1 Introduction", "1.1 Aims", "2 Crystals that walk", "3 Ends of all of them"]
    assert [title for _, title in levels(contents + chapters)] == expected, "its entries come again"
    renamed = chapters.replace("1 Introduction", "1 First words").replace(
        "2 Crystals that walk", "2 Quartz"
    )
    announced = [title for _, title in levels("Contents\n" + contents + renamed)]
    assert announced[:2] == ["Contents", "1 First words"], "the text says so"
    assert levels(contents + renamed)[0][1] == "1 Introduction 3", "nothing tells"


def test_headings_that_end_with_a_number_are_headings() -> None:
    text = BODY.join(["", "1 Introduction", "2 Experiment 1", "3 Experiment 2", "4 Discussion", ""])
    assert [title for _, title in levels(text)] == [
        "1 Introduction",
        "2 Experiment 1",
        "3 Experiment 2",
        "4 Discussion",
    ]


def test_counting_goes_on_behind_a_number_that_was_missed() -> None:
    lost = BODY.join(
        ["", "1 Aims", "2 Means", "a heading in two parts", "5 Ends", "5.1 Good ones", ""]
    )
    assert [title for _, title in levels(lost)] == ["1 Aims", "2 Means", "5 Ends", "5.1 Good ones"]
    early = BODY.join(["", "1 Aims", "2 Means", "4 Rows of a table", "3 Ends", "4 Thanks", ""])
    assert [title for _, title in levels(early)] == ["1 Aims", "2 Means", "3 Ends", "4 Thanks"]


def test_items_of_a_list_are_told_from_headings_by_how_their_numbers_are_written() -> None:
    steps = "\n".join(
        f"{number}. Turn the knob to {word}"
        for number, word in enumerate(["warm", "hot", "cold", "off"], 1)
    )
    text = BODY.join(["", "1 Aims", "2 Means", steps, "2.1 Knobs", "3 Ends", "4 Thanks", ""])
    assert [title for _, title in levels(text)] == [
        "1 Aims",
        "2 Means",
        "2.1 Knobs",
        "3 Ends",
        "4 Thanks",
    ]


def test_a_chapter_has_its_title_on_the_next_line_or_on_its_own() -> None:
    text = BODY.join(
        [
            "",
            "Chapter 1\nOf Crystals",
            "1.1 Quartz",
            "Chapter 2: Of Salt",
            "2.1 Lakes",
            "3 CHAPTER 2. OF SALT",
            "",
        ]
    )
    assert levels(text) == [
        (1, "Chapter 1 Of Crystals"),
        (2, "1.1 Quartz"),
        (1, "Chapter 2: Of Salt"),
        (2, "2.1 Lakes"),
    ]


def test_titles_in_other_scripts() -> None:
    text = BODY.join(
        [
            "",
            "1 \u00dcberblick",
            "2 \u6a21\u677f\u4ecb\u7ecd",
            "2.1 \u5b89\u88c5\uff0c",
            "3 \u0412\u0432\u0435\u0434\u0435\u043d\u0438\u0435",
            "",
        ]
    )
    assert [level for level, _ in levels(text)] == [1, 1, 1], "what ends with a comma is none"


def test_an_index_has_no_headings() -> None:
    assert levels("FIT LIMIT, 96\nFIT SCRIPT, 97\nTHE REMAINDER\n") == [(1, "THE REMAINDER")]


def test_numbers_of_all_kinds_are_no_part_of_a_section_name() -> None:
    for title in (
        "IV. RESULTS",
        "II.A. Results",
        "Chapter 4: Results",
        "CHAPTER 4 Results",
        "4.1 Results",
        "A. Results",
    ):
        assert section_name(title) == "results", title


def test_nothing_stands_below_a_table_of_contents() -> None:
    text = "Contents\n1.1 Aims . . . . 3\n1.2 Means . . . . 4\n" + BODY.join(
        ["", "1.1 Aims", "1.2 Means", ""]
    )
    parsed = ParsedDocument(text, "application/pdf", headings=tuple(find_headings(text)))
    assert [span.name for span in sections(parsed)] == ["contents", "body", "body"]


def test_contents_of_a_text_whose_headings_are_not_known_are_no_section() -> None:
    text = (
        "Contents\nOf crystals 3\nOf salt 7\n" + BODY.join(["", "Of crystals", "Of salt", ""]) * 4
    )
    assert levels(text) == []


def test_counting_begins_with_the_first() -> None:
    assert levels(BODY.join(["", "3 Rows of a table", "and text", ""])) == []


def test_the_outline_of_a_pdf_names_its_headings_and_their_levels() -> None:
    first = "Contents\nOn slow glass\nAbstract\nWe wait.\nOn slow glass\nIt flows.\n"
    second = "3.1 How to wait for\nglass that is slow\nWords.\nReferences\n[1] Moe\nUnnamed\nEnd."
    pages = (PageSpan(1, 0, len(first)), PageSpan(2, len(first), len(first + second)))
    outline = [
        OutlineEntry(1, "On slow glass", 0),
        OutlineEntry(2, "How to wait for glass that is slow", 1),
        OutlineEntry(1, "Not in the text", 1),
        OutlineEntry(2, "UNNAMED", 1),
    ]
    text = first + second
    found = with_outline(text, pages, outline, find_headings(text), [(0, 8)])
    assert [(h.level, h.title) for h in found] == [
        (1, "On slow glass"),
        (1, "Abstract"),
        (2, "3.1 How to wait for glass that is slow"),
        (1, "References"),
        (2, "Unnamed"),
    ]
    assert text[found[2].start : found[2].end] == "3.1 How to wait for\nglass that is slow"
