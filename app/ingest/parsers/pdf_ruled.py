"""Find the ruled tables of a PDF's page, also where rules are missing or double."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

import pypdfium2

from app.ingest.parsers.blocks import Cell as FormCell
from app.ingest.parsers.blocks import resolved
from app.ingest.parsers.pdf_grids import Area, Grid
from app.ingest.parsers.pdf_lines import (
    BLANKS,
    CELL_GAP,
    CLOSE,
    HYPHEN,
    NUMBER,
    Heads,
    Line,
    PageLines,
    Piece,
    Run,
    Table,
    box_around,
    line_of,
)
from app.ingest.parsers.tables import DAY, is_form

YEARS = re.compile(r"(?:1[5-9]|20)\d\d(?:\s?[/\u2013-]\s?(?:(?:1[5-9]|20)?\d\d))?\Z")
_MARK_OF_ITEM = re.compile(r"[^\w\s]|\(?\w{1,3}[.)]")
"""A bullet or a number of a list, which is no column before its text."""
_UNIT = re.compile(r"\(?(?:[%\u2030#\u2116\u00b0]|[$\u20ac\u00a3\u00a5])\)?")
LONGEST_HEAD = 80
LABEL_AND_VALUE = 2
"""Columns of a form."""
_LONGEST_RULED = 1_200
"""Characters of a cell; what holds more is the frame of a page."""
_LEAST_RULED = 2
"""Rows of several cells, the head among them."""
_MOST_RULED_HEADS = 3
_FEW = 0.15
"""Of the lines of a column, such as its heads, that may cross a gap of the others."""
MOST_UNNAMED = 2
"""Columns before the first that has a name."""
FARTHEST_HEAD = 3
"""Lines between two parts of a table under the same heads."""
_WORD_GAP = 0.45
"""Heights of a line between two words of one head, at most."""

Held = Mapping[Area, Sequence[tuple[Line, list[Run]]]]
"""Lines and their text objects by the cell of a grid that they stand in."""


class RuledTables(PageLines):
    """Finds the rows of tables that rules part, and what names their cells."""

    def __init__(
        self, page: pypdfium2.PdfPage, textpage: pypdfium2.PdfTextPage, heads: Heads | None = None
    ) -> None:
        super().__init__(page, textpage)
        self._above, self._ends_with = heads, list[tuple[Line, Heads]]()
        self._starts: dict[int, set[int]] = {}
        """Where cells begin, of lines in grids."""
        self._parted: list[list[tuple[Area, list[Piece]]]] = []
        """Ruled tables, and labels with their values."""

    def _with_grids(self, lines: list[Line], grids: Sequence[Grid]) -> list[Line]:
        """Return lines; those inside a grid give way to its rows, with the labels of its head."""
        for drawn in grids:
            near = [line for line in lines if _is_within(line, drawn)]
            grid = self._refined(near, drawn) if near else drawn
            held, outside = self._held(near, grid)
            firsts = {line.start for of in held.values() for line, _ in of}
            kept: list[Line] = []
            place: int | None = None
            for line in lines:
                if line.start not in firsts:
                    kept.append(line)
                    continue
                place = len(kept) if place is None else place
                if line.start in outside:
                    runs = outside[line.start]
                    kept.append(line_of([[run] for run in runs], is_broken=False))
                    self._arrange(kept[-1])
            above = self._above if place is not None and place <= FARTHEST_HEAD else None
            if rows := self._ruled_rows(grid, held, above):
                kept[place:place] = rows
                lines = kept
        return lines

    def _held(self, lines: Sequence[Line], grid: Grid) -> tuple[Held, Mapping[int, list[Run]]]:
        """Return what stands in each cell, and the text objects outside of lines in some."""
        held: dict[Area, list[tuple[Line, list[Run]]]] = {}
        outside: dict[int, list[Run]] = {}
        find = grid.finder()
        for line in lines:
            inside: dict[Area, list[Run]] = {}
            for run in (part for whole in line.runs for part in self._cut_at(whole, grid.columns)):
                cell = find((run.left + run.right) / 2, (run.bottom + run.top) / 2)
                if cell is None:
                    outside.setdefault(line.start, []).append(run)
                else:
                    inside.setdefault(cell, []).append(run)
            for cell, runs in inside.items():
                held.setdefault(cell, []).append((line, runs))
        return held, outside

    # Rows and columns of a grid that no rule parts.

    def _refined(self, lines: Sequence[Line], grid: Grid) -> Grid:
        """Return a grid with the rows and columns that only gaps part; the same for a frame."""
        held, _ = self._held(lines, grid)
        if any(
            sum(run.end - run.start for _, runs in of for run in runs) > _LONGEST_RULED
            for of in held.values()
        ):
            return grid
        for step in (
            _closed,
            self._with_levels,
            self._with_gutters,
            self._with_uppers,
            self._with_parts,
            self._with_levels,
        ):
            refined = step(grid, held)
            if refined != grid:
                grid = refined
                held, _ = self._held(lines, grid)
        return grid

    def _with_levels(self, grid: Grid, held: Held) -> Grid:
        """Return a grid whose rows hold one line of figures each.

        A row has several where a cell holds a figure on each line, and the first one a text next to
        each of them.
        """
        beside: dict[tuple[int, int], list[Area]] = {}
        for cell in sorted(held):
            beside.setdefault((cell.row, cell.end_row), []).append(cell)
        cuts: dict[Area, list[float]] = {}
        for own in beside.values():
            levels = [_levels([run for _, runs in held[cell] for run in runs]) for cell in own]
            figures = [
                of
                for cell, of in zip(own[1:], levels[1:], strict=True)
                if len(of) > 1 and all(map(NUMBER.match, self._said(held[cell])))
            ]
            if not figures or len(levels[0]) < max(map(len, figures)):
                continue
            every = _levels([run for cell in own for _, runs in held[cell] for run in runs])
            edges = [(upper[0] + lower[1]) / 2 for upper, lower in pairwise(every)]
            cuts |= dict.fromkeys(own, edges)
        return grid.with_rows(cuts)

    def _said(self, lines: Sequence[tuple[Line, list[Run]]]) -> list[str]:
        """Return the texts of a cell, level by level."""
        runs = [run for _, of in lines for run in of]
        return [
            " ".join(
                self.characters[run.start : run.end].strip()
                for run in runs
                if bottom <= (run.bottom + run.top) / 2 <= top
            )
            for bottom, top in _levels(runs)
        ]

    def _with_gutters(self, grid: Grid, held: Held) -> Grid:
        """Return a grid with an edge where most lines of a column leave the same wide gap."""
        edges: list[float] = []
        beside: dict[int, list[Area]] = {}
        for cell in held:
            if cell.end_column - cell.column == 1:
                beside.setdefault(cell.column, []).append(cell)
        for own in beside.values():
            lines = [self._groups(*one) for cell in own for one in held[cell]]
            parted = [groups for groups in lines if len(groups) > 1]
            if len(parted) < _LEAST_RULED or 2 * len(parted) < len(lines):
                continue
            filled = _crowded([*chain(*parted)], _FEW * len(parted))
            edges += [(left[1] + right[0]) / 2 for left, right in pairwise(filled)]
        return grid.with_columns(edges)

    def _with_uppers(self, grid: Grid, held: Held) -> Grid:
        """Return a grid whose cells over several columns end where text for each of them begins."""
        cuts: dict[Area, list[float]] = {}
        for cell in held:
            if cell.end_column - cell.column < 2 or cell.end_row - cell.row > 1:
                continue
            runs = [run for _, of in held[cell] for run in of]
            columns = [*pairwise(grid.columns)][cell.column : cell.end_column]
            levels = by_level([self._trimmed(run) for run in runs])
            reach = [
                [(part[0].left, part[-1].right) for part in parts_of(level)] for level in levels
            ]
            wide = [
                at
                for at, spans in enumerate(reach)
                if any(
                    len(columns_over((left + 1, right - 1), columns)) > 1 for left, right in spans
                )
            ]
            if wide and wide[-1] + 1 < len(levels) and len(reach[wide[-1] + 1]) > 1:
                upper, lower = levels[wide[-1]], levels[wide[-1] + 1]
                edge = (min(run.bottom for run in upper) + max(run.top for run in lower)) / 2
                cuts[cell] = [edge]
        return grid.with_rows(cuts)

    def _with_parts(self, grid: Grid, held: Held) -> Grid:
        """Return a grid whose cells over several columns are parted where their lines are."""
        columns = [*pairwise(grid.columns)]
        starts: dict[Area, list[int]] = {}
        for cell, lines in held.items():
            if cell.end_column - cell.column < 2:
                continue
            groups = sorted(chain(*(self._groups(*one) for one in lines)))
            over = [columns_over((left + 1, right - 1), columns) for left, right in groups]
            reach = _united(sorted((float(one[0]), one[-1] + 0.5) for one in over if one))
            starts[cell] = [int(first) for first, _ in reach[1:]]
        return grid.with_parts(starts)

    def _groups(self, line: Line, runs: Sequence[Run]) -> list[tuple[float, float]]:
        """Return where the parts of a line that wide gaps part begin and end across the page."""
        if (starts := self._starts.get(line.start)) is None:
            starts = self._starts[line.start] = self._cell_starts(line)
        spans: list[tuple[float, float]] = []
        is_mark = False
        for run in sorted(runs):
            places = sorted(at for at in starts if run.start < at < run.end)
            cuts = [*pairwise([run.start, *places, run.end])]
            for first, end in cuts:
                left, right = self._extent([(first, end)]) if starts else (run.left, run.right)
                if spans and (is_mark or left - spans[-1][1] <= CELL_GAP * line.high):
                    spans[-1] = spans[-1][0], max(right, spans[-1][1])
                else:
                    spans.append((left, right))
                mark = _MARK_OF_ITEM.fullmatch(self.characters[first:end].strip())
                is_mark = len(spans) == 1 and mark is not None
        return spans

    def _cut_at(self, run: Run, edges: Sequence[float]) -> list[Run]:
        """Return a text object in pieces where it passes an edge between two words."""
        first = bisect_right(edges, run.left + 1)
        if first == len(edges) or edges[first] >= run.right - 1:
            return [run]
        run = self._trimmed(run)
        passed = [edge for edge in edges if run.left + 1 < edge < run.right - 1]
        starts, lefts, rights = [run.start], [run.left], list[float]()
        for blank in BLANKS.finditer(self.characters, run.start + 1, run.end - 1):
            if not passed:
                break
            before, behind = self._around(blank.end())
            passed = [edge for edge in passed if edge >= before.right - 1]
            if passed and passed[0] <= behind.left + 1:
                starts.append(blank.end())
                lefts.append(behind.left)
                rights.append(before.right)
                passed = [edge for edge in passed if edge > behind.left + 1]
        ends = [*starts[1:], run.end]
        return [
            Run(left, run.bottom, right, run.top, start, end)
            for left, right, start, end in zip(
                lefts, [*rights, run.right], starts, ends, strict=True
            )
        ]

    def _trimmed(self, run: Run) -> Run:
        """Return a text object that ends with its last letter, not with the blanks behind it."""
        if not self.characters[run.end - 1].isspace():
            return run
        left, right = self._extent([(run.start, run.end)])
        return run._replace(left=left, right=right) if left < right else run

    def _ruled_rows(self, grid: Grid, held: Held, above: Heads | None) -> list[Line]:
        """Return the rows of a grid as lines: `Label: value | Label: value`; none for a frame.

        The heads `above` are those of the page before, where the table may go on; it also goes on
        in a grid of the same columns on this page that begins with figures.
        """
        pieces = {cell: self._pieces_of(lines) for cell, lines in held.items()}
        texts = {cell: " ".join(resolved(self._text(of)).split()) for cell, of in pieces.items()}
        filled = [cell for cell in grid.cells if texts.get(cell)]
        width, height = len(grid.columns) - 1, len(grid.rows) - 1
        in_rows = [[cell for cell in filled if cell.row == row] for row in range(height)]
        is_frame = any(len(text) > _LONGEST_RULED for text in texts.values())
        carried = above.table.labels if above and above.are_ruled_by(grid.columns) else {}
        top = next(filter(None, in_rows), [])
        if not carried and any(NUMBER.match(texts[cell]) for cell in top[1:]):
            before = [one for _, one in self._ends_with if one.are_ruled_by(grid.columns)]
            carried = before[-1].table.labels if before else {}
        least = 1 if carried else _LEAST_RULED
        if is_frame or sum(len(row) > 1 for row in in_rows) < least:
            return []
        fields: list[list[FormCell | None]] = [
            [FormCell(texts[cell]) for cell in row] for row in in_rows if row
        ]
        of_form = width == LABEL_AND_VALUE and not carried and is_form(fields)
        heads, labels = (0, {}) if of_form else self._ruled_heads(in_rows, texts)
        if carried and not _has_own_heads(in_rows, texts, heads, labels, carried):
            heads, labels = 0, carried
        made: list[Line] = []
        for row in range(height):
            own = [cell for cell in filled if cell.row <= row < cell.end_row]
            new = in_rows[row]
            if not new:
                continue
            parts: list[Piece] = []
            for cell in sorted(own, key=lambda one: one.column):
                label = labels.get(cell.column, "") if row >= heads else ""
                said = pieces[cell] if cell.row == row else [texts[cell]]
                parts += [" | ", *([f"{label}: "] if label else []), *said]
            runs = [run for cell in new for _, of in held[cell] for run in of]
            line = line_of(
                [[run] for run in sorted(runs, key=lambda run: run.start)], is_broken=False
            )
            line.pieces, line.is_ruled = parts[1:], True
            line.kind = "row" if len(own) > 1 else ""
            if of_form and len(new) == LABEL_AND_VALUE:
                label = texts[new[0]].rstrip(":")
                line.pieces, line.kind = [f"{label}: ", *pieces[new[1]]], "field"
            made.append(line)
        self._parted.append([(cell, pieces[cell]) for cell in filled])
        if labels and made:
            columns = list(pairwise(grid.columns))
            self._ends_with.append((made[-1], Heads(Table(columns, labels), is_ruled=True)))
        return made

    def _pieces_of(self, lines: Sequence[tuple[Line, list[Run]]]) -> list[Piece]:
        """Return what stands in a cell, its lines one after another, marks of powers kept."""
        found: list[Piece] = []
        for at, (line, runs) in enumerate(lines):
            pending: list[Piece] = []
            own: list[Piece] = []
            for piece in line.pieces:
                if isinstance(piece, str):
                    pending.append(piece)
                    continue
                for run in runs:
                    start, end = max(piece[0], run.start), min(piece[1], run.end)
                    if start < end:
                        own += [*pending, (start, end)]
                        pending = []
                pending = [] if not own else pending
            own += [mark for mark in pending if mark == CLOSE]
            ends_line = bool(runs) and runs[-1].end == line.end
            link = HYPHEN if line.is_broken and ends_line else " "
            found += [*self._stripped(own), *([link] if at + 1 < len(lines) else [])]
        return found

    def _ruled_heads(
        self, rows: Sequence[Sequence[Area]], texts: Mapping[Area, str]
    ) -> tuple[int, Mapping[int, str]]:
        """Return how many rows are heads, and the label of each column.

        Heads name every column but the first few, in words, as years or as ranges; a further row of
        them stands under heads that reach over several columns, or that say the same of two, or has
        units. One that reaches over the first columns is that of the first.
        """
        first = next((at for at, row in enumerate(rows) if len(row) > 1), 0)
        labels: dict[int, str] = {}
        at = first
        while at < len(rows) - 1 and at < first + _MOST_RULED_HEADS:
            row = rows[at]
            if not all(may_be_head(texts[cell]) for cell in row):
                break
            for cell in row:
                for column in range(cell.column, cell.end_column):
                    labels[column] = f"{labels.get(column, '')} {texts[cell]}".strip()
            at += 1
            is_lowest = bool(row) and all(cell.end_column - cell.column == 1 for cell in row)
            has_units = all(_UNIT.fullmatch(texts[cell]) for cell in rows[at]) and rows[at]
            if is_lowest and not has_units and (found := _labels_below(labels, rows[at:])):
                return at, found
        if labels:
            corner = min(rows[first])
            for column in range(corner.column + 1, corner.end_column):
                if labels[column] == labels[corner.column]:
                    del labels[column]
        found = _labels_below(labels, rows[at:])
        return (at, found) if found else (first, {})


def _labels_below(labels: Mapping[int, str], rows: Sequence[Sequence[Area]]) -> Mapping[int, str]:
    """Return labels if all but few columns in which cells of rows begin have one of their own."""
    used = {cell.column for row in rows for cell in row}
    told = [labels[at] for at in sorted(used) if at in labels]
    is_whole = len(used) - len(told) <= MOST_UNNAMED and are_distinct(told)
    return labels if told and is_whole else {}


def are_distinct(labels: Sequence[str]) -> bool:
    """Return whether no label of columns says what another does, unless all of them come again.

    A long table is set in parts side by side, each under the same heads.
    """
    names = len({*labels})
    parts, rest = divmod(len(labels), max(names, 1))
    return (names > 1 and not rest and [*labels] == [*labels[:names]] * parts) or names == len(
        labels
    )


def _has_own_heads(
    rows: Sequence[Sequence[Area]],
    texts: Mapping[Area, str],
    heads: int,
    labels: Mapping[int, str],
    carried: Mapping[int, str],
) -> bool:
    """Return whether a grid names its columns itself, as the page before did or over figures."""
    if not labels or [*labels.values()] == [*carried.values()]:
        return bool(labels)
    above = [texts[cell] for row in rows[:heads] for cell in row]
    below = [texts[cell] for row in rows[heads:] for cell in row]
    return not any(map(NUMBER.match, above)) and any(map(NUMBER.match, below))


def _is_within(line: Line, grid: Grid) -> bool:
    box = line.box
    beside = box.left > grid.columns[-1] or box.right < grid.columns[0]
    return not (line.is_ruled or beside or box.bottom > grid.rows[0] or box.top < grid.rows[-1])


def _closed(grid: Grid, held: Held) -> Grid:
    return grid.closed([*held])


def parts_of(level: Sequence[Run]) -> list[list[Run]]:
    """Return the text objects of a line by the gaps that are wider than one between words."""
    high = max(run.top - run.bottom for run in level)
    parts: list[list[Run]] = []
    for run in sorted(level):
        if parts and run.left - parts[-1][-1].right <= _WORD_GAP * high:
            parts[-1].append(run)
        else:
            parts.append([run])
    return parts


def by_level(runs: Sequence[Run]) -> list[list[Run]]:
    """Return text objects by the lines that they stand on, from the top."""
    found: list[list[Run]] = []
    for run in sorted(runs, key=lambda one: -one.top - one.bottom):
        last = found[-1][0] if found else None
        if last and min(run.top, last.top) - max(run.bottom, last.bottom) > 0.5 * (
            min(run.top - run.bottom, last.top - last.bottom)
        ):
            found[-1].append(run)
        else:
            found.append([run])
    return found


def _levels(runs: Sequence[Run]) -> list[tuple[float, float]]:
    """Return bottom and top of the lines that text objects stand on, from the top."""
    boxes = map(box_around, by_level(runs))
    return [(box.bottom, box.top) for box in boxes]


def _united(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return spans in order, those that overlap as one."""
    found: list[tuple[float, float]] = []
    for low, high in spans:
        if found and low < found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


def _crowded(spans: Sequence[tuple[float, float]], most: float) -> list[tuple[float, float]]:
    """Return where more than so many of the spans lie."""
    ends = sorted([(left, 1) for left, _ in spans] + [(right, -1) for _, right in spans])
    found: list[tuple[float, float]] = []
    count, begin = 0, 0.0
    for at, step in ends:
        if count <= most < count + step:
            begin = at
        elif count + step <= most < count:
            found.append((begin, at))
        count += step
    return found


def columns_over(extent: tuple[float, float], columns: Sequence[tuple[float, float]]) -> list[int]:
    left, right = extent
    return [at for at, column in enumerate(columns) if left < column[1] and right > column[0]]


def may_be_head(text: str) -> bool:
    """Return whether a text may name a column: words, a year or a span of years."""
    is_worded = any(map(str.isalpha, text)) and not NUMBER.match(text)
    is_form = YEARS.match(text) or DAY.fullmatch(text) or _UNIT.fullmatch(text)
    return len(text) <= LONGEST_HEAD and (is_worded or is_form is not None)
