"""The writer of blocks: numbers keep their value, cells their labels, offsets are exact."""

from __future__ import annotations

import pytest

from app.ingest.parsers.blocks import Block, Cell, lowered, raised, resolved, table_lines, write

MINUS = "\u2212"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (f"3 x 10{raised('12')} kg", "3 x 10^12 kg"),
        (f"10{raised(MINUS + '3')} bar", "10^-3 bar"),
        (f"128{raised('4')} metres", "128^4 metres"),
        (f"two mills{raised('4')} stand", "two mills stand"),
        (f"two mills{raised('[4]')} stand", "two mills stand"),
        (f"5 km{raised('2')}", "5 km\u00b2"),
        (f"the 1{raised('st')} of May", "the 1st of May"),
        (f"x{raised('n+1')}", "x^(n+1)"),
        (f"H{lowered('2')}O", "H2O"),
        (f"4{raised('1')}/{lowered('2')} inches", "4 1/2 inches"),
        (f"10{raised('10' + raised('2'))}", "10^(10^2)"),
        (f"M{raised('lle')} Moe", "Mlle Moe"),
    ],
)
def test_raised_and_lowered_text_keeps_its_meaning(text: str, plain: str) -> None:
    assert resolved(text) == plain


def _rows(*rows: str) -> list[list[Cell]]:
    """Return cells of rows: `*` a head, `>2` across two columns, `v2` down two rows."""
    made = []
    for row in rows:
        cells = []
        for part in row.split("|"):
            text, *marks = part.strip().split("~")
            down = next((int(mark[1:]) for mark in marks if mark[0] == "v"), 1)
            across = next((int(mark[1:]) for mark in marks if mark[0] == ">"), 1)
            cells.append(Cell(text, "*" in marks, down, across))
        made.append(cells)
    return made


@pytest.mark.parametrize(
    ("rows", "last"),
    [
        (("Quay~* | Keeper~* | Boats~*", "North~v2 | Moe | 3", "Lie | 7"),
         "Quay: North | Keeper: Lie | Boats: 7"),
        (("Berth~* | Summer~* | Winter~* | Deposit~*", "Guest~>3 | 50"),
         "Berth: Guest | Summer: Guest | Winter: Guest | Deposit: 50"),
        (("Town~*~v2 | 2023~*~>2 | 2024~*~>2", "Spring~* | Autumn~* | Spring~* | Autumn~*",
          "Vik | 1 | 2 | 3 | 4"),
         "Town: Vik | 2023 Spring: 1 | 2023 Autumn: 2 | 2024 Spring: 3 | 2024 Autumn: 4"),
        (("Town~v2 | 2023~>2", "Spring | Autumn", "Vik | 1 | 2"),
         "Town: Vik | 2023 Spring: 1 | 2023 Autumn: 2"),
        (("Name | Price~>2", "Boat | 3 | 4", "Raft | 5 | 6"), "Name: Raft | Price: 5 | Price: 6"),
        (("Name | Club | Price~>2", "Name | Club | Day | Week", "Boat | Vik | 3 | 4"),
         "Name: Boat | Club: Vik | Price Day: 3 | Price Week: 4"),
        (("Volume~* | 18 million", "Built~* | 1931"), "Built: 1931"),
        ((" | A~* | B~*", "x~* | 1 | 2"), "x | A: 1 | B: 2"),
        (("Year | Place", "1911 | Leiden"), "Year: 1911 | Place: Leiden"),
        (("3 | 4", "5 | 6"), "5 | 6"),
        ((" | | Year ended May 31, | ", " | 2019 | 2018 | 2017", "Sales | 3 | 4 | n/a"),
         "Sales | Year ended May 31, 2019: 3 | Year ended May 31, 2018: 4"
         " | Year ended May 31, 2017: n/a"),
        ((" | 2019 | | 2018 | ", " | Debts | Assets | Debts | Assets", "East | 1 | 2 | 3 | \u2014"),
         "East | 2019 Debts: 1 | 2019 Assets: 2 | 2018 Debts: 3 | 2018 Assets: \u2014"),
        (("(in thousands) | 2019 | 2018", "Sales | 3 | 4"), "Sales | 2019: 3 | 2018: 4"),
        ((" | 2019 | 2018", " | (unaudited) | ", "Assets: | | ", "Boats | 3 | 4"),
         "Boats | 2019: 3 | 2018: 4"),
        ((" | Boat | Raft", "Colour | red | blue"), "Colour | Boat: red | Raft: blue"),
        (("Quays | | ", "(days) | 2019 | 2018 (a)", "North | 3 | 4"), "North | 2019: 3 | 2018 (a): 4"),
        ((" | 2019 | 2018", "Quay | $'000 | $'000", "North | 3 | 4"),
         "Quay: North | 2019 $'000: 3 | 2018 $'000: 4"),
        (("Part | Value", "Colour | red", "Size | large", "Weight | 12"),
         "Part: Weight | Value: 12"),
    ],
)  # fmt: skip
def test_a_cell_stands_under_its_own_labels(rows: tuple[str, ...], last: str) -> None:
    assert table_lines(_rows(*rows))[-1] == last


def test_offsets_are_those_of_the_stored_text() -> None:
    parsed = write(
        [
            Block("heading", "The\u200b mill", level=1),
            Block("paragraph", "It stands."),
            Block("item", "Open the valve.", mark="1."),
            Block("item", "Wait.", level=1, mark="a)"),
            Block("table", "Beds", rows=_rows("Bed | Roses", "East | 45")),
            Block("field", "Tove Lind", mark="Name:"),
            Block("code", "  keep(\n    this)\n"),
        ],
        "text",
    )
    assert parsed.text == (
        "The mill\n\nIt stands.\n\n1. Open the valve.\n  a) Wait.\n\nBeds\nBed | Roses\n"
        "Bed: East | Roses: 45\n\nName: Tove Lind\n\n  keep(\n    this)"
    )
    assert [(one.kind, parsed.text[one.start : one.end]) for one in parsed.blocks] == [
        ("item", "1. Open the valve."),
        ("item", "a) Wait."),
        ("caption", "Beds"),
        ("row", "Bed | Roses"),
        ("row", "Bed: East | Roses: 45"),
        ("field", "Name: Tove Lind"),
        ("code", "  keep(\n    this)"),
    ]
    assert [parsed.text[one.start : one.end] for one in parsed.headings] == ["The mill"]
    assert parsed.stripped_characters == 1


def test_a_merged_cell_cannot_make_a_table_without_end() -> None:
    huge = [[Cell("x", rows=10**9, columns=10**9)] for _ in range(100)]
    assert len(table_lines(huge)) <= 100
