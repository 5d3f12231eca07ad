"""What the places of glyphs say: powers, rows of tables, columns, words that touch."""

from __future__ import annotations

import ctypes
import io
from collections.abc import Sequence

import pypdfium2
import pypdfium2.raw as pdfium
import pytest
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Table

from app.core.types import PageText, ParsedDocument
from app.ingest.options import IngestOptions
from app.ingest.parsers.pdf import parse_pdf
from app.ingest.parsers.pdf_boxes import find_boxes
from app.ingest.parsers.sniffing import identify

Placed = tuple[float, float, float, str]
"""Left, baseline, size, text."""


def drawn(*pieces: Placed) -> bytes:
    """Return a page with pieces of text where they are wanted, in this order."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(500, 700), invariant=1)
    for left, baseline, size, text in pieces:
        canvas.setFont("Helvetica", size)
        canvas.drawString(left, baseline, text)
    canvas.save()
    return buffer.getvalue()


def line(baseline: float, *parts: tuple[float, float, str]) -> list[Placed]:
    """Return parts of a line one behind the other: rise, size, text."""
    canvas = Canvas(io.BytesIO())
    left, made = 50.0, []
    for rise, size, text in parts:
        made.append((left, baseline + rise, size, text))
        left += canvas.stringWidth(text, "Helvetica", size)
    return made


def parsed(pieces: Sequence[Placed]) -> ParsedDocument:
    return parse_pdf(drawn(*pieces), "page.pdf", IngestOptions())


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([(0, 10, "It holds 3 x 10"), (4, 7, "12"), (0, 10, " kg.")], "It holds 3 x 10^12 kg."),
        ([(0, 10, "about 10"), (4, 7, "-3"), (0, 10, " bar")], "about 10^-3 bar"),
        ([(0, 10, "an area of 5 km"), (4, 7, "2")], "an area of 5 km\u00b2"),
        ([(0, 10, "two mills"), (4, 7, "4"), (0, 10, " stand here")], "two mills stand here"),
        ([(0, 10, "of H"), (-2, 7, "2"), (0, 10, "O and air")], "of H2O and air"),
        ([(0, 10, "With BERT"), (-2, 7, "BASE"), (0, 10, " we find")], "With BERT BASE we find"),
        ([(4, 7, "3"), (0, 10, "They were measured.")], "3 They were measured."),
        ([(0, 10, "E = mc"), (4, 7, "2"), (0, 10, ", he said")], "E = mc\u00b2, he said"),
        (
            [(0, 10, "not consid"), (4, 7, "ered in this list of the harbour.")],
            "not considered in this list of the harbour.",
        ),
        ([(0, 10, "Jo Yu"), (4, 7, "1,2"), (0, 10, ", Li Cao"), (4, 7, "2")], "Jo Yu, Li Cao"),
    ],
)
def test_small_raised_and_lowered_glyphs_keep_their_meaning(
    parts: list[tuple[float, float, str]], text: str
) -> None:
    assert parsed(line(600, *parts)).text == text


def test_the_mark_of_a_note_on_the_page_is_no_power_of_a_number() -> None:
    weir = line(600, (0, 10, "The weir is 128"), (4, 7, "2"), (0, 10, " metres long, 10"))
    power = [(left + 180, 600 + rise, size, text) for left, rise, size, text in [(0, 4, 7, "2")]]
    note = line(60, (3, 6, "2"), (0, 8, " Measured in 1960."))
    assert parsed([*weir, *note]).text.startswith("The weir is 128 metres long")
    assert "128^2 metres" in parsed([*weir, *power]).text


RAIN = [
    ["Station", "Jan", "Feb", "Mar"],
    ["Korvik", "112", "96", "88"],
    ["Lund", "71", "64", "59"],
    ["Senn", "140", "-", "120"],
]


def table(rows: Sequence[Sequence[str]], top: float = 600) -> list[Placed]:
    return [
        (50 + 70 * across, top - 15 * down, 10, text)
        for down, row in enumerate(rows)
        for across, text in enumerate(row)
        if text
    ]


PROSE = "The stations of the valley were read each morning at seven by the keeper or his wife, and"


def test_rows_of_numbers_stay_lines_and_bear_the_labels_of_their_columns() -> None:
    around = [(50.0, 660 - 12 * at, 10.0, PROSE) for at in range(3)]
    found = parsed([*around, *table(RAIN), *[(x, y - 140, s, t) for x, y, s, t in around]])
    rows = [found.text[block.start : block.end] for block in found.blocks]
    assert rows == [
        "Station Jan Feb Mar",
        "Station: Korvik | Jan: 112 | Feb: 96 | Mar: 88",
        "Station: Lund | Jan: 71 | Feb: 64 | Mar: 59",
        "Station: Senn | Jan: 140 | Feb: - | Mar: 120",
    ]
    assert {block.kind for block in found.blocks} == {"row"}
    assert found.text.count("\n") == 5, "prose flows, rows do not"


def test_two_rows_of_heads_are_joined_and_doubtful_ones_label_nothing() -> None:
    heads = [["", "Dev", "Test"], ["Model", "(F1)", "(F1)"]]
    rows = [["large", "86.6", "86.3"], ["small", "81.6", "80.2"]]
    assert "Model: small | Dev (F1): 81.6 | Test (F1): 80.2" in parsed(table(heads + rows)).text
    doubtful = [["Model", "(F1)", "(F1)"], *rows]
    assert parsed(table(doubtful)).text.endswith("small 81.6 80.2")


def wrapped() -> bytes:
    """Return a table whose cells have several lines, as printers draw it: cell by cell."""
    style = getSampleStyleSheet()["Normal"]
    rows = [
        ["Item", "Price", "Boats", "Remark"],
        ["Dues for small boats of the guild", "12.50", "14", "per day, paid at the office"],
        ["Crane", "80.00", "3", "each lift"],
        ["Storage in the shed at the quay", "240.00", "22", "from October until April"],
    ]
    cells = [[Paragraph(text, style) if " " in text else text for text in row] for row in rows]
    buffer = io.BytesIO()
    SimpleDocTemplate(buffer).build([Table(cells, colWidths=[90, 60, 60, 90])])
    return buffer.getvalue()


def test_cells_of_several_lines_stay_in_their_row() -> None:
    found = parse_pdf(wrapped(), "prices.pdf", IngestOptions())
    assert found.text.split("\n") == [
        "Item Price Boats Remark",
        "Item: Dues for small boats of the guild | Price: 12.50 | Boats: 14"
        " | Remark: per day, paid at the office",
        "Item: Crane | Price: 80.00 | Boats: 3 | Remark: each lift",
        "Item: Storage in the shed at the quay | Price: 240.00 | Boats: 22"
        " | Remark: from October until April",
    ]
    start = found.text.index("240.00")
    pages = [PageText(1, found.text, start, start + 6)]
    (boxes,) = find_boxes(wrapped(), pages)
    assert len(boxes.rects) == 1


def test_names_of_parts_of_a_table_are_no_lines_of_its_cells() -> None:
    rows = [*RAIN[:2], ["In the north"], *RAIN[2:], ["In the south"], ["Moss", "9", "8", "7"]]
    lines = parsed(table(rows)).text.split("\n")
    assert lines[2] == "In the north"
    assert lines[5:] == ["In the south", "Station: Moss | Jan: 9 | Feb: 8 | Mar: 7"]


def test_numbers_in_prose_are_no_rows() -> None:
    years = "In 1990, 1991, 1992 and 1993 the mill ground 12, 14 and 15 tonnes of rye for the town"
    found = parsed([(50.0, 600 - 12 * at, 10.0, years) for at in range(4)])
    assert found.blocks == ()
    assert found.text == " ".join([years] * 4)


LEFT = [
    "The ferry Hilda was built in the year",
    "1921 for the sound of Korvik. She car-",
    "ried forty passengers and four carts.",
    "In 1940 the ice broke her rudder and",
    "she was laid up for two long years.",
]
RIGHT = [
    "Runa is younger. She came to the lake",
    "in the spring of 1956 by rail, and her",
    "engine was replaced in 1971. Since then",
    "she needs a crew of two and no stoker.",
    "Her bell was cast in the town of Arn.",
]


def test_columns_that_were_drawn_line_by_line_are_read_one_after_the_other() -> None:
    pieces: list[Placed] = [(50.0, 660.0, 10.0, "Two ferries of the lake and how they fared")]
    for at, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        pieces += [(50, 600 - 12 * at, 10, left), (270, 600 - 12 * at, 10, right)]
    found = parsed(pieces)
    flowing = " ".join(found.text.split())
    assert "She carried forty passengers and four carts. In 1940 the ice broke" in flowing
    assert "two long years. Runa is younger." in flowing
    (boxes,) = find_boxes(
        drawn(*pieces),
        [PageText(1, found.text, at := found.text.index("engine was"), at + len("engine was"))],
    )
    ((x0, y0, _, _),) = boxes.rects
    assert (round(x0), round(y0 / 12)) == (270, round((700 - 576 - 9) / 12))


def test_words_that_are_drawn_apart_do_not_touch() -> None:
    pieces = [*line(600, (0, 10, "while they")), (97.4, 600.0, 10.0, "execute the command")]
    assert parsed(pieces).text == "while they execute the command"


def form() -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(500, 700), invariant=1)
    fields = canvas.acroForm
    for baseline, label in ((600, "Applicant"), (560, "Boat length"), (520, "Secret")):
        canvas.drawString(50, baseline, label)
    canvas.drawString(80, 480, "Shore power")
    canvas.drawString(80, 450, "Winter storage")
    place = {"x": 150, "width": 200, "height": 18, "borderWidth": 0}
    fields.textfield(name="a", value="Tove Lindqvist", y=595, **place)
    fields.textfield(name="b", value="9.4 metres", y=555, **place)
    fields.textfield(name="c", value="hidden words", y=515, fieldFlags="password", **place)
    fields.checkbox(name="d", checked=True, x=50, y=476, size=16)
    fields.checkbox(name="e", checked=False, x=50, y=446, size=16)
    fields.textfield(name="f", tooltip="Remarks", value="Two masts", x=50, y=100, width=300)
    canvas.save()
    return buffer.getvalue()


def test_what_was_filled_into_a_form_stands_behind_its_label() -> None:
    found = parse_pdf(form(), "form.pdf", IngestOptions())
    fields = [found.text[block.start : block.end] for block in found.blocks]
    assert fields == [
        "Applicant: Tove Lindqvist",
        "Boat length: 9.4 metres",
        "Shore power: yes",
        "Winter storage: no",
        "Remarks: Two masts",
    ]
    assert {block.kind for block in found.blocks} == {"field"}
    assert "\nSecret\n" in found.text
    assert "hidden" not in found.text


def annotated() -> bytes:
    """Return a page with a comment, a hidden one, and an attached file."""
    document = pypdfium2.PdfDocument(drawn((50, 600, 10, "Plan of the slipway.")))
    page = document[0]
    for text, flags in (("It must cure for 28 days", 0), ("Ignore all that", 2)):
        note = pdfium.FPDFPage_CreateAnnot(page.raw, pdfium.FPDF_ANNOT_TEXT)
        pdfium.FPDFAnnot_SetFlags(note, flags)
        wide = ctypes.create_string_buffer(text.encode("utf-16-le") + b"\0\0")
        value = ctypes.cast(wide, ctypes.POINTER(pdfium.FPDF_WCHAR))
        pdfium.FPDFAnnot_SetStringValue(note, b"Contents", value)
        pdfium.FPDFPage_CloseAnnot(note)
    document.new_attachment("loads.xlsx").set_data(b"data")
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def test_comments_are_read_and_attached_files_named() -> None:
    found = parse_pdf(annotated(), "plan.pdf", IngestOptions())
    assert found.text == "Plan of the slipway.\nIt must cure for 28 days"
    assert [block.kind for block in found.blocks] == ["footnote"]
    assert found.warnings == (
        "files attached to it are not read ('loads.xlsx'); send them by themselves",
    )


def test_a_note_at_the_foot_does_not_cut_the_sentence_it_interrupts() -> None:
    pieces = [(50.0, 100.0, 10.0, "It is the sentence of a long paragraph that goes on and")]
    pieces += line(80, (3, 5, "4"), (0, 8, " A note about a mill that"))
    pieces += line(70, (0, 8, "stands no more."))
    pieces += [
        (50.0, 640.0 - 12 * at, 10.0, "on, in the next column, until it ends") for at in (0, 1)
    ]
    found = parsed(pieces)
    assert "goes on and on, in the next column" in found.text
    assert found.text.endswith("\n4 A note about a mill that stands no more.")


def test_a_pdf_behind_the_head_of_a_download_is_read() -> None:
    content = (
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 2000 + b"\r\n\r\n" + drawn(*line(600, (0, 10, PROSE)))
    )
    assert identify(content, "a.pdf") == "pdf"
    found = parse_pdf(content, "a.pdf", IngestOptions())
    assert found.text == PROSE
    (boxes,) = find_boxes(content, [PageText(1, PROSE, 0, 12)])
    assert len(boxes.rects) == 1
    manual = b"It begins with a line.\n" * 100 + b"%PDF-1.4\nand startxref, says the manual"
    assert identify(manual, "a.pdf") == "text"


def ruled(rows: Sequence[Sequence[str | Paragraph]], *style: tuple[object, ...]) -> list[str]:
    """Return the lines of a page with a ruled table between two lines of text."""
    buffer = io.BytesIO()
    normal = getSampleStyleSheet()["Normal"]
    grid = Table(rows, style=[("GRID", (0, 0), (-1, -1), 0.5, "black"), *style])
    before, behind = Paragraph("What the warden read.", normal), Paragraph("The end.", normal)
    SimpleDocTemplate(buffer, invariant=1).build([before, grid, behind])
    lines = parse_pdf(buffer.getvalue(), "page.pdf", IngestOptions()).text.split("\n")
    assert (lines[0], lines[-1]) == ("What the warden read.", "The end.")
    return lines[1:-1]


LONG = "A gate that lets water through when it is raised, as at the old weir of Senn"


def test_rows_of_a_ruled_table_bear_the_labels_of_its_head() -> None:
    assert ruled([["Ward", "2023", "2024"], ["North", "41", "44"], ["South", "", "28"]]) == [
        "Ward | 2023 | 2024",
        "Ward: North | 2023: 41 | 2024: 44",
        "Ward: South | 2024: 28",
    ]
    heads = [["Years", "1951-1961", "1961-1971"], ["Births", "12", "19"]]
    assert ruled(heads)[1] == "Years: Births | 1951-1961: 12 | 1961-1971: 19"
    normal = getSampleStyleSheet()["Normal"]
    prose = ruled([["Term", "Meaning"], ["Sluice", Paragraph(LONG, normal)], ["Kiln", "An oven."]])
    assert prose[1:] == [f"Term: Sluice | Meaning: {LONG}", "Term: Kiln | Meaning: An oven."]


def test_heads_of_two_rows_and_merged_cells_of_a_ruled_table_reach_as_far_as_they_are_drawn() -> (
    None
):
    rows = [["Station", "Rain", ""], ["", "March", "April"], ["Lund", "31", "62"], ["", "44", "12"]]
    merged = (("SPAN", (0, 0), (0, 1)), ("SPAN", (1, 0), (2, 0)), ("SPAN", (0, 2), (0, 3)))
    assert ruled(rows, *merged)[2:] == [
        "Station: Lund | Rain March: 31 | Rain April: 62",
        "Station: Lund | Rain March: 44 | Rain April: 12",
    ]


def test_a_ruled_form_has_fields() -> None:
    form = [["Applicant", "Ida Dahl"], ["Berths", "2"], ["Since", "May 2021"]]
    assert ruled(form) == ["Applicant: Ida Dahl", "Berths: 2", "Since: May 2021"]


def test_a_row_with_empty_cells_is_a_row_of_the_table_around_it() -> None:
    placed = [(50, 640, 10, "Name"), (200, 640, 10, "Phone"), (300, 640, 10, "Room")]
    rows = (("Ida Dahl", "4410", "12"), ("Per Holm", "", "15"), ("Bo Lind", "4420", "17"))
    for at, row in enumerate(rows):
        lefts = zip((50, 200, 300), row, strict=True)
        placed += [(left, 620 - 20 * at, 10, text) for left, text in lefts if text]
    assert parsed(placed).text.split("\n")[1:] == [
        "Name: Ida Dahl | Phone: 4410 | Room: 12",
        "Name: Per Holm | Room: 15",
        "Name: Bo Lind | Phone: 4420 | Room: 17",
    ]


def test_labels_and_their_values_stay_together() -> None:
    lines = ["Acknowledgement of order", "Order number: 5512-A", "Order date: 2 May 2025"]
    lines += ["Delivery: week 23", "We thank you for your order of two ropes."]
    page = [(50.0, 640.0 - 20 * at, 10.0, text) for at, text in enumerate(lines)]
    assert parsed(page).text.split("\n") == lines
    apart = [("Invoice no.", "R-20417"), ("Date", "14 March 2025"), ("Due", "13 April 2025")]
    head: list[Placed] = [(50, 640, 14, "INVOICE")]
    for at, (label, value) in enumerate(apart):
        head += [(250, 640 - 16 * at, 10, label), (360, 640 - 16 * at, 10, value)]
    assert parsed(head).text.split("\n") == [
        "INVOICE",
        *(f"{label}: {value}" for label, value in apart),
    ]


def test_names_side_by_side_are_no_labels() -> None:
    names = [("Ida Dahl", "Per Holm"), ("Institute of Tides", "School of Nets")]
    page = [
        (left, 640.0 - 16 * at, 10.0, text)
        for at, row in enumerate(names)
        for left, text in zip((50.0, 250.0), row, strict=True)
    ]
    assert ":" not in parsed(page).text


def pages_of(rows: Sequence[Sequence[str]], *style: tuple[object, ...], text: str = "") -> str:
    """Return the text of a table that is longer than a page, its head on the first one only."""
    buffer = io.BytesIO()
    before = [Paragraph(text, getSampleStyleSheet()["Normal"])] if text else []
    SimpleDocTemplate(buffer, invariant=1).build([*before, Table(rows, style=[*style])])
    found = parse_pdf(buffer.getvalue(), "long.pdf", IngestOptions())
    assert len(found.pages) > 1
    last = found.pages[-1]
    place = found.text.index(rows[-1][0].split()[0], last.start)
    place = found.text.rindex(rows[-1][1], place)
    pages = [
        PageText(last.number, found.text[last.start :], place - last.start, place - last.start + 2)
    ]
    (boxes,) = find_boxes(buffer.getvalue(), pages)
    assert len(boxes.rects) == 1, "the place of a cell on the last page is known"
    return found.text


SHIPS = [["Ship", "Crew", "Draught"], *([f"Ship {n}", f"{n + 10}", f"{n}.5"] for n in range(90))]
OWNERS = [["Mill", "Owner", "Power"], *([f"Mill {n}", f"Aas {n}", "wind"] for n in range(90))]
GRID = ("GRID", (0, 0), (-1, -1), 0.5, "black")


def test_a_table_keeps_its_heads_on_the_next_pages() -> None:
    for style in ((), (GRID,)):
        lines = pages_of(SHIPS, *style, text="Ships of the harbour.").splitlines()
        assert lines[2:] == [f"Ship: Ship {n} | Crew: {n + 10} | Draught: {n}.5" for n in range(90)]
        lines = pages_of(OWNERS, *style).splitlines()
        assert lines[1:] == [f"Mill: Mill {n} | Owner: Aas {n} | Power: wind" for n in range(90)]


def test_the_next_table_has_its_own_heads() -> None:
    second = [["Place", "Rain"], *([f"Place {n}", str(n)] for n in range(5))]
    buffer = io.BytesIO()
    tables = [Table(SHIPS[:36], style=[GRID]), PageBreak(), Table(second, style=[GRID])]
    SimpleDocTemplate(buffer, invariant=1).build(tables)
    found = parse_pdf(buffer.getvalue(), "two.pdf", IngestOptions())
    assert found.text.endswith("Place: Place 4 | Rain: 4")


def test_a_head_of_several_lines_is_one() -> None:
    head = ["Station", "Rain in\nMarch\n(mm)", "Days with\nsnow"]
    rows = [["Lund", "31", "2"], ["Senn", "44", "1"], ["Korvik", "112", "0"]]
    buffer = io.BytesIO()
    SimpleDocTemplate(buffer, invariant=1).build([Table([head, *rows])])
    lines = parse_pdf(buffer.getvalue(), "rain.pdf", IngestOptions()).text.splitlines()
    assert lines[1] == "Station: Lund | Rain in March (mm): 31 | Days with snow: 2"
    above = [(190.0, 612.0, 10.0, "Crew in"), *table([["Ship", "Length", "summer"], *SHIPS[1:4]])]
    assert parsed(above).text.endswith("Ship: Ship 2 | Length: 12 | Crew in summer: 2.5")


def test_words_in_columns_are_rows_where_they_begin_one_below_the_other() -> None:
    staff = [["Name", "Task", "Phone"], ["Ida Dahl", "warden", "4410"], ["Per Holm", "cook", ""]]
    staff += [["Siv Moe", "clerk", "4416"], ["Bo Lind", "diver", "4420"], ["Una Berg", "pilot", ""]]
    lines = parsed(table(staff)).text.splitlines()
    assert lines[2:4] == [
        "Name: Per Holm | Task: cook",
        "Name: Siv Moe | Task: clerk | Phone: 4416",
    ]
    lower = [[f"x{n}", f"n by {n}", f"column of row {n}"] for n in "abcde"]
    assert parsed(table(lower)).text.splitlines()[2] == "xc n by c column of row c", "no head"


def apart(*words: tuple[float, float, str], tracking: float = 0.0) -> list[Placed]:
    """Return letters of a line: before each word a gap, in sizes of the largest; size, letters."""
    canvas, largest = Canvas(io.BytesIO()), max(size for _, size, _ in words)
    left, made = 50.0, []
    for gap, size, letters in words:
        left += gap * largest
        for at, letter in enumerate(letters):
            left += tracking * largest if at else 0.0
            made.append((left, 600.0, size, letter))
            left += canvas.stringWidth(letter, "Helvetica", size)
    return made


def words_apart(*words: tuple[float, str]) -> list[Placed]:
    canvas, left, made = Canvas(io.BytesIO()), 50.0, []
    for gap, word in words:
        left += gap * 10
        made.append((left, 600.0, 10.0, word))
        left += canvas.stringWidth(word, "Helvetica", 10)
    return made


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (  # letters that are drawn apart, and one a little farther
            apart((0, 10, "TREAC"), (0.18, 10, "T:"), (0.5, 10, "WEIRS"), tracking=0.07),
            "TREACT: WEIRS",
        ),
        (  # small capitals
            apart((0, 10, "1"), (1, 10, "I"), (0.13, 8, "NTRODUCTION"), tracking=0.03),
            "1 INTRODUCTION",
        ),
        (
            apart(
                (0, 10, "S"),
                (0.13, 8, "LUICES"),
                (0.3, 8, "AND"),
                (0.3, 10, "W"),
                (0.13, 8, "EIRS"),
            ),
            "SLUICES AND WEIRS",
        ),
        ([(50, 600, 10, "R E S U L T S")], "RESULTS"),
        ([(50, 600, 10, "4 R E S U L T S   A N D   N O T E S")], "4 RESULTS AND NOTES"),
        (words_apart((0, "WHAT"), (0.18, "IS"), (0.2, "A"), (0.19, "WEIR")), "WHAT IS A WEIR"),
        (words_apart((0, "A"), (0.25, "WEIR")), "A WEIR"),
        ([(50, 600, 10, "VITAMINS A C D E")], "VITAMINS A C D E"),
        (table([["A", "B", "C", "D"]]), "A B C D"),
    ],
)
def test_blanks_within_words_in_capitals_are_closed_up(pieces: list[Placed], text: str) -> None:
    assert parsed(pieces).text == text


Rule = tuple[float, float, float, float]
"""From one point to another."""


def with_rules(pieces: Sequence[Placed], rules: Sequence[Rule]) -> list[str]:
    """Return the lines of a page with pieces of text and rules."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(500, 700), invariant=1)
    for left, baseline, size, text in pieces:
        canvas.setFont("Helvetica", size)
        canvas.drawString(left, baseline, text)
    canvas.lines(rules)
    canvas.save()
    return parse_pdf(buffer.getvalue(), "page.pdf", IngestOptions()).text.split("\n")


def rules(edges: Sequence[float], levels: Sequence[float], *, sides: bool = True) -> list[Rule]:
    """Return rules at these places across the page, all or the inner ones, and at these levels."""
    down = edges if sides else edges[1:-1]
    across = [(edges[0], level, edges[-1], level) for level in levels]
    return [*across, *((at, levels[0], at, levels[-1]) for at in down)]


MILLS = [
    ["Mill", "Built", "Height"],
    ["Upper", "1388", "3.5"],
    ["Lower", "1402", "2.25"],
    ["Town", "1877", "9.0"],
]
MILL_ROWS = [
    "Mill: Upper | Built: 1388 | Height: 3.5",
    "Mill: Lower | Built: 1402 | Height: 2.25",
    "Mill: Town | Built: 1877 | Height: 9.0",
]


@pytest.mark.parametrize(
    "drawn_rules",
    [
        rules([45, 115, 185, 255], [612, 596, 581, 566, 551], sides=False),
        rules([45, 115, 185, 255], [612, 596, 551]),
        rules([45, 115, 255], [612, 596, 581, 566, 551]),
        [
            *rules([45, 115, 185, 255], [612, 596, 581, 566, 551]),
            *rules([48, 112, 118, 182, 188, 252], [610, 598, 594, 583, 579, 568, 564, 553]),
        ],
    ],
    ids=["open sides", "no rules between rows", "no rule between two columns", "double rules"],
)
def test_rows_and_columns_of_a_ruled_table_are_told_where_rules_are_missing_or_double(
    drawn_rules: list[Rule],
) -> None:
    assert with_rules(table(MILLS), drawn_rules)[1:] == MILL_ROWS


def test_cells_are_parted_where_a_rule_between_columns_stops() -> None:
    down = [(at, 612.0, at, 596.0) for at in (115.0, 185.0)]
    drawn_rules = [*rules([45, 255], [612, 596, 581, 566, 551]), *down]
    assert with_rules(table(MILLS), drawn_rules)[1:] == MILL_ROWS


def test_a_list_in_a_cell_keeps_its_bullets() -> None:
    pieces = table([["Part", "What to see"], ["Gate"]])
    for at, text in enumerate(["it opens", "it closes", "it holds"]):
        level = 585.0 - 15 * at
        pieces += [(120.0, level, 10.0, "\u2022"), (145.0, level, 10.0, text)]
    assert with_rules(pieces, rules([45, 115, 300], [612, 596, 551])) == [
        "Part | What to see",
        "Part: Gate | What to see: \u2022 it opens \u2022 it closes \u2022 it holds",
    ]


def test_heads_over_several_columns_of_one_cell_are_theirs() -> None:
    cells = [
        ["", "Boys", "", "Girls", ""],
        ["Ward", "2023", "2024", "2023", "2024"],
        ["North", "41", "44", "38", "40"],
        ["South", "22", "28", "31", "30"],
    ]
    pieces = [
        (left + (30 if text in ("Boys", "Girls") else 0), level, size, text)
        for left, level, size, text in table(cells)
    ]
    found = with_rules(pieces, rules([45, 115, 255, 395], [612, 581, 566, 551]))
    assert found[-2:] == [
        "Ward: North | Boys 2023: 41 | Boys 2024: 44 | Girls 2023: 38 | Girls 2024: 40",
        "Ward: South | Boys 2023: 22 | Boys 2024: 28 | Girls 2023: 31 | Girls 2024: 30",
    ]


def test_a_second_row_of_heads_tells_apart_what_the_first_calls_the_same() -> None:
    heads = [["Name of", "Name of", "No. of"], ["ward", "keeper", "boats"]]
    rows = [["North", "Ida Dahl", "41"], ["South", "Per Holm", "28"]]
    assert ruled(heads + rows)[2:] == [
        "Name of ward: North | Name of keeper: Ida Dahl | No. of boats: 41",
        "Name of ward: South | Name of keeper: Per Holm | No. of boats: 28",
    ]


def test_days_units_and_counts_name_columns() -> None:
    days = [["Loan", "12/31/2009", "12/31/2010"], ["", "%", "%"], ["Ships", "25.0", "27.5"]]
    assert ruled([*days, ["Mills", "2.2", "1.8"]])[2:] == [
        "Loan: Ships | 12/31/2009 %: 25.0 | 12/31/2010 %: 27.5",
        "Loan: Mills | 12/31/2009 %: 2.2 | 12/31/2010 %: 1.8",
    ]
    counts = [["", "1", "2", "3", "4"], ["Lund", "3.4", "4.6", "3.7", "7.2"]]
    found = parsed(table([*counts, ["Senn", "3.5", "4.9", "4.1", "8.0"]])).text
    assert found.endswith("Senn | 1: 3.5 | 2: 4.9 | 3: 4.1 | 4: 8.0")


STACKED = [
    ["", "Share of", "Boats", ""],
    ["", "all ships", "lost at", "Crews"],
    ["Harbour", "of the coast", "sea", "saved"],
]
WRECKS = [["Korvik", "11.2", "9", "8"], ["Lund", "7.1", "6", "5"], ["Senn", "14.0", "3", "2"]]
NAMED_WRECKS = [
    f"Harbour: {harbour} | Share of all ships of the coast: {share} | Boats lost at sea: {lost}"
    f" | Crews saved: {saved}"
    for harbour, share, lost, saved in WRECKS
]


def by_columns(rows: Sequence[Sequence[str]], top: float = 600) -> list[Placed]:
    """Return the cells of rows, column by column."""
    return sorted(table(rows, top), key=lambda one: (one[0], -one[1]))


def test_heads_of_several_lines_that_were_drawn_column_by_column_name_columns() -> None:
    placed = [
        (x, 598 + 11 * (2 - round((600 - y) / 15)), 9.0, text)
        for x, y, _, text in by_columns(STACKED)
    ]
    title: list[Placed] = [(50, 650, 10, "Wrecks of the coast"), (190, 638, 9, "(per year)")]
    found = parsed([*title, *placed, *table(WRECKS, 584)]).text.split("\n")
    assert found[-3:] == NAMED_WRECKS


def test_rows_that_were_drawn_before_their_heads_bear_them() -> None:
    heads, first, last = MILLS[:1], MILLS[1:3], MILLS[1:]
    placed = [*table(last, 540), (50.0, 555.0, 10.0, "Later")]
    found = parsed([*placed, *table([*heads, *first])]).text
    assert found.count("Mill: Upper | Built: 1388 | Height: 3.5") == 2


def test_heads_of_groups_are_those_of_the_columns_that_are_nearest() -> None:
    groups = ["All", "State", "Free"]
    cells = ["Year", *["Boys", "Girls"] * 3]
    rows = [
        ["2011", "54", "38", "16", "49", "34", "14"],
        ["2012", "55", "39", "15", "48", "35", "13"],
    ]
    lefts = [50 + 60 * at for at in range(7)]

    def at(level: float, texts: Sequence[str]) -> list[Placed]:
        return [(x, level, 10.0, text) for x, text in zip(lefts, texts, strict=True)]

    upper = [(135.0 + 120 * at, 616.0, 10.0, text) for at, text in enumerate(groups)]
    unit: list[Placed] = [(230, 632, 10, "[In thousands]")]
    placed = [*unit, *upper, *at(600, cells), *at(585, rows[0]), *at(570, rows[1])]
    assert parsed(placed).text.split("\n")[-2:] == [
        "Year: 2011 | All Boys: 54 | All Girls: 38 | State Boys: 16 | State Girls: 49"
        " | Free Boys: 34 | Free Girls: 14",
        "Year: 2012 | All Boys: 55 | All Girls: 39 | State Boys: 15 | State Girls: 48"
        " | Free Boys: 35 | Free Girls: 13",
    ]


def test_heads_that_come_again_name_the_columns_of_parts_side_by_side() -> None:
    heads = ["Age", "People", "Age", "People"]
    rows = [["30", "412", "50", "388"], ["31", "405", "51", "371"], ["32", "398", "52", "365"]]
    assert ruled([heads, *rows])[1] == "Age: 30 | People: 412 | Age: 50 | People: 388"
    twice = [["Age", "Age", "People"], *(row[:3] for row in rows)]
    assert ":" not in "".join(ruled(twice)), "two columns of one name are told apart by nothing"


def test_a_grid_below_another_one_of_its_columns_has_its_heads() -> None:
    edges = [45, 115, 185, 255]
    below = [(left, level - 60, size, text) for left, level, size, text in table(MILLS[1:], 585)]
    pieces = [*table(MILLS), (50.0, 540.0, 10.0, "Closed since"), *below]
    levels = [612, 596, 581, 566, 551]
    found = with_rules(pieces, [*rules(edges, levels), *rules(edges, [536, 521, 506, 491])])
    assert found[1:4] == found[-3:] == MILL_ROWS


def test_a_title_over_all_columns_is_no_head_of_the_one_below_it() -> None:
    heads = [["Mill", "1901", "1902", "1903"]]
    rows = [["Upper", "12", "14", "13"], ["Lower", "22", "21", "24"]]
    group: list[Placed] = [(165, 587, 10, "in thousands")]
    found = parsed([*table(heads, 605), *group, *table(rows, 570)]).text.split("\n")
    assert found[-2:] == [
        "Mill: Upper | 1901: 12 | 1902: 14 | 1903: 13",
        "Mill: Lower | 1901: 22 | 1902: 21 | 1903: 24",
    ]
