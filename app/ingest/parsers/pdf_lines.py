"""Find the lines of a PDF's page: characters, text objects, powers, cells and gaps.

PDFium gives characters and, cheaply, the boxes of its text objects ("runs" below); the boxes of
single glyphs cost as much as all the rest. They are asked for only where something depends on them.
"""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, pairwise, repeat
from statistics import median
from typing import NamedTuple

import pypdfium2
import pypdfium2.raw as pdfium

from app.ingest.parsers.blocks import lowered, raised

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
CLOSE = raised("x")[-1]
_MOST_RAISED = 3
"""Blanks in what is raised or lowered: more are a line that stands a little off."""
DIGITS = re.compile(r"(?<![^\s(\[<>=\u00b1~$\u20ac\u00a3+\u2212\u2013-])[.,]?\d")
NUMBER = re.compile(
    r"[^\w\s]{0,3}\s?[.,]?\d[\d.,:/%\u00b1\u00d7\u2212\u2013()+* -]*(?:[eE][+\u2212-]?\d+)?"
    r"(?:\s?[A-Za-z%]{1,2})?[^\w\s]{0,3}\Z"
)
LEAST_NUMBERS = 3
_LEAST_SHARE = 0.2
"""Of numbers among the words of a row."""
ALIGNED = 3.0
"""Points between what begins or ends at one place."""
_NOTE = re.compile(r"\s*(\d{1,2})\s*(?=[^\W\d_])")
_NEXT_NOTE = re.compile(r"\. (\d{1,2}) ?(?=[^\W\d_])")
_MINUS = "\u2212\u2013-"
_NUMBER_BEFORE = re.compile(r"[\d.,]*\d\Z")
_NOTES = 0.9
"""Height of a page below which notes may stand, under tables as well."""
BLANKS = re.compile(" +")
_BETWEEN_CAPITALS = re.compile(r"(?<=[^\W\d_a-z]) (?=[^\W\d_a-z])")
_CAPITALS = re.compile(r"[^\W\d_a-z]+")
_SHORTEST_WORD, _LONGEST_WORD = 3, 40
_LEVEL = 0.5
"""Points between baselines of one line."""
_SPACED_CAPITALS = re.compile(r"(?:\A|(?<=[\d.)] ))(?:[^\W\d_a-z] +){3,}[^\W\d_a-z](?=\s*\Z)")
"""A line, or what is behind its number, of single letters."""

# Lengths in heights of a line, or in sizes of a font.
_SMALLER = 0.88
_RAISED, _LOWERED = 0.12, -0.06
_LEAST_GAP = 0.15
"""Between two words."""
_WITHIN_WORD = 0.15
"""More than between letters, at most, where a change of font or size is read as a blank."""
_LEAST_WIDER = 1.4
"""Times: the blank between two words of spaced letters."""
CELL_GAP = 0.75
"""Between two cells: wider than a blank of justified text."""
_CELL_GAP_LETTERS = 1.35
"""The same in widths of the letters next to it: in fonts of equal widths blanks are wide."""


class Box(NamedTuple):
    """In points, origin at the bottom left."""

    left: float
    bottom: float
    right: float
    top: float


NOWHERE = Box(0, 0, 0, 0)


class Run(NamedTuple):
    """The box of a text object and its characters, `[start, end)`, blanks behind it included."""

    left: float
    bottom: float
    right: float
    top: float
    start: int
    end: int


class Field(NamedTuple):
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
        return len(own) == len(columns) and all(are_aligned(*pair) for pair in pairs)

    def are_ruled_by(self, edges: Sequence[float]) -> bool:
        """Return whether the rules of a grid are those of this table."""
        own = [left for left, _ in self.table.columns] + [self.table.columns[-1][1]]
        return (
            self.is_ruled
            and len(own) == len(edges)
            and all(abs(one - other) < ALIGNED for one, other in zip(own, edges, strict=True))
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


def box_around(boxes: Sequence[Box | Run]) -> Box:
    lefts, bottoms, rights, tops, *_ = zip(*boxes, strict=True)
    return Box(min(lefts), min(bottoms), max(rights), max(tops))


def line_of(parts: list[list[Run]], is_broken: bool) -> Line:
    runs = list(chain(*parts))
    return Line(parts, box_around(runs), max(run.top - run.bottom for run in runs), is_broken)


class PageLines:
    """The characters of a page and the lines that they stand on, as they are seen."""

    def __init__(self, page: pypdfium2.PdfPage, textpage: pypdfium2.PdfTextPage) -> None:
        self._raw = textpage.raw
        self._boxes = pdfium.FS_RECTF(), pdfium.FS_RECTF()
        self._sides = [ctypes.c_double() for _ in range(4)]
        self._shown = Box(*page.get_bbox())
        count = textpage.count_chars()
        characters = textpage.get_text_range(0, count) if count else ""
        if len(characters) != count:  # without those that have no meaning
            codes = map(pdfium.FPDFText_GetUnicode, repeat(self._raw), range(count))
            characters = "".join(map(chr, codes))
        self.characters = _OURS.sub("\ufffd", characters)
        self._numbers = [found.start() for found in DIGITS.finditer(self.characters)]
        self._begin_notes: set[int] = set()
        self._notes: set[str] = set()

    def _text(self, pieces: Sequence[Piece]) -> str:
        text = self.characters
        parts = (one if isinstance(one, str) else text[one[0] : one[1]] for one in pieces)
        return "".join(parts)

    # Lines as they are seen.

    def _lines(self) -> Iterator[Line]:
        for found in _LINE.finditer(self.characters):
            runs = self._runs(*found.span())
            is_broken = self.characters[found.end() : found.end() + 1] == "\ufffe"
            if not runs:
                if not found.group().isspace():
                    yield line_of([[Run(*NOWHERE, *found.span())]], is_broken)
                continue
            jumps = [at for at in range(1, len(runs)) if _jumps(runs[at - 1], runs[at])]
            for first, stop in pairwise([0, *jumps, len(runs)]):
                line = line_of([runs[first:stop]], is_broken and stop == len(runs))
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
        numeric = sum(NUMBER.match(text) is not None for text in texts)
        if numeric >= LEAST_NUMBERS or (numeric > 1 and not NUMBER.match(texts[0])):
            line.kind = "row"  # two numbers may be those of a section and its page

    def _close_up(self, line: Line) -> None:
        """Leave out blanks within words in capitals: of spaced letters, and of small capitals."""
        if line.kind or len(line.cells) > 1:
            return
        within = {
            at for part in line.parts for at in self._within_words(part[0].start, part[-1].end)
        }
        if not within:
            return
        pieces: list[Piece] = []
        for piece in line.pieces:
            if isinstance(piece, str):
                pieces.append(piece)
                continue
            start, end = piece
            places = sorted(at for at in within if start <= at < end)
            for first, stop in zip(
                [start, *(at + 1 for at in places)], [*places, end], strict=True
            ):
                pieces += [(first, stop)] if first < stop else []
        line.pieces = pieces

    def _within_words(self, start: int, end: int) -> list[int]:
        text = self.characters[start:end]
        spaced = _SPACED_CAPITALS.search(text)
        if spaced and all(map(str.isupper, spaced[0].split())):
            blanks = [
                (start + blank.start(), start + blank.end())
                for blank in BLANKS.finditer(text, spaced.start(), spaced.end())
            ]
            gaps = [self._gap(stop)[0] for _, stop in blanks]
            if max(gaps) > CELL_GAP * self._gap(blanks[0][1])[1]:
                return []
            wide = (
                (min(gaps) + max(gaps)) / 2 if max(gaps) > _LEAST_WIDER * min(gaps) else max(gaps)
            )
            pairs = zip(blanks, gaps, strict=True)
            return [at for blank, gap in pairs if gap <= wide for at in range(*blank)]
        between_capitals = map(re.Match.start, _BETWEEN_CAPITALS.finditer(text))
        found = [at for at in between_capitals if self._is_in_capitals(start + at, start + at + 1)]
        drawn = [at for at in found if pdfium.FPDFText_IsGenerated(self._raw, start + at) == 1]
        if not drawn:
            return []
        letters = (at for at in range(1, len(text)) if _are_capitals(text[at - 1 : at + 1]))
        between = median([self._gap(start + at)[0] for at in letters] or [0.0])
        gaps_at = {at: self._gap(start + at + 1) for at in found}
        widest = max(gap for gap, _ in gaps_at.values()) - between
        return [
            start + at
            for at in drawn
            if (extra := gaps_at[at][0] - between) < _WITHIN_WORD * gaps_at[at][1]
            and (len(found) == 1 or extra < widest / 2)
        ]

    def _is_in_capitals(self, end: int, start: int) -> bool:
        """Return whether what ends and what starts here is in capitals, on one level."""
        left = _CAPITALS.match(self.characters[max(0, end - _LONGEST_WORD) : end][::-1])
        right = _CAPITALS.match(self.characters, start, start + _LONGEST_WORD)
        letters = left[0] + right[0] if left and right else ""
        is_word = len(letters) >= _SHORTEST_WORD and letters.isupper()
        return is_word and abs(self._metrics(end - 1)[0] - self._metrics(start)[0]) < _LEVEL

    def _gap(self, at: int) -> tuple[float, float]:
        """Return how far a letter stands from the one before, and the height of the taller."""
        left, right = self._around(at)
        return right.left - left.right, max(left.top - left.bottom, right.top - right.bottom, 0.1)

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
                gap, high = self._gap(at)
                if gap > (_WITHIN_WORD * high if self._is_in_capitals(at, at) else least):
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
            marks[end] = "]" + CLOSE + marks.get(end, "")
        else:
            if before == CLOSE and self._level == level:
                del marks[start]  # goes on with what is before
            else:
                marks[start] = before + _OPEN[level]
            marks[end] = CLOSE + marks.get(end, "")
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
            for blank in BLANKS.finditer(self.characters, part[0].start + 1, part[-1].end - 1)
        )
        wide = set()
        for at in chain(blanks, (part[0].start for part in line.parts[1:])):
            left, right = self._around(at)
            gap = right.left - left.right
            letter = min(left.right - left.left, right.right - right.left)
            if gap > max(CELL_GAP * line.high, _CELL_GAP_LETTERS * letter):
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


def are_aligned(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Return whether two columns begin, end or have their middle at one place."""
    middles = abs(sum(one) - sum(other)) / 2
    return begin_or_end(one, other) or middles < ALIGNED


def begin_or_end(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return abs(one[0] - other[0]) < ALIGNED or abs(one[1] - other[1]) < ALIGNED


def _within(extent: tuple[float, float], columns: Sequence[tuple[float, float]]) -> list[int]:
    middle = sum(extent) / 2
    return [at for at, (left, right) in enumerate(columns) if left <= middle < right]


def _are_capitals(letters: str) -> bool:
    return letters.isupper() and letters.isalpha()


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
