from __future__ import annotations

from itertools import pairwise

import pytest

from app.core.types import Heading, Metadata, PageSpan, ParsedDocument
from app.ingest.chunking import section_name, sections
from app.ingest.metadata import describe
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.parsers.headings import find_headings
from tests.fakes import files

PARSER = DirectParser(IngestOptions())


def paper(text: str, **hints: object) -> ParsedDocument:
    title, authors = hints.get("title"), hints.get("authors", ())
    assert title is None or isinstance(title, str)
    assert isinstance(authors, tuple)
    return ParsedDocument(
        text,
        "application/pdf",
        (PageSpan(1, 0, len(text)),),
        tuple(find_headings(text)),
        title=title,
        authors=authors,
    )


FRONT = """Published as a conference paper at ICLR 2023
GROWING CRYSTALS BY THINKING AND WAITING IN
LARGE LABORATORIES
Anna Müller\u2217*,1, Jean-Luc O'Neill2, Li van der Berg2
1Department of Physics, University of Somewhere
{anna,jl}@example.org
ABSTRACT
We wait.
1 INTRODUCTION
arXiv:2301.04567v3 [cs.CL] 10 Mar 2024
"""


def test_front_matter_of_a_paper() -> None:
    assert describe(paper(FRONT), "x.pdf") == Metadata(
        "GROWING CRYSTALS BY THINKING AND WAITING IN LARGE LABORATORIES",
        ("Anna Müller", "Jean-Luc O'Neill", "Li van der Berg"),
        2024,
        "2301.04567",
    )


def test_authors_over_two_lines_with_marks_between() -> None:
    text = (
        "PaLa: A Small Agent\nYi He\u22171 Guan Hu\u22171 Pei Feng1\n"
        "Yun Zhang1 Wei E2\n1Acme Research 2North University\nAbstract\nText."
    )
    assert describe(paper(text), "x.pdf").authors == (
        "Yi He",
        "Guan Hu",
        "Pei Feng",
        "Yun Zhang",
        "Wei E",
    )


PRINTED = ("Anna Müller", "Jean-Luc O'Neill", "Li van der Berg")


@pytest.mark.parametrize(
    ("declared", "authors"),
    [
        (("The Example developers",), PRINTED),
        ((*PRINTED, "Zoe Last"), (*PRINTED, "Zoe Last")),
        ((), PRINTED),
    ],
    ids=["of the program", "the same and more", "none"],
)
def test_the_first_page_knows_the_authors_better_than_the_file(
    declared: tuple[str, ...], authors: tuple[str, ...]
) -> None:
    assert describe(paper(FRONT, authors=declared), "x.pdf").authors == authors


def test_a_declared_title_wins_unless_it_is_a_template_s() -> None:
    assert (
        describe(paper(FRONT, title="Waiting for Crystals"), "x.pdf").title
        == "Waiting for Crystals"
    )
    for junk in ("Microsoft Word - draft3.doc", "untitled", "paper.dvi", "  ", "Word Document"):
        assert describe(paper(FRONT, title=junk), "x.pdf").title.startswith("GROWING")


@pytest.mark.parametrize(
    ("declared", "authors"),
    [
        (("Ada Lovelace; Charles Babbage",), ("Ada Lovelace", "Charles Babbage")),
        (
            ("Ada Lovelace, Charles Babbage and Mary Somerville",),
            ("Ada Lovelace", "Charles Babbage", "Mary Somerville"),
        ),
        (("Lovelace, Ada",), ("Lovelace, Ada",)),
        (("python-docx",), ()),
        (("root",), ()),
    ],
)
def test_declared_authors(declared: tuple[str, ...], authors: tuple[str, ...]) -> None:
    assert (
        describe(ParsedDocument("Some text.", "text/html", authors=declared), "x.html").authors
        == authors
    )


def test_the_file_name_is_the_last_resort_and_may_hold_the_arxiv_id() -> None:
    assert (
        describe(ParsedDocument("12\n", "text/plain"), "field_notes-2.txt").title == "field notes 2"
    )
    found = describe(ParsedDocument("Some text without a stamp.", "text/plain"), "1706.03762v5.pdf")
    assert (found.arxiv_id, found.year) == ("1706.03762", 2017)
    assert (
        describe(ParsedDocument("arXiv:math/0211159 [math.DG]", "text/plain"), "x.txt").year == 2002
    )


def test_metadata_of_marked_up_kinds() -> None:
    assert describe(PARSER.parse(files.HTML, "b.html"), "b.html") == Metadata(
        "Peat bogs & carbon", ("Rosa Quispe",), 2019
    )
    assert describe(PARSER.parse(files.MARKDOWN, "b.md"), "b.md") == Metadata(
        "Notes on bees", ("Karl Frisch", "Rosa Park"), 2021
    )
    docx = describe(PARSER.parse(files.make_docx(), "t.docx"), "t.docx")
    assert docx == Metadata("The Tide Tables of Aberdeen", ("Ada Lovelace", "Charles Babbage"))
    assert (
        describe(PARSER.parse(b"# Only a heading\n\ntext", "n.md"), "n.md").title
        == "Only a heading"
    )


def test_control_and_invisible_characters_never_reach_a_title() -> None:
    found = describe(
        ParsedDocument("Text.", "text/html", title="A\u202eb\x00c", authors=("Jo\u200b Do\n",)),
        "x.html",
    )
    assert (found.title, found.authors) == ("Abc", ("Jo Do",))


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Abstract", "abstract"),
        ("1 INTRODUCTION", "introduction"),
        ("2. Related Work", "related work"),
        ("3 Materials and Methods", "methodology"),
        ("4.1 Experimental Setup", "experiments"),
        ("5.3 Main results", "results"),
        ("Results and Discussion", "results"),
        ("VI. Conclusions", "conclusion"),
        ("6 Discussion and Conclusion", "conclusion"),
        ("References", "references"),
        ("Appendix A", "appendix"),
        ("Geography", None),
        ("Methodist churches", None),
    ],
)
def test_section_names(title: str, name: str | None) -> None:
    assert section_name(title) == name


def test_sections_cover_the_text_and_inherit_names() -> None:
    text = (
        "Front.\nAbstract\nA.\n1 Introduction\nB.\n2 SlowNet\nC.\n2.1 Cooling\nD.\n"
        "3 Results\n3.1 Speed\nE.\nReferences\nF.\nA Prompts\nG."
    )
    parsed = ParsedDocument(text, "application/pdf", headings=tuple(find_headings(text)))
    spans = sections(parsed)
    assert [span.name for span in spans] == [
        "body", "abstract", "introduction", "methodology", "methodology", "results", "references", "appendix"
    ]  # fmt: skip
    assert spans[0].start == 0
    assert spans[-1].end == len(text)
    assert all(a.end == b.start for a, b in pairwise(spans))
    assert (
        text[spans[5].start : spans[5].end] == "3 Results\n3.1 Speed\nE.\n"
    )  # a heading without text opens the next span


def test_encyclopedia_headings_are_body() -> None:
    text = "Lichen\nHistory\nx\nReferences\ny"
    headings = (Heading(7, 14, 2, "History"), Heading(17, 27, 2, "References"))
    assert [
        span.name for span in sections(ParsedDocument(text, "text/markdown", headings=headings))
    ] == ["body", "body", "references"]


def test_numbered_lists_affiliations_and_table_rows_are_no_headings() -> None:
    text = (
        "A Title\n1 Department of Nothing\n2 School of Less\nAbstract\nWe list.\n1"
        " Introduction\nText.\n"
        "1. First of all we do\nwhat we must.\n2. Second we rest\nand sleep.\n2 Method\nModel 3.1"
        " 4.2\n"
        "7 Rows of Data\n2.1 Parts\nX.\n"
    )
    assert [heading.title for heading in find_headings(text)] == [
        "Abstract",
        "1 Introduction",
        "2 Method",
        "2.1 Parts",
    ]


@pytest.mark.parametrize("title", ["Tea", "\u6771\u4eac", "Salt"])
def test_plain_text_may_have_a_short_title(title: str) -> None:
    text = (
        f"{title}\n\nIt is known in many countries and has been for a long time, as travellers"
        " have written.\n"
    )
    assert describe(ParsedDocument(text, "text/plain", (), (), None, ()), "x.txt").title == title


def test_a_blank_line_ends_the_title_of_a_text() -> None:
    apart = b"Rules of the harbour, its quays and\n\nof the boats, as they are now.\nNo fires."
    assert describe(PARSER.parse(apart, "r.txt"), "r.txt").title.endswith("quays and")
    together = b"Rules of the harbour, its quays and\nof the boats\n\nNo fires are allowed here."
    assert describe(PARSER.parse(together, "r.txt"), "r.txt").title.endswith("of the boats")


def test_text_and_notices_are_no_titles() -> None:
    text = (
        "are therefore made by themselves, in a way that "
        + "nobody has seen so far " * 4
        + "or since. They walk.\nSlow Crystals\nX."
    )
    assert describe(paper(text), "a.pdf").title == "Slow Crystals"
    assert describe(
        paper(
            "Version 2 \u00a9 2020 Network of Crystals. All rights reserved.\nGuidelines for Salt\n"
        ),
        "a.pdf",
    ).title == ("Guidelines for Salt")
    assert describe(paper("The Guide\nAnna Berg", title="undefined"), "a.pdf").title == "The Guide"
    assert describe(paper("The Guide\nAnna Berg", title="<D6D8C7EC>"), "a.pdf").title == "The Guide"


def test_names_in_a_grid_with_affiliations_between_are_authors() -> None:
    text = (
        "On slow glass\nAnna Mill\nUniversity of Kiel\nJan Brook\nETH Zurich\nPublished January\n"
        "Abstract\nIt was published in a grid."
    )
    assert describe(paper(text), "x.pdf").authors == ("Anna Mill", "Jan Brook")


@pytest.mark.parametrize(
    ("line", "year"),
    [
        ("Copyright \u00a9 2004-2023 the glass team", 2023),
        ("Copyright 1990 W. Moe\nCopyright 1999\u20132022 R team", 2022),
        ("Published as a paper of 2021, received 2019", 2021),
    ],
)
def test_the_year_is_the_last_of_a_range(line: str, year: int) -> None:
    assert describe(paper(f"On slow glass\n{line}\nIt flows."), "x.pdf").year == year


def test_sections_of_papers_are_only_in_papers() -> None:
    manual = "1 Background\nIt is old.\n2 Methods\nThere are two.\n3 Results\nNone."
    assert {span.name for span in sections(paper(manual))} == {"body"}
    guide = "Abstract\nIt says how.\n1 Welcome\nHello.\n2 Steps\nDo it."
    assert [span.name for span in sections(paper(guide))] == ["abstract", "body", "body"]
