"""Find the tables of a PDF's page: ruled ones, labels next to values, rows under heads.

A table that ends a page hands its heads to the next page.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise
from typing import NamedTuple

import pypdfium2

from app.ingest.parsers.blocks import resolved
from app.ingest.parsers.pdf_grids import Area
from app.ingest.parsers.pdf_lines import (
    ALIGNED,
    BLANKS,
    CELL_GAP,
    DIGITS,
    HYPHEN,
    LEAST_NUMBERS,
    NOWHERE,
    NUMBER,
    Field,
    Heads,
    Line,
    Piece,
    Run,
    Table,
    are_aligned,
    begin_or_end,
    box_around,
    line_of,
)
from app.ingest.parsers.pdf_ruled import (
    FARTHEST_HEAD,
    LABEL_AND_VALUE,
    LONGEST_HEAD,
    MOST_UNNAMED,
    YEARS,
    RuledTables,
    are_distinct,
    by_level,
    columns_over,
    may_be_head,
    parts_of,
)

_LONGEST_LABEL = 40
_MOST_CELL_LINES = 12
"""From one row to the next, where cells have several lines."""
_RANGE = re.compile(r"\d{1,3}\s?[\u2013-]\s?\d{1,3}")
_FIELD_GAP = 1.5
"""Heights of a line between a label and its value."""
_FARTHEST_FIELD = 2
"""Lines from one field to the next."""
_LONGEST_FIELD_LABEL, _LONGEST_VALUE, _LONGEST_PAGE_NUMBER = 25, 60, 3
"""Characters; a shorter number behind words is that of a page."""
_MOST_HEAD_LINES = 4
_MOST_STACKED = 60
"""Text objects of a line of heads."""
_HIGHEST_HEAD = 12
"""Heights of a line from the first row to the top of its heads."""
_MOST_OVER_ROWS = 4.0
"""Heights of a line between the first row and the lowest line of its heads."""
_RAISED = 0.4
"""Heights of a line, over its lowest part, from which a number is that of a note."""
_LEADING_IN_CELL = 0.75
"""Heights of a line between two lines of one head, at most."""
_FARTHEST_STACKED = 1.5
"""Heights of a line between two of them."""
_LEADING = 0.8
"""Heights of a line between two lines of one cell."""
_LEAST_WORDED = 4
"""Whole rows of words, the head among them."""


class Named(NamedTuple):
    """A text above rows."""

    over: list[int]
    """The columns below it."""
    text: str
    runs: list[Run]
    is_apart: bool
    """It is no line of the text below it, but for several columns."""


Level = list[Named]
"""The texts on one line."""


class PageTables(RuledTables):
    """Finds the rows of tables among the lines of a page, and what names their cells."""

    def __init__(
        self, page: pypdfium2.PdfPage, textpage: pypdfium2.PdfTextPage, heads: Heads | None = None
    ) -> None:
        super().__init__(page, textpage, heads)
        self._aligned: list[list[Line]] = []
        """Heads and rows of the others."""

    def tables(self) -> list[list[tuple[Area, str]]]:
        """Return the filled cells of the page's tables, as drawn: without labels and marks."""
        found = [*self._parted, *map(self._placed, self._aligned)]
        return [[(area, self._drawn(pieces)) for area, pieces in cells] for cells in found]

    def _drawn(self, pieces: Sequence[Piece]) -> str:
        kept = ("-" if piece == HYPHEN else piece for piece in pieces)
        spans = (piece for piece in kept if piece in ("-", " ") or not isinstance(piece, str))
        return self._text(list(spans)).strip()

    def _placed(self, lines: Sequence[Line]) -> list[tuple[Area, list[Piece]]]:
        """Return the cells of lines in the columns that the narrower of them make."""
        extents = sorted(chain(*map(self._extents, lines)), key=lambda one: one[1] - one[0])
        columns: list[tuple[float, float]] = []
        for left, right in extents:
            over = columns_over((left, right), columns)
            if not over:
                columns.append((left, right))
            elif len(over) == 1:
                held = columns[over[0]]
                columns[over[0]] = min(held[0], left), max(held[1], right)
        columns.sort()
        found = []
        for row, line in enumerate(lines):
            for extent, cell in zip(self._extents(line), line.cells, strict=True):
                over = columns_over(extent, columns) or [_nearest(*extent, columns)]
                found.append((Area(row, over[0], row + 1, over[-1] + 1), cell))
        return found

    # Labels and their values, side by side.

    def _with_fields(self, lines: list[Line]) -> list[Line]:
        """Return lines; those that have a label and its value apart are `Label: value`.

        At least two such lines, next to each other or with one between them, have their labels and
        their values one below the other, and half of the values have a figure.
        """
        fields = [self._field_of(line) for line in lines]
        taken: set[int] = set()
        for at, one in enumerate(fields):
            group = [at] if one else []
            for other in range(at + 1, len(lines)):
                if not group or other - group[-1] > _FARTHEST_FIELD:
                    break
                first, then = fields[group[-1]], fields[other]
                if first and then and _are_one_below_other(first, then):
                    group.append(other)
            values = [field.value for of in group if (field := fields[of])]
            figured = sum(any(map(str.isdigit, self.characters[a:b])) for a, b in values)
            if len(group) > 1 and 2 * figured >= len(group):
                taken |= {*group}
        made: list[Line] = []
        for at, line in enumerate(lines):
            field = fields[at]
            if field is None or at not in taken:
                made.append(line)
                continue
            if {at - 1, at - _FARTHEST_FIELD}.isdisjoint(taken):
                self._parted.append([])
            row = len(self._parted[-1]) // LABEL_AND_VALUE
            self._parted[-1] += [
                (Area(row, 0, row + 1, 1), [field.label]),
                (Area(row, 1, row + 1, 2), [field.value]),
            ]
            before = [run for run in line.runs if run.end <= field.label[0]]
            if before:
                made.append(line_of([[run] for run in before], is_broken=False))
                self._arrange(made[-1])
                made[-1].pieces = self._stripped(made[-1].pieces)
            label = self.characters[slice(*field.label)].strip().rstrip(":")
            line.kind, line.cells, line.extents = "field", [], []
            line.pieces = [f"{label}: ", *self._stripped([field.value])]
            made.append(line)
        return made

    def _field_of(self, line: Line) -> Field | None:
        """Return the last two parts of a line, if a wide gap parts them and they may be a field."""
        runs = line.runs
        if line.kind or len(runs) < LABEL_AND_VALUE:
            return None
        gaps = [
            at
            for at in range(1, len(runs))
            if runs[at].left - runs[at - 1].right > _FIELD_GAP * line.high
        ]
        if not gaps:
            return None
        begins, second = (gaps[-2] if len(gaps) > 1 else 0), gaps[-1]
        label = runs[begins].start, runs[second - 1].end
        value = runs[second].start, runs[-1].end
        said, text = (self.characters[slice(*span)].strip() for span in (label, value))
        is_label = (
            len(said) <= _LONGEST_FIELD_LABEL and said[:1].isalpha() and said[-1:] not in ".;,"
        )
        is_abbreviated = said.endswith(".") and len(said.split()) <= LABEL_AND_VALUE + 1
        is_page = text.isdigit() and len(text) <= _LONGEST_PAGE_NUMBER
        if not (is_label or is_abbreviated) or is_page or len(text) > _LONGEST_VALUE:
            return None
        return Field(
            label,
            value,
            runs[begins].left,
            runs[second - 1].right,
            runs[second].left,
            runs[-1].right,
        )

    # Rows and columns.

    def _with_wrapped(self, lines: list[Line]) -> list[Line]:
        """Return lines; rows whose cells have several lines, drawn cell by cell, are one each."""
        made: list[Line] = []
        seeds = [at for at, line in enumerate(lines) if _is_seed(line)]
        done = 0
        while len(seeds) > 1:
            count = 1
            while count < len(seeds) and seeds[count] - seeds[count - 1] <= _MOST_CELL_LINES:
                count += 1
            start, end, seeds = seeds[0], seeds[count - 1] + 1, seeds[count:]
            lefts = self._lefts(lines[start:end]) if count > 1 else []
            if lefts:
                while start > done and self._column(lines[start - 1], lefts) is not None:
                    start -= 1
                if start > done and self._is_head(lines[start - 1], lefts):
                    start -= 1
                while end < len(lines) and self._column(lines[end], lefts) is not None:
                    end += 1
            inner = lines[start:end]
            if lefts and any(not line.cells for line in inner):
                inner = self._rows_of(inner, lefts) or inner
            made += lines[done:start] + inner
            done = end
        return made + lines[done:]

    def _lefts(self, lines: Sequence[Line]) -> list[float]:
        """Return where the columns of rows begin, and those of lines right of all cells."""
        extents = [extent for line in lines if line.cells for extent in self._extents(line)]
        reach = max(right for _, right in extents)
        others = (line.box for line in lines if not line.cells)
        extents += [(box.left, box.right) for box in others if box.left > reach]
        columns: list[tuple[float, float]] = []
        for left, right in sorted(extents):
            if columns and left < columns[-1][1]:
                columns[-1] = columns[-1][0], max(right, columns[-1][1])
            else:
                columns.append((left, right))
        return [left for left, _ in columns] if len(columns) >= LEAST_NUMBERS else []

    def _column(self, line: Line, lefts: Sequence[float]) -> int | None:
        """Return the column in which a line without cells, or a row, begins; None if in none."""
        slack = 0.6 * line.high
        at = bisect_right(lefts, line.box.left + slack) - 1
        if at < 0 or (line.kind and not line.cells):
            return None
        if line.cells:
            return at
        ends = lefts[at + 1] if at + 1 < len(lefts) else lefts[at] + 2 * (lefts[at] - lefts[0])
        is_aligned = abs(line.box.left - lefts[at]) < slack
        return at if is_aligned and line.box.right < ends else None

    def _is_head(self, line: Line, lefts: Sequence[float]) -> bool:
        if not line.cells:
            self._cut(line, {}, self._cell_starts(line))
        if len(line.cells) < LEAST_NUMBERS:
            line.cells = []
        return len(line.cells) == len(lefts)

    def _rows_of(self, lines: Sequence[Line], lefts: Sequence[float]) -> list[Line] | None:
        """Return the rows of a table; None if some line is in none of its columns.

        Lines of a cell stand closer to each other than rows do; where they do not, as in tables of
        TeX, nothing is joined in a column.
        """
        columns = [self._column(line, lefts) for line in lines]
        bases = [self._metrics(line.start)[0] for line in lines]
        places = list(zip(columns, bases, strict=True))
        steps = [a[1] - b[1] for a, b in pairwise(places) if a[0] == b[0] and a[1] > b[1]]
        if None in columns or not steps:
            return None
        near = 1.1 * min(steps) if max(steps) > 1.2 * min(steps) else 0.0
        rows: list[list[Line]] = []
        reach, base = 0, 0.0
        for line, (column, baseline) in zip(lines, places, strict=True):
            at = column or 0
            box = box_around([one.box for one in rows[-1]]) if rows else NOWHERE
            is_below = at == reach and 0 < base - baseline < near
            is_beside = at > reach and line.box.top > box.bottom and line.box.bottom < box.top
            is_second = rows and _is_seed(line) and any(map(_is_seed, rows[-1]))
            if rows and (is_below or is_beside) and not is_second:
                rows[-1].append(line)
            else:
                rows.append([line])
            reach, base = at + max(len(line.cells) - 1, 0), baseline
        return [row[0] if len(row) == 1 else self._row_of(row, lefts) for row in rows]

    def _row_of(self, lines: Sequence[Line], lefts: Sequence[float]) -> Line:
        cells: dict[int, list[Piece]] = {}
        for line in lines:
            extents = self._extents(line) if line.cells else [(line.box.left, 0.0)]
            for (left, _), cell in zip(extents, line.cells or [line.pieces], strict=True):
                at = bisect_right(lefts, left + 0.6 * line.high) - 1
                held = cells.setdefault(at, [])
                held += [" ", *self._stripped(cell)] if held else self._stripped(cell)
            if line.is_broken:
                held.append(HYPHEN)
        row = line_of([part for line in lines for part in line.parts], is_broken=False)
        row.kind = "row"
        row.cells = [cells[at] for at in sorted(cells)]
        row.pieces = [piece for cell in row.cells for piece in (" ", *cell)][1:]
        return row

    def _with_labels(self, lines: list[Line]) -> list[Line]:
        """Return lines; the cells of rows under heads that stand above them bear their labels.

        Rows without heads have those of rows above them in the same columns.
        """
        end = 0
        table: Table | None = None
        heads: set[int] = set()
        stacked: dict[int, list[Line]] = {}
        named: list[tuple[float, Table]] = []
        unnamed: list[Sequence[Line]] = []
        upwards = sorted((line for line in lines if line.parts), key=_bottom)
        for is_row, run in groupby(enumerate(lines), _is_bare_row):
            places, of_run = zip(*run, strict=True)
            rows: Sequence[Line] = of_run
            if not is_row:
                continue
            at, last, end = places[0], end, places[-1] + 1
            above = self._above if not last and at <= FARTHEST_HEAD else None
            goes_on = above is not None and above.fit(self._columns_of(rows) or [])
            if not goes_on and self._begins_with_heads(rows):
                at, rows = at + 1, rows[1:]
            found = self._table(lines[max(0, at - 2) : at], rows)
            heads |= {at - 1} if found else set()
            if not goes_on and (found is None or len(found.labels) < len(found.columns)):
                other, above_rows = self._stacked(upwards, rows)
                if other is not None and (found is None or len(other.labels) > len(found.labels)):
                    found, stacked[rows[0].start] = other, above_rows
                    heads.discard(at - 1)
            if found is None and goes_on and above is not None:
                table = above.table
            else:
                table = found or (table if at - last <= FARTHEST_HEAD else None)
            if table is None:
                unnamed.append(rows)
                continue
            named.append((rows[0].box.top, table))
            self._label_all(rows, table)
        for rows in unnamed:
            columns, top = self._columns_of(rows) or [], rows[0].box.top
            over = [one for one in named if one[0] > top and Heads(one[1]).fit(columns)]
            if over:
                self._label_all(rows, min(over, key=lambda one: one[0])[1])
        belongs = groupby(enumerate(lines), lambda one: _is_bare_row(one) or one[0] in heads)
        runs = ([line for _, line in run if line.cells] for is_table, run in belongs if is_table)
        self._aligned = [
            [*chain(*(stacked.get(line.start, ()) for line in run[:2])), *run]
            for run in runs
            if len(run) > 1
        ]
        return lines

    def _label_all(self, rows: Sequence[Line], table: Table) -> None:
        for row in rows:
            self._label(row, table)
        above = self._above
        is_ruled = above is not None and above.is_ruled and table is above.table
        self._ends_with.append((rows[-1], Heads(table, is_ruled)))

    def _with_words(self, lines: list[Line]) -> list[Line]:
        """Return lines; those of words in columns, one below the other, are rows.

        At least `_LEAST_WORDED` lines have three or more parts far apart, of which each begins or
        ends where those of the first line do.
        """
        apart = [self._apart(line) if not line.kind else [] for line in lines]
        at = 0
        while at < len(lines):
            end = at
            columns = [(group[0].left, group[-1].right) for group in apart[at]]
            while end < len(lines) and len(columns) >= LEAST_NUMBERS:
                own = [(group[0].left, group[-1].right) for group in apart[end]]
                fits = [one for one in own if any(begin_or_end(one, of) for of in columns)]
                if len(own) < 2 or len(fits) < len(own) or len(own) > len(columns):
                    break
                end += 1
            whole = sum(len(groups) == len(columns) for groups in apart[at:end])
            if whole >= _LEAST_WORDED:
                for line, groups in zip(lines[at:end], apart[at:end], strict=True):
                    self._cut(line, {}, {group[0].start for group in groups[1:]})
                    line.kind = "row"
            at = max(end, at + 1)
        return lines

    def _apart(self, line: Line) -> list[list[Run]]:
        """Return the text objects of a line in groups that wide gaps part; none if one is prose."""
        groups: list[list[Run]] = []
        for run in line.runs if len(line.runs) >= 2 else ():
            if groups and run.left - groups[-1][-1].right <= CELL_GAP * line.high:
                groups[-1].append(run)
            else:
                groups.append([run])
        texts = [self.characters[of[0].start : of[-1].end].strip() for of in groups]
        is_row = all(0 < len(text) <= _LONGEST_LABEL and "@" not in text for text in texts)
        return groups if is_row and not line.is_broken else []

    def _with_heads(self, lines: list[Line]) -> list[Line]:
        """Return lines; heads of several lines above rows, drawn cell by cell, are one line."""
        made: list[Line] = []
        for is_row, run in groupby(enumerate(lines), _is_bare_row):
            _, group = zip(*run, strict=True)
            of_run = list(group)
            if not is_row:
                made += of_run
                continue
            first = next((at for at, row in enumerate(of_run) if self._has_figure(row)), 0)
            columns = self._columns_of(of_run[first:])
            upper = made + of_run[:first]
            parts = 0 if columns is None else self._height_of_head(upper, columns)
            if columns is not None and parts > 1:
                upper[-parts:] = [self._joined_head(upper[-parts:], columns)]
            made = upper + of_run[first:]
        return made

    def _has_figure(self, row: Line) -> bool:
        return any(NUMBER.match(self._text(cell).strip()) for cell in row.cells)

    def _height_of_head(self, lines: Sequence[Line], columns: Sequence[tuple[float, float]]) -> int:
        """Return how many of the last lines are the lines of one row of heads.

        They stand next to each other, or as near as lines of one cell do and aligned with it.
        """
        count, high = 0, 0.0
        held: dict[int, list[tuple[float, float]]] = {}
        box = NOWHERE
        for line in reversed(lines[-_MOST_HEAD_LINES:]):
            if not line.parts or line.is_ruled or line.kind not in ("", "row"):
                break
            state = line.pieces, line.cells, line.extents
            places, texts = self._heads(line, columns)
            extents = self._extents(line)
            fits = all(len(over) == 1 for over in places) and all(map(_may_be_label, texts))
            beside = line.box.bottom < box.top and line.box.top > box.bottom
            gap = line.box.bottom - box.top
            is_alike = 0.8 * line.high < high < 1.25 * line.high
            is_near = beside or gap < _LEADING * line.high
            for over, extent in zip(places, extents, strict=True):
                below = held.get(over[0], []) if over else []
                aligned = any(are_aligned(extent, other) for other in below)
                fits = fits and (not count or (aligned if below or not beside else True))
            if not fits or (count and not (is_alike and is_near)):
                line.pieces, line.cells, line.extents = state
                break
            for over, extent in zip(places, extents, strict=True):
                held.setdefault(over[0], []).append(extent)
            box = box_around([box, line.box]) if count else line.box
            count, high = count + 1, line.high
        return count

    def _joined_head(self, lines: Sequence[Line], columns: Sequence[tuple[float, float]]) -> Line:
        cells: dict[int, list[Piece]] = {}
        for line in sorted(lines, key=lambda one: -one.box.top):
            for extent, cell in zip(self._extents(line), line.cells, strict=True):
                held = cells.setdefault(columns_over(extent, columns)[0], [])
                held += [" ", *self._stripped(cell)] if held else self._stripped(cell)
        head = line_of([part for line in lines for part in line.parts], is_broken=False)
        head.cells = [cells[at] for at in sorted(cells)]
        head.pieces = [piece for cell in head.cells for piece in (" ", *cell)][1:]
        return head

    def _with_gaps(self, lines: list[Line]) -> list[Line]:
        """Return lines; one next to a row is a row too if all of its cells stand in its columns.

        A row with empty cells has too few figures to be told by them, but has some.
        """
        for at, line in enumerate(lines):
            beside = (lines[near] for near in (at - 1, at + 1) if 0 <= near < len(lines))
            row = next((one for one in beside if _is_seed(one) and not one.is_ruled), None)
            if line.kind or not line.parts or row is None:
                continue
            columns, starts = self._extents(row), self._cell_starts(line)
            held = line.pieces, line.cells, line.extents
            self._cut(line, {}, starts)
            places = [columns_over(extent, columns) for extent in self._extents(line)]
            taken = {over[0] for over in places if len(over) == 1}
            figures = [NUMBER.match(self._text(cell).strip()) for cell in line.cells[1:]]
            if any(figures) and len(taken) == len(places):
                line.kind = "row"
            else:
                line.pieces, line.cells, line.extents = held
        return lines

    def _begins_with_heads(self, rows: Sequence[Line]) -> bool:
        """Return whether the first of several rows names the columns of the others.

        It has years where they have figures, or no figure where they have some. In a table of words
        it has words in upper case, none of which stands in a row.
        """
        texts = [[self._text(cell).strip() for cell in row.cells] for row in rows]
        if len(texts) < 2 or len(texts[0]) < 2:
            return False
        first, *others = texts
        years = [[YEARS.match(text) is not None for text in row] for row in texts[:2]]
        if all(years[0][1:]) and not years[0][0] and not all(years[1][1:]):
            return True
        if _count_up(first) and not _count_up(others[0]):
            return True
        if len(first) < max(map(len, others)) - 1 or not all(map(_may_be_label, first)):
            return False
        if any(NUMBER.match(text) for row in others for text in row):
            return True
        named = all(text[0].isupper() and not DIGITS.search(text) for text in first)
        return named and {*first}.isdisjoint(chain(*others))

    def _columns_of(self, rows: Sequence[Line]) -> list[tuple[float, float]] | None:
        """Return where the columns of most rows begin and end; None if they overlap."""
        extents = [self._extents(row) for row in rows]
        count = Counter(map(len, extents)).most_common(1)[0][0]
        whole = [extent for extent in extents if len(extent) == count]
        sides = (zip(*column, strict=True) for column in zip(*whole, strict=True))
        columns = [(min(lefts), max(rights)) for lefts, rights in sides]
        return None if any(a[1] >= b[0] for a, b in pairwise(columns)) else columns

    def _table(self, above: Sequence[Line], rows: Sequence[Line]) -> Table | None:
        """Return the columns of rows with what the lines above call them."""
        columns = self._columns_of(rows)
        if not above or columns is None:
            return None
        count = len(columns)
        whole = [row for row in rows if len(row.cells) == count]
        places, texts = self._heads(above[-1], columns)
        is_alone = len(whole) < 2 and (count < LEAST_NUMBERS or len(texts) != count)
        if is_alone or any(len(over) != 1 for over in places):
            return None
        if len(texts) >= LEAST_NUMBERS:
            above[-1].kind = "row"
        named = [over[0] for over in places]
        labels = dict(zip(named, texts, strict=True))
        if len(labels) < len(texts) or named != [*range(count - len(named), count)]:
            return None
        if len(set(texts)) < len(texts) or any(text.startswith("(") for text in texts):
            twice = {text for text, times in Counter(texts).items() if times > 1}
            self._add_uppers(above[0], columns, labels)
            if len(set(labels.values())) < len(labels) or twice & set(labels.values()):
                return None
        if count - len(labels) > MOST_UNNAMED or not all(map(_may_be_label, labels.values())):
            return None
        return Table(columns, labels)

    def _stacked(
        self, lines: Sequence[Line], rows: Sequence[Line]
    ) -> tuple[Table | None, list[Line]]:
        """Return the columns of rows with the texts one below the other above them, and these.

        The texts were drawn line by line or column by column. One that reaches over several columns
        is for all of them, if each has a text below it; over the first one it is a title.
        """
        columns = self._columns_of(rows)
        if columns is None or len(columns) < LEAST_NUMBERS:
            return None, []
        levels = self._levels_above(lines, rows, columns)
        near = [own for level in levels if (own := [head for head in level if not head.is_apart])]
        for used in (near, [*_spread_over(levels, columns)]):
            if table := _table_of(columns, _labels_of(used)):
                return table, _head_lines(used)
        return None, []

    def _levels_above(
        self, lines: Sequence[Line], rows: Sequence[Line], columns: Sequence[tuple[float, float]]
    ) -> list[Level]:
        """Return the lines of texts above rows, from the lowest, and the columns of each text.

        `lines` are those of the page, from the lowest.
        """
        edges = [(left[1] + right[0]) / 2 for left, right in pairwise(columns)]
        left, right, top = columns[0][0], columns[-1][1], rows[0].box.top
        far = _HIGHEST_HEAD * rows[0].high
        first = bisect_left(lines, top - 1 - rows[0].high, key=_bottom)
        runs = [
            run
            for line in lines[first : bisect_right(lines, top + far, key=_bottom)]
            if line is not rows[0]
            and line.kind in ("", "row")
            and not line.is_ruled
            and top - 1 <= line.box.bottom + 0.5 * line.high
            and line.box.left < right
            and line.box.right > left
            and len(line.runs) <= _MOST_STACKED
            for run in line.runs
        ]
        found: list[Level] = []
        tops: dict[int, float] = {}
        cut = (part for run in runs for part in self._cut_at(self._trimmed(run), edges))
        for whole in reversed(by_level([*cut])):
            high = max(run.top - run.bottom for run in whole)
            lowest = min(run.bottom for run in whole)
            level = [run for run in whole if not self._is_mark(run, lowest, high)] or whole
            box = box_around(level)
            farthest = _FARTHEST_STACKED if tops else _MOST_OVER_ROWS
            own = self._named_by(parts_of(level), columns)
            reach = [over for over, *_ in own]
            spread = {at for over in reach if len(over) > 1 for at in over}
            is_title = any(len(over) > 1 and not over[0] for over in reach)
            if box.bottom - top > farthest * high or is_title or not own:
                break
            if spread - {*tops}:  # the words of heads that stand near each other
                pieces = groupby(sorted(level), lambda run: _nearest_of(run, columns))
                parts = [(over, [*part]) for over, part in pieces]
                found_in = self._named_by([part for _, part in parts], columns)
                pairs = zip(parts, found_in, strict=False)
                own = [(over, text, part) for (over, _), (_, text, part) in pairs]
                reach = [over for over, *_ in own]
            top = max(top, box.top)
            middles = ((one + right) / 2 for one in (left, columns[1][0]))
            across = any(abs((box.left + box.right) / 2 - one) < 2 * ALIGNED for one in middles)
            if not tops and len(own) == 1 and (reach == [[0]] or across):  # names the rows below
                continue
            heads: Level = []
            for over, text, part in own:
                below = max(tops.get(at, 0.0) for at in over)
                is_far = min(run.bottom for run in part) - below > _LEADING_IN_CELL * high
                is_group = len(over) > 1 or (over[0] in tops and is_far)
                heads.append(Named(over, text, part, is_group and 1 in (len(over), len(own))))
            found.append(heads)
            for over, _, part in own:
                tops |= dict.fromkeys(over, max(run.top for run in part))
        return found

    def _is_mark(self, run: Run, lowest: float, high: float) -> bool:
        """Return whether a text object of a line is the raised number of a note."""
        text = self.characters[run.start : run.end].strip()
        return text.isdecimal() and run.bottom - lowest > _RAISED * high

    def _named_by(
        self, parts: Sequence[list[Run]], columns: Sequence[tuple[float, float]]
    ) -> list[tuple[list[int], str, list[Run]]]:
        """Return the columns that the texts of a line stand above; none where one is no head."""
        texts = [
            " ".join(self.characters[run.start : run.end].strip() for run in part) for part in parts
        ]
        extents = [(part[0].left, part[-1].right) for part in parts]
        reach = [columns_over(extent, columns) or [_beside(extent, columns)] for extent in extents]
        named = (may_be_head(text) or _RANGE.fullmatch(text) for text in texts)
        if not _count_up(texts) and not all(named):
            return []
        return list(zip(reach, texts, parts, strict=True))

    def _add_uppers(
        self, line: Line, columns: Sequence[tuple[float, float]], labels: dict[int, str]
    ) -> None:
        """Put the texts of a first row of heads before those of the second."""
        places, texts = self._heads(line, columns)
        covered = list(chain(*places))
        if len(texts) > 1 and len(set(covered)) == len(covered):
            for over, text in zip(places, texts, strict=True):
                for place in over:
                    labels[place] = f"{text} {labels.get(place, '')}".strip()

    def _heads(
        self, line: Line, columns: Sequence[tuple[float, float]]
    ) -> tuple[list[list[int]], list[str]]:
        """Return the columns that each cell of a line is above, and the cells' texts."""
        if not line.cells:
            self._cut(line, {}, self._cell_starts(line))
        places = [columns_over(extent, columns) for extent in self._extents(line)]
        is_joined = any(len(over) > 1 for over in places) and len(line.parts) == 1
        if is_joined and (starts := self._word_groups(line, columns)):
            self._cut(line, {}, starts)
            places = [columns_over(extent, columns) for extent in self._extents(line)]
        texts = [" ".join(resolved(self._text(cell)).split()) for cell in line.cells]
        return places, texts

    def _word_groups(self, line: Line, columns: Sequence[tuple[float, float]]) -> set[int]:
        """Return where the words over another column begin; none where blanks do not tell."""
        starts, inner, outer = set(), [0.0], []
        last = 0
        for blank in BLANKS.finditer(self.characters, line.start + 1, line.end - 1):
            left, right = self._around(blank.end())
            gap = right.left - left.right
            near = _nearest(right.left, right.right, columns)
            if near > last and _nearest(left.left, left.right, columns) < near:
                starts.add(blank.end())
                outer.append(gap)
                last = near
            else:
                inner.append(gap)
        return starts if outer and min(outer) > 1.2 * max(inner) else set()

    def _label(self, row: Line, table: Table) -> None:
        places = [columns_over(extent, table.columns) for extent in self._extents(row)]
        taken = [over[0] for over in places if len(over) == 1]
        if len(set(taken)) < len(places):
            return
        pieces: list[Piece] = []
        for place, cell in zip(taken, row.cells, strict=True):
            label = [f"{table.labels[place]}: "] if place in table.labels else []
            pieces += [" | ", *label, *self._stripped(cell)]
        row.pieces = pieces[1:]


def _are_one_below_other(first: Field, then: Field) -> bool:
    """Return whether labels begin or end at one place across the page, and values too."""

    def near(one: float, other: float) -> bool:
        return abs(one - other) < ALIGNED

    labels = near(first.left, then.left) or near(first.label_right, then.label_right)
    values = near(first.value_left, then.value_left) or near(first.right, then.right)
    return labels and values


def _bottom(line: Line) -> float:
    return line.box.bottom


def _is_bare_row(place: tuple[int, Line]) -> bool:
    return place[1].kind == "row" and not place[1].is_ruled


def _is_seed(line: Line) -> bool:
    return line.kind == "row" and len(line.cells) >= LEAST_NUMBERS


def _count_up(texts: Sequence[str]) -> bool:
    """Return whether the numbers among texts count up by one, three at least, as heads may."""
    numbers = [
        int(text) for text in texts if text.isdecimal() and len(text) <= _LONGEST_PAGE_NUMBER
    ]
    figures = sum(any(map(str.isdigit, text)) for text in texts)
    steps = {then - one for one, then in pairwise(numbers)}
    return len(numbers) == figures >= LEAST_NUMBERS and steps == {1}


def _labels_of(levels: Sequence[Level]) -> dict[int, str]:
    """Return what the lines of heads, from the lowest, call each column."""
    labels: dict[int, str] = {}
    for over, text, *_ in chain(*levels):
        for at in over:
            labels[at] = f"{text} {labels.get(at, '')}".strip()
    return labels


def _spread_over(
    levels: Sequence[Level], columns: Sequence[tuple[float, float]]
) -> Iterator[Level]:
    """Yield the lines of heads; of several texts that are for fewer columns than have one below.

    Each column with a name is below the text that is nearest.
    """
    named: set[int] = set()
    for level in levels:
        reach = [over for over, *_ in level]
        if len(level) > 1 and named - {*chain(*reach)}:
            middles = [(columns[over[0]][0] + columns[over[-1]][1]) / 2 for over in reach]
            own: list[list[int]] = [[] for _ in level]
            for at in sorted(named - {0}):
                far = [abs(middle - sum(columns[at]) / 2) for middle in middles]
                own[far.index(min(far))].append(at)
            pairs = zip(own, level, strict=True)
            yield [one._replace(over=over) for over, one in pairs if over]
        elif kept := [head for head in level if not head.is_apart]:
            yield kept
        named |= {*chain(*reach)}


def _head_lines(levels: Sequence[Level]) -> list[Line]:
    """Return lines of heads, from the top; texts of one column that no other reaches over are one.

    `levels` are from the lowest.
    """
    made: list[Line] = []
    for _, group in groupby(levels, lambda one: any(len(over) > 1 for over, *_ in one)):
        cells: dict[tuple[int, ...], list[Run]] = {}
        for level in [*group][::-1]:
            for over, _, part, _ in level:
                cells.setdefault(tuple(over), []).extend(part)
        line = line_of([[run] for part in cells.values() for run in part], is_broken=False)
        line.cells = [
            [piece for run in part for piece in (" ", (run.start, run.end))][1:]
            for part in cells.values()
        ]
        line.extents = [
            (min(run.left for run in part), max(run.right for run in part))
            for part in cells.values()
        ]
        made.append(line)
    return made[::-1]


def _table_of(columns: list[tuple[float, float]], labels: Mapping[int, str]) -> Table | None:
    """Return columns with their labels if all but the first few have one, none the same."""
    named = [*range(len(columns) - len(labels), len(columns))]
    if len(columns) - len(labels) > MOST_UNNAMED or sorted(labels) != named:
        return None
    texts = [labels[at] for at in named]
    if not are_distinct(texts) or max(map(len, texts)) > LONGEST_HEAD:
        return None
    return Table(columns, labels)


def _nearest_of(run: Run, columns: Sequence[tuple[float, float]]) -> list[int]:
    """Return the one column that a text is above, as its middle tells where it is over several."""
    extent = run.left, run.right
    over = columns_over(extent, columns)
    return (
        over
        if len(over) == 1
        else [(_nearest(*extent, columns) if over else _beside(extent, columns))]
    )


def _beside(extent: tuple[float, float], columns: Sequence[tuple[float, float]]) -> int:
    """Return the column that is least far from a text over none."""
    return min(
        range(len(columns)),
        key=lambda at: max(columns[at][0] - extent[1], extent[0] - columns[at][1]),
    )


def _nearest(left: float, right: float, columns: Sequence[tuple[float, float]]) -> int:
    """Return the column whose middle is nearest."""
    middle = left + right
    return min(range(len(columns)), key=lambda at: abs(sum(columns[at]) - middle))


def _may_be_label(text: str) -> bool:
    is_worded = any(map(str.isalpha, text)) and not NUMBER.match(text)
    return len(text) <= _LONGEST_LABEL and (is_worded or YEARS.match(text) is not None)
