"""Find the ruled tables of a PDF's page: lines that cross make a grid of cells."""

from __future__ import annotations

import ctypes
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import chain, pairwise, product
from statistics import median
from typing import NamedTuple

import pypdfium2
import pypdfium2.raw as pdfium

_NEAR = 2.0
"""Points between two rules that are one."""
_SHORTEST = 4.0
"""Points of a rule."""
_MOST_RULES = 4_000
"""Of a page; a drawing has more."""
_MOST_LINES = 400
"""Of a grid, in either direction."""
_THINNEST = 7.0
"""Points of a row or a column; between two rules nearer to each other nothing is written."""
_OPEN = 12.0
"""Points, more than between two rules of a border, by which rules of rows reach over the last of
the columns'."""
_LEAST_LINES = 3
"""In either direction: two columns, two rows."""


class Rule(NamedTuple):
    """A straight line along one axis, in points: where it lies across, and from where to where."""

    at: float
    low: float
    high: float


class Area(NamedTuple):
    """Rows and columns of a grid, `[first, end)`, that no rule parts."""

    row: int
    column: int
    end_row: int
    end_column: int


class Grid(NamedTuple):
    """Edges of columns from left to right and of rows from top to bottom, and the cells."""

    columns: list[float]
    rows: list[float]
    cells: list[Area]

    def finder(self) -> Callable[[float, float], Area | None]:
        """Return what finds the cell around a point."""
        lows = [-edge for edge in self.rows]
        taken = {place: cell for cell in reversed(self.cells) for place in _places(cell)}

        def at(x: float, y: float) -> Area | None:
            return taken.get((bisect_right(lows, -y) - 1, bisect_right(self.columns, x) - 1))

        return at

    def closed(self, filled: Sequence[Area]) -> Grid:
        """Return the grid without the gaps of double rules: thin, and with nothing in them."""
        beside = {one.column for one in filled if one.end_column - one.column == 1}
        below = {one.row for one in filled if one.end_row - one.row == 1}
        columns = _wide(self.columns, beside)
        rows = _wide([-edge for edge in self.rows], below)
        cells = (
            Area(
                bisect_left(rows, cell.row),
                bisect_left(columns, cell.column),
                bisect_left(rows, cell.end_row),
                bisect_left(columns, cell.end_column),
            )
            for cell in self.cells
        )
        kept = [cell for cell in cells if cell.row < cell.end_row and cell.column < cell.end_column]
        return Grid(
            [self.columns[at] for at in _edges(columns, self.columns)],
            [self.rows[at] for at in _edges(rows, self.rows)],
            kept,
        )

    def with_columns(self, edges: Sequence[float]) -> Grid:
        """Return the grid with further edges between columns, which cells reach over."""
        columns = sorted([*self.columns, *edges])
        moved = [bisect_left(columns, edge) for edge in self.columns]
        cells = [
            cell._replace(column=moved[cell.column], end_column=moved[cell.end_column])
            for cell in self.cells
        ]
        return self._replace(columns=columns, cells=cells)

    def with_rows(self, cuts: Mapping[Area, Sequence[float]]) -> Grid:
        """Return the grid with further edges between rows, at each of which some cells are cut."""
        rows = list(self.rows)
        for edge in {*chain(*cuts.values())}:
            if all(abs(edge - other) > _NEAR for other in rows):
                rows.append(edge)
        rows.sort(reverse=True)
        moved = [rows.index(edge) for edge in self.rows]
        cells: list[Area] = []
        for cell in self.cells:
            first, end = moved[cell.row], moved[cell.end_row]
            own = cuts.get(cell, ())
            inner = range(first + 1, end) if own else ()
            within = [at for at in inner if any(abs(rows[at] - edge) <= _NEAR for edge in own)]
            places = [first, *within, end]
            cells += [cell._replace(row=a, end_row=b) for a, b in pairwise(places)]
        return self._replace(rows=rows, cells=cells)

    def with_parts(self, starts: Mapping[Area, Sequence[int]]) -> Grid:
        """Return the grid with some of its cells parted where these columns start."""
        cells = [
            cell._replace(column=first, end_column=end)
            for cell in self.cells
            for first, end in pairwise([cell.column, *starts.get(cell, ()), cell.end_column])
        ]
        return self._replace(cells=cells)


def grids_of(page: pypdfium2.PdfPage) -> list[Grid]:
    """Return the grids of a page, from top to bottom."""
    across, down = rules_of(page)
    if len(across) < _LEAST_LINES or not down:
        return []
    found = (_grid(*group) for group in _crossing(across, down))
    return sorted((grid for grid in found if grid), key=lambda grid: -grid.rows[0])


def rules_of(page: pypdfium2.PdfPage) -> tuple[list[Rule], list[Rule]]:
    """Return the horizontal and the vertical rules, those on one line that touch as one."""
    across: list[Rule] = []
    down: list[Rule] = []
    for at in range(pdfium.FPDFPage_CountObjects(page.raw)):
        shape = pdfium.FPDFPage_GetObject(page.raw, at)
        if pdfium.FPDFPageObj_GetType(shape) != pdfium.FPDF_PAGEOBJ_PATH:
            continue
        for (x, y), (to_x, to_y) in _strokes(shape):
            if abs(y - to_y) < 1 and abs(x - to_x) >= _SHORTEST:
                across.append(Rule((y + to_y) / 2, min(x, to_x), max(x, to_x)))
            elif abs(x - to_x) < 1 and abs(y - to_y) >= _SHORTEST:
                down.append(Rule((x + to_x) / 2, min(y, to_y), max(y, to_y)))
        if len(across) + len(down) > _MOST_RULES:
            return [], []
    return _joined(across), _joined(down)


Point = tuple[float, float]


def _strokes(path: pdfium.FPDF_PAGEOBJECT) -> Iterator[tuple[Point, Point]]:
    """Yield the straight strokes of a path on the page."""
    matrix, x, y = pdfium.FS_MATRIX(), ctypes.c_float(), ctypes.c_float()
    pdfium.FPDFPageObj_GetMatrix(path, matrix)
    first = last = (0.0, 0.0)
    for at in range(min(pdfium.FPDFPath_CountSegments(path), _MOST_RULES)):
        segment = pdfium.FPDFPath_GetPathSegment(path, at)
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        point = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            first = point
        elif kind == pdfium.FPDF_SEGMENT_LINETO:
            yield last, point
        if pdfium.FPDFPathSegment_GetClose(segment):
            yield point, first
        last = point


def _joined(rules: Sequence[Rule]) -> list[Rule]:
    """Return rules, those that lie on one line and touch as one."""
    lines: list[list[Rule]] = []
    for rule in sorted(rules):
        if lines and rule.at - lines[-1][-1].at < _NEAR:
            lines[-1].append(rule)
        else:
            lines.append([rule])
    found: list[Rule] = []
    for line in lines:
        at = sum(rule.at for rule in line) / len(line)
        reach: list[tuple[float, float]] = []
        for low, high in sorted((rule.low, rule.high) for rule in line):
            if reach and low <= reach[-1][1] + _NEAR:
                reach[-1] = reach[-1][0], max(reach[-1][1], high)
            else:
                reach.append((low, high))
        found += [Rule(at, low, high) for low, high in reach]
    return found


def _crossing(
    across: Sequence[Rule], down: Sequence[Rule]
) -> Iterator[tuple[list[Rule], list[Rule]]]:
    """Yield groups of rules that cross one another."""
    left = set(range(len(down)))
    waiting = set(range(len(across)))
    while waiting:
        rows, columns = {waiting.pop()}, set[int]()
        fresh = set(rows)
        while fresh:
            touched = {at for at in left if any(_cross(across[row], down[at]) for row in fresh)}
            columns |= touched
            left -= touched
            fresh = {at for at in waiting if any(_cross(across[at], down[of]) for of in touched)}
            rows |= fresh
            waiting -= fresh
        yield [across[at] for at in rows], [down[at] for at in columns]


def _cross(across: Rule, down: Rule) -> bool:
    return (
        across.low - _NEAR <= down.at <= across.high + _NEAR
        and down.low - _NEAR <= across.at <= down.high + _NEAR
    )


def _grid(across: Sequence[Rule], down: Sequence[Rule]) -> Grid | None:
    if not down:
        return None
    beside, over = _by_place([*down, *_open_sides(across, down)]), _by_place(across)
    columns, rows = sorted(beside), sorted(over, reverse=True)
    if not all(_LEAST_LINES <= len(edges) <= _MOST_LINES for edges in (columns, rows)):
        return None
    size = range(len(rows) - 1), range(len(columns) - 1)
    taken: dict[tuple[int, int], Area] = {}
    for row in size[0]:
        for column in size[1]:
            if (row, column) in taken:
                continue
            end_column = column + 1
            level = (rows[row] + rows[row + 1]) / 2
            while end_column in size[1] and not _lies(beside[columns[end_column]], level):
                end_column += 1
            end_row, middle = row + 1, (columns[column] + columns[column + 1]) / 2
            while end_row in size[0] and not _lies(over[rows[end_row]], middle):
                end_row += 1
            cell = Area(row, column, end_row, end_column)
            for place in _places(cell):
                taken.setdefault(place, cell)
    cells = list(dict.fromkeys(taken.values()))
    return Grid(columns, rows, cells) if len(cells) > len(rows) else None


def _open_sides(across: Sequence[Rule], down: Sequence[Rule]) -> list[Rule]:
    """Return the sides of a table that no rule closes, where most of its rows' rules end."""
    low, high = min(rule.low for rule in down), max(rule.high for rule in down)
    left, right = min(rule.at for rule in down), max(rule.at for rule in down)
    first, last = median(rule.low for rule in across), median(rule.high for rule in across)
    ends = [at for at, is_open in ((first, left - first), (last, last - right)) if is_open > _OPEN]
    return [Rule(at, low, high) for at in ends]


def _places(cell: Area) -> list[tuple[int, int]]:
    rows, columns = range(cell.row, cell.end_row), range(cell.column, cell.end_column)
    return list(product(rows, columns))


def _by_place(rules: Sequence[Rule]) -> dict[float, list[Rule]]:
    found: dict[float, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.at, []).append(rule)
    return found


def _wide(edges: Sequence[float], filled: Container[int]) -> list[int]:
    """Return the places between edges that hold something, or are wide enough for it."""
    return [
        at
        for at, (low, high) in enumerate(pairwise(edges))
        if at in filled or high - low >= _THINNEST
    ]


def _edges(kept: Sequence[int], of: Sequence[float]) -> list[int]:
    """Return the edges at which the places that are kept begin, the outer ones at both ends."""
    return [0, *kept[1:], len(of) - 1]


def _lies(rules: Sequence[Rule], at: float) -> bool:
    """Return whether one of the rules on a line passes a place."""
    return any(rule.low < at < rule.high for rule in rules)
