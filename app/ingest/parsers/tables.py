"""Find tables in a grid of cells, such as a sheet or a file of separated values, and read CSV.

What stands above a table or below it in a single cell is text; the first row of a table names its
columns where it looks like that.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import groupby

from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import MOST_HEADS, Block, Cell, has_stacked_heads, write
from app.ingest.parsers.sniffing import decode

MOST_CELLS = 500_000
"""Of one file; what stands behind is named in the receipt and not read."""

Line = list[Cell | None]
"""A row of a grid; None is a place that a merged cell covers."""

_VALUE = re.compile(
    r"[^\w\s]{0,2}\s?[+\-\u2212]?\d[\d.,:/'\u202f\u00a0T -]*\s?(?:%|\S{1,3})?\Z", re.IGNORECASE
)
"""A number, an amount, a date or a time."""
_NO_VALUE = re.compile(r"[-\u2013\u2014]+")
"""A dash where a value would stand."""
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d\Z")
DAY = re.compile(
    r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d\d)|(?:\d{1,2} )?[A-Z][a-z]{2} \d{4}"
)
"""A date as a sheet or a file of separated values writes it."""
_MOSTLY = 0.8
_SAMPLE_ROWS = 200
"""Rows that tell what a table is like."""
_LONGEST_NAME = 60
_TITLE = re.compile(r"[^\W\d_].{1,118}[^.:;,!?\s]")
"""A single cell above a table, which it is the heading of; others are notes to it."""
_MOST_TEXT_LINES = 3
"""Of single cells apart from other tables; more are a list."""


def table_blocks(grid: Sequence[Line]) -> Iterator[Block]:
    """Yield the tables of a grid, and the text around them, in order from the top."""
    bands = [list(lines) for is_filled, lines in groupby(grid, _is_filled) if is_filled]
    heads: Line | None = None
    held: list[Line] = []
    for band, following in zip(bands, [*bands[1:], []], strict=True):
        held += band
        if _names_rows_below(band[-1], following):
            continue
        for part in _side_by_side(held):
            heads = yield from _one_table(part, heads)
        held = []


def _is_filled(line: Line) -> bool:
    return any(cell is None or cell.text for cell in line)


def _names_rows_below(heads: Line, rows: Sequence[Line]) -> bool:
    """Return whether a row names the columns of rows that a blank one sets apart from it."""
    named = [at for at, cell in enumerate(heads) if cell is not None and cell.text]
    if len(named) < 2 or any(_is_figure(cell.text) for cell in _filled(heads)):
        return False
    below = {at for line in rows for at, cell in enumerate(line) if cell is not None and cell.text}
    held = [cell.text for line in rows for cell in (line[at] for at in named[-2:]) if cell]
    figures = sum(map(_is_figure, held))
    return bool(below) and below <= {0, *named} and figures * 2 > len(held)


def _is_figure(text: str) -> bool:
    return _VALUE.match(text) is not None and not _YEAR.match(text) and not DAY.fullmatch(text)


def _side_by_side(band: list[Line]) -> list[list[Line]]:
    """Return the tables of rows without a blank one between: apart by a blank column."""
    widest = max(map(len, band))
    even = [line + [Cell("")] * (widest - len(line)) for line in band]
    used = [
        any(line[at] is None or line[at].text for line in even)  # type: ignore[union-attr]
        for at in range(widest)
    ]
    spans: list[list[int]] = [[]]
    for at, is_used in enumerate(used):
        if is_used:
            spans[-1].append(at)
        elif spans[-1]:
            spans.append([])
    parts = [[[line[at] for at in span] for line in even] for span in spans if span]
    tops = [part[0] for part in parts if len(part[0]) > 1]
    have_heads = all(cell and cell.text for top in tops for cell in top)
    if len(parts) > 1 and len(tops) == len(parts) and have_heads:
        return parts
    return [[[line[at] for at in range(widest) if used[at]] for line in even]]


def _filled(line: Line) -> list[Cell]:
    return [cell for cell in line if cell is not None and cell.text]


def _one_table(rows: list[Line], above: Line | None) -> Generator[Block, None, Line | None]:
    """Yield a table and the text around it; return its heads, for what goes on below it."""
    usual = Counter(len(_filled(line)) for line in rows[:_SAMPLE_ROWS]).most_common(1)[0][0]
    usual = max(usual, len(_filled(rows[-1])) if len(rows) == 2 else 1)
    few = max(usual // 2, 1)
    may_be_text = usual > 1 or (usual == 1 and len(rows) <= _MOST_TEXT_LINES)
    while may_be_text and rows and len(said := _filled(rows[0])) <= few and not _is_stacked(rows):
        title = ", ".join(cell.text for cell in said)
        is_title = usual > 1 and len(said) == 1 and len(rows) > 2 and _TITLE.fullmatch(title)
        yield Block("heading", title, level=2) if is_title else Block("paragraph", title)
        rows = rows[1:]
    notes: list[Line] = []
    while len(rows) > 1 and usual > 1 and len(_filled(rows[-1])) == 1 and _is_note(rows[-1]):
        notes.insert(0, rows.pop())
    if rows and is_form(rows):
        for label, value in map(_filled, rows):
            yield Block("field", value.text, mark=label.text)
    elif rows:
        heads = None if _is_stacked(rows) else _heads(rows)
        if heads == 0 and above is not None and len(above) == len(rows[0]):
            rows, heads = [above, *rows], 1
        elif heads != 0:
            above = rows[0]
        yield Block("table", rows=[_row(line) for line in rows], heads=heads)
    for line in notes:
        yield Block("paragraph", _filled(line)[0].text)
    return above


def _is_stacked(rows: Sequence[Line]) -> bool:
    """Return whether the first row names columns together with those below it."""
    top = rows[: MOST_HEADS + 1]
    if any(cell is None for line in top for cell in line):
        return False  # merged cells say where a head reaches
    return has_stacked_heads([[cell for cell in line if cell] for line in top])


def _is_note(line: Line) -> bool:
    """Return whether a row below a table is text rather than a record of one value."""
    first = line[0]
    return first is None or len(first.text.split()) > 2 or first.columns > 1


def _row(line: Line) -> list[Cell]:
    """Return a table's row; the name of a group stands across all columns."""
    cells = [cell for cell in line if cell is not None]
    first = line[0] if len(line) > 2 and len(_filled(line)) == 1 else None
    if first is not None and first.text and first.rows == 1:
        return [first._replace(columns=len(line))]
    return cells


def is_form(rows: Sequence[Line]) -> bool:
    """Return whether two columns are labels and their values, not records."""
    if len(rows) < 2 or any(len(line) != 2 or len(_filled(line)) != 2 for line in rows):
        return False
    labels, values = zip(*([cell.text for cell in _filled(line)] for line in rows), strict=True)
    if all(label.endswith(":") for label in labels):
        return True
    told = [value for value in values[1:] if not _NO_VALUE.fullmatch(value)]
    kinds = {_VALUE.match(value) is not None for value in told}
    named = all(len(label) <= _LONGEST_NAME and not _VALUE.match(label) for label in labels)
    return named and len(kinds) == 2 and len(set(labels)) == len(labels) <= _SAMPLE_ROWS


def _heads(rows: Sequence[Line]) -> int | None:
    """Return how many rows name the columns; None leaves it to the looks of the first."""
    first, body = rows[0], rows[1 : _SAMPLE_ROWS + 1]
    if not body:
        return 0
    if any(cell is None or cell.rows > 1 or cell.columns > 1 for cell in first):
        return None
    days = [cell for cell in first[1:] if cell is not None and DAY.fullmatch(cell.text)]
    is_named = len(days) == len(first) - 1 > 0 and not any(map(_has_day, body))
    for at, head in enumerate(first):
        cells = [cell for line in body if (cell := line[at]) is not None and cell.text]
        texts = [cell.text for cell in cells if not _NO_VALUE.fullmatch(cell.text)]
        if head is None or not texts or not head.text:
            continue
        if _VALUE.match(head.text) and not _YEAR.match(head.text) and not is_named:
            return 0
        shapes = Counter(map(_shape, texts)).most_common(1)[0]
        is_alike = shapes[1] >= len(texts) * _MOSTLY
        if any(map(str.isdigit, head.text)) and is_alike and _shape(head.text) == shapes[0]:
            return 0 if not _YEAR.match(head.text) and not is_named else None
        is_named |= sum(_VALUE.match(text) is not None for text in texts) >= len(texts) * _MOSTLY
    texts = [cell.text for cell in _filled(first)]
    fits = all(len(text) <= _LONGEST_NAME for text in texts) and len(texts) * 2 > len(first)
    return 1 if is_named and fits else None


def _has_day(line: Line) -> bool:
    return any(cell is not None and DAY.fullmatch(cell.text) for cell in line[1:])


def _shape(text: str) -> str:
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", text))


_DELIMITERS = ("\t", ";", "|", ",")
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
"""What Excel writes and reads above the first row."""
_LONGEST_CELL_LINES = 200
"""A cell of more lines begins with a quotation mark that nothing closes."""


def parse_csv(content: bytes, *_: object) -> ParsedDocument:
    """Return separated values with a labelled line for each row.

    The separator is the one that gives rows of equal length: tab, semicolon, bar or comma, in this
    order, so that a decimal comma separates nothing.
    """
    source, warnings = decode(content)
    said = _SEPARATOR_LINE.match(source)
    source = source[said.end() :] if said else source
    csv.field_size_limit(sys.maxsize)
    delimiter = said[1] if said else _delimiter(source)
    grid, more = _grid(csv.reader(_lines(source), delimiter=delimiter))
    if any(cell.text.count("\n") > _LONGEST_CELL_LINES for row in grid for cell in row if cell):
        quoted = csv.reader(_lines(source), delimiter=delimiter, quoting=csv.QUOTE_NONE)
        grid, more = _grid(quoted)
        warnings = (*warnings, "a quotation mark is not closed; quotation marks are read as text")
    if more:
        warnings = (*warnings, f"rows behind row {len(grid):,} are not read: too many cells")
    return write(table_blocks(grid), "csv", warnings=warnings)


def _lines(source: str) -> Iterable[str]:
    return re.split(r"(?<=\n)|(?<=\r)(?!\n)", source.replace("\0", ""))


def _delimiter(source: str) -> str:
    sample = list(_lines(source[: 64 * 1024]))[:_SAMPLE_ROWS]
    best, most = ",", 0.0
    for delimiter in _DELIMITERS:
        widths = [len(row) for row in csv.reader(sample, delimiter=delimiter) if any(row)]
        parted = Counter(width for width in widths if width > 1)
        share = max(parted.values(), default=0) / max(len(widths), 1)
        if share >= _MOSTLY:
            return delimiter
        if share > most:
            best, most = delimiter, share
    return best


def _grid(rows: Iterable[Sequence[str]]) -> tuple[list[Line], bool]:
    """Return rows as cells until there are too many, and whether there are more."""
    grid: list[Line] = []
    cells = 0
    for row in rows:
        cells += len(row)
        if cells > MOST_CELLS:
            return grid, True
        grid.append([Cell(text.strip()) for text in row])
    return grid, False
