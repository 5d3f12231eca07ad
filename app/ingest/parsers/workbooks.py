"""Read workbooks: XLSX by its XML, with numbers as the sheet shows them; XLS and XLSB by calamine.

Calamine reads XLSX too, but tells neither how a number is shown (percent, currency, decimals) nor
which columns are hidden, and it reserves a place for each cell of the used area, so that two cells
in far corners need terabytes.
"""

from __future__ import annotations

import datetime
import io
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

from lxml import etree

from app.core.dates import MONTHS
from app.core.errors import Unreadable
from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import Block, Cell, write
from app.ingest.parsers.office import OFFICE, A, Package, R, chart, opened, unread_parts, whole
from app.ingest.parsers.sniffing import protected
from app.ingest.parsers.tables import MOST_CELLS, Line, table_blocks

_S = f"{{{OFFICE}spreadsheetml/2006/main}}"
_PLACE = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")
_DEFAULT_NAME = re.compile(
    r"(?:sheet|tabelle|feuil|hoja|foglio|blad|planilha|arkusz)\W?\d*\Z", re.IGNORECASE
)
NO_VALUE = "formulas without a stored value (open the file in its program and save it)"
_LONG_CELL = 64
_MOST_PLACES = 2 * MOST_CELLS
"""Of a grid; more are cells in far corners, no table."""

Cells = dict[int, dict[int, str]]
"""The cells that hold something, by row and column from 0."""
Area = tuple[int, int, int, int]
"""First row and column, last row and column, of a merged cell."""


def sheet_blocks(
    name: str, cells: Cells, merged: list[Area], unread: Counter[str], *, alone: bool
) -> Iterator[Block]:
    """Yield a sheet: its name as a heading, unless a program gave it to the only one, its tables.

    Rows and columns that are blank count as one.
    """
    rows = sorted(row for row, held in cells.items() if held)
    columns = sorted({column for held in cells.values() for column in held})
    if not rows:
        return
    if not (alone and _DEFAULT_NAME.match(name)):
        yield Block("heading", name, level=1)
    places = _without_gaps(columns)
    width = places[columns[-1]] + 1
    most = max(_MOST_PLACES // width, 1)
    if len(rows) > most:
        unread[f"rows of sheet {name!r}, too many or too far apart"] += len(rows) - most
        rows = rows[:most]
    lines = _without_gaps(rows)
    grid: list[Line] = [[] for _ in range(lines[rows[-1]] + 1)]
    for row in rows:
        line: Line = [_BLANK] * width
        for column, text in cells[row].items():
            line[places[column]] = Cell(text)
        grid[lines[row]] = line
    left = _MOST_PLACES
    for top, first, bottom, last in merged:
        if left <= 0:
            break
        down = [lines[row] for row in rows[bisect_left(rows, top) : bisect_right(rows, bottom)]]
        across = columns[bisect_left(columns, first) : bisect_right(columns, last)]
        said = cells.get(top, {}).get(first)
        left -= len(down) * width
        if said and top in lines:
            begin, end = places[across[0]], places[across[-1]] + 1
            for at in down:
                grid[at][begin:end] = [None] * (end - begin)
            grid[down[0]][begin] = Cell(said, rows=len(down), columns=end - begin)
    yield from table_blocks(grid)


_BLANK = Cell("")


def _without_gaps(numbers: list[int]) -> dict[int, int]:
    """Return the places of numbers when each gap is one place."""
    places: dict[int, int] = {}
    at = -1
    for before, number in zip([numbers[0] - 1, *numbers], numbers, strict=False):
        at += 1 if number == before + 1 else 2
        places[number] = at
    return places


def place(reference: str) -> tuple[int, int] | None:
    """Return row and column of `B3`, from 0."""
    found = _PLACE.fullmatch(reference)
    if found is None:
        return None
    column = 0
    for letter in found[1]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(found[2]) - 1, column - 1


# XLSX.


def parse_xlsx(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return a workbook's visible cells as they are shown, charts as tables, comments as notes."""
    with opened(content, filename, "workbook") as archive:
        reader = _Reader(Package(archive))
        blocks = list(reader.blocks())
        title, authors = reader.package.about()
    return write(
        blocks,
        "xlsx",
        title=title or PurePosixPath(filename).stem,
        authors=authors,
        warnings=unread_parts(reader.unread),
    )


class _Reader:
    def __init__(self, package: Package) -> None:
        self.package = package
        self.unread: Counter[str] = Counter()
        self._left = MOST_CELLS
        self._shared: list[str] = []
        for name in package.of_kind("sharedStrings"):
            self._shared += map(_string, _each(package.bytes(name) or b"", "si"))
        self._formats = ["General"]
        self._struck = [False]
        for name in package.of_kind("styles"):
            styles = package.part(name)
            self._formats, self._struck = _formats(styles), _struck(styles)

    def blocks(self) -> Iterator[Block]:
        book = self.package.part(self.package.main)
        if book is None:
            raise KeyError("no workbook")
        properties = book.find(f"{_S}workbookPr")
        self._is_1904 = properties is not None and properties.get("date1904") in ("1", "true")
        relations = self.package.relations(self.package.main)
        sheets = book.findall(f"{_S}sheets/{_S}sheet")
        for sheet in sheets:
            name = sheet.get("name") or ""
            if (sheet.get("state") or "visible") != "visible":
                self.unread[f"hidden sheet {name!r}"] += 1
                continue
            kind, part = relations.get(sheet.get(f"{R}id") or "", ("", ""))
            if kind == "worksheet":
                cells, merged = self._cells(self.package.bytes(part) or b"", name)
                alone = len(sheets) == 1
                yield from sheet_blocks(name, cells, merged, self.unread, alone=alone)
            elif kind == "chartsheet":
                yield Block("heading", name, level=1)
            yield from self._around(part)

    def _cells(self, data: bytes, name: str) -> tuple[Cells, list[Area]]:
        cells: Cells = defaultdict(dict)
        merged: list[Area] = []
        hidden: set[int] = set()
        row = -1
        for element in _each(data, "row", "col", "mergeCell"):
            if element.tag == f"{_S}col":
                if element.get("hidden") in ("1", "true"):
                    first, last = int(element.get("min") or 1), int(element.get("max") or 1)
                    hidden.update(range(first - 1, min(last, 16_384)))
            elif element.tag == f"{_S}mergeCell":
                ends = [place(end) for end in (element.get("ref") or "").split(":")]
                if len(ends) == 2 and ends[0] and ends[1]:
                    merged.append((*ends[0], *ends[1]))
            else:
                row = int(element.get("r") or row + 2) - 1
                if self._left <= 0:
                    self.unread[f"rows of sheet {name!r}, too many cells"] += 1
                elif element.get("hidden") in ("1", "true"):
                    self.unread[f"hidden rows of sheet {name!r}"] += 1
                else:
                    self._read_row(element, cells[row], hidden, name)
        return cells, merged

    def _read_row(
        self, element: etree._Element, held: dict[int, str], hidden: set[int], name: str
    ) -> None:
        column = -1
        for cell in element.iterchildren(f"{_S}c"):
            at = place(cell.get("r") or "")
            column = at[1] if at else column + 1
            text = self._text(cell)
            style = whole(cell.get("s") or "0", len(self._struck))
            if text and style < len(self._struck) and self._struck[style]:
                self.unread["struck-through cells"] += 1
            elif text and column in hidden:
                self.unread[f"cells of hidden columns of sheet {name!r}"] += 1
            elif text:
                held[column] = text
                self._left -= 1 + len(text) // _LONG_CELL  # one string may stand in many cells

    def _text(self, cell: etree._Element) -> str:
        """Return a cell as the sheet shows it."""
        kind = cell.get("t") or "n"
        if kind == "inlineStr":
            inline = cell.find(f"{_S}is")
            return "" if inline is None else _string(inline)
        value = (cell.findtext(f"{_S}v") or "").strip()
        if not value:
            self.unread[NO_VALUE] += cell.find(f"{_S}f") is not None
            return ""
        if kind == "s":
            return self._shared[int(value)] if int(value) < len(self._shared) else ""
        if kind == "b":
            return "true" if value == "1" else "false"
        if kind == "e":
            self.unread["cells that show an error"] += 1
            return ""
        if kind != "n":
            return value  # a formula's text, or a date as ISO 8601
        style = whole(cell.get("s") or "0", len(self._formats))
        form = self._formats[style] if style < len(self._formats) else "General"
        return shown(float(value), form, self._is_1904)

    def _around(self, part: str) -> Iterator[Block]:
        """Yield what lies on a sheet: comments, boxes, charts."""
        for name in self.package.of_kind("comments", part):
            tree = self.package.part(name)
            for comment in () if tree is None else tree.iter(f"{_S}comment"):
                text = comment.find(f"{_S}text")
                said = "" if text is None else " ".join(_string(text).split())
                yield Block("footnote", said, mark=f"Comment on {comment.get('ref')}:")
        for name in self.package.of_kind("drawing", part):
            drawing = self.package.part(name)
            for paragraph in () if drawing is None else drawing.iter(f"{A}p"):
                yield Block("paragraph", "".join(one.text or "" for one in paragraph.iter(f"{A}t")))
            for found in self.package.of_kind("chart", name):
                yield from chart(self.package.part(found))
            self.unread["pictures"] += len(self.package.of_kind("image", name))


def _each(data: bytes, *names: str) -> Iterator[etree._Element]:
    """Yield a part's elements one by one; each is emptied behind."""
    for _, element in etree.iterparse(
        io.BytesIO(data),
        tag=[_S + name for name in names],
        resolve_entities=False,
        no_network=True,
        remove_comments=True,
    ):
        yield element
        element.clear()
        while element.getprevious() is not None:
            del element.getparent()[0]


def _string(element: etree._Element) -> str:
    """Return a string's runs without struck-through ones and readings of East Asian words."""
    runs = [element, *element.iterchildren(f"{_S}r")]
    shown = (run for run in runs if not _is_on(run.find(f"{_S}rPr/{_S}strike")))
    return "".join(run.findtext(f"{_S}t") or "" for run in shown)


def _is_on(mark: etree._Element | None) -> bool:
    """Return whether a mark of a font is there and not switched off."""
    return mark is not None and mark.get("val") not in ("0", "false")


# How numbers are shown (ISO/IEC 29500-1, 18.8.30 and 18.8.31).

_BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%",
    22: "yyyy-mm-dd hh:mm", 46: "[h]:mm:ss",
    **dict.fromkeys((*range(14, 18), *range(27, 32), 36, *range(50, 59)), "yyyy-mm-dd"),
    **dict.fromkeys((*range(18, 22), *range(32, 36), 45, 47), "hh:mm:ss"),
    **dict.fromkeys((7, 8, 39, 40, 43, 44), "#,##0.00"),
}  # fmt: skip
_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|[_*].|\[(?!h)[^\]]*\]', re.IGNORECASE)
"""Quoted and escaped text, currencies; widths, fillings, colours and conditions."""
_DIGITS = re.compile(r"[#0?][#0?,]*(?:\.([#0?]+))?")
_LONGEST_SERIAL = 2_958_466
"""Days to the year 9999."""


def _formats(styles: etree._Element | None) -> list[str]:
    if styles is None:
        return ["General"]
    own = {
        one.get("numFmtId"): one.get("formatCode") or "General"
        for one in styles.iterfind(f"{_S}numFmts/{_S}numFmt")
    }
    ids = [one.get("numFmtId") or "0" for one in styles.iterfind(f"{_S}cellXfs/{_S}xf")]
    return [own.get(one) or _BUILT_IN.get(whole(one, 0), "General") for one in ids]


def _struck(styles: etree._Element | None) -> list[bool]:
    """Return by style whether its cells are struck through."""
    if styles is None:
        return [False]
    fonts = [_is_on(font.find(f"{_S}strike")) for font in styles.iterfind(f"{_S}fonts/{_S}font")]
    chosen = [whole(one.get("fontId"), 0) for one in styles.iterfind(f"{_S}cellXfs/{_S}xf")]
    return [font < len(fonts) and fonts[font] for font in chosen]


def shown(value: float, code: str, is_1904: bool = False) -> str:
    """Return a number as its format shows it: `19%`, `12.50 €`; dates and times by ISO 8601.

    A date whose month is shown by its name is `4 Mar 2025`, without a day `Mar 2025`.
    """
    section = code.split(";", maxsplit=1)[0]
    plain = _LITERAL.sub("", section)
    is_moment = re.search(r"[ymdhs]", plain, re.IGNORECASE) and "general" not in plain.lower()
    if is_moment and 0 <= value < _LONGEST_SERIAL:
        return _moment(value, plain.lower(), is_1904)
    digits = _DIGITS.search(plain)
    is_other = is_moment or re.search(r"[E/@]|general|,(?![#0?])", plain, re.IGNORECASE)
    if digits is None or is_other:
        return number(value)
    if "%" in plain:
        value *= 100
    decimals = digits[1] or ""
    text = f"{abs(value):.{len(decimals)}f}"
    if spare := len(decimals) - decimals.count("0"):
        kept = text[-spare:].rstrip("0")
        text = (text[:-spare] + kept).rstrip(".")
    whole = digits[0].partition(".")[0].count("0")
    text = text.zfill(whole + len(text) - len(text.partition(".")[0]))
    written = _LITERAL.sub(lambda found: found[1] or found[2] or found[3] or "", section)
    before, _, after = written.partition(digits[0])
    sign = "-" if value < 0 and text.strip("0.") else ""
    return f"{sign}{before.strip()}{' ' if before.endswith(' ') else ''}{text}{after.rstrip()}"


def _moment(serial: float, code: str, is_1904: bool) -> str:
    seconds = round(serial * 86_400)
    has_time = "h" in code or "s" in code
    if not re.search(r"[yd]", code) and has_time:
        if "[h" not in code:
            seconds %= 86_400
        hours, rest = divmod(seconds, 3_600)
        minutes, rest = divmod(rest, 60)
        return f"{hours:02}:{minutes:02}" + (f":{rest:02}" if rest else "")
    epoch = datetime.date(1904, 1, 1) if is_1904 else datetime.date(1899, 12, 30)
    begun = datetime.datetime.combine(epoch, datetime.time())
    found = begun + datetime.timedelta(seconds=seconds)
    if "mmm" in code and not has_time:  # the month by its name
        day = f"{found.day} " if "d" in code else ""
        return f"{day}{MONTHS[found.month - 1][:3].capitalize()} {found.year}"
    return moment(found, has_time=has_time)


def moment(value: datetime.datetime, *, has_time: bool = True) -> str:
    """Return a date, with its time unless that is midnight or not shown."""
    if not has_time or (value.hour, value.minute, value.second) == (0, 0, 0):
        return value.date().isoformat()
    return value.isoformat(" ", "seconds" if value.second else "minutes")


def number(value: float) -> str:
    """Return a number without the noise of binary fractions: `12.5`, not `12.500000001`."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.9g}" if abs(value) < 1 else f"{round(value, 6):.15g}"


# XLS and XLSB.


def parse_xls(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return the visible sheets of a binary workbook."""
    import python_calamine  # noqa: PLC0415  # only old files need it

    unread: Counter[str] = Counter()
    blocks: list[Block] = []
    left = MOST_CELLS
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        for sheet in book.sheets_metadata:
            if sheet.visible is not python_calamine.SheetVisibleEnum.Visible:
                unread[f"hidden sheet {sheet.name!r}"] += 1
                continue
            if sheet.typ is not python_calamine.SheetTypeEnum.WorkSheet:
                unread[f"sheet without cells {sheet.name!r}"] += 1
                continue
            grid = book.get_sheet_by_name(sheet.name)
            cells: Cells = {}
            first_column = (grid.start or (0, 0))[1]  # rows come from the first of the sheet on
            for row, values in enumerate(grid.iter_rows()):
                found = enumerate(map(_value, values), first_column)
                cells[row] = {column: text for column, text in found if text}
                left -= len(cells[row])
                if left <= 0:
                    more = grid.total_height - row - 1
                    unread[f"rows of sheet {sheet.name!r}, too many cells"] += more
                    break
            merged = [(*first, *last) for first, last in grid.merged_cell_ranges or ()]
            alone = len(book.sheets_metadata) == 1
            blocks += sheet_blocks(sheet.name, cells, merged, unread, alone=alone)
    except python_calamine.PasswordError as exc:
        raise protected(filename) from exc
    except (python_calamine.CalamineError, OSError, ValueError) as exc:
        raise Unreadable(
            f"{filename!r} is a damaged workbook ({exc}); open it in its own program and save it"
            " as XLSX"
        ) from exc
    return write(blocks, "xls", title=PurePosixPath(filename).stem, warnings=unread_parts(unread))


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return number(value)
    if isinstance(value, datetime.datetime):
        return moment(value)
    return str(value).strip()
