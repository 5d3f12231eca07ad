"""Measure how tables of PDFs are read; write evaluation/reports/tables.{md,json}.

    python -m evaluation.studies.tables [--data DIR] [--peer PYTHON]

On the PDFs of the table competition of ICDAR 2013, whose cells are known, it compares neighbouring
cells; over all PDFs it counts the rows of figures whose cells bear labels. PYTHON is an interpreter
with pdfplumber, which then reads the same. Files are those below DATA/tables (docs/evaluation.md).

References:
    Goebel, Hassan, Oro, Orsi: ICDAR 2013 table competition, ICDAR 2013: cells are compared in
        upper case, without blanks, with one sign for all that are neither letters nor digits.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pypdfium2

from app.core.errors import InvalidInput
from app.ingest.parsers.pdf_grids import Area, rules_of
from app.ingest.parsers.pdf_layout import PageLayout, open_forms
from app.ingest.parsers.pdf_lines import Heads
from evaluation.lib.pdfs import rows_of
from evaluation.lib.reports import COLLECTIONS, Line, options, say, share, table, write

COMMAND = "python -m evaluation.studies.tables"
LEAST_F1, LEAST_LABELLED = 0.8, 0.75
_PEER = """
import json, sys, time
import pdfplumber
for path in sys.argv[1:]:
    began, pages = time.process_time(), {}
    with pdfplumber.open(path) as pdf:
        for page in pdf.pages:
            pages[page.page_number] = [found.extract() for found in page.find_tables()]
    print(json.dumps([path, pages, time.process_time() - began]), flush=True)
"""

Cells = Sequence[tuple[Area, str]]
Relation = tuple[int, str, str, str]
"""Page, direction, and the texts of two neighbours."""


class Known(NamedTuple):
    """A table whose cells are known."""

    page: int
    cells: Cells
    box: tuple[float, float, float, float]
    """Left, bottom, right, top, in points."""
    lefts: list[float]
    """Where cells begin, of each column the leftmost."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The relations of a document's tables: known, read, and both."""

    file: str
    held_out: bool
    is_ruled: bool
    known: int
    read: int
    both: int

    @property
    def precision(self) -> float:
        return self.both / self.read if self.read else 0.0

    @property
    def recall(self) -> float:
        return self.both / self.known

    @property
    def f1(self) -> float:
        return 2 * self.both / (self.read + self.known)


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows with three figures and more of a document, and those whose figures bear labels."""

    file: str
    held_out: bool
    rows: int
    labelled: int


def is_held_out(path: Path) -> bool:
    """Return whether a PDF is of the half on which rules of the reader were not tried."""
    return hashlib.sha256(path.read_bytes()).digest()[0] % 2 == 1


def plain(text: str) -> str:
    """Return a cell's text as the competition compares it."""
    return "".join(char if char.isalnum() else "_" for char in "".join(text.split()).upper())


def relations(cells: Cells, page: int) -> Counter[Relation]:
    """Count the neighbours in a table: the next filled cell to the right of each, and below."""
    placed: dict[tuple[int, int], int] = {}
    for at, (area, text) in enumerate(cells):
        if plain(text):
            for row in range(area.row, area.end_row):
                placed |= {(row, column): at for column in range(area.column, area.end_column)}
    found: dict[tuple[str, int, int], None] = {}
    for direction, order in (
        ("across", placed),
        ("down", {(c, r): at for (r, c), at in placed.items()}),
    ):
        for (one, other), (line, next_line) in _neighbours(order):
            if one != other and line == next_line:
                found[direction, one, other] = None
    texts = [plain(text) for _, text in cells]
    return Counter((page, direction, texts[one], texts[other]) for direction, one, other in found)


def _neighbours(
    placed: Mapping[tuple[int, int], int],
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for (place, one), (next_place, other) in pairwise(sorted(placed.items())):
        yield (one, other), (place[0], next_place[0])


def known_tables(path: Path) -> list[Known]:
    """Return the tables of a file `*-str.xml`; parts of one on several pages by themselves."""
    found = []
    for region in ET.parse(path).getroot().iter("region"):
        cells, boxes, lefts = [], [], dict[int, float]()
        for cell in region.findall("cell"):
            row, column = int(cell.get("start-row", 0)), int(cell.get("start-col", 0))
            ends = int(cell.get("end-row", row)) + 1, int(cell.get("end-col", column)) + 1
            cells.append((Area(row, column, *ends), cell.findtext("content") or ""))
            box = cell.find("bounding-box")
            said = (
                [box.get(side, "") for side in ("x1", "y1", "x2", "y2")] if box is not None else []
            )
            if said and all(map(str.isdecimal, said)):  # one of the files has 26\u00df for 260
                sides = [float(side) for side in said]
                boxes.append(sides)
                lefts[column] = min(sides[0], lefts.get(column, sides[0]))
        if boxes:
            left, bottom, right, top = zip(*boxes, strict=True)
            around = min(left), min(bottom), max(right), max(top)
            found.append(Known(int(region.get("page", 1)), cells, around, sorted(lefts.values())))
    return found


def is_ruled(document: pypdfium2.PdfDocument, known: Known) -> bool:
    """Return whether rules part half of a table's columns over half of its height."""
    page = document[known.page - 1]
    _, down = rules_of(page)
    page.close()
    left, bottom, right, top = known.box
    inner = {
        round(rule.at)
        for rule in down
        if left + 1 < rule.at < right - 1
        and min(rule.high, top) - max(rule.low, bottom) > (top - bottom) / 2
    }
    parted = sum(any(a < at < b + 1 for at in inner) for a, b in pairwise(known.lefts))
    return 2 * parted >= max(len(known.lefts) - 1, 1)


def layouts_of(document: pypdfium2.PdfDocument) -> Iterator[PageLayout]:
    """Yield the pages as the reader lays them out, a table's heads handed on."""
    heads: Heads | None = None
    for at in range(len(document)):
        page = document[at]
        textpage = page.get_textpage()
        layout = PageLayout(page, textpage, is_first=not at, heads=heads)
        heads = layout.heads
        yield layout
        textpage.close()
        page.close()


def compared(
    path: Path, known: Sequence[Known], read: Mapping[int, Sequence[Cells]], *, ruled: bool
) -> Compared:
    """Return how far the tables that were read, by page, have the known neighbours."""
    wanted, found = Counter[Relation](), Counter[Relation]()
    for one in known:
        wanted += relations(one.cells, one.page)
    for page, tables in read.items():
        for cells in tables:
            found += relations(cells, page)
    both = (wanted & found).total()
    return Compared(path.name, is_held_out(path), ruled, wanted.total(), found.total(), both)


def labelled(path: Path, layouts: Sequence[PageLayout]) -> Labelled:
    """Return the rows of figures, as their glyphs stand, and how many bear labels."""
    rows = [(index, "".join(cells)) for index, cells in rows_of(path)]
    lines: list[list[tuple[str, bool]]] = []
    for layout in layouts:
        of_page = []
        for line in layout.lines:
            spans = [piece for piece in line.pieces if not isinstance(piece, str)]
            marks = [piece for piece in line.pieces if isinstance(piece, str)]
            drawn = "".join("".join(layout.characters[a:b].split()) for a, b in spans)
            of_page.append((drawn, any(mark.endswith(": ") for mark in marks)))
        lines.append(of_page)
    found = [
        any(bears and _stands_in(figures, drawn) for drawn, bears in lines[index])
        for index, figures in rows
    ]
    return Labelled(path.name, is_held_out(path), len(rows), sum(found))


def _stands_in(figures: str, line: str) -> bool:
    """Return whether the signs of figures stand in a line in their order."""
    rest = iter(line)
    return all(sign in rest for sign in figures)


def distinct(folder: Path) -> list[Path]:
    """Return the PDFs below a folder, each once, by name.

    Raises:
        InvalidInput: There are none.
    """
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.pdf"), key=lambda one: (one.name, one)):
        found.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), path)
    if not found:
        raise InvalidInput(
            f"no PDF below {str(folder)!r}: docs/evaluation.md says where to get them"
        )
    return list(found.values())


def read_by_peer(
    python: str, paths: Iterable[Path]
) -> tuple[dict[str, dict[int, list[Cells]]], float]:
    """Return what pdfplumber reads with its defaults, by path and page, and its processor seconds."""
    run = subprocess.run(
        [python, "-c", _PEER, *map(str, paths)], check=True, capture_output=True, text=True
    )
    found: dict[str, dict[int, list[Cells]]] = {}
    seconds = 0.0
    for line in run.stdout.splitlines():
        path, pages, took = json.loads(line)
        seconds += took
        found[path] = {
            int(page): [
                [
                    (Area(row, column, row + 1, column + 1), text or "")
                    for row, texts in enumerate(rows)
                    for column, text in enumerate(texts)
                ]
                for rows in tables
            ]
            for page, tables in pages.items()
        }
    return found, seconds


def rows_of_compared(
    name: str, seconds: float, found: Sequence[Compared]
) -> list[Sequence[object]]:
    """Return rows of the report: all documents, those with rules, without, and held out."""
    groups = {
        "all": found,
        "ruled": [one for one in found if one.is_ruled],
        "not ruled": [one for one in found if not one.is_ruled],
        "held out": [one for one in found if one.held_out],
        "held out, ruled": [one for one in found if one.held_out and one.is_ruled],
        "held out, not ruled": [one for one in found if one.held_out and not one.is_ruled],
    }
    rows: list[Sequence[object]] = []
    for group, own in groups.items():
        known, read, both = (
            sum(getattr(one, of) for one in own) for of in ("known", "read", "both")
        )
        means = [share([getattr(one, of) for one in own]) for of in ("precision", "recall", "f1")]
        pooled = f"{2 * both / max(read + known, 1):.3f}"
        took = f"{seconds:.1f}" if group == "all" else ""
        rows.append((name, group, len(own), known, read, both, *means, pooled, took))
    return rows


def mean_f1(found: Sequence[Compared], *, ruled: bool) -> float:
    own = [one.f1 for one in found if one.is_ruled is ruled]
    return sum(own) / len(own) if own else 0.0


_OF_ROWS = ("PDFs", "files", "with rows of figures", "rows", "with labels", "share", "mean of PDFs")


def _row_of_labels(half: str, counted: Sequence[Labelled]) -> Sequence[object]:
    own = [one for one in counted if one.rows]
    rows, bear = sum(one.rows for one in own), sum(one.labelled for one in own)
    means = share([one.labelled / one.rows for one in own])
    return half, len(counted), len(own), rows, bear, f"{bear / max(rows, 1):.3f}", means


def main() -> int:
    given = options(__doc__, data=COLLECTIONS["data"], peer=("", "interpreter with pdfplumber"))
    paths = distinct(given.data / "tables")
    found: list[Compared] = []
    peers: list[Compared] = []
    counted: list[Labelled] = []
    unread: list[str] = []
    seconds = all_seconds = 0.0
    truths = {path: path.with_name(f"{path.stem}-str.xml") for path in paths}
    competing = [path for path, truth in truths.items() if truth.exists()]
    by_peer, peer_seconds = read_by_peer(given.peer, competing) if given.peer else ({}, 0.0)
    for path in paths:
        try:
            document = pypdfium2.PdfDocument(path)
        except pypdfium2.PdfiumError as exc:
            unread.append(path.name)
            say(f"{path.name} is not read: {exc}")
            continue
        open_forms(document)
        began = time.process_time()
        layouts = list(layouts_of(document))
        took = time.process_time() - began
        all_seconds += took
        counted.append(labelled(path, layouts))
        if path in competing:
            known = known_tables(truths[path])
            ruled = 2 * sum(is_ruled(document, one) for one in known) >= len(known)
            read = {at: layout.tables() for at, layout in enumerate(layouts, start=1)}
            found.append(compared(path, known, read, ruled=ruled))
            if given.peer:
                peers.append(compared(path, known, by_peer[str(path)], ruled=ruled))
            seconds += took
        document.close()
    with_rows = [one for one in counted if one.rows]
    rows, bear = sum(one.rows for one in counted), sum(one.labelled for one in counted)
    lines = [
        Line("mean F1, ruled", mean_f1(found, ruled=True), LEAST_F1, at_most=False),
        Line("mean F1, not ruled", mean_f1(found, ruled=False), LEAST_F1, at_most=False),
        Line("rows of figures with labels", bear / max(rows, 1), LEAST_LABELLED, at_most=False),
    ]
    head = "reader|documents|of them|known|read|both|precision|recall|F1|pooled F1|CPU s"
    tables = table(
        head.split("|"),
        [
            *rows_of_compared("DocuMind", seconds, found),
            *(rows_of_compared("pdfplumber", peer_seconds, peers) if peers else []),
        ],
    )
    halves = {"all": counted, "held out": [one for one in counted if one.held_out]}
    tables += ["", *table(_OF_ROWS, [_row_of_labels(*half) for half in halves.items()])]
    tables += ["", f"All PDFs were laid out in {all_seconds:.1f} s of a processor."]
    remarks = [
        "Tables of PDFs as the reader has them before they become text. Known, read and both are"
        " pairs of neighbouring cells of the 67 PDFs of ICDAR 2013; precision, recall and F1 are"
        " means of documents with 95 % bootstrap intervals, pooled F1 is that of all pairs. Ruled"
        " are documents in half of whose tables rules part half of the columns. A row of figures"
        " has three and more, found glyph by glyph; it has labels where its line names its cells."
        " The PDFs held out, half of all by their checksums, are those on which rules of the reader"
        " were not tried: one of them (us-015) was looked at, where a list had lost its bullets, and"
        " of the others it was counted by form why rows bear no labels."
    ]
    per_file = {
        "compared": [asdict(one) for one in found],
        "rows": [asdict(one) for one in with_rows],
    }
    per_file |= {"peer": [asdict(one) for one in peers]}
    if unread:
        remarks += ["", f"Not opened: {', '.join(unread)}."]
    return write(
        "tables",
        "How tables of PDFs are read",
        remarks,
        lines,
        {},
        COMMAND,
        tables=tables,
        extra=per_file,
        sets=[given.data / "tables"],
    )


if __name__ == "__main__":
    raise SystemExit(main())
