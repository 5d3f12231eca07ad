"""The measure of tables: neighbours of cells, and rows whose figures bear labels."""

from __future__ import annotations

import io
from pathlib import Path

import pypdfium2
from reportlab.pdfgen.canvas import Canvas

from app.ingest.parsers.pdf_grids import Area
from evaluation.studies import tables

HEADS = ["Mill", "Built", "Wheels", "Height"]
ROWS = [
    ["Upper mill", "1,388", "2", "3.5"],
    ["Lower mill", "1,402", "4", "2.25"],
    ["Town mill", "1,877", "1", "9.0"],
]


def a_table(folder: Path, *, ruled: bool) -> Path:
    """Draw a table on a page."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(500, 700), invariant=1)
    canvas.setFont("Helvetica", 10)
    canvas.drawString(60, 560, "Mills on the brook, as the survey has them:")
    for at, row in enumerate([HEADS, *ROWS]):
        for column, text in enumerate(row):
            canvas.drawString(60 + 100 * column, 500 - 18 * at, text)
    if ruled:
        edges = [55 + 100 * at for at in range(5)], [515 - 18 * at for at in range(5)]
        canvas.grid(*edges)
    canvas.save()
    path = folder / "mills.pdf"
    path.write_bytes(buffer.getvalue())
    return path


def known() -> tables.Known:
    placed = [
        (Area(row, column, row + 1, column + 1), text)
        for row, texts in enumerate([HEADS, *ROWS])
        for column, text in enumerate(texts)
    ]
    return tables.Known(1, placed, (60, 440, 400, 510), [60, 160, 260, 360])


def test_neighbours_are_the_next_filled_cells_and_those_that_a_head_reaches_over() -> None:
    cells = [
        (Area(0, 1, 1, 3), "to air"),
        (Area(1, 0, 2, 1), "lead"),
        (Area(1, 1, 2, 2), ""),
        (Area(1, 2, 2, 3), "5 - 6"),
        (Area(2, 1, 3, 2), "7"),
    ]
    assert tables.relations(cells, 1) == {
        (1, "across", "LEAD", "5_6"): 1,
        (1, "down", "TOAIR", "5_6"): 1,
        (1, "down", "TOAIR", "7"): 1,
    }


def test_a_table_is_compared_with_and_without_rules(tmp_path: Path) -> None:
    for ruled in (True, False):
        path = a_table(tmp_path, ruled=ruled)
        document = pypdfium2.PdfDocument(path)
        layouts = list(tables.layouts_of(document))
        assert tables.is_ruled(document, known()) is ruled
        document.close()
        read = {1: layouts[0].tables()}
        found = tables.compared(path, [known()], read, ruled=ruled)
        assert (found.known, found.read, found.both) == (24, 24, 24)  # 4 rows of 3, 4 columns of 3
        assert tables.labelled(path, layouts) == tables.Labelled(
            "mills.pdf", tables.is_held_out(path), rows=3, labelled=3
        )
        assert tables.compared(path, [known()], {1: []}, ruled=ruled).f1 == 0


def test_a_row_without_heads_bears_no_labels(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(500, 700), invariant=1)
    for at, row in enumerate(ROWS):
        for column, text in enumerate(row):
            canvas.drawString(60 + 100 * column, 500 - 18 * at, text)
    canvas.save()
    path = tmp_path / "bare.pdf"
    path.write_bytes(buffer.getvalue())
    document = pypdfium2.PdfDocument(path)
    assert tables.labelled(path, list(tables.layouts_of(document))) == tables.Labelled(
        "bare.pdf", tables.is_held_out(path), rows=3, labelled=0
    )
    document.close()


def test_known_cells_are_read_with_their_spans(tmp_path: Path) -> None:
    path = tmp_path / "mills-str.xml"
    path.write_text(
        """<document><table id="1"><region page="2">
        <cell start-row="0" start-col="1" end-col="2"><bounding-box x1="160" y1="500" x2="300" y2="510"/>
        <content>to air</content></cell>
        <cell start-row="1" start-col="0"><bounding-box x1="60" y1="48\u00df" x2="80" y2="490"/>
        <content>lead</content></cell></region></table></document>""",
        encoding="utf-8",
    )
    assert tables.known_tables(path) == [
        tables.Known(
            2,
            [(Area(0, 1, 1, 3), "to air"), (Area(1, 0, 2, 1), "lead")],
            (160, 500, 300, 510),
            [160],
        )
    ]
