"""CSV and workbooks: each row is a line with its labels, and what is not read is named."""

from __future__ import annotations

import datetime

import pytest

from app.core.errors import Encrypted, TooLarge, Unreadable, UnsupportedType
from app.core.types import ParsedDocument
from app.ingest.chunking import chunk
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.parsers.workbooks import number, shown
from tests.fakes.files import archive
from tests.fakes.office import CHART, cells, make_xls, make_xlsx, relations, sheet, table


def read(content: bytes | str, name: str) -> ParsedDocument:
    data = content.encode() if isinstance(content, str) else content
    return DirectParser(IngestOptions()).parse(data, name)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("name,age\nAnn,3\nBo,4\n", ["name | age", "name: Ann | age: 3", "name: Bo | age: 4"]),
        ("name;price\nrope;1,50\n", ["name | price", "name: rope | price: 1,50"]),
        ("a;b\n1,5;2,5\n3,5;4,5\n", ["a | b", "a: 1,5 | b: 2,5", "a: 3,5 | b: 4,5"]),
        ("name\tcity\nAnn\tOslo, Norway\n", ["name | city", "name: Ann | city: Oslo, Norway"]),
        ("name|age\nAnn|3\n", ["name | age", "name: Ann | age: 3"]),
        ("sep=;\nname;age\nAnn;3\n", ["name | age", "name: Ann | age: 3"]),
        ("name,age\nAnn,3\nBo,-\n", ["name | age", "name: Ann | age: 3", "name: Bo | age: -"]),
        (
            'id,note\n7,"two\nlines, one ""cell"""\n',
            ["id | note", 'id: 7 | note: two lines, one "cell"'],
        ),
        ("Ann,3,Oslo\nBo,4,Rome\n", ["Ann | 3 | Oslo", "Bo | 4 | Rome"]),
        ("WO-1,closed\nWO-2,open\n", ["WO-1 | closed", "WO-2 | open"]),
        ("name,age\rAnn,3\r", ["name | age", "name: Ann | age: 3"]),
        ("Name:,Ann\nCity:,Oslo\n", ["Name: Ann", "City: Oslo"]),
        (
            "station,2023,2024\nKorvik,112,208\n",
            ["station | 2023 | 2024", "station: Korvik | 2023: 112 | 2024: 208"],
        ),
    ],
)
def test_each_row_is_a_line_with_its_labels(source: str, lines: list[str]) -> None:
    assert read(source, "a.csv").text.split("\n") == lines


def test_lines_above_and_below_a_table_are_text_and_tables_are_apart() -> None:
    source = (
        "Harbour report\nprinted 2 May,,\n\nboat,length,berth\nHilda,14,A\nRuna,22,B\n"
        "All lengths are in metres.,,\n\nday,wind,rain\nMonday,3,0\nTuesday,4,2\n"
    )
    assert read(source, "a.csv").text.split("\n\n") == [
        "Harbour report",
        "printed 2 May",
        "boat | length | berth\nboat: Hilda | length: 14 | berth: A\nboat: Runa | length: 22 | berth: B",
        "All lengths are in metres.",
        "day | wind | rain\nday: Monday | wind: 3 | rain: 0\nday: Tuesday | wind: 4 | rain: 2",
    ]


def test_encodings_and_open_quotation_marks_are_read_with_a_warning() -> None:
    latin = read("Name;Straße\nJörg;Große Gasse\nÄnne;Öhrweg\n".encode("cp1252"), "a.csv")
    assert "Straße: Große Gasse" in latin.text
    assert latin.warnings
    rows = "".join(f"{at},x\n" for at in range(400))
    broken = read('id,note\n1,"never closed\n' + rows, "a.csv")
    assert "id: 399 | note: x" in broken.text
    assert any("quotation mark" in one for one in broken.warnings)


def test_a_chunk_never_ends_within_a_row() -> None:
    rows = "".join(f"S{at:03},{at % 12},{at * 13},a remark of some words\n" for at in range(300))
    parsed = read("station,month,rain,remark\n" + rows, "a.csv")
    lines = set(parsed.text.split("\n"))
    for one in chunk(parsed, IngestOptions(chunk_size=400, chunk_overlap=80)):
        assert set(parsed.text[one.start : one.end].split("\n")) <= lines


def test_too_many_cells_are_named() -> None:
    parsed = read("a,b\n" + "1,2\n" * 260_000, "a.csv")
    assert parsed.warnings == ("rows behind row 250,000 are not read: too many cells",)


@pytest.mark.parametrize(
    ("value", "code", "said"),
    [
        (0.19, "0%", "19%"),
        (0.195, "0.0%", "19.5%"),
        (12.5, '0.00" kg"', "12.50 kg"),
        (12.5, "[$€-407] #,##0.00", "€ 12.50"),
        (-1234.5, "$#,##0.00;[Red]($#,##0.00)", "-$1234.50"),
        (7.0, "00000", "00007"),
        (12.5, "0.###", "12.5"),
        (12.50000000001, "General", "12.5"),
        (0.1 + 0.2, "General", "0.3"),
        (45383.0, "dd/mm/yyyy", "2024-04-01"),
        (45383.75, "d. mmmm yyyy h:mm", "2024-04-01 18:00"),
        (0.5, "h:mm AM/PM", "12:00"),
        (1.25, "[h]:mm", "30:00"),
        (1e11, "yyyy", "100000000000"),
    ],
)
def test_a_number_is_shown_as_its_sheet_shows_it(value: float, code: str, said: str) -> None:
    assert shown(value, code) == said


def test_numbers_lose_the_noise_of_binary_fractions() -> None:
    assert [number(one) for one in (3.0, 1234567.891, 1e-7, -0.5)] == [
        "3",
        "1234567.891",
        "1e-07",
        "-0.5",
    ]


def test_sheets_are_headings_with_their_tables() -> None:
    rental = table(
        ("Rental prices from April", None, None),
        ("Type", "Day", "Tax"),
        ("City bicycle", 14.5, 0.19),
        ("Tandem", 31, 0.07),
        (None, None, None),
        ("Returned late: 5 per hour.", None, None),
        style=(0, 1, 2),
    )
    people = table(("Name", "Since"), ("Ann", 45383), style=(0, 3))
    parsed = read(
        make_xlsx({"Rental": rental, "Staff": people}, formats=("0.00", "0%", "d.m.yyyy")), "p.xlsx"
    )
    assert parsed.text.split("\n\n") == [
        "Rental",
        "Rental prices from April",
        "Type | Day | Tax\nType: City bicycle | Day: 14.50 | Tax: 19%\n"
        "Type: Tandem | Day: 31.00 | Tax: 7%",
        "Returned late: 5 per hour.",
        "Staff",
        "Name | Since\nName: Ann | Since: 2024-04-01",
    ]
    assert [one.title for one in parsed.headings] == ["Rental", "Rental prices from April", "Staff"]
    assert parsed.warnings == ()


def test_merged_heads_and_groups_reach_each_row() -> None:
    rows = [
        cells(1, "Station", "2024", None, "Depth"),
        cells(2, None, "Spring", "Autumn"),
        cells(3, "Korvik", 112, 208, 9),
        cells(4, None, 96, 240, 8),
    ]
    merged = "".join(f'<mergeCell ref="{ref}"/>' for ref in ("A1:A2", "B1:C1", "D1:D2", "A3:A4"))
    book = make_xlsx({"Rain": sheet(rows, behind=f"<mergeCells>{merged}</mergeCells>")})
    assert read(book, "a.xlsx").text.split("\n")[-2:] == [
        "Station: Korvik | 2024 Spring: 112 | 2024 Autumn: 208 | Depth: 9",
        "Station: Korvik | 2024 Spring: 96 | 2024 Autumn: 240 | Depth: 8",
    ]


@pytest.mark.parametrize("kind", ["xlsx", "csv"])
def test_heads_above_one_another_are_joined_and_the_name_of_a_group_is_no_head(kind: str) -> None:
    rows = (
        ("", "Years ended June 30,", ""),
        ("", "2019", "2018"),
        ("Revenue by region", "", ""),
        ("Asia", "4,802", "6,444"),
        ("Europe", "2,459", "1,280"),
    )
    source = "\n".join(";".join(row) for row in rows)
    read_as = make_xlsx({"Sheet1": table(*rows)}) if kind == "xlsx" else source
    assert read(read_as, f"a.{kind}").text.split("\n") == [
        "Years ended June 30, 2019 | Years ended June 30, 2018",
        "Revenue by region",
        "Asia | Years ended June 30, 2019: 4,802 | Years ended June 30, 2018: 6,444",
        "Europe | Years ended June 30, 2019: 2,459 | Years ended June 30, 2018: 1,280",
    ]


def test_tables_side_by_side_are_two() -> None:
    grid = table(("Boat", "Length", None, "Day", "Wind"), ("Hilda", 14, None, "Monday", 3))
    text = read(make_xlsx({"Sheet1": grid}), "a.xlsx").text
    assert text == "Boat | Length\nBoat: Hilda | Length: 14\n\nDay | Wind\nDay: Monday | Wind: 3"


def test_what_is_hidden_or_has_no_value_is_named() -> None:
    rows = [
        cells(1, "Name", "Fee", "Cost"),
        cells(2, "Ann", 3, 99) + '<c r="D2"><f>B2*2</f></c><c r="E2" t="e"><v>#REF!</v></c>',
    ]
    hidden = '<cols><col min="3" max="3" hidden="1"/></cols>'
    drawing = relations({"d": ("drawing", "../drawings/d.xml")})
    book = make_xlsx(
        {"Fees": sheet(rows, before=hidden), "Plan": table(("secret", "words"))},
        state={"Plan": "veryHidden"},
        more={
            "xl/worksheets/_rels/sheet1.xml.rels": drawing,
            "xl/drawings/d.xml": "<d/>",
            "xl/drawings/_rels/d.xml.rels": relations(
                {"c": ("chart", "../charts/c.xml"), "i": ("image", "../media/i.png")}
            ),
            "xl/charts/c.xml": CHART,
        },
    )
    parsed = read(book, "a.xlsx")
    assert parsed.text == "Fees\n\nName | Fee\nName: Ann | Fee: 3\n\nRain\nNorth\n2024 | North: 512"
    assert set(parsed.warnings) == {
        "not read: cells of hidden columns of sheet 'Fees' (2)",
        "not read: formulas without a stored value (open the file in its program and save it)",
        "not read: cells that show an error",
        "not read: hidden sheet 'Plan'",
        "not read: pictures",
    }


def test_cells_in_far_corners_cost_nothing() -> None:
    far = sheet([cells(1, "near", "by")], behind="").replace(
        "</sheetData>", '<row r="1048576"><c r="XFD1048576"><v>7</v></c></row></sheetData>'
    )
    assert "near" in read(make_xlsx({"A": far}), "a.xlsx").text


def test_old_workbooks_are_read_and_their_hidden_sheets_named() -> None:
    rows = [("Name", "Fee", "Paid"), ("Ann", 12.5, datetime.date(2024, 5, 1)), ("Bo", 3, True)]
    parsed = read(make_xls(rows, first=(2, 1)), "old.xls")
    assert parsed.text.split("\n")[-2:] == [
        "Name: Ann | Fee: 12.5 | Paid: 2024-05-01",
        "Name: Bo | Fee: 3 | Paid: true",
    ]
    assert parsed.warnings == ("not read: hidden sheet 'Drafts'",)


def test_workbooks_that_cannot_be_read_say_what_to_do() -> None:
    book = make_xlsx({"A": table(("a", "b"))})
    with pytest.raises(Unreadable, match="save it again"):
        read(book.replace(b"xl/styles.xml", b"xl/stylez.xml")[:-40], "a.xlsx")
    bomb = archive({"xl/workbook.xml": "<x/>", "xl/big.xml": b"0" * 40_000_000})
    with pytest.raises(TooLarge, match="times its size"):
        read(bomb, "a.xlsx")
    ole = make_xls([("a", "b")])
    with pytest.raises(Unreadable, match="XLSX"):
        read(ole[:1600] + b"\xff" * 300 + ole[1900:], "a.xls")
    with pytest.raises(Encrypted):
        read(ole + "EncryptedPackage\0".encode("utf-16-le"), "a.xls")
    with pytest.raises(UnsupportedType, match="DOCX"):
        read(ole + "WordDocument\0".encode("utf-16-le"), "a.doc")


@pytest.mark.parametrize(
    ("form", "day"),
    [("yyyy-mm-dd", "2025-03-04"), ("ddd d mmm", "4 Mar 2025"), ("mmm yy", "Mar 2025")],
)
def test_dates_name_columns(form: str, day: str) -> None:
    heads = cells(1, "Name", 45689, 45720, style=(0, 1, 1))
    xml = sheet([heads, cells(2, "Ida", "early", "late"), cells(3, "Per", "off", "early")])
    text = read(make_xlsx({"Rota": xml}, formats=[form]), "rota.xlsx").text
    assert text.endswith(f"| {day}: early")
    assert "Name: Per | " in text


def test_dates_of_records_name_nothing() -> None:
    figures = "Name,2025-03-03,2025-03-04\nIda,4,6\nPer,5,9\n"
    assert read(figures, "a.csv").text.endswith("Name: Per | 2025-03-03: 5 | 2025-03-04: 9")
    dates = "a,2025-03-03\nb,2025-03-05\nc,2025-03-07\n"
    assert read(dates, "a.csv").text.startswith("a | 2025-03-03\nb | 2025-03-05")


def test_a_blank_row_or_column_stands_between_heads_and_figures() -> None:
    xml = table(
        ("Results", None, None, None, None),
        (None,),
        ("In thousands", None, None, None, None),
        (None, "Sales", "Profit", None, "Staff"),
        (None,),
        ("North", 1250, 271, None, 44),
        ("Quay", 137, -17, None, 5),
        (None,),
        ("Boat", "Owner"),
        ("Runa", "Ola"),
    )
    assert read(make_xlsx({"Yards": xml}), "yards.xlsx").text.splitlines()[-6:] == [
        "Sales | Profit | Staff",
        "North | Sales: 1250 | Profit: 271 | Staff: 44",
        "Quay | Sales: 137 | Profit: -17 | Staff: 5",
        "",
        "Boat | Owner",
        "Boat: Runa | Owner: Ola",
    ]


def test_what_is_struck_through_is_left_out_and_named() -> None:
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    styles = (
        f'<styleSheet {main}><fonts><font/><font><strike/></font><font><strike val="0"/></font>'
        '</fonts><cellXfs><xf fontId="0"/><xf fontId="1"/><xf fontId="2"/></cellXfs></styleSheet>'
    )
    content = make_xlsx(
        {
            "Prices": sheet(
                [cells(1, "Item", "Price", "Now"), cells(2, "Rope", 12, 14, style=(2, 1, 0))]
            )
        },
        more={"xl/styles.xml": styles},
    )
    parsed = read(content, "prices.xlsx")
    assert parsed.text.endswith("Item: Rope | Now: 14")
    assert any("struck-through cells" in warning for warning in parsed.warnings)


DRAWN = """Stock

+------+-------+
| Part | Stock |
+------+-------+
| Bolt |   410 |
| Nut, |    95 |
|      | boxed |
+------+-------+

\u250c\u2500\u2500\u2500\u2500\u2500\u2500\u252c\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2510
\u2502 Tool \u2502 Shelf \u2502
\u251c\u2500\u2500\u2500\u2500\u2500\u2500\u253c\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2524
\u2502 Saw  \u2502 S9    \u2502
\u2514\u2500\u2500\u2500\u2500\u2500\u2500\u2534\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2518"""


def test_tables_that_are_drawn_with_signs_are_rows() -> None:
    assert read(DRAWN, "box.txt").text.split("\n") == [
        "Stock",
        "",
        "Part | Stock",
        "Part: Bolt | Stock: 410",
        "Part: Nut, | Stock: 95 boxed",
        "",
        "Tool | Shelf",
        "Tool: Saw | Shelf: S9",
    ]
    frame = "+-----+\n| Hi! |\n+-----+"
    assert read(frame, "frame.txt").text == frame
