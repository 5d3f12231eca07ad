from __future__ import annotations

from app.ingest.parsers.headings import find_headings
from app.ingest.parsers.pdf import assemble as assemble_pages
from app.ingest.parsers.pdf import set_apart

LEFT, RIGHT = "Lattices that walk in their sleep", "Maria Okonkwo, Jan Kowalski"


WORDS = "zero one two three four five six seven".split()


def paper(pages: int) -> list[str]:
    """Left pages bear number and title, right ones authors and number; the first has neither."""
    heads = [
        f"{number} {LEFT}" if number % 2 == 0 else f"{RIGHT} {number}"
        for number in range(2, pages + 1)
    ]
    bodies = [f"{word} crystals slow down\nand {word} stop" for word in WORDS[1 : pages + 1]]
    return [f"{head}\n{body}" for head, body in zip(["Title", *heads], bodies, strict=True)]


def running(pages: list[str]) -> list[list[str]]:
    return [[page.text[start:end] for start, end in page.running] for page in set_apart(pages)]


def test_heads_with_page_numbers_are_set_apart_from_the_text() -> None:
    framed = set_apart(paper(7))
    assert framed[0].text.startswith("Title\none crystals")
    assert framed[1].text == f"2 {LEFT}\n\ntwo crystals slow down\nand two stop"
    assert [page.text[start:end] for page in framed for start, end in page.running] == [
        f"2 {LEFT}",
        f"{RIGHT} 3",
    ]
    assert framed[3].text == "four crystals slow down\nand four stop", "it says nothing new"


def test_feet_and_a_second_line_at_the_edge_are_found() -> None:
    pages = [
        f"Journal of Slow Physics\nOkonkwo and Kowalski\ntext of page {word}\n{number}"
        for number, word in enumerate("abcd", 41)
    ]
    assert running(pages) == [["Journal of Slow Physics\nOkonkwo and Kowalski"], [], [], []]
    assert [page.text for page in set_apart(pages)][1:] == [f"text of page {w}" for w in "bcd"]


def test_a_line_at_the_edge_whose_number_does_not_count_the_pages_is_kept() -> None:
    sums = [120, 75, 310, 42, 18]
    pages = [
        f"page {word} of the ledger\nwith {word} rows\nTotal for this month: {total} euros"
        for word, total in zip(WORDS, sums, strict=False)
    ]
    assert running(pages) == [[f"Total for this month: {total} euros"] for total in sums]


def test_lines_that_only_look_alike_stay_in_the_text() -> None:
    chapters = [
        f"{number} {title}\nIt begins here."
        for number, title in enumerate(["Aims", "Means", "Ends", "Notes"], 1)
    ]
    assert running(chapters) == [[]] * 4, "numbered headings, one a page"
    assert running(["Same words.\nOne.", "Same words.\nTwo.", "Same words.\nThree."]) == [[]] * 3, (
        "sentences"
    )
    assert running(["7", "8", "9"]) == [[]] * 3, "nothing else on the page"
    assert running(paper(2)) == [[]] * 2, "too few to tell"


def test_a_head_neither_begins_a_sentence_nor_is_a_heading() -> None:
    raw = [page.replace("\n", "\r\n") for page in ["1 Introduction\nIt begins.", *paper(7)[1:]]]
    parsed = assemble_pages(raw, {})
    assert f"2 {LEFT}\n\ntwo crystals slow down" in parsed.text
    assert [heading.title for heading in parsed.headings] == ["1 Introduction"]
    assert [parsed.text[page.start : page.end].split("\n")[0] for page in parsed.pages][
        1
    ] == f"2 {LEFT}"


def test_headings_are_looked_for_outside_given_spans() -> None:
    text = "1 Aims\nWords.\n\n2 Means\nWords.\n"
    assert [h.title for h in find_headings(text)] == ["1 Aims", "2 Means"]
    at = text.index("2 Means")
    assert [h.title for h in find_headings(text, [(at, at + 7)])] == ["1 Aims"]


def test_a_notice_under_every_page_is_set_apart_though_it_is_a_sentence() -> None:
    notice = "Printed by A. Reader on 3 May 2021. For personal use only."
    pages = [
        f"the {word} text of a page\nends {word}\nslide {at} of 5, Kiel\n{notice}"
        for at, word in enumerate(WORDS[:5], 1)
    ]
    assert running(pages) == [[f"slide 1 of 5, Kiel\n{notice}"], [], [], [], []]
    assert running(pages[:3]) == [[]] * 3, "too few to tell"
