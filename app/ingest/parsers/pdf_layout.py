"""Lay out a PDF's page: lines as they are seen, powers, rows of tables, columns.

PDFium gives characters and, cheaply, the boxes of its text objects ("runs" below); the boxes of
single glyphs cost as much as all the rest. They are asked for only where something depends on them.
"""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, islice, pairwise, repeat
from typing import NamedTuple

import pypdfium2
import pypdfium2.raw as pdfium

from app.ingest.metadata import is_name
from app.ingest.parsers.blocks import Cell as FormCell
from app.ingest.parsers.blocks import lowered, raised, resolved
from app.ingest.parsers.pdf_grids import Area, Grid, grids_of
from app.ingest.parsers.tables import is_form

Piece = tuple[int, int] | str
"""Characters of the page, `[start, end)`, or text that only the layout tells."""

KINDS = {"row": "\ufdd3", "field": "\ufdd4", "footnote": "\ufdd5"}
"""What stands before a line of each kind: noncharacters, which no text holds."""
HYPHEN = "\x02"
"""Stands where a word was broken at a line end, instead of the line end."""
_OURS = re.compile("[\ufdd0-\ufdef]")
_LINE = re.compile("[^\r\n\ufffe]+")
"""PDFium has U+FFFE where a word was broken."""
_OPEN = {1: raised("x")[0], -1: lowered("x")[0]}
_CLOSE = raised("x")[-1]
_MOST_RAISED = 3
"""Blanks in what is raised or lowered: more are a line that stands a little off."""

_DIGITS = re.compile(r"(?<![^\s(\[<>=\u00b1~$\u20ac\u00a3+\u2212\u2013-])[.,]?\d")
_NUMBER = re.compile(
    r"[^\w\s]{0,3}\s?[.,]?\d[\d.,:/%\u00b1\u00d7\u2212\u2013()+* -]*(?:[eE][+\u2212-]?\d+)?"
    r"(?:\s?[A-Za-z%]{1,2})?[^\w\s]{0,3}\Z"
)
_LEAST_NUMBERS = 3
_LEAST_SHARE = 0.2
"""Of numbers among the words of a row."""
_LONGEST_LABEL = 40
_MOST_CELL_LINES = 12
"""From one row to the next, where cells have several lines."""
_YEARS = re.compile(r"(?:1[5-9]|20)\d\d(?:\s?[/\u2013-]\s?(?:(?:1[5-9]|20)?\d\d))?\Z")
_LONGEST_HEAD = 80
_LABEL_AND_VALUE = 2
"""Columns of a form."""
_FIELD_GAP = 1.5
"""Heights of a line between a label and its value."""
_FARTHEST_FIELD = 2
"""Lines from one field to the next."""
_LONGEST_FIELD_LABEL, _LONGEST_VALUE, _LONGEST_PAGE_NUMBER = 25, 60, 3
"""Characters; a shorter number behind words is that of a page."""
_ALIGNED = 3.0
"""Points between what begins or ends at one place."""
_LONGEST_RULED = 1_200
"""Characters of a cell; what holds more is the frame of a page."""
_LEAST_RULED = 2
"""Rows of several cells, the head among them."""
_MOST_RULED_HEADS = 3
_MOST_UNNAMED = 2
"""Columns before the first that has a name."""
_FARTHEST_HEAD = 3
"""Lines between two parts of a table under the same heads."""
_MOST_PAGES = 50
"""Of a table, through which its heads are looked for."""
_MOST_HEAD_LINES = 4
_LEADING = 0.8
"""Heights of a line between two lines of one cell."""
_LEAST_WORDED = 4
"""Whole rows of words, the head among them."""
_NOTE = re.compile(r"\s*(\d{1,2})\s*(?=[^\W\d_])")
_NEXT_NOTE = re.compile(r"\. (\d{1,2}) ?(?=[^\W\d_])")
_MINUS = "\u2212\u2013-"
_NUMBER_BEFORE = re.compile(r"[\d.,]*\d\Z")
_NOTES = 0.9
"""Height of a page below which notes may stand, under tables as well."""
_WITH_VALUES = (
    pdfium.FPDF_FORMFIELD_TEXTFIELD,
    pdfium.FPDF_FORMFIELD_COMBOBOX,
    pdfium.FPDF_FORMFIELD_LISTBOX,
)
_NO_NOTES = (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_WIDGET)
_NOT_SHOWN = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD = 1 << 13
"""ISO 32000-1, table 228."""
_FARTHEST_LABEL = 200
"""Points from a label to its field."""
_FOOT = 0.5
"""Height of a page below which a line behind a small mark is a note, not an affiliation."""
_FRONT_LINES = 15
"""Of a first page, among which its authors are."""
_WIDE = re.compile("[\u4e00-\u9fff\uac00-\ud7a3]")
_LEAST_WIDE, _SAMPLE = 20, 60
_BLANKS = re.compile(" +")

# Lengths in heights of a line, or in sizes of a font.
_SMALLER = 0.88
_RAISED, _LOWERED = 0.12, -0.06
_LEAST_GAP = 0.15
"""Between two words."""
_CELL_GAP = 0.75
"""Between two cells: wider than a blank of justified text."""
_CELL_GAP_LETTERS = 1.35
"""The same in widths of the letters next to it: in fonts of equal widths blanks are wide."""
_LONGEST_CELL, _WIDEST_GAP = 40, 30
"""Characters, and heights of a line, of cells that PDFium holds for lines of their own."""
_GUTTER = 1.2
"""Between two columns of text."""
_LEAST_LINES = 4
"""Of two columns that were drawn line by line."""
_LEAST_SIDE = 0.25
"""Of the width of both columns, that each has."""
_LEAST_WORDS = 3
"""On each side of a line, on average."""


class Box(NamedTuple):
    """In points, origin at the bottom left."""

    left: float
    bottom: float
    right: float
    top: float


_NOWHERE = Box(0, 0, 0, 0)


class Run(NamedTuple):
    """The box of a text object and its characters, `[start, end)`, blanks behind it included."""

    left: float
    bottom: float
    right: float
    top: float
    start: int
    end: int


class _Field(NamedTuple):
    """Characters of a label and its value, `[start, end)`, and where they lie across the page."""

    label: tuple[int, int]
    value: tuple[int, int]
    left: float
    label_right: float
    value_left: float
    right: float


class Table(NamedTuple):
    """Where columns begin and end across the page, and the names of those that have one."""

    columns: list[tuple[float, float]]
    labels: Mapping[int, str]


class Heads(NamedTuple):
    """The columns of the table that ends a page: its rows on the next page have no other names."""

    table: Table
    is_ruled: bool = False
    """Columns reach from rule to rule, not from the first to the last letter."""

    def fit(self, columns: Sequence[tuple[float, float]]) -> bool:
        """Return whether rows of these columns are of the same table."""
        own = self.table.columns
        if self.is_ruled:
            return all(len(_within(column, own)) == 1 for column in columns)
        pairs = zip(own, columns, strict=False)
        return len(own) == len(columns) and all(_are_aligned(*pair) for pair in pairs)

    def are_ruled_by(self, edges: Sequence[float]) -> bool:
        """Return whether the rules of a grid are those of this table."""
        own = [left for left, _ in self.table.columns] + [self.table.columns[-1][1]]
        return (
            self.is_ruled
            and len(own) == len(edges)
            and all(abs(one - other) < _ALIGNED for one, other in zip(own, edges, strict=True))
        )


@dataclass(slots=True)
class Line:
    """Characters that stand on one line of the page."""

    parts: list[list[Run]]
    """Runs whose characters follow one another."""
    box: Box
    high: float
    """Of the tallest text object."""
    is_broken: bool = False
    """Its last word goes on in the next line."""
    kind: str = ""
    """A key of `KINDS`, or a line of prose."""
    pieces: list[Piece] = field(default_factory=list)
    cells: list[list[Piece]] = field(default_factory=list)
    """Parted by wide gaps; empty where they were not looked for."""
    is_ruled: bool = False
    """A row of a ruled table, which bears its labels already."""
    extents: list[tuple[float, float]] = field(default_factory=list)
    """Where each cell begins and ends across the page, once that was asked for."""

    @property
    def runs(self) -> list[Run]:
        return list(chain(*self.parts))

    @property
    def start(self) -> int:
        return self.parts[0][0].start

    @property
    def end(self) -> int:
        return self.parts[-1][-1].end


def _around(boxes: Sequence[Box | Run]) -> Box:
    lefts, bottoms, rights, tops, *_ = zip(*boxes, strict=True)
    return Box(min(lefts), min(bottoms), max(rights), max(tops))


def _line(parts: list[list[Run]], is_broken: bool) -> Line:
    runs = list(chain(*parts))
    return Line(parts, _around(runs), max(run.top - run.bottom for run in runs), is_broken)


def open_forms(document: pypdfium2.PdfDocument) -> None:
    """Make the fields of forms readable, before any page is opened."""
    if document.get_formtype() != pdfium.FORMTYPE_NONE:
        document.init_forms()


class PageLayout:
    """A page's lines in reading order."""

    def __init__(
        self,
        page: pypdfium2.PdfPage,
        textpage: pypdfium2.PdfTextPage,
        *,
        is_first: bool = False,
        heads: Heads | None = None,
    ) -> None:
        self._raw = textpage.raw
        self._above, self._ends_with = heads, list[tuple[Line, Heads]]()
        self._boxes = pdfium.FS_RECTF(), pdfium.FS_RECTF()
        self._sides = [ctypes.c_double() for _ in range(4)]
        self._shown = Box(*page.get_bbox())
        count = textpage.count_chars()
        characters = textpage.get_text_range(0, count) if count else ""
        if len(characters) != count:  # without those that have no meaning
            codes = map(pdfium.FPDFText_GetUnicode, repeat(self._raw), range(count))
            characters = "".join(map(chr, codes))
        self.characters = _OURS.sub("\ufffd", characters)
        self._numbers = [found.start() for found in _DIGITS.finditer(self.characters)]
        self._begin_notes: set[int] = set()
        lines = self._by_columns(list(_whole_lines(self._lines())))
        self._notes = self._marks_of_notes(lines)
        for line in lines:
            self._arrange(line)
        if is_first:
            for line in lines[:_FRONT_LINES]:
                self._part_names(line)
        lines = self._with_words(self._with_grids(lines, grids_of(page)))
        lines = self._with_gaps(self._with_wrapped(self._with_fields(lines)))
        lines = self._with_heads(lines)
        lines = self._with_labels(lines)
        ended = {line.start: heads for line, heads in self._ends_with}
        last = (
            ended[line.start]
            for line in reversed(lines[-_FARTHEST_HEAD - 1 :])
            if line.parts and line.start in ended
        )
        self.heads = next(last, None)
        """Of the table that ends the page."""
        tops = lines[: _FARTHEST_HEAD + 1]
        self.begins_with_row = any(line.kind == "row" for line in tops)
        self.lines = self._notes_last(lines)
        self._add_annotations(page)

    @property
    def text(self) -> str:
        """The lines with marks around powers and before rows, broken words joined by U+0002."""
        parts: list[str] = []
        for line in self.lines:
            parts += [KINDS.get(line.kind, ""), self._text(line.pieces)]
            parts.append(HYPHEN if line.is_broken else "\n")
        return "".join(parts).removesuffix("\n")

    def indices(self) -> list[int]:
        """Return PDFium's index of each character of `text`, -1 where only the layout tells it."""
        found: list[int] = []
        for line in self.lines:
            found += repeat(-1, bool(line.kind))
            for piece in line.pieces:
                found += repeat(-1, len(piece)) if isinstance(piece, str) else range(*piece)
            found.append(-1)
        return found[: len(self.text)]

    def _text(self, pieces: Sequence[Piece]) -> str:
        text = self.characters
        parts = (one if isinstance(one, str) else text[one[0] : one[1]] for one in pieces)
        return "".join(parts)

    def names_other_characters(self) -> bool:
        """Return whether Han and Hangul, which are all as wide, are drawn in many widths."""
        places = [found.start() for found in islice(_WIDE.finditer(self.characters), _SAMPLE)]
        if len(places) < _LEAST_WIDE:
            return False
        box, ratios = self._boxes[0], Counter[int]()
        for at in places:
            pdfium.FPDFText_GetLooseCharBox(self._raw, at, box)
            ratios[round(20 * (box.right - box.left) / max(box.top - box.bottom, 0.1))] += 1
        return ratios.most_common(1)[0][1] < 0.5 * len(places)

    # Lines as they are seen.

    def _lines(self) -> Iterator[Line]:
        for found in _LINE.finditer(self.characters):
            runs = self._runs(*found.span())
            is_broken = self.characters[found.end() : found.end() + 1] == "\ufffe"
            if not runs:
                if not found.group().isspace():
                    yield _line([[Run(*_NOWHERE, *found.span())]], is_broken)
                continue
            jumps = [at for at in range(1, len(runs)) if _jumps(runs[at - 1], runs[at])]
            for first, stop in pairwise([0, *jumps, len(runs)]):
                line = _line([runs[first:stop]], is_broken and stop == len(runs))
                if self._is_shown(line.box):
                    yield line

    def _runs(self, start: int, end: int) -> list[Run]:
        found: list[Run] = []
        get, count, raw = pdfium.FPDFText_GetRect, pdfium.FPDFText_CountRects, self._raw
        left, top, right, bottom = self._sides
        boxes = count(raw, start, end - start)
        for at in range(boxes):
            get(raw, at, left, top, right, bottom)
            box = left.value, bottom.value, right.value, top.value
            found.append(Run(*box, start, end))
        for at in range(1, boxes):  # a text object ends before the first length that holds two
            lengths = range(1, end - start + 1)
            start += bisect_left(lengths, 2, key=partial(count, raw, start))
            found[at - 1] = found[at - 1]._replace(end=start)
            found[at] = found[at]._replace(start=start)
        return found

    def _is_shown(self, box: Box) -> bool:
        left, bottom, right, top = self._shown
        return box[2] > left and box[0] < right and box[3] > bottom and box[1] < top

    # Powers, cells and gaps.

    def _arrange(self, line: Line) -> None:
        """Mark raised and lowered parts of a line, part words that touch, and find its cells."""
        line.pieces = [(part[0].start, part[-1].end) for part in line.parts]
        start, end = line.start, line.end
        numbers = bisect_left(self._numbers, end) - bisect_left(self._numbers, start)
        is_even = len(line.runs) == 1
        if numbers < 2 and is_even:
            return
        text = self.characters[start:end]
        may_be_row = numbers > 1 and numbers >= _LEAST_SHARE * len(text.split())
        if not may_be_row and is_even:
            return
        marks: dict[int, str] = {}
        """What is put before a character."""
        self._mark_gaps(line, text, marks)
        self._mark_levels(line, marks)
        starts = self._cell_starts(line) if may_be_row else set()
        if marks or starts:
            self._cut(line, marks, starts)
        texts = [self._text(cell).strip() for cell in line.cells]
        numeric = sum(_NUMBER.match(text) is not None for text in texts)
        if numeric >= _LEAST_NUMBERS or (numeric > 1 and not _NUMBER.match(texts[0])):
            line.kind = "row"  # two numbers may be those of a section and its page

    def _mark_gaps(self, line: Line, text: str, marks: dict[int, str]) -> None:
        """Put a blank where words touch that are drawn apart."""
        edges = [part[0].start for part in line.parts[1:]]
        least = _LEAST_GAP * line.high
        pairs = chain(*map(pairwise, line.parts))
        wide = [run.start for last, run in pairs if run.left - last.right > least]
        if len(wide) > text.count(" "):
            edges += wide
        for at in edges:
            if " " not in self.characters[at - 1 : at + 1]:
                left, right = self._around(at)
                if right.left - left.right > least:
                    marks[at] = " "

    def _around(self, at: int) -> tuple[pdfium.FS_RECTF, pdfium.FS_RECTF]:
        """Return the boxes of a character and of the one before that is no blank, until next."""
        before = at - 1
        while before > 0 and self.characters[before].isspace():
            before -= 1
        left, right = self._boxes
        pdfium.FPDFText_GetLooseCharBox(self._raw, before, left)
        pdfium.FPDFText_GetLooseCharBox(self._raw, at, right)
        return left, right

    def _mark_levels(self, line: Line, marks: dict[int, str]) -> None:
        tall = [run for run in line.runs if run.top - run.bottom > 0.99 * line.high]
        uneven = [run for run in line.runs if _is_uneven(run, tall, line.high)]
        if not uneven:
            return
        even = [run for run in line.runs if run not in uneven] or line.runs
        begin = {part[0] for part in line.parts}
        base, size = self._metrics(next((run for run in even if run in begin), even[0]).start)
        for run in uneven:
            start, end = run.start, run.end
            while end > start and self.characters[end - 1].isspace():
                end -= 1
            baseline, height = self._metrics(start)
            rise = (baseline - base) / size
            if start < end and height <= _SMALLER * size and not _LOWERED <= rise <= _RAISED:
                before = line.start
                if before < start and self.characters[start - 1] in _MINUS and rise > _RAISED:
                    start -= (self._metrics(start - 1)[0] - base) / size > _RAISED
                self._mark(before, start, end, 1 if rise > 0 else -1, marks)

    def _marks_of_notes(self, lines: Sequence[Line]) -> set[str]:
        """Return the numbers with which notes begin in the lower part of the page."""
        low = self._shown.bottom + _NOTES * (self._shown.top - self._shown.bottom)
        found: set[str] = set()
        for line in lines:
            if line.box.top < low and (note := _NOTE.match(self.characters, line.start, line.end)):
                found.add(note[1])
                others = _NEXT_NOTE.findall(self.characters, note.end(), line.end)
                found.update(others)
        return found

    def _mark(self, first: int, start: int, end: int, level: int, marks: dict[int, str]) -> None:
        """Mark raised or lowered characters of a line that begins at `first`."""
        text = self.characters[start:end]
        before = marks.get(start, "")
        number = _NUMBER_BEFORE.search(self.characters[max(0, start - 20) : start])
        last_two = self.characters[max(0, start - 2) : start]
        is_behind_word = len(last_two) == 2 and last_two.isalpha()
        if start == first:  # the mark of a footnote, before its text
            self._begin_notes.add(first)
            if not self.characters[end : end + 1].isspace():
                marks[end] = " "
        elif level < 0 and len(text.strip()) > 2 and text.strip().isalpha() and is_behind_word:
            marks[start] = before.rstrip() + " "  # a word, not an index: BERT BASE
        elif " " in (self.characters[start - 1], before[-1:]) or text.count(" ") > _MOST_RAISED:
            return
        elif level > 0 and text in self._notes and number and number.group() != "10":
            marks[start] = before + _OPEN[1] + "["  # read as the mark of a footnote
            marks[end] = "]" + _CLOSE + marks.get(end, "")
        else:
            if before == _CLOSE and self._level == level:
                del marks[start]  # goes on with what is before
            else:
                marks[start] = before + _OPEN[level]
            marks[end] = _CLOSE + marks.get(end, "")
            self._level = level

    _level = 0
    """Of what was marked last."""

    def _metrics(self, start: int) -> tuple[float, float]:
        """Return baseline and font size of the first glyph from here on."""
        while start + 1 < len(self.characters) and self.characters[start].isspace():
            start += 1
        (box, _), (x, y) = self._boxes, self._sides[:2]
        pdfium.FPDFText_GetLooseCharBox(self._raw, start, box)
        pdfium.FPDFText_GetCharOrigin(self._raw, start, x, y)
        return y.value, max(box.top - box.bottom, 0.1)

    def _cell_starts(self, line: Line) -> set[int]:
        """Return where cells begin: behind wide gaps."""
        blanks = (
            blank.end()
            for part in line.parts
            for blank in _BLANKS.finditer(self.characters, part[0].start + 1, part[-1].end - 1)
        )
        wide = set()
        for at in chain(blanks, (part[0].start for part in line.parts[1:])):
            left, right = self._around(at)
            gap = right.left - left.right
            letter = min(left.right - left.left, right.right - right.left)
            if gap > max(_CELL_GAP * line.high, _CELL_GAP_LETTERS * letter):
                wide.add(at)
        return wide

    def _cut(self, line: Line, marks: dict[int, str], starts: set[int]) -> None:
        cells: list[list[Piece]] = [[]]
        begins = {part[0].start for part in line.parts}
        for part in line.parts:
            first, last = part[0].start, part[-1].end
            places = {at for at in chain(marks, starts) if first < at < last}
            for start, end in pairwise([first, *sorted(places), last]):
                if start in starts:
                    cells.append([])
                if start in marks:
                    cells[-1].append(marks[start])
                if end > start:
                    cells[-1].append((start, end))
            if last in marks and last not in begins:
                cells[-1].append(marks[last])
        line.pieces = list(chain(*cells))
        line.cells, line.extents = cells, []

    def _part_names(self, line: Line) -> None:
        """Put commas between names of authors that only gaps or marks part."""
        starts = self._cell_starts(line)
        for mark, piece in pairwise(line.pieces):
            if isinstance(mark, str) and mark.endswith(_CLOSE) and not isinstance(piece, str):
                starts.add(piece[0])
        names: list[list[Piece]] = [[]]
        for piece in line.pieces:
            if isinstance(piece, str):
                names[-1].append(piece)
                continue
            places = sorted(at for at in starts if piece[0] <= at < piece[1])
            for start, end in pairwise([piece[0], *places, piece[1]]):
                if start in starts:
                    names.append([])
                if end > start:
                    names[-1].append((start, end))
        texts = [resolved(self._text(name)).strip(" ,") for name in names]
        if len(texts) > 1 and all(map(is_name, filter(None, texts))):
            kept = [name for name, text in zip(names, texts, strict=True) if text]
            parted = [piece for name in kept for piece in (", ", *self._stripped(name, " ,"))]
            line.pieces = parted[1:]

    def _notes_last(self, lines: list[Line]) -> list[Line]:
        """Return lines with the notes at the foot of columns behind all others, each on a line."""
        low = self._shown.bottom + _FOOT * (self._shown.top - self._shown.bottom)
        others: list[Line] = []
        notes: list[Line] = []
        last: Line | None = None
        for line in lines:
            begins = line.start in self._begin_notes and line.box.top < low
            if begins and not line.kind:
                line.kind = "footnote"
                notes.append(line)
            elif last is not None and not line.kind and _is_below(last, line):
                link = HYPHEN if last.is_broken else " "
                notes[-1].pieces = [*self._stripped(notes[-1].pieces), link, *line.pieces]
            else:
                others.append(line)
                last = None
                continue
            last = line
        for note in notes:
            note.is_broken = False
        return others + notes

    # Ruled tables.

    def _with_grids(self, lines: list[Line], grids: Sequence[Grid]) -> list[Line]:
        """Return lines; those inside a grid give way to its rows, with the labels of its head."""
        for grid in grids:
            held: dict[Area, list[tuple[Line, list[Run]]]] = {}
            kept: list[Line] = []
            place: int | None = None
            for line in lines:
                inside, outside = self._in_cells(line, grid)
                if not inside:
                    kept.append(line)
                    continue
                place = len(kept) if place is None else place
                for cell, runs in inside.items():
                    held.setdefault(cell, []).append((line, runs))
                if outside:
                    kept.append(_line([[run] for run in outside], is_broken=False))
                    self._arrange(kept[-1])
            above = self._above if place is not None and place <= _FARTHEST_HEAD else None
            if rows := self._ruled_rows(grid, held, above):
                kept[place:place] = rows
                lines = kept
        return lines

    def _in_cells(self, line: Line, grid: Grid) -> tuple[dict[Area, list[Run]], list[Run]]:
        """Return a line's text objects by the cell that they stand in, and those in none."""
        inside: dict[Area, list[Run]] = {}
        outside: list[Run] = []
        box = line.box
        apart = box.left > grid.columns[-1] or box.right < grid.columns[0]
        if line.is_ruled or apart or box.bottom > grid.rows[0] or box.top < grid.rows[-1]:
            return {}, []
        for whole in line.runs:
            for run in self._parted(whole, grid.columns):
                middle = (run.left + run.right) / 2, (run.bottom + run.top) / 2
                cell = grid.at(*middle)
                if cell is None:
                    outside.append(run)
                else:
                    inside.setdefault(cell, []).append(run)
        return inside, outside

    def _parted(self, run: Run, edges: Sequence[float]) -> list[Run]:
        """Return a text object in pieces where it passes an edge between two words."""
        passed = [edge for edge in edges if run.left + 1 < edge < run.right - 1]
        if not passed:
            return [run]
        starts, lefts = [run.start], [run.left]
        for blank in _BLANKS.finditer(self.characters, run.start + 1, run.end - 1):
            before, behind = self._around(blank.end())
            if passed and before.right - 1 <= passed[0] <= behind.left + 1:
                starts.append(blank.end())
                lefts.append(behind.left)
                passed = [edge for edge in passed if edge > behind.left + 1]
        ends, rights = [*starts[1:], run.end], [*lefts[1:], run.right]
        return [
            Run(left, run.bottom, right, run.top, start, end)
            for left, right, start, end in zip(lefts, rights, starts, ends, strict=True)
        ]

    def _ruled_rows(
        self, grid: Grid, held: Mapping[Area, Sequence[tuple[Line, list[Run]]]], above: Heads | None
    ) -> list[Line]:
        """Return the rows of a grid as lines: `Label: value | Label: value`; none for a frame.

        The heads `above` are those of the page before, where the table may go on.
        """
        pieces = {cell: self._pieces_of(lines) for cell, lines in held.items()}
        texts = {cell: " ".join(resolved(self._text(of)).split()) for cell, of in pieces.items()}
        filled = [cell for cell in grid.cells if texts.get(cell)]
        width, height = len(grid.columns) - 1, len(grid.rows) - 1
        in_rows = [[cell for cell in filled if cell.row == row] for row in range(height)]
        is_frame = any(len(text) > _LONGEST_RULED for text in texts.values())
        carried = above.table.labels if above and above.are_ruled_by(grid.columns) else {}
        least = 1 if carried else _LEAST_RULED
        if is_frame or sum(len(row) > 1 for row in in_rows) < least:
            return []
        fields: list[list[FormCell | None]] = [
            [FormCell(texts[cell]) for cell in row] for row in in_rows if row
        ]
        of_form = width == _LABEL_AND_VALUE and not carried and is_form(fields)
        heads, labels = (0, {}) if of_form else self._ruled_heads(in_rows, texts, width)
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
            line = _line(
                [[run] for run in sorted(runs, key=lambda run: run.start)], is_broken=False
            )
            line.pieces, line.is_ruled = parts[1:], True
            line.kind = "row" if len(own) > 1 else ""
            if of_form and len(new) == _LABEL_AND_VALUE:
                label = texts[new[0]].rstrip(":")
                line.pieces, line.kind = [f"{label}: ", *pieces[new[1]]], "field"
            made.append(line)
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
            own += [mark for mark in pending if mark == _CLOSE]
            ends_line = bool(runs) and runs[-1].end == line.end
            link = HYPHEN if line.is_broken and ends_line else " "
            found += [*self._stripped(own), *([link] if at + 1 < len(lines) else [])]
        return found

    def _ruled_heads(
        self, rows: Sequence[Sequence[Area]], texts: Mapping[Area, str], width: int
    ) -> tuple[int, Mapping[int, str]]:
        """Return how many rows are heads, and the label of each column.

        Heads name every column but the first few, in words, as years or as ranges; a second row of
        them stands under heads that reach over several columns.
        """
        first = next((at for at, row in enumerate(rows) if len(row) > 1), 0)
        labels: dict[int, str] = {}
        at = first
        while at < len(rows) - 1 and at < first + _MOST_RULED_HEADS:
            row = rows[at]
            if not row or not all(_may_be_head(texts[cell]) for cell in row):
                break
            for cell in row:
                for column in range(cell.column, cell.end_column):
                    labels[column] = f"{labels.get(column, '')} {texts[cell]}".strip()
            at += 1
            if all(cell.end_column - cell.column == 1 for cell in row):
                break
        named = width - len(labels) <= _MOST_UNNAMED and len(set(labels.values())) == len(labels)
        return (at, labels) if named and labels else (first, {})

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
            before = [run for run in line.runs if run.end <= field.label[0]]
            if before:
                made.append(_line([[run] for run in before], is_broken=False))
                self._arrange(made[-1])
                made[-1].pieces = self._stripped(made[-1].pieces)
            label = self.characters[slice(*field.label)].strip().rstrip(":")
            line.kind, line.cells, line.extents = "field", [], []
            line.pieces = [f"{label}: ", *self._stripped([field.value])]
            made.append(line)
        return made

    def _field_of(self, line: Line) -> _Field | None:
        """Return the last two parts of a line, if a wide gap parts them and they may be a field."""
        runs = line.runs
        if line.kind or len(runs) < _LABEL_AND_VALUE:
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
        is_abbreviated = said.endswith(".") and len(said.split()) <= _LABEL_AND_VALUE + 1
        is_page = text.isdigit() and len(text) <= _LONGEST_PAGE_NUMBER
        if not (is_label or is_abbreviated) or is_page or len(text) > _LONGEST_VALUE:
            return None
        return _Field(
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
        return [left for left, _ in columns] if len(columns) >= _LEAST_NUMBERS else []

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
        if len(line.cells) < _LEAST_NUMBERS:
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
            box = _around([one.box for one in rows[-1]]) if rows else _NOWHERE
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
        row = _line([part for line in lines for part in line.parts], is_broken=False)
        row.kind = "row"
        row.cells = [cells[at] for at in sorted(cells)]
        row.pieces = [piece for cell in row.cells for piece in (" ", *cell)][1:]
        return row

    def _with_labels(self, lines: list[Line]) -> list[Line]:
        """Return lines; the cells of rows under heads that stand above them bear their labels."""
        end = 0
        table: Table | None = None
        for is_row, run in groupby(enumerate(lines), _is_bare_row):
            places, rows = zip(*run, strict=True)
            if not is_row:
                continue
            at, last, end = places[0], end, places[-1] + 1
            above = self._above if not last and at <= _FARTHEST_HEAD else None
            goes_on = above is not None and above.fit(self._columns_of(rows) or [])
            if not goes_on and self._begins_with_heads(rows):
                at, rows = at + 1, rows[1:]
            found = self._table(lines[max(0, at - 2) : at], rows)
            if found is None and goes_on and above is not None:
                table = above.table
            else:
                table = found or (table if at - last <= _FARTHEST_HEAD else None)
            if table is not None:
                for row in rows:
                    self._label(row, table)
                is_ruled = table is (above and above.table) and above is not None and above.is_ruled
                self._ends_with.append((rows[-1], Heads(table, is_ruled)))
        return lines

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
            while end < len(lines) and len(columns) >= _LEAST_NUMBERS:
                own = [(group[0].left, group[-1].right) for group in apart[end]]
                fits = [one for one in own if any(_begin_or_end(one, of) for of in columns)]
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
            if groups and run.left - groups[-1][-1].right <= _CELL_GAP * line.high:
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
        return any(_NUMBER.match(self._text(cell).strip()) for cell in row.cells)

    def _height_of_head(self, lines: Sequence[Line], columns: Sequence[tuple[float, float]]) -> int:
        """Return how many of the last lines are the lines of one row of heads.

        They stand beside each other, or as near as lines of one cell do and aligned with it.
        """
        count, high = 0, 0.0
        held: dict[int, list[tuple[float, float]]] = {}
        box = _NOWHERE
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
                aligned = any(_are_aligned(extent, other) for other in below)
                fits = fits and (not count or (aligned if below or not beside else True))
            if not fits or (count and not (is_alike and is_near)):
                line.pieces, line.cells, line.extents = state
                break
            for over, extent in zip(places, extents, strict=True):
                held.setdefault(over[0], []).append(extent)
            box = _around([box, line.box]) if count else line.box
            count, high = count + 1, line.high
        return count

    def _joined_head(self, lines: Sequence[Line], columns: Sequence[tuple[float, float]]) -> Line:
        cells: dict[int, list[Piece]] = {}
        for line in sorted(lines, key=lambda one: -one.box.top):
            for extent, cell in zip(self._extents(line), line.cells, strict=True):
                held = cells.setdefault(_over(extent, columns)[0], [])
                held += [" ", *self._stripped(cell)] if held else self._stripped(cell)
        head = _line([part for line in lines for part in line.parts], is_broken=False)
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
            places = [_over(extent, columns) for extent in self._extents(line)]
            taken = {over[0] for over in places if len(over) == 1}
            figures = [_NUMBER.match(self._text(cell).strip()) for cell in line.cells[1:]]
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
        years = [[_YEARS.match(text) is not None for text in row] for row in texts[:2]]
        if all(years[0][1:]) and not years[0][0] and not all(years[1][1:]):
            return True
        if len(first) < max(map(len, others)) - 1 or not all(map(_may_be_label, first)):
            return False
        if any(_NUMBER.match(text) for row in others for text in row):
            return True
        named = all(text[0].isupper() and not _DIGITS.search(text) for text in first)
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
        is_alone = len(whole) < 2 and (count < _LEAST_NUMBERS or len(texts) != count)
        if is_alone or any(len(over) != 1 for over in places):
            return None
        if len(texts) >= _LEAST_NUMBERS:
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
        if count - len(labels) > _MOST_UNNAMED or not all(map(_may_be_label, labels.values())):
            return None
        return Table(columns, labels)

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
        places = [_over(extent, columns) for extent in self._extents(line)]
        is_joined = any(len(over) > 1 for over in places) and len(line.parts) == 1
        if is_joined and (starts := self._word_groups(line, columns)):
            self._cut(line, {}, starts)
            places = [_over(extent, columns) for extent in self._extents(line)]
        texts = [" ".join(resolved(self._text(cell)).split()) for cell in line.cells]
        return places, texts

    def _word_groups(self, line: Line, columns: Sequence[tuple[float, float]]) -> set[int]:
        """Return where the words over another column begin; none where blanks do not tell."""
        starts, inner, outer = set(), [0.0], []
        last = 0
        for blank in _BLANKS.finditer(self.characters, line.start + 1, line.end - 1):
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
        places = [_over(extent, table.columns) for extent in self._extents(row)]
        taken = [over[0] for over in places if len(over) == 1]
        if len(set(taken)) < len(places):
            return
        pieces: list[Piece] = []
        for place, cell in zip(taken, row.cells, strict=True):
            label = [f"{table.labels[place]}: "] if place in table.labels else []
            pieces += [" | ", *label, *self._stripped(cell)]
        row.pieces = pieces[1:]

    def _extents(self, line: Line) -> list[tuple[float, float]]:
        if len(line.extents) != len(line.cells):
            line.extents = [self._extent(cell) for cell in line.cells]
        return line.extents

    def _extent(self, cell: Sequence[Piece]) -> tuple[float, float]:
        """Return where a cell begins and ends across the page."""
        spans = [piece for piece in cell if not isinstance(piece, str)]
        if not spans:
            return 0.0, 0.0
        start, end = spans[0][0], spans[-1][1]
        while start < end - 1 and self.characters[start].isspace():
            start += 1
        while start < end - 1 and self.characters[end - 1].isspace():
            end -= 1
        first, last = self._boxes
        pdfium.FPDFText_GetLooseCharBox(self._raw, start, first)
        pdfium.FPDFText_GetLooseCharBox(self._raw, end - 1, last)
        return first.left, last.right

    def _stripped(self, cell: Sequence[Piece], of: str = " ") -> list[Piece]:
        """Return a cell without the blanks around it, or what else is named."""
        pieces = list(cell)
        while pieces and not self._text(pieces[:1]).strip(of):
            del pieces[0]
        while pieces and not self._text(pieces[-1:]).strip(of):
            del pieces[-1]
        if pieces and not isinstance(first := pieces[0], str):
            text = self._text([first])
            pieces[0] = first[0] + len(text) - len(text.lstrip(of)), first[1]
        if pieces and not isinstance(last := pieces[-1], str):
            pieces[-1] = last[0], last[0] + len(self._text([last]).rstrip(of))
        return pieces

    # Fields of forms, notes and comments.

    def _add_annotations(self, page: pypdfium2.PdfPage) -> None:
        """Add what was filled in behind its label, and what was noted at the end of the page."""
        for at in range(pdfium.FPDFPage_GetAnnotCount(page.raw)):
            annotation = pdfium.FPDFPage_GetAnnot(page.raw, at)
            kind = pdfium.FPDFAnnot_GetSubtype(annotation)
            if kind == pdfium.FPDF_ANNOT_WIDGET and page.formenv is not None:
                self._add_field(page.formenv.raw, annotation)
            elif kind not in _NO_NOTES and not pdfium.FPDFAnnot_GetFlags(annotation) & _NOT_SHOWN:
                note = " ".join(_string(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents"))
                if note:
                    self.lines.append(Line([], _NOWHERE, 0.0, kind="footnote", pieces=[note]))
            pdfium.FPDFPage_CloseAnnot(annotation)

    def _add_field(self, form: pdfium.FPDF_FORMHANDLE, field_: pdfium.FPDF_ANNOTATION) -> None:
        kind = pdfium.FPDFAnnot_GetFormFieldType(form, field_)
        is_box = kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
        if is_box:
            value = "yes" if pdfium.FPDFAnnot_IsChecked(form, field_) else "no"
        elif kind in _WITH_VALUES:
            value = " ".join(_string(pdfium.FPDFAnnot_GetFormFieldValue, form, field_))
        else:
            return
        flags = pdfium.FPDFAnnot_GetFlags(field_) & _NOT_SHOWN
        if flags or pdfium.FPDFAnnot_GetFormFieldFlags(form, field_) & _PASSWORD or not value:
            return
        rect = pdfium.FS_RECTF()
        pdfium.FPDFAnnot_GetRect(field_, rect)
        line = self._label_of(Box(rect.left, rect.bottom, rect.right, rect.top), is_box=is_box)
        if line is not None:
            line.kind = "field"
            line.pieces = [*self._stripped(line.pieces), ": ", value]
            return
        label = " ".join(
            _string(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, field_)
            or _string(pdfium.FPDFAnnot_GetFormFieldName, form, field_)
        )
        text = f"{label}: {value}" if label else value
        self.lines.append(Line([], _NOWHERE, 0.0, kind="field", pieces=[text]))

    def _label_of(self, place: Box, *, is_box: bool) -> Line | None:
        """Return the line that is the label of a field: before it, or behind a box to tick."""
        found: list[tuple[float, Line]] = []
        for line in self.lines:
            if line.kind:
                continue
            box = line.box
            middle = (max(box.bottom, place.bottom) + min(box.top, place.top)) / 2
            is_level = box.bottom < middle < box.top and place.bottom < middle < place.top
            is_above = 0 <= box.bottom - place.top < line.high
            far = box.left - place.right if is_box else place.left - box.right
            if is_level and -2 <= far < _FARTHEST_LABEL:
                found.append((far, line))
            elif is_above and not is_box and abs(box.left - place.left) < _FARTHEST_LABEL / 10:
                found.append((_FARTHEST_LABEL, line))
        return min(found, key=lambda one: one[0])[1] if found else None

    def _by_columns(self, lines: list[Line]) -> list[Line]:
        """Return lines column by column where two columns were drawn line by line."""
        gaps = [_gaps(line) for line in lines]
        at = 0
        while at < len(lines) and sum(map(bool, gaps)) >= _LEAST_LINES:
            end, gutter = at, 0.0
            if gaps[at]:
                widest = max(gaps[at], key=lambda gap: gap[1] - gap[0])
                end, gutter = _block(lines, gaps, at, widest)
            if end > at and (sides := self._sides_of(lines[at:end], gutter)) is not None:
                lines[at:end] = sides
                gaps[at:end] = [[] for _ in sides]
                end = at + len(sides)
            at = max(end, at + 1)
        return lines

    def _sides_of(self, lines: Sequence[Line], gutter: float) -> list[Line] | None:
        """Return the lines of both columns, the left one first, None if they are none of prose."""
        lefts, rights = [], []
        for line in lines:
            left, right = self._halves(line, gutter)
            lefts += left
            rights += right
        width = max(line.box.right for line in lines) - min(line.box.left for line in lines)
        for side in (lefts, rights):
            parts = [(part[0].start, part[-1].end) for line in side for part in line.parts]
            words = " ".join(self.characters[start:end] for start, end in parts).split()
            wide = sum(line.box.right - line.box.left for line in side) / len(side)
            lettered = sum(any(map(str.isalpha, word)) for word in words)
            is_prose = len(words) >= _LEAST_WORDS * len(side) and lettered >= 0.75 * len(words)
            if wide < _LEAST_SIDE * width or not is_prose:
                return None
        return lefts + rights

    def _halves(self, line: Line, gutter: float) -> tuple[list[Line], list[Line]]:
        counts = [sum(run.left < gutter for run in part) for part in line.parts]
        halves = [(part[:at], part[at:]) for part, at in zip(line.parts, counts, strict=True)]
        left, right = (list(filter(None, side)) for side in zip(*halves, strict=True))
        if not left or not right:
            return ([line], []) if left else ([], [line])
        start, last = left[-1][0].start, left[-1][-1]
        text = self.characters[start : last.end].rstrip()
        is_broken = text.endswith("-") and text[-2:-1].isalpha()
        left[-1][-1] = last._replace(end=start + len(text) - is_broken)
        return [_line(left, is_broken)], [_line(right, line.is_broken)]


def heads_before(document: pypdfium2.PdfDocument, index: int) -> Heads | None:
    """Return the heads of the table that ends the page before one.

    A table over more than `_MOST_PAGES` pages is read from the last of them.
    """
    heads: Heads | None = None
    first = index - 1
    while first > max(0, index - _MOST_PAGES) and _laid_out(document, first).begins_with_row:
        first -= 1
    for at in range(first, index):
        heads = _laid_out(document, at, heads).heads
    return heads


def _laid_out(
    document: pypdfium2.PdfDocument, index: int, heads: Heads | None = None
) -> PageLayout:
    page = document[index]
    textpage = page.get_textpage()
    try:
        return PageLayout(page, textpage, is_first=not index, heads=heads)
    finally:
        textpage.close()
        page.close()


def _gaps(line: Line) -> list[tuple[float, float]]:
    """Return where a line's text objects leave room for a gutter between them."""
    least = _GUTTER * line.high
    pairs = pairwise(line.runs)
    return [(a.right, b.left) for a, b in pairs if b.left - a.right > least]


def _block(
    lines: Sequence[Line],
    gaps: Sequence[Sequence[tuple[float, float]]],
    at: int,
    gap: tuple[float, float],
) -> tuple[int, float]:
    """Return the end of the lines from here on with text on both sides of a gap, and its middle.

    The end is the beginning where they are too few.
    """
    left, right = gap
    both, end = 0, at
    for index in range(at, len(lines)):
        line = lines[index]
        common = [
            (max(left, a), min(right, b))
            for a, b in gaps[index]
            if min(right, b) - max(left, a) > 0.5 * line.high
        ]
        if common:
            left, right = common[0]
            both, end = both + 1, index + 1
        elif line.box.right >= right and line.box.left <= left:
            break
    return (end if both >= max(_LEAST_LINES, 0.6 * (end - at)) else at), (left + right) / 2


def _are_one_below_other(first: _Field, then: _Field) -> bool:
    """Return whether labels begin or end at one place across the page, and values too."""

    def near(one: float, other: float) -> bool:
        return abs(one - other) < _ALIGNED

    labels = near(first.left, then.left) or near(first.label_right, then.label_right)
    values = near(first.value_left, then.value_left) or near(first.right, then.right)
    return labels and values


def _is_bare_row(place: tuple[int, Line]) -> bool:
    return place[1].kind == "row" and not place[1].is_ruled


def _is_seed(line: Line) -> bool:
    return line.kind == "row" and len(line.cells) >= _LEAST_NUMBERS


def _string(get: Callable[..., int], *of: object) -> list[str]:
    """Return the words of a string of PDFium, which are UTF-16."""
    size = get(*of, None, 0)
    buffer = ctypes.create_string_buffer(size)
    get(*of, ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), size)
    return buffer.raw[: max(size - 2, 0)].decode("utf-16-le", "replace").split()


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
    return not any(map(_NUMBER.match, above)) and any(map(_NUMBER.match, below))


def _are_aligned(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Return whether two columns begin, end or have their middle at one place."""
    middles = abs(sum(one) - sum(other)) / 2
    return _begin_or_end(one, other) or middles < _ALIGNED


def _begin_or_end(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return abs(one[0] - other[0]) < _ALIGNED or abs(one[1] - other[1]) < _ALIGNED


def _within(extent: tuple[float, float], columns: Sequence[tuple[float, float]]) -> list[int]:
    middle = sum(extent) / 2
    return [at for at, (left, right) in enumerate(columns) if left <= middle < right]


def _over(extent: tuple[float, float], columns: Sequence[tuple[float, float]]) -> list[int]:
    left, right = extent
    return [at for at, column in enumerate(columns) if left < column[1] and right > column[0]]


def _nearest(left: float, right: float, columns: Sequence[tuple[float, float]]) -> int:
    """Return the column whose middle is nearest."""
    middle = left + right
    return min(range(len(columns)), key=lambda at: abs(sum(columns[at]) - middle))


def _may_be_head(text: str) -> bool:
    """Return whether a text may name a column: words, a year or a span of years."""
    is_worded = any(map(str.isalpha, text)) and not _NUMBER.match(text)
    return len(text) <= _LONGEST_HEAD and (is_worded or _YEARS.match(text) is not None)


def _may_be_label(text: str) -> bool:
    is_worded = any(map(str.isalpha, text)) and not _NUMBER.match(text)
    return len(text) <= _LONGEST_LABEL and (is_worded or _YEARS.match(text) is not None)


def _jumps(last: Run, run: Run) -> bool:
    """Return whether the next text object of a line is not on it at all."""
    high = max(last.top - last.bottom, run.top - run.bottom)
    is_apart = run.top < last.bottom - 0.5 * high or run.bottom > last.top + 0.5 * high
    return is_apart or run.right < last.left - high


def _is_uneven(run: Run, tall: Sequence[Run], high: float) -> bool:
    """Return whether a text object may be raised or lowered."""
    return 0.2 * high < run.top - run.bottom < _SMALLER * high and any(
        run.bottom > other.bottom + 0.3 * high or run.top < other.top - 0.33 * high
        for other in tall
    )


def _whole_lines(lines: Iterator[Line]) -> Iterator[Line]:
    """Join lines that PDFium parts at a power or a cell of another height."""
    held: Line | None = None
    for line in lines:
        if held is not None and not held.is_broken and _goes_on(held, line):
            held = _line(held.parts + line.parts, line.is_broken)
            continue
        if held is not None:
            yield held
        held = line
    if held is not None:
        yield held


def _is_below(line: Line, next_: Line) -> bool:
    """Return whether a line goes on in the next, in the same font."""
    gap, high = line.box.bottom - next_.box.top, line.high
    is_near = -0.5 * high < gap < high and abs(next_.box.left - line.box.left) < 3 * high
    return is_near and 0.85 * high < next_.high < 1.15 * high


def _goes_on(line: Line, next_: Line) -> bool:
    """Return whether a line goes on in the next: at a power, or in another cell."""
    high = max(line.high, next_.high)
    gap = next_.box[0] - line.box[2]
    if gap < -0.3 * high:
        return False
    overlap = min(line.box[3], next_.box[3]) - max(line.box[1], next_.box[1])
    if gap < high:
        return overlap >= 0.3 * min(line.high, next_.high)
    part = next_.parts[-1]
    is_short = part[-1].end - part[0].start <= _LONGEST_CELL
    return overlap >= 0.7 * min(line.high, next_.high) and is_short and gap < _WIDEST_GAP * high
